#include "analysis/read/json_stream.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <string>

#include "analysis/read/readers.h"
#include "dump/test_support.h"

namespace profd::analysis {
namespace {

std::string Passed(const std::string& text, size_t block = 256) {
  size_t read = 0;
  WithoutLoneSurrogates stream(
      [&](char* to, size_t bytes) {
        const size_t count = text.copy(to, bytes, read);
        read += count;
        return count;
      },
      block);
  std::string passed;
  while (passed.size() < text.size()) {
    EXPECT_EQ(stream.Tell(), passed.size());
    const char next = stream.Peek();
    passed += stream.Take();
    EXPECT_EQ(passed.back(), next) << text;
  }
  EXPECT_EQ(stream.Peek(), '\0');
  EXPECT_EQ(stream.Take(), '\0');
  EXPECT_EQ(stream.Tell(), text.size());
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

// Each text at every place of a block: escapes and pairs are cut by its border, and runs without any cross it.
TEST(JsonStreamTest, BlocksMakeNoDifference) {
  const size_t block = WithoutLoneSurrogates::kLeastBlock;
  for (size_t before = 0; before < 2 * block; ++before) {
    const std::string run(before, 'x');
    for (const std::string& end : {std::string(), std::string(3 * block, 'y'), std::string("\\")}) {
      EXPECT_EQ(Passed(run + R"(\ud83d\ude00)" + end, block), run + R"(\ud83d\ude00)" + end);
      EXPECT_EQ(Passed(run + R"(\\ud800\n)" + end, block), run + R"(\\ud800\n)" + end);
      EXPECT_EQ(Passed(run + R"(\ud800\ud800\ud83d\ude00z\udc00)" + end, block), run + R"(\ufffd\ufffd\ud83d\ude00z\ufffd)" + end);
    }
  }
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
