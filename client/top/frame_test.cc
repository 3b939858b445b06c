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

}  // namespace
}  // namespace profd::client::top
