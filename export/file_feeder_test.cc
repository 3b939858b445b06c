// Slices that do not end with a record or a line: what is joined, what is skipped.
#include "export/file_feeder.h"

#include <gtest/gtest.h>

#include <vector>

#include "dump/test_support.h"
#include "driver/records/hbm.h"
#include "export/text_scan.h"

namespace profd::exporting {
namespace {

class FileFeederTest : public ::testing::Test {
 protected:
  // Slices `first`, `first` + 1 and so on; the bytes that no record or line was made of.
  uint64_t Feed(const char* base, size_t record_size, const std::vector<std::string>& slices, uint64_t first,
                Decoder* decoder) {
    DataFile file;
    file.base = base;
    for (const std::string& slice : slices) {
      const std::string name = "slice_" + std::to_string(file.slices.size());
      WriteText(dir_ / name, slice);
      const uint64_t missing = file.slices.size() == 1 ? missing_ : 0;
      file.slices.push_back({name, slice.size(), first + file.slices.size(), false, missing});
    }
    Result<DumpReader> reader = DumpReader::OpenPath(dir_.path());
    EXPECT_TRUE(reader.ok());
    std::vector<std::byte> buffer;
    FileFeeder feeder(*reader, record_size, &buffer, [](uint64_t) { return true; });
    feeder.Run(file, decoder);
    return feeder.bad_bytes();
  }

  TempDir dir_;
  uint64_t missing_ = 0;  // behind the second slice
};

// Takes reads of stack 0, 1000 to 1999 each.
class HbmChecker : public Decoder {
 public:
  void Feed(std::span<const std::byte> bytes, bool) override {
    for (; bytes.size() >= sizeof(records::HbmRecord); bytes = bytes.subspan(sizeof(records::HbmRecord))) {
      const auto record = records::Read<records::HbmRecord>(bytes);
      ++(record.IsPlausible() && record.count / 1000 == 1 ? stats_.records : stats_.bad_records);
    }
  }
  void Finish() override {}
};

// Whether it was cut in front or behind is seen in its records.
TEST_F(FileFeederTest, TheOnlySliceLeftIsCutAtEitherEnd) {
  std::string all;
  for (uint64_t i = 1; i <= 100; ++i) {
    const records::HbmRecord record{10'000 * i, 1000 + i, 0, 0};
    all.append(reinterpret_cast<const char*>(&record), sizeof record);
  }
  for (size_t cut : {1, 8, 16, 23}) {
    for (bool front : {true, false}) {
      const std::string text = front ? all.substr(24 - cut) : all.substr(0, all.size() - 24 + cut);
      for (bool known : {true, false}) {
        SCOPED_TRACE(testing::Message() << known << " " << cut << (front ? " in front" : " behind"));
        HbmChecker checker;
        EXPECT_EQ(Feed(known ? "hbm.data" : "other.data", 24, {text}, 7, &checker), cut);
        // Of a format that is not known the front is cut, as the vendor's reader has it.
        EXPECT_EQ(checker.stats().bad_records == 0, known || front);
      }
    }
  }
}

class MagicChecker : public Decoder {
 public:
  void Feed(std::span<const std::byte> bytes, bool) override {
    for (; bytes.size() >= 64; bytes = bytes.subspan(64)) {
      ++(bytes[2] == std::byte{0xD3} && bytes[3] == std::byte{0x6B} ? stats_.records : stats_.bad_records);
    }
  }
  void Finish() override {}
};

std::string EightWithMagic() {
  std::string all;
  for (char i = 0; i < 8; ++i) all += std::string("\x01\x00\xD3\x6B", 4) + std::string(60, i);
  return all;
}

// operator-data a.6: what is too much for complete records is skipped in front of the first slice, whatever its number.
// Records of 0x6BD3 show where it is the end that is cut.
TEST_F(FileFeederTest, FirstSliceNumbered0MayBeCutInFront) {
  const std::string all = EightWithMagic();
  for (const char* base : {"stars_soc.data", "ffts_profile.data", "stars_soc_profile.data"}) {
    for (size_t cut : {1, 6, 32, 63}) {
      for (bool front : {true, false}) {
        const std::string text = front ? all.substr(cut) : all.substr(0, all.size() - cut);
        const std::vector parts = {text.substr(0, 100), text.substr(100)};
        for (const std::vector<std::string>& slices : {std::vector{text}, parts}) {
          SCOPED_TRACE(testing::Message() << base << " " << cut << (front ? " front " : " end ") << slices.size());
          MagicChecker checker;
          EXPECT_EQ(Feed(base, 64, slices, 0, &checker), 64 - cut);
          EXPECT_EQ(checker.stats().records, 7u);
          EXPECT_EQ(checker.stats().bad_records, 0u);
        }
      }
    }
  }
}

// Whatever the two rests are together; also where they make one record.
TEST_F(FileFeederTest, RecordsWithMagicMayBeCutAtBothEnds) {
  const std::string all = EightWithMagic();
  for (size_t front : {1, 6, 32, 63}) {
    for (size_t end : {1, 5, 32, 63}) {
      for (uint64_t first : {0, 7}) {
        SCOPED_TRACE(testing::Message() << front << " in front, " << end << " behind, slice " << first);
        MagicChecker checker;
        const std::string text = all.substr(front, all.size() - front - end);
        EXPECT_EQ(Feed("stars_soc.data", 64, {text}, first, &checker), 64 - front + 64 - end);
        EXPECT_EQ(checker.stats().records, 6u);
        EXPECT_EQ(checker.stats().bad_records, 0u);
      }
    }
  }
}

// Lines "=..;", '*' before those that begin a slice.
class LineDecoder : public Decoder {
 public:
  void Feed(std::span<const std::byte> bytes, bool slice_start) override {
    ForEachLine(bytes, [&](std::string_view line) {
      lines += (slice_start ? "*" : "") + std::string(line) + "|";
      slice_start = false;
    });
  }
  bool IsLine(std::string_view line) const override {
    return line.starts_with('=') && line.find(';') == line.size() - 1;
  }
  void Finish() override {}

  std::string lines;
};

TEST_F(FileFeederTest, ALineWithoutEndIsOfItsSliceAlone) {
  struct Case {
    std::vector<std::string> slices;
    std::string lines;
  };
  const std::vector<Case> cases = {
      {{"=1;\n=2;", "=3;\n=4;"}, "*=1;|=2;|*=3;|=4;|"},  // only the end is missing
      {{"=1;\n=2", "3;\n=4;\n"}, "*=1;|=23;|=4;|"},      // cut within the line
      {{"=1;\n=2;", "\n=4;\n"}, "*=1;|=2;|=4;|"},        // before its end
      {{"=1;\n", "=2;", "=3;"}, "*=1;|*=2;|*=3;|"},       // a line each
      {{"=1;\n=", "2;\n"}, "*=1;|=2;|"},                  // behind its first character
      {{"=1;\nhalf", "=2;\n"}, "*=1;|half|*=2;|"},        // the rest was lost
      {{"=1;\nno", " line\n"}, "*=1;|no line|"},          // nothing is known of it
  };
  for (const Case& one : cases) {
    LineDecoder decoder;
    EXPECT_EQ(Feed("text.data", 0, one.slices, 0, &decoder), 0u);
    EXPECT_EQ(decoder.lines, one.lines);
  }
}

// The third slice begins within the fourth record, whose beginning may be missing.
TEST_F(FileFeederTest, BehindMissingBytesRecordsGoOnWhereTheyBegin) {
  const std::string all = EightWithMagic();
  for (size_t missing : {1, 36, 40, 72, 99}) {
    MagicChecker checker;
    const size_t left = 100 - missing;
    missing_ = missing;
    Feed("stars_soc.data", 64, {all.substr(0, 100), all.substr(100, left), all.substr(200)}, 0, &checker);
    // Of the first 200 bytes those that are complete, and from byte 256 on those behind.
    EXPECT_EQ(checker.stats().records, (100 + left) / 64 + 4) << missing;
    EXPECT_EQ(checker.stats().bad_records, 0u) << missing;
  }
}

}  // namespace
}  // namespace profd::exporting
