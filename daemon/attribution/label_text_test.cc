#include "daemon/attribution/label_text.h"

#include <gtest/gtest.h>

#include <string>

namespace profd {
namespace {

TEST(LabelText, KeepsWhatIsPrintable) {
  EXPECT_EQ(LabelText("train-1"), "train-1");
  EXPECT_EQ(LabelText("a\"b\\c{d}=,"), "a\"b\\c{d}=,");  // quoting is the format's business
  EXPECT_EQ(LabelText("训练 é 😀"), "训练 é 😀");
  EXPECT_EQ(LabelText(""), "");
}

TEST(LabelText, ReplacesTheRest) {
  EXPECT_EQ(LabelText("a\nb\tc\x7f" "d"), "a?b?c?d");
  EXPECT_EQ(LabelText(std::string_view("a\0b", 3)), "a?b");
  EXPECT_EQ(LabelText("\xff\xfe" "a"), "??a");
  EXPECT_EQ(LabelText("\xc0\xaf"), "??");          // an overlong '/'
  EXPECT_EQ(LabelText("\xed\xa0\x80"), "???");     // half a surrogate pair
  EXPECT_EQ(LabelText("\xf4\x90\x80\x80"), "????");  // beyond Unicode
  EXPECT_EQ(LabelText("\xe2\x82"), "??");          // cut off
  EXPECT_EQ(LabelText("a\xe2\x80\xae" "b"), "a?b");  // right-to-left override
  EXPECT_EQ(LabelText("\xc2\x85"), "?");           // a control character of two bytes
}

TEST(LabelText, IsBoundedAtACharacter) {
  EXPECT_EQ(LabelText(std::string(128, 'x')), std::string(128, 'x'));
  EXPECT_EQ(LabelText(std::string(129, 'x')), std::string(125, 'x') + "...");
  std::string wide;
  for (int i = 0; i < 100; ++i) wide += "é";
  std::string cut = LabelText(wide);
  EXPECT_LE(cut.size(), kMaxLabelBytes);
  EXPECT_EQ(LabelText(cut), cut);  // still UTF-8
  EXPECT_TRUE(cut.ends_with("é..."));
}

}  // namespace
}  // namespace profd
