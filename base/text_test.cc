#include "base/text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

#include "base/bytes.h"
#include "base/utf8.h"

namespace profd {
namespace {

TEST(Text, NumberMustBeTheCompleteText) {
  uint64_t value = 9;
  EXPECT_TRUE(ParseNumber("18446744073709551615", &value));
  EXPECT_EQ(value, std::numeric_limits<uint64_t>::max());
  EXPECT_FALSE(ParseNumber("18446744073709551616", &value));
  EXPECT_FALSE(ParseNumber("12x", &value));
  EXPECT_FALSE(ParseNumber("", &value));
}

TEST(Text, EndsOfPaths) {
  EXPECT_EQ(WithoutLastSlashes("/a/b//"), "/a/b");
  EXPECT_EQ(WithoutLastSlashes("//"), "/");
  EXPECT_EQ(WithoutLastSlashes(""), "");
  for (const char* name : {"/a", "a", "/a/..b", "/a/..."}) EXPECT_TRUE(EndsWithName(name)) << name;
  for (const char* none : {"", "/", "/a/", "/a/.", "/a/..", ".."}) EXPECT_FALSE(EndsWithName(none)) << none;
}

TEST(Text, TokensAndLines) {
  std::string_view rest = "a  b\nc d";
  std::string_view line;
  ASSERT_TRUE(NextLine(&rest, &line));
  EXPECT_EQ(NextToken(&line), "a");
  EXPECT_EQ(NextToken(&line), "b");
  EXPECT_EQ(NextToken(&line), "");
  ASSERT_TRUE(NextLine(&rest, &line));
  EXPECT_EQ(line, "c d");
  EXPECT_FALSE(NextLine(&rest, &line));
}

TEST(Text, ClassesOfCharactersAreThoseOfAscii) {
  std::string digits;
  std::string letters;
  std::string controls;
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    if (IsDigit(c)) digits += c;
    if (IsLetter(c)) letters += c;
    if (IsControl(c)) controls += c;
    EXPECT_EQ(IsLetterOrDigit(c), IsLetter(c) || IsDigit(c)) << byte;
  }
  EXPECT_EQ(digits, "0123456789");
  EXPECT_EQ(letters, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
  EXPECT_EQ(controls.size(), 33U);
  EXPECT_EQ(controls.back(), '\x7f');
  EXPECT_TRUE(IsDigits("007"));
  EXPECT_FALSE(IsDigits(""));
  EXPECT_FALSE(IsDigits("7a"));
  EXPECT_EQ(LowerCase("HBM_\xC4"), "hbm_\xC4");
  EXPECT_EQ(UpperCase("hbm_\xE4z{"), "HBM_\xE4Z{");
}

TEST(Text, CaseIsIgnoredOfLettersOnly) {
  EXPECT_TRUE(SameIgnoringCase("Mb/s", "mB/S"));
  EXPECT_FALSE(SameIgnoringCase("Mb", "Mb/s"));
  EXPECT_FALSE(SameIgnoringCase("[", "{"));
  EXPECT_TRUE(HoldsIgnoringCase("DataLoader.next", "dataloader"));
  EXPECT_FALSE(HoldsIgnoringCase("data", "dataloader"));
}

TEST(Utf8, CharactersAreThoseOfTheStandard) {
  const auto is = [](std::string_view text, uint32_t value, size_t bytes) {
    const CodePoint first = FirstCodePoint(text);
    return first.value == value && first.bytes == bytes;
  };
  EXPECT_TRUE(is(std::string_view("\0", 1), 0, 1));
  EXPECT_TRUE(is("\x7f" "a", 0x7f, 1));
  EXPECT_TRUE(is("\xc2\x80", 0x80, 2));
  EXPECT_TRUE(is("\xdf\xbf" "a", 0x7ff, 2));
  EXPECT_TRUE(is("\xe0\xa0\x80", 0x800, 3));
  EXPECT_TRUE(is("\xed\x9f\xbf", 0xd7ff, 3));
  EXPECT_TRUE(is("\xee\x80\x80", 0xe000, 3));
  EXPECT_TRUE(is("\xf0\x90\x80\x80", 0x10000, 4));
  EXPECT_TRUE(is("\xf4\x8f\xbf\xbf", 0x10ffff, 4));
  // Longer than needed, surrogates, too large, cut off, or the middle of one.
  for (const char* none : {"\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                           "\xf5\x80\x80\x80", "\xe2\x82", "\xe2\x82" "a", "\x80", "\xff"}) {
    EXPECT_EQ(FirstCodePoint(none).bytes, 0U) << none;
  }
}

TEST(Utf8, TextsAreCutBetweenCharacters) {
  constexpr std::string_view kText = "a\xc3\xa4z";
  EXPECT_EQ(BytesOfWholeCharacters(kText, 1), 1U);
  EXPECT_EQ(BytesOfWholeCharacters(kText, 2), 1U);
  EXPECT_EQ(BytesOfWholeCharacters(kText, 3), 3U);
}

TEST(Bytes, LoadStaysInBounds) {
  std::string_view text = "\x01\x02\x03\x04\x05";
  uint32_t value = 0;
  EXPECT_TRUE(Load(AsBytes(text), 1, &value));
  EXPECT_EQ(value, 0x05040302U);
  EXPECT_FALSE(Load(AsBytes(text), 2, &value));
  EXPECT_FALSE(Load(AsBytes(text), std::numeric_limits<size_t>::max(), &value));
}

}  // namespace
}  // namespace profd
