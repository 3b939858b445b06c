#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/bytes.h"

namespace profd {
namespace {

uint32_t Of(const std::string& text) { return Crc32c(AsBytes(text)); }

// RFC 3720, B.4.
TEST(Crc32cTest, KnownAnswers) {
  EXPECT_EQ(Of(""), 0u);
  EXPECT_EQ(Of("123456789"), 0xe3069283u);
  EXPECT_EQ(Of(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Of(std::string(32, '\xff')), 0x62a8ab43u);
  std::string rising;
  for (char c = 0; c < 32; ++c) rising += c;
  EXPECT_EQ(Of(rising), 0x46dd794eu);
  EXPECT_EQ(Of(std::string(rising.rbegin(), rising.rend())), 0x113fdb5cu);
}

TEST(Crc32cTest, TablesAndInstructionAgreeAtEveryLengthAndAlignment) {
  std::vector<std::byte> bytes(300);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 151 + (i >> 3));
  for (size_t from = 0; from < 9; ++from) {
    for (size_t size = 0; from + size <= bytes.size(); ++size) {
      auto part = std::span(bytes).subspan(from, size);
      ASSERT_EQ(Crc32c(part), internal::Crc32cTables(part)) << from << " " << size;
    }
  }
}

// Long enough for blocks that are summed in lanes, and a rest.
TEST(Crc32cTest, TablesAndInstructionAgreeOnLongOnes) {
  std::vector<std::byte> bytes(20000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 151 + (i >> 3) + (i >> 11));
  for (size_t size = 3000; size <= bytes.size(); size += size < 3100 ? 1 : 997) {
    auto part = std::span(bytes).subspan(1, size - 1);
    ASSERT_EQ(Crc32c(part), internal::Crc32cTables(part)) << size;
    ASSERT_EQ(Crc32c(part, 12345), internal::Crc32cTables(part, 12345)) << size;
  }
}

TEST(Crc32cTest, ContinuesWhereItStopped) {
  std::string text = "a slice is written in many pieces, each of whatever length it has";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    uint32_t first = Crc32c(AsBytes(text.substr(0, cut)));
    EXPECT_EQ(Crc32c(AsBytes(text.substr(cut)), first), Of(text));
    EXPECT_EQ(internal::Crc32cTables(AsBytes(text.substr(cut)), first), Of(text));
  }
}

}  // namespace
}  // namespace profd
