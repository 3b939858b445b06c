#include "client/top/frame.h"

#include <gtest/gtest.h>

namespace profd::client::top {
namespace {

TEST(FrameTest, PutsTextWithinItsBounds) {
  Frame frame({10, 2});
  EXPECT_EQ(frame.Put(0, 0, "abcdef", Style::kPlain, 3), 3);
  EXPECT_EQ(frame.Put(8, 0, "xyz"), 2);
  EXPECT_EQ(frame.Put(0, 2, "below"), 0);
  EXPECT_EQ(frame.Put(-1, 0, "left"), 0);
  frame.PutRight(0, 1, "12", 5);
  EXPECT_EQ(frame.Text(), "abc     xy\n   12\n");
}

TEST(FrameTest, WideCharactersTakeTwoColumns) {
  Frame frame({5, 1});
  EXPECT_EQ(frame.Put(0, 0, "訓練x"), 5);
  EXPECT_EQ(frame.Text(), "訓練x\n");
  Frame narrow({3, 1});
  EXPECT_EQ(narrow.Put(0, 0, "訓練"), 2);
  Frame ascii({5, 1}, true);
  ascii.Put(0, 0, "訓x█");
  EXPECT_EQ(ascii.Text(), "??x?\n");
}

TEST(DifferenceTest, WritesOnlyWhatChanged) {
  Frame before({20, 3});
  before.Put(0, 1, "power 100 W");
  Frame after = before;
  EXPECT_EQ(Difference(before, after, true), "");
  after.Put(6, 1, "2");
  EXPECT_EQ(Difference(before, after, true), "\033[2;7H\033[0m2");
  after.Put(19, 2, "x", Style::kBad);
  EXPECT_EQ(Difference(before, after, true), "\033[2;7H\033[0m2\033[3;20H\033[0;1;31mx\033[0m");
  EXPECT_EQ(Difference(before, after, false), "\033[2;7H\033[0m2\033[3;20H\033[0;1mx\033[0m");
}

TEST(DifferenceTest, AnotherSizeIsDrawnWhole) {
  Frame after({4, 1});
  after.Put(1, 0, "ab");
  EXPECT_EQ(Difference(Frame(), after, true), "\033[0m\033[2J\033[1;2H\033[0mab");
}

TEST(DifferenceTest, AWideCharacterIsWrittenFromItsLeftHalf) {
  Frame before({6, 1});
  before.Put(0, 0, "訓");
  Frame after = before;
  after.SetStyle(1, 0, 1, Style::kBold);
  EXPECT_EQ(Difference(before, after, true), "\033[1;1H\033[0m訓");
}

}  // namespace
}  // namespace profd::client::top
