#include "base/problem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/duration_text.h"
#include "base/status.h"

namespace profd {
namespace {

using ::testing::EndsWith;
using ::testing::SizeIs;

TEST(Problem, NamesFieldAndValue) {
  EXPECT_EQ(Describe({.field = "rank", .value = "-1", .text = "must not be negative"}),
            "rank = -1: must not be negative");
  EXPECT_EQ(Describe({.field = "job_id", .value = "$(x)", .text = "letters only"}),
            "job_id = \"$(x)\": letters only");
  EXPECT_EQ(Describe({.field = "a\\x07b", .value = "1", .text = "unknown option"}), "\"a\\x07b\" = 1: unknown option");
  EXPECT_EQ(Describe({.field = "preempt", .text = "is for administrators"}), "preempt: is for administrators");
  EXPECT_EQ(Describe(Problem{.text = "the options turn everything off"}), "the options turn everything off");
}

TEST(Problem, IsDescribedInTheCallersWords) {
  const FieldNames flags = [](std::string_view field) -> std::optional<WrittenField> {
    if (field == "since_ms") return WrittenField{"--since", "10s"};
    if (field == "no_dump") return WrittenField{"--no-dump", std::nullopt};
    if (field == "lease_ms") return WrittenField{"--lease", std::nullopt};
    return std::nullopt;
  };
  EXPECT_EQ(Describe({.field = "since_ms", .value = "10000", .text = "needs a dump, and {no_dump} is given"}, flags),
            "--since 10s: needs a dump, and --no-dump is given");
  // A default is not the caller's.
  EXPECT_EQ(Describe({.field = "lease_ms", .value = "5", .text = "too short"}, flags), "lease_ms = 5: too short");
  EXPECT_EQ(Describe({.field = "rank", .value = "-1", .text = "{rank}, {}, {\"a\":1}, {Rank"}, flags),
            "rank = -1: rank, {}, {\"a\":1}, {Rank");
}

TEST(ProblemList, IsBoundedAndCounts) {
  ProblemList list;
  EXPECT_TRUE(list.empty());
  for (int i = 0; i < 1000; ++i) list.Add({.field = "devices", .text = "no device " + std::to_string(i)});
  const std::vector<Problem> problems = std::move(list).Take();
  ASSERT_THAT(problems, SizeIs(ProblemList::kMaxProblems + 1));
  EXPECT_EQ(problems.back().text, "and 968 more");
}

// As one list leaves out what another has left out.
TEST(ProblemList, CountsWhatIsLeftOutAlready) {
  ProblemList list;
  list.Add({.text = "and 176 more problems", .left_out = 176});
  EXPECT_FALSE(list.empty());
  for (int i = 0; i < 40; ++i) list.Add({.text = "no"});
  const std::vector<Problem> problems = std::move(list).Take();
  ASSERT_THAT(problems, SizeIs(33));
  EXPECT_EQ(problems.back().text, "and 184 more");  // 40 - 32 and the 176
  EXPECT_EQ(problems.back().left_out, 184u);
  EXPECT_EQ(problems.front().left_out, 0u);
}

TEST(ProblemList, CutsLongTextsAtACharacterAndRemovesControls) {
  ProblemList list;
  list.Add({.text = std::string(ProblemList::kMaxTextBytes - 1, 'x') + "\xe5\xb1\x82"});
  list.Add({.text = "a\x1b[2Jb\n"});
  const std::vector<Problem> problems = std::move(list).Take();
  EXPECT_THAT(problems[0].text, EndsWith("xxx..."));
  EXPECT_EQ(problems[1].text, "a?[2Jb?");
}

TEST(ProblemList, CutsWhatTheClientSent) {
  ProblemList list;
  list.Add({.field = std::string(1000, 'f'), .value = std::string(1000, 'v'), .text = "unknown option"});
  EXPECT_LT(std::move(list).Take()[0].value.size(), 200u);
}

TEST(Status, IsDescribedByItsProblems) {
  const Status status(StatusCode::kInvalidArgument,
                      std::vector<Problem>{{.field = "a", .text = "no"}, {.field = "b", .text = "neither"}});
  EXPECT_EQ(status.message(), "a: no\nb: neither");
  EXPECT_THAT(status.problems(), SizeIs(2));
  EXPECT_TRUE(InvalidArgument("x").problems().empty());
}

TEST(DurationText, Exact) {
  EXPECT_EQ(ExactDuration(2'592'000'000), "720h");
  EXPECT_EQ(ExactDuration(90'000), "90s");
  EXPECT_EQ(ExactDuration(120'000), "2m");
  EXPECT_EQ(ExactDuration(1500), "1500ms");
  EXPECT_EQ(ExactDuration(0), "0ms");
}

}  // namespace
}  // namespace profd
