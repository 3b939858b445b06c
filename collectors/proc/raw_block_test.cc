#include "collectors/proc/raw_block.h"

#include <gtest/gtest.h>

#include <string>

#include "collectors/proc/testing/host_fixture.h"

namespace profd {
namespace {

// Gives its own memory for what is written, and none after it.
class PlaceSink final : public RawSink {
 public:
  void WriteHostFile(std::string_view, std::string_view) override { ADD_FAILURE(); }
  char* Reserve(std::string_view file, size_t bytes) override {
    name = file;
    text.assign(bytes, '#');
    text.reserve(bytes);
    return text.data();
  }
  std::string name;
  std::string text;
};

TEST(RawBlockWriter, WritesTheSameInPlaceAndHandedOver) {
  const std::string tail(300, 'x');
  RawBlockWriter writer;
  writer.SetTime(1234567890123);
  testing::RecordingSink handed;
  PlaceSink in_place;
  for (RawSink* sink : {static_cast<RawSink*>(&handed), static_cast<RawSink*>(&in_place)}) {
    writer.Write(*sink, "7-CpuUsage.data", 18446744073709551615U, {"7 (a)", tail, "\n", "N:a\n"});
  }
  const std::string expected =
      "TimeStamp:1234567890123\nIndex:18446744073709551615\nDataLen:309\n7 (a)" + tail +
      "\nN:a\n\n";
  EXPECT_EQ(handed.files["7-CpuUsage.data"], expected);
  EXPECT_EQ(in_place.text, expected);
  EXPECT_EQ(in_place.name, "7-CpuUsage.data");
}

TEST(RawBlockWriter, OneNewlineAtTheEndIsTheBlocks) {
  RawBlockWriter writer;
  writer.SetTime(5);
  auto block = [&](std::initializer_list<std::string_view> body) {
    PlaceSink sink;
    writer.Write(sink, "f", 0, body);
    return sink.text;
  };
  EXPECT_EQ(block({"a\n"}), "TimeStamp:5\nIndex:0\nDataLen:1\na\n\n");
  EXPECT_EQ(block({"a\n", ""}), "TimeStamp:5\nIndex:0\nDataLen:1\na\n\n");
  EXPECT_EQ(block({"a", "\n", "b"}), "TimeStamp:5\nIndex:0\nDataLen:3\na\nb\n\n");
  EXPECT_EQ(block({"a\n", "\n"}), "TimeStamp:5\nIndex:0\nDataLen:2\na\n\n\n");
  EXPECT_EQ(block({""}), "TimeStamp:5\nIndex:0\nDataLen:0\n\n\n");
}

TEST(ProcessNameLine, IsOneWord) {
  EXPECT_EQ(ProcessNameLine("tmux: ser\nver"), "ProcessName:tmux:_ser?ver\n");
}

}  // namespace
}  // namespace profd
