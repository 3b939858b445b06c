#include "base/line_shape.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "base/text.h"

namespace profd {
namespace {

TEST(LineShape, MasksAreWhatTheCharactersAre) {
  std::minstd_rand random(7);
  for (size_t size = 0; size <= LineShape::kMaxSize; ++size) {
    std::string line;
    for (size_t i = 0; i < size; ++i) line += static_cast<char>(' ' + random() % 224);
    if (size > 0) line[random() % size] = ' ';
    LineShape shape;
    ASSERT_TRUE(ScanLine(line + "\nmore", &shape)) << size;
    ASSERT_EQ(shape.size, size);
    size_t words = 0;
    for (size_t i = 0; i < 128; ++i) {
      const bool inside = i < size;
      const bool solid = inside && line[i] != ' ';
      const bool digit = inside && line[i] >= '0' && line[i] <= '9';
      ASSERT_EQ(static_cast<bool>(shape.solid >> i & 1), solid) << i;
      ASSERT_EQ(static_cast<bool>(shape.odd >> i & 1), solid && !digit) << i;
      if (solid && (i == 0 || line[i - 1] == ' ')) ++words;
    }
    ASSERT_EQ(shape.words(), words);
  }
}

TEST(LineShape, OtherLinesAreLeftToOthers) {
  LineShape shape;
  EXPECT_FALSE(ScanLine("", &shape));
  EXPECT_FALSE(ScanLine("123", &shape));
  EXPECT_FALSE(ScanLine("12345678", &shape));
  EXPECT_FALSE(ScanLine("1\t2\n", &shape));
  EXPECT_FALSE(ScanLine("1 2\r\n", &shape));
  EXPECT_FALSE(ScanLine(std::string_view("1\0 2\n", 5), &shape));
  EXPECT_FALSE(ScanLine(std::string(LineShape::kMaxSize + 1, '1') + "\n", &shape));
  EXPECT_FALSE(ScanLine(std::string(4000, '1'), &shape));
  EXPECT_TRUE(ScanLine("\n", &shape));
  EXPECT_EQ(shape.size, 0u);
}

TEST(ParseDigitsWithin, AgreesWithTheStandardLibrary) {
  std::minstd_rand random(3);
  for (int round = 0; round < 20'000; ++round) {
    std::string before = "1234567890123456";
    std::string number;
    const size_t size = random() % 19;
    for (size_t i = 0; i < size; ++i) number += static_cast<char>('0' + random() % 10);
    if (size > 0 && round % 4 == 0) number[random() % size] = static_cast<char>(random() % 256);
    const std::string text = before + number;
    uint64_t expected = 0;
    uint64_t value = 0;
    const bool is_number = size <= 16 && ParseNumber(std::string_view(number), &expected);
    ASSERT_EQ(ParseDigitsWithin(text.data(), before.size(), text.size(), &value), is_number)
        << number;
    if (is_number) {
      ASSERT_EQ(value, expected) << number;
    }
  }
}

// Nine digits behind a short number of seconds, say.
TEST(ParseDigitsWithin, EightCharactersAreEnough) {
  uint64_t value = 0;
  EXPECT_TRUE(ParseDigitsWithin("5:123456789", 2, 11, &value));
  EXPECT_EQ(value, 123456789u);
  EXPECT_TRUE(ParseDigitsWithin("1234567890123456", 0, 16, &value));
  EXPECT_EQ(value, 1234567890123456u);
  EXPECT_TRUE(ParseDigitsWithin("12345678", 0, 8, &value));
  EXPECT_EQ(value, 12345678u);
  EXPECT_FALSE(ParseDigitsWithin("12345678901234567", 0, 17, &value));
  EXPECT_FALSE(ParseDigitsWithin("x23456789", 0, 9, &value));
  EXPECT_FALSE(ParseDigitsWithin("12345678x", 0, 9, &value));
}

TEST(ParseDigitsWithin, NothingBeforeTheTextIsRead) {
  const std::vector<char> text(7, '1');  // on the heap, for sanitizers
  uint64_t value = 0;
  EXPECT_FALSE(ParseDigitsWithin(text.data(), 0, text.size(), &value));
}

}  // namespace
}  // namespace profd
