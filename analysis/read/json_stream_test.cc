#include "analysis/read/json_stream.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <string>

#include "analysis/read/readers.h"
#include "dump/test_support.h"

namespace profd::analysis {
namespace {

struct TextStream {
  std::string text;
  size_t at = 0;

  char Peek() const { return at < text.size() ? text[at] : '\0'; }
  char Take() { return at < text.size() ? text[at++] : '\0'; }
  size_t Tell() const { return at; }
};

std::string Passed(const std::string& text) {
  TextStream from{text};
  WithoutLoneSurrogates stream(&from);
  std::string passed;
  while (passed.size() < text.size()) {
    EXPECT_EQ(stream.Tell(), passed.size());
    const char next = stream.Peek();
    passed += stream.Take();
    EXPECT_EQ(passed.back(), next) << text;
  }
  EXPECT_EQ(stream.Peek(), '\0');
  return passed;
}

// RFC 8259, 7: a character beyond U+FFFF is a pair of escapes, U+D800 to U+DBFF and U+DC00 to U+DFFF.
TEST(JsonStreamTest, SurrogatesWithoutAPartnerAreReplaced) {
  for (const char* same : {R"("\ud83d\ude00")", R"("\uD83D\uDE00x")", R"("\\ud800")", R"("\u0041\n\\")", R"("\ud8")", R"("\ud8zz")", "\"\\", "\"\\u"}) {
    EXPECT_EQ(Passed(same), same);
  }
  EXPECT_EQ(Passed(R"("\ud800")"), R"("\ufffd")");
  EXPECT_EQ(Passed(R"("\udc80x")"), R"("\ufffdx")");
  EXPECT_EQ(Passed(R"("\uD800\n\\")"), R"("\ufffd\n\\")");
  EXPECT_EQ(Passed(R"("\ud800\\ud800")"), R"("\ufffd\\ud800")");
  EXPECT_EQ(Passed(R"("\ud800\u0041")"), R"("\ufffd\u0041")");
  EXPECT_EQ(Passed(R"("\ud800\ud83d\ude00\udc00")"), R"("\ufffd\ud83d\ude00\ufffd")");
  EXPECT_EQ(Passed(R"("\ud800\ud800\ud800")"), R"("\ufffd\ufffd\ufffd")");
  EXPECT_EQ(Passed(R"("\ud800)"), R"("\ufffd)");
}

// Python's json.dumps of a path that os.fsdecode made of bytes.
TEST(JsonStreamTest, EventsBehindOneAreRead) {
  const TempDir dir;
  const std::string folder = dir / "n_0_ascend_pt/ASCEND_PROFILER_OUTPUT";
  std::filesystem::create_directories(folder);
  WriteText(folder + "/trace_view.json", R"([{"ph": "X", "name": "first \udcff.py", "pid": 1, "tid": 2, "ts": "10", "dur": 5},)"
                                         R"({"ph": "X", "name": "second", "pid": 1, "tid": 2, "ts": "20", "dur": 5}])");
  const auto run = LoadRun({dir / "n_0_ascend_pt"}, {}, {});
  ASSERT_TRUE(run.ok()) << run.status().ToString();
  EXPECT_TRUE(run->problems.empty());
  const Rank& rank = *run->ranks.at(0);
  ASSERT_EQ(rank.slices.size(), 2u);
  EXPECT_EQ(rank.TextOf(rank.slices[0].name), "first \xEF\xBF\xBD.py");
  EXPECT_EQ(rank.TextOf(rank.slices[1].name), "second");
}

}  // namespace
}  // namespace profd::analysis
