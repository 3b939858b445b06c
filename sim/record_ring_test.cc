#include "sim/record_ring.h"

#include <gtest/gtest.h>

#include <string>

namespace profd::sim {
namespace {

std::string ReadAll(RecordRing& ring, size_t piece) {
  std::string all;
  std::string buffer(piece, '\0');
  while (const size_t n = ring.Read(buffer.data(), buffer.size())) all.append(buffer, 0, n);
  return all;
}

std::string Record(uint64_t i) {
  std::string record(24, '.');
  record.replace(0, 8, std::string(reinterpret_cast<const char*>(&i), 8));
  return record;
}

TEST(RecordRing, HandsOutWhatWentInInAnyPieces) {
  RecordRing ring(24);
  std::string expected;
  for (uint64_t i = 0; i < 100; ++i) {
    ring.Append(Record(i));
    expected += Record(i);
  }
  EXPECT_EQ(ring.size(), expected.size());
  EXPECT_EQ(ReadAll(ring, 7), expected);
  EXPECT_EQ(ring.size(), 0u);
}

// Overflow drops complete records, oldest first, but lets the reader finish the one it has begun.
TEST(RecordRing, OverflowKeepsFraming) {
  RecordRing ring(24);
  ring.Append(Record(0));
  std::string head(10, '\0');
  ASSERT_EQ(ring.Read(head.data(), head.size()), 10u);
  constexpr uint64_t kCount = 100'000;
  for (uint64_t i = 1; i < kCount; ++i) ring.Append(Record(i));
  EXPECT_LE(ring.size(), RecordRing::kCapacity);
  const std::string rest = ReadAll(ring, 1000);
  ASSERT_EQ((head + rest).size() % 24, 0u);
  EXPECT_EQ((head + rest).substr(0, 24), Record(0));
  EXPECT_EQ(rest.substr(rest.size() - 24), Record(kCount - 1));
  EXPECT_EQ(ring.dropped_bytes() + head.size() + rest.size(), kCount * 24);
  for (size_t at = 14; at + 24 < rest.size(); at += 24) {
    uint64_t a, b;
    memcpy(&a, rest.data() + at, 8);
    memcpy(&b, rest.data() + at + 24, 8);
    ASSERT_EQ(a + 1, b);
  }
}

TEST(RecordRing, OverflowDropsCompleteLines) {
  RecordRing ring(0);
  ring.Append("first line\n");
  char head[3];
  ASSERT_EQ(ring.Read(head, 3), 3u);
  for (int i = 0; i < 200'000; ++i) ring.Append("line " + std::to_string(i) + "\n");
  EXPECT_LE(ring.size(), RecordRing::kCapacity);
  const std::string rest = ReadAll(ring, 4096);
  EXPECT_EQ(rest.substr(0, 8), "st line\n");
  EXPECT_EQ(rest.substr(8, 5), "line ");
  EXPECT_TRUE(rest.ends_with("\nline 199999\n"));
}

}  // namespace
}  // namespace profd::sim
