#include "collectors/proc/proc_text.h"

#include <gtest/gtest.h>

#include <string>

namespace profd {
namespace {

constexpr char kTail[] =
    " S 17 5 5 0 -1 2129984 103 0 0 0 250 75 0 0 20 0 8 0 141626 2998272 413 18446744073709 1 1 0";

std::string Stat(std::string_view comm) { return "4242 (" + std::string(comm) + ")" + kTail; }

TEST(ParsePidStat, TakesTheFieldsByTheirNumbers) {
  const std::string text = Stat("python3") + "\n";
  PidStat stat;
  ASSERT_TRUE(ParsePidStat(text, &stat));
  EXPECT_EQ(stat.pid, 4242);
  EXPECT_EQ(stat.comm, "python3");
  EXPECT_EQ(stat.state, 'S');
  EXPECT_EQ(stat.ppid, 17);
  EXPECT_EQ(stat.utime_ticks, 250u);
  EXPECT_EQ(stat.stime_ticks, 75u);
  EXPECT_EQ(stat.start_ticks, 141626u);
  EXPECT_TRUE(stat.kernel_thread());
  EXPECT_EQ(stat.tail, kTail);
}

TEST(ParsePidStat, CommEndsAtTheLastParenthesis) {
  for (std::string comm : {"tmux: server", "a) R 1 1 1 (b", ")", "(", "", "x\ny", "\x1b[2J\xff"}) {
    const std::string text = Stat(comm);
    PidStat stat;
    ASSERT_TRUE(ParsePidStat(text, &stat)) << comm;
    EXPECT_EQ(stat.comm, comm);
    EXPECT_EQ(stat.ppid, 17) << comm;
  }
}

TEST(ParsePidStat, RefusesWhatIsNoStatLine) {
  PidStat stat;
  for (const std::string& text :
       {std::string(), std::string("("), std::string(")("), std::string("1 (a)"),
        std::string("1 (a) S"), std::string("1 (a) S 1 2 3"), "x" + Stat("a"),
        std::string("-3 (a)") + kTail, std::string("1 (a) SS 1 1 1 1 1 1"), std::string(10000, '('),
        std::string(10000, 'a')}) {
    EXPECT_FALSE(ParsePidStat(text, &stat)) << text.substr(0, 40);
  }
  std::string overflow = Stat("a");
  overflow.replace(overflow.find("141626"), 6, "99999999999999999999999");
  EXPECT_FALSE(ParsePidStat(overflow, &stat));
}

TEST(CleanLabel, KeepsPrintableUtf8) {
  EXPECT_EQ(CleanLabel("python3.10", 15), "python3.10");
  EXPECT_EQ(CleanLabel("\xe8\xae\xad\xe7\xbb\x83 x", 15), "\xe8\xae\xad\xe7\xbb\x83 x");
  EXPECT_EQ(CleanLabel("a\"b\\c", 15), "a\"b\\c");
  EXPECT_EQ(CleanLabel("", 15), "");
}

TEST(CleanLabel, ReplacesWhatCouldHarmATerminalOrAFile) {
  EXPECT_EQ(CleanLabel("a\nb\tc\x1b[2J\x7f", 15), "a?b?c?[2J?");
  EXPECT_EQ(CleanLabel("\xff\xfe"
                       "a\xc0\x80",
                       15),
            "??a??");
  EXPECT_EQ(CleanLabel("\xed\xa0\x80", 15), "???");       // surrogate
  EXPECT_EQ(CleanLabel("\xf4\x90\x80\x80", 15), "????");  // beyond U+10FFFF
  EXPECT_EQ(CleanLabel("\xe0\x80\xaf", 15), "???");       // overlong
  EXPECT_EQ(CleanLabel("\xe2\x80\xae"
                       "x\xc2\x85",
                       15),
            "?x?");                                 // bidi override, C1
  EXPECT_EQ(CleanLabel("ab\xe8\xae", 15), "ab??");  // cut sequence
}

TEST(CleanLabel, CountsCharactersNotBytes) {
  EXPECT_EQ(CleanLabel("\xe8\xae\xad\xe7\xbb\x83\xe8\xae\xad", 2), "\xe8\xae\xad\xe7\xbb\x83");
  EXPECT_EQ(CleanLabel(std::string(1000, 'a'), 64), std::string(64, 'a'));
}

TEST(AppendStatLine, IsOneLineThatSplitsAtBlanks) {
  const std::string text = Stat("tmux: ser\nver") + "\nforged";
  PidStat stat;
  ASSERT_TRUE(ParsePidStat(text, &stat));
  std::string line;
  AppendStatLine(stat, &line);
  EXPECT_EQ(line, std::string("4242 (tmux:_ser?ver)") + kTail + "\n");
}

}  // namespace
}  // namespace profd
