#include "export/operators/framework.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>

namespace profd::exporting::operators {
namespace {

template <class T>
std::string Le(T value) {
  std::string bytes;
  for (size_t i = 0; i < sizeof value; ++i) bytes += static_cast<char>(static_cast<uint64_t>(value) >> (8 * i) & 0xFF);
  return bytes;
}

std::string Part(uint16_t type, const std::string& body) {
  return Le(type) + Le(static_cast<uint32_t>(body.size())) + body;
}

// in-application 7.2: start, end, sequence, pid, startTid, endTid, fwdTid, scope, isAsync; fields.
std::string Range(bool scope, int64_t begin, int64_t end) {
  std::string body = Le(begin) + Le(end) + Le(int64_t{7}) + Le(uint64_t{42}) + Le(uint64_t{43}) + Le(uint64_t{44}) +
                     Le(uint64_t{45}) + (scope ? Le(uint8_t{0}) : "") + Le(uint8_t{0});
  return Part(1, body + Part(2, "aten::add") + Part(3, "float;int") + Part(4, "2,3;4") + Part(8, "a.py(1): f;b.py(2): g") +
                     Part(9, "Net") + Part(10, "later versions"));
}

class Framework : public testing::Test {
 protected:
  void Read(std::string_view base, const std::string& text) {
    EXPECT_TRUE(data.Read(base, std::as_bytes(std::span(text))));
  }
  Strings strings;
  FrameworkData data{strings};
};

TEST_F(Framework, OperatorsOfBothTorchLayouts) {
  Read("torch.op_range", Range(true, 100, 200) + Range(false, 300, 300));
  ASSERT_EQ(data.operators.size(), 2u);
  for (const FrameworkOperator& op : data.operators) {
    EXPECT_EQ(op.sequence, 7);
    EXPECT_EQ(op.thread, 43u);
    EXPECT_EQ(op.forward_thread, 45u);
    EXPECT_EQ(strings.Text(op.name), "aten::add");
    EXPECT_EQ(strings.Text(op.types), "float;int");
    EXPECT_EQ(strings.Text(op.shapes), "2,3;4");
    EXPECT_EQ(strings.Text(op.stack), "a.py(1): f;b.py(2): g");
    EXPECT_EQ(strings.Text(op.modules), "Net");
  }
  EXPECT_EQ(std::pair(data.operators[0].begin, data.operators[0].end), std::pair(int64_t{100}, int64_t{200}));
  EXPECT_EQ(std::pair(data.operators[1].begin, data.operators[1].end), std::pair(int64_t{300}, int64_t{300}));
  EXPECT_EQ(data.records, 2u);
  EXPECT_EQ(data.bad_records, 0u);
}

TEST_F(Framework, MarksOfTheQueue) {
  const auto mark = [](uint64_t kind) {
    return Part(2, Le(int64_t{50}) + Le(kind) + Le(uint64_t{9}) + Le(uint64_t{43}) + Le(uint64_t{42}) + Part(1, "add"));
  };
  Read("torch.op_mark", mark(0) + mark(3) + mark(4));
  ASSERT_EQ(data.marks.size(), 2u);
  EXPECT_EQ(data.marks[0].kind, QueueMark::Kind::kEnqueueBegin);
  EXPECT_EQ(data.marks[1].kind, QueueMark::Kind::kDequeueEnd);
  EXPECT_EQ(data.marks[1].time, 50);
  EXPECT_EQ(data.marks[1].correlation, 9u);
  EXPECT_EQ(data.marks[1].thread, 43u);
  EXPECT_EQ(strings.Text(data.marks[1].name), "add");
  EXPECT_EQ(data.bad_records, 1u);
  EXPECT_EQ(data.bad_bytes, mark(4).size());
}

TEST_F(Framework, OperatorsOfMindSpore) {
  std::string body;
  for (const uint64_t value : std::array<uint64_t, 5>{43, 1, 2, 100, 200}) body += Le(value);
  body += std::string(14, '\0');
  Read("mindspore.op_range", Part(0, body + Part(13, "Conv2D")));
  ASSERT_EQ(data.operators.size(), 1u);
  EXPECT_EQ(data.operators[0].thread, 43u);
  EXPECT_EQ(data.operators[0].begin, 100);
  EXPECT_EQ(data.operators[0].end, 200);
  EXPECT_EQ(data.operators[0].sequence, -1);
  EXPECT_EQ(strings.Text(data.operators[0].name), "Conv2D");
}

TEST_F(Framework, DamagedRecordCostsItselfOnly) {
  std::string broken = Range(true, 1, 2);
  broken[6 + 58 + 2] = '\x7F';  // length of the first field
  Read("torch.op_range", Range(true, 1, 2) + broken + Range(true, 2, 1) + Part(1, "short") + Range(true, 5, 6));
  EXPECT_EQ(data.operators.size(), 2u);
  EXPECT_EQ(data.records, 5u);
  EXPECT_EQ(data.bad_records, 3u);
}

TEST_F(Framework, CutAtEveryByte) {
  const std::string first = Range(true, 1, 2);
  const std::string all = first + Range(true, 3, 4);
  for (size_t cut = 0; cut < all.size(); ++cut) {
    FrameworkData read(strings);
    const std::string text = all.substr(0, cut);
    read.Read("torch.op_range", std::as_bytes(std::span(text)));
    EXPECT_EQ(read.operators.size(), cut < first.size() ? 0u : 1u) << cut;
    EXPECT_EQ(read.bad_bytes, cut < first.size() ? cut : cut - first.size()) << cut;
  }
}

TEST_F(Framework, OtherFilesAreNotRead) {
  EXPECT_FALSE(FrameworkData::IsFile("torch.unknown"));
  EXPECT_FALSE(data.Read("torch.unknown", {}));
}

}  // namespace
}  // namespace profd::exporting::operators
