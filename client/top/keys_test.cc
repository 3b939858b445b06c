#include "client/top/keys.h"

#include <gtest/gtest.h>

#include "client/top/view.h"

namespace profd::client::top {
namespace {

Effect Type(const std::string& bytes, View* view) {
  KeyReader reader;
  Effect last = Effect::kNone;
  for (const KeyPress& key : reader.Feed(bytes)) last = Press(key, view);
  for (const KeyPress& key : reader.Settle()) last = Press(key, view);
  return last;
}

TEST(KeyReaderTest, KnowsSequencesHoweverTheyArrive) {
  KeyReader reader;
  EXPECT_TRUE(reader.Feed("\033").empty());
  EXPECT_TRUE(reader.Feed("[").empty());
  auto keys = reader.Feed("Aq");
  ASSERT_EQ(keys.size(), 2u);
  EXPECT_EQ(keys[0].key, Key::kUp);
  EXPECT_EQ(keys[1].text, "q");
  keys = reader.Feed("\033OB\033[5~\033[6~\033[1;5H\r\t\x7f\x03\x0c");
  std::vector<Key> expected = {Key::kDown,      Key::kPageUp,    Key::kPageDown,
                               Key::kHome,      Key::kEnter,     Key::kTab,
                               Key::kBackspace, Key::kInterrupt, Key::kRedraw};
  ASSERT_EQ(keys.size(), expected.size());
  for (size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(keys[i].key, expected[i]) << i;
}

TEST(KeyReaderTest, ALoneEscapeIsAKeyOnceNothingFollows) {
  KeyReader reader;
  EXPECT_TRUE(reader.Feed("\033").empty());
  auto keys = reader.Settle();
  ASSERT_EQ(keys.size(), 1u);
  EXPECT_EQ(keys[0].key, Key::kEscape);
  EXPECT_TRUE(reader.Settle().empty());
}

TEST(KeyReaderTest, GarbageIsSwallowedAndBounded) {
  KeyReader reader;
  EXPECT_TRUE(reader.Feed("\xff\x80\x01").empty());
  EXPECT_TRUE(reader.Feed("\033[" + std::string(200, '0')).size() < 200);
  EXPECT_TRUE(reader.Feed("\033[200~").empty());
  auto keys = reader.Feed("é訓");
  ASSERT_EQ(keys.size(), 2u);
  EXPECT_EQ(keys[1].text, "訓");
}

TEST(PressTest, SortsAndTurnsRound) {
  View view;
  EXPECT_EQ(Type("s", &view), Effect::kDraw);
  EXPECT_EQ(view.sort, Measure::kUtilization);
  EXPECT_TRUE(view.descending);
  Type("\033[C", &view);
  EXPECT_EQ(view.sort, Measure::kHbmUsed);
  Type("S\033[D", &view);
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
  Type(
      "\x7f"
      "3é\x7f\r",
      &view);
  EXPECT_EQ(view.filter, "npu3");
  EXPECT_EQ(view.typing, std::nullopt);
  Type("/xx\033", &view);
  EXPECT_EQ(view.filter, "npu3");
  Type("\033", &view);
  EXPECT_EQ(view.filter, "");
  Type("/" + std::string(1000, 'x') + "\r", &view);
  EXPECT_EQ(view.filter.size(), 128u);
}

TEST(PressTest, QuitsPausesScrollsAndSetsThePace) {
  View view;
  EXPECT_EQ(Type("q", &view), Effect::kQuit);
  EXPECT_EQ(Type("\x03", &view), Effect::kQuit);
  EXPECT_EQ(Type("/\x03", &view), Effect::kQuit);
  view.typing.reset();
  EXPECT_EQ(Type("z", &view), Effect::kNone);
  EXPECT_EQ(Type("\x0c", &view), Effect::kRedraw);
  Type(" ", &view);
  EXPECT_TRUE(view.paused);
  Type(" ", &view);
  EXPECT_FALSE(view.paused);
  Type("jj\033[6~k", &view);
  EXPECT_EQ(view.scroll, 11);
  Type("\033[H\033[A", &view);
  EXPECT_EQ(view.scroll, 0);
  Type("+", &view);
  EXPECT_EQ(view.interval_ms, 500);
  Type("+++++", &view);
  EXPECT_EQ(view.interval_ms, kMinIntervalMs);
  Type("----------", &view);
  EXPECT_EQ(view.interval_ms, kMaxIntervalMs);
  Type("\t", &view);
  EXPECT_EQ(view.panel, Panel::kGraphs);
  Type("g", &view);
  EXPECT_EQ(view.graph, Measure::kHbmUsed);
  Type("GG", &view);
  EXPECT_EQ(view.graph, Measure::kHbmTemperature);
  Type("h", &view);
  EXPECT_TRUE(view.help);
  Type("\033", &view);
  EXPECT_FALSE(view.help);
}

}  // namespace
}  // namespace profd::client::top
