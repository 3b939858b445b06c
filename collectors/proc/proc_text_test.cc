#include "collectors/proc/proc_text.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>

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

TEST(ParsePidStat, RefusesInvalidStatLines) {
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

// Both answer the same, byte for byte, or the faster one is wrong.
void ExpectSameStat(const std::string& text) {
  PidStat fast;
  PidStat slow;
  const bool parsed = ParsePidStat(text, &fast);
  ASSERT_EQ(parsed, internal::ParsePidStatSlowly(text, &slow)) << text;
  if (!parsed) return;
  EXPECT_EQ(fast.pid, slow.pid) << text;
  EXPECT_EQ(fast.comm, slow.comm) << text;
  EXPECT_EQ(fast.comm.data(), slow.comm.data()) << text;
  EXPECT_EQ(fast.state, slow.state) << text;
  EXPECT_EQ(fast.ppid, slow.ppid) << text;
  EXPECT_EQ(fast.flags, slow.flags) << text;
  EXPECT_EQ(fast.utime_ticks, slow.utime_ticks) << text;
  EXPECT_EQ(fast.stime_ticks, slow.stime_ticks) << text;
  EXPECT_EQ(fast.start_ticks, slow.start_ticks) << text;
  EXPECT_EQ(fast.tail, slow.tail) << text;
  if (!fast.tail_printable) return;
  for (char c : fast.tail) EXPECT_TRUE(c >= 0x20 && c <= 0x7e) << text;
}

// What the general parser and the fast one could disagree on, where bytes of a line are changed.
constexpr std::string_view kMutants[] = {
    "", " ", "  ", "\t", "\r", "\n", "(", ")", ") S 1", "0", "00", "-1", "9", "x", "\x7f", "\xff",
    std::string_view("\0", 1), "18446744073709551615", "18446744073709551616", "99999999999999999999"};

TEST(ParsePidStat, AgreesWithTheGeneralParserWhereverALineIsBroken) {
  for (std::string_view comm : {"python3", "a) R 1 1 1 (b", "", "x y\nz"}) {
    const std::string whole = Stat(comm) + "\n";
    for (size_t at = 0; at <= whole.size(); ++at) {
      ExpectSameStat(whole.substr(0, at));
      for (std::string_view mutant : kMutants) {
        std::string inserted = whole;
        ExpectSameStat(inserted.insert(at, mutant));
        if (at < whole.size()) ExpectSameStat(std::string(whole).replace(at, 1, mutant));
      }
    }
  }
}

TEST(ParsePidStat, AgreesWithTheGeneralParserOnNoise) {
  std::mt19937 random(7);
  const std::string whole = Stat("tmux: server") + " 7 8\n";
  for (int round = 0; round < 20'000; ++round) {
    std::string text = whole;
    for (auto changes = random() % 4; changes-- > 0;) {
      text[random() % text.size()] = " ()0129-\n\t\xc3S"[random() % 12];
    }
    ExpectSameStat(text);
  }
}

TEST(ParsePidStat, KnowsAPlainTail) {
  PidStat stat;
  ASSERT_TRUE(ParsePidStat(Stat("a\nb") + "\n", &stat));
  EXPECT_TRUE(stat.tail_printable);
  ASSERT_TRUE(ParsePidStat(Stat("a") + " \x1b[2J\n", &stat));
  EXPECT_FALSE(stat.tail_printable);
}

TEST(ParseStatm, SevenNumbers) {
  Statm statm;
  ASSERT_TRUE(ParseStatm("1000 50 10 1 0 20 18446744073709551615\n", &statm));
  EXPECT_EQ(statm.pages[Statm::kSize], 1000u);
  EXPECT_EQ(statm.pages[Statm::kResident], 50u);
  EXPECT_EQ(statm.pages[6], UINT64_MAX);
  for (std::string_view text : {"", "1 2 3", "1 2 3 4 5 6 7 8", "1 2 3 4 5 6 -7", "1 2 3 4 5 6 7x",
                                "1 2 3 4 5 6 18446744073709551616"}) {
    EXPECT_FALSE(ParseStatm(text, &statm)) << text;
  }
}

TEST(ParseStatm, TheLineIsGivenOnlyWhereItIsHowNumbersAreWritten) {
  for (std::string_view good : {"1000 50 10 1 0 20 0\n", "0 0 0 0 0 0 0"}) {
    Statm statm;
    ASSERT_TRUE(ParseStatm(good, &statm)) << good;
    EXPECT_EQ(statm.line, good.substr(0, good.find('\n'))) << good;
  }
  for (std::string_view odd :
       {"01 2 3 4 5 6 7\n", "1  2 3 4 5 6 7\n", " 1 2 3 4 5 6 7\n", "1 2 3 4 5 6 7 \n",
        "1\t2 3 4 5 6 7\n", "1 2 3 4 5 6 7\n\n"}) {
    Statm statm;
    ASSERT_TRUE(ParseStatm(odd, &statm)) << odd;
    EXPECT_EQ(statm.line, "") << odd;
    EXPECT_EQ(statm.pages, (std::array<uint64_t, 7>{1, 2, 3, 4, 5, 6, 7})) << odd;
  }
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
