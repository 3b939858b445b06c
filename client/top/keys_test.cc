#include "client/top/keys.h"

#include <gtest/gtest.h>

#include "client/top/view.h"

namespace profd::client::top {
namespace {

Effect Type(const std::vector<KeyPress>& presses, View* view) {
  Effect last = Effect::kNone;
  for (const KeyPress& press : presses) last = Press(press, view);
  return last;
}
Effect Type(Key key, View* view) { return Press({key, ""}, view); }
// A text, byte by byte.
Effect Type(const std::string& text, View* view) {
  std::vector<KeyPress> presses;
  for (char c : text) presses.push_back({Key::kText, std::string(1, c)});
  return Type(presses, view);
}

TEST(PressTest, SortsAndTurnsRound) {
  View view;
  EXPECT_EQ(Type("s", &view), Effect::kDraw);
  EXPECT_EQ(view.sort, Measure::kUtilization);
  EXPECT_TRUE(view.descending);
  Type(Key::kRight, &view);
  EXPECT_EQ(view.sort, Measure::kHbmUsed);
  Type("S", &view);
  Type(Key::kLeft, &view);
  EXPECT_EQ(view.sort, std::nullopt);
  EXPECT_FALSE(view.descending);
  Type("r", &view);
  EXPECT_TRUE(view.descending);
  Type("t", &view);
  EXPECT_EQ(view.sort, Measure::kTemperature);
  for (int i = 0; i < 11; ++i) Type("s", &view);
  EXPECT_EQ(view.sort, Measure::kTemperature);
}

TEST(PressTest, TypesAFilter) {
  View view;
  Type("/npuq", &view);
  EXPECT_EQ(view.typing, "npuq");
  EXPECT_EQ(view.filter, "");
  Type({{Key::kBackspace, ""}, {Key::kText, "3"}, {Key::kText, "é"}, {Key::kBackspace, ""}, {Key::kEnter, ""}}, &view);
  EXPECT_EQ(view.filter, "npu3");
  EXPECT_EQ(view.typing, std::nullopt);
  Type("/xx", &view);
  Type(Key::kEscape, &view);
  EXPECT_EQ(view.filter, "npu3");
  Type(Key::kEscape, &view);
  EXPECT_EQ(view.filter, "");
  Type("/" + std::string(1000, 'x'), &view);
  Type(Key::kEnter, &view);
  EXPECT_EQ(view.filter.size(), 128u);
}

TEST(PressTest, QuitsPausesScrollsAndSetsThePace) {
  View view;
  EXPECT_EQ(Type("q", &view), Effect::kQuit);
  EXPECT_EQ(Type(Key::kInterrupt, &view), Effect::kQuit);
  Type("/", &view);
  EXPECT_EQ(Type(Key::kInterrupt, &view), Effect::kQuit);
  view.typing.reset();
  EXPECT_EQ(Type("z", &view), Effect::kNone);
  EXPECT_EQ(Type(Key::kRedraw, &view), Effect::kRedraw);
  Type(" ", &view);
  EXPECT_TRUE(view.paused);
  Type(" ", &view);
  EXPECT_FALSE(view.paused);
  Type("jj", &view);
  Type(Key::kPageDown, &view);
  Type("k", &view);
  EXPECT_EQ(view.scroll, 11);
  Type({{Key::kHome, ""}, {Key::kUp, ""}}, &view);
  EXPECT_EQ(view.scroll, 0);
  Type("+", &view);
  EXPECT_EQ(view.interval_ms, 500);
  Type("+++++", &view);
  EXPECT_EQ(view.interval_ms, kMinIntervalMs);
  Type("----------", &view);
  EXPECT_EQ(view.interval_ms, kMaxIntervalMs);
  Type(Key::kTab, &view);
  EXPECT_EQ(view.panel, Panel::kGraphs);
  Type("g", &view);
  EXPECT_EQ(view.graph, Measure::kHbmUsed);
  Type("GG", &view);
  EXPECT_EQ(view.graph, Measure::kHbmTemperature);
  Type("h", &view);
  EXPECT_TRUE(view.help);
  Type("n", &view);
  EXPECT_EQ(view.process, 0);
  Type("nnN", &view);
  EXPECT_EQ(view.process, 1);
  Type(Key::kEscape, &view);
  EXPECT_FALSE(view.help);
  EXPECT_FALSE(view.process);
  Type("N", &view);
  EXPECT_EQ(view.process, -1);
}

}  // namespace
}  // namespace profd::client::top
