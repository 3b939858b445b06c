#include "client/render.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <vector>

#include "client/sparkline.h"

namespace profd::client {
namespace {

TEST(Printable, LeavesPlainTextAlone) {
  EXPECT_EQ(Printable("hccs 0-7 \u8bad\u7ec3 \u00b5s"), "hccs 0-7 \u8bad\u7ec3 \u00b5s");
}

TEST(Printable, DisarmsWhatDrivesATerminal) {
  EXPECT_EQ(Printable("\033[2Jx"), "\\x1b[2Jx");
  EXPECT_EQ(Printable("a\r\nb\tc\x7f"), "a\\x0d\\x0ab\\x09c\\x7f");
  EXPECT_EQ(Printable(std::string_view("a\0b", 3)), "a\\x00b");
  // C1 CSI, as a code point and as a bare byte.
  EXPECT_EQ(Printable("\xc2\x9b"
                      "31m"),
            "\\u{9b}31m");
  EXPECT_EQ(Printable("\x9b"
                      "31m"),
            "\\x9b31m");
  // Right-to-left override, zero width space.
  EXPECT_EQ(Printable("a\u202egpj.exe"), "a\\u{202e}gpj.exe");
  EXPECT_EQ(Printable("a\u200bb"), "a\\u{200b}b");
}

TEST(Printable, SurvivesBrokenUtf8) {
  EXPECT_EQ(Printable("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(Printable("\xe8\xae"), "\\xe8\\xae");
  EXPECT_EQ(Printable("\xc0\x9b"), "\\xc0\\x9b");           // overlong
  EXPECT_EQ(Printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // surrogate
  EXPECT_EQ(Printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
}

TEST(Printable, LinesMayStay) { EXPECT_EQ(PrintableLines("a\nb\rc"), "a\nb\\x0dc"); }

TEST(Units, AreReadable) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1536), "1.5 KiB");
  EXPECT_EQ(FormatBytes(1048575), "1.0 MiB");
  EXPECT_EQ(FormatBytes(20u << 20), "20.0 MiB");
  EXPECT_EQ(FormatBytes(UINT64_MAX), "16384.0 PiB");
  EXPECT_EQ(FormatSpan(500'000'000), "0.5 s");
  EXPECT_EQ(FormatSpan(42'000'000'000), "42 s");
  EXPECT_EQ(FormatSpan(200'000'000'000), "3m 20s");
  EXPECT_EQ(FormatSpan(7'500'000'000'000), "2h 05m");
  EXPECT_EQ(FormatSpan(-1), "0.0 s");
  EXPECT_EQ(FormatHz(50), "50 Hz");
  EXPECT_EQ(FormatHz(33.3333333), "33.3333 Hz");
  EXPECT_EQ(FormatHz(0), "event");
}

TEST(Devices, CollapseIntoRanges) {
  EXPECT_EQ(FormatDevices({}), "");
  EXPECT_EQ(FormatDevices({-1}), "host");
  EXPECT_EQ(FormatDevices({3, 2, 1, 0}), "0-3");
  EXPECT_EQ(FormatDevices({0, 1, 5, -1, 7, 8, 9}), "host,0,1,5,7-9");
  EXPECT_EQ(FormatDevices({4, 4}), "4");
}

TEST(Table, AlignsAndEndsNoLineInBlanks) {
  Table table({"NAME", ">N", "WHY"});
  table.AddRow({"a", "1000", ""});
  table.AddRow({"\u8bad\u7ec3", "7", "x"});
  table.AddRow({"", "", "only"});
  std::ostringstream out;
  table.Print(out, false, " ");
  EXPECT_EQ(out.str(),
            " NAME     N  WHY\n"
            " a     1000\n"
            " \u8bad\u7ec3     7  x\n"
            "             only\n");
}

// Names of operators differ at both ends; numbers are never cut.
TEST(Table, FitsIntoATerminal) {
  Table table({"NAME", ">TOTAL", "TYPE"});
  table.AddRow({"aclnnMaxPool2dWithMask_MaxPoolWithArgmaxV1", "1234567.891", "MaxPool"});
  table.AddRow({"Conv2D", "2.000", "Conv2D"});
  std::ostringstream cut;
  table.Print(cut, false, "  ", 48);
  EXPECT_EQ(cut.str(),
            "  NAME                            TOTAL  TYPE\n"
            "  aclnnMaxPool…ithArgmaxV1  1234567.891  MaxPool\n"
            "  Conv2D                          2.000  Conv2D\n");
  std::ostringstream narrow;
  table.Print(narrow, false, "", 3);
  EXPECT_THAT(narrow.str(), ::testing::HasSubstr("\naclnnMaxPool…ithArgmaxV1  1234567.891  MaxPool\n"));
  std::ostringstream all;
  table.Print(all, false, "  ");
  EXPECT_THAT(all.str(), ::testing::HasSubstr("aclnnMaxPool2dWithMask_MaxPoolWithArgmaxV1  1234567.891"));
}

// Numbers are not cut: columns that do not fit follow below.
TEST(Table, IsPrintedInPartsWhereItIsTooWide) {
  Table table({"TYPE", ">TOTAL", ">BASELINE_TOTAL", "CORE", ">RATIO"});
  table.AddRow({"MatMulV2", "1234.5", "1000.25", "AI_CORE", "0.81"});
  table.AddRow({"Add", "2.5", "2.5", "AIV", "1.00"});
  std::ostringstream out;
  table.PrintInParts(out, false, "  ", 36);
  EXPECT_EQ(out.str(),
            "  TYPE       TOTAL  BASELINE_TOTAL\n"
            "  MatMulV2  1234.5         1000.25\n"
            "  Add          2.5             2.5\n"
            "  TYPE      CORE     RATIO\n"
            "  MatMulV2  AI_CORE   0.81\n"
            "  Add       AIV       1.00\n");
  for (const size_t columns : {size_t{0}, size_t{120}}) {
    std::ostringstream whole;
    table.PrintInParts(whole, false, "  ", columns);
    EXPECT_THAT(whole.str(), ::testing::StartsWith("  TYPE       TOTAL  BASELINE_TOTAL  CORE     RATIO\n"));
  }
  std::ostringstream narrow;
  table.PrintInParts(narrow, false, "  ", 3);
  EXPECT_THAT(narrow.str(), ::testing::StartsWith("  TYPE       TOTAL\n")) << "at least two columns";
}

TEST(Render, TextsAreCutBetweenCharacters) {
  EXPECT_EQ(CutAtEnd("abcdef", 6), "abcdef");
  EXPECT_EQ(CutAtEnd("abcdef", 4), "abc…");
  EXPECT_EQ(CutAtEnd("算子算子", 6), "算子…") << "each has two columns";
  EXPECT_EQ(CutInMiddle("abcdef", 5), "ab…ef");
  EXPECT_EQ(CutInMiddle("abcdef", 1), "…");
  EXPECT_EQ(CutInMiddle("算子算子", 5), "算…子");
}

TEST(Table, ColoursOnlyOnRequestAndFiltersCells) {
  Table table({"A"});
  table.AddRow({Cell("x\033[31m", Tone::kBad)});
  std::ostringstream plain;
  table.Print(plain, false);
  EXPECT_EQ(plain.str().find('\033'), std::string::npos);
  std::ostringstream colored;
  table.Print(colored, true);
  EXPECT_NE(colored.str().find("\033[31mx\\x1b[31m\033[0m"), std::string::npos);
}

TEST(CountText, HasTheSingular) {
  EXPECT_EQ(CountText(0, "job"), "0 jobs");
  EXPECT_EQ(CountText(1, "job"), "1 job");
  EXPECT_EQ(CountText(2, "process"), "2 processes");
  EXPECT_EQ(CountText(1, "more query"), "1 more query");
  EXPECT_EQ(CountText(3, "query"), "3 queries");
  EXPECT_EQ(CountText(1, "line makes", "lines make"), "1 line makes");
  EXPECT_EQ(CountText(0, "line makes", "lines make"), "0 lines make");
}

TEST(Sparkline, ADipLooksAsLargeAsItIs) {
  std::vector<double> ramp = {0, 1, 2, 3, 4, 5, 6, 7};
  auto line = [](std::vector<double> values, Scale scale = {}, bool ascii = true) {
    scale.Widen(values);
    return Sparkline(values, scale, ascii);
  };
  EXPECT_EQ(line(ramp, {}, false), "▁▂▃▄▅▆▇█");
  EXPECT_EQ(line(ramp), ".:-=+*%#");
  EXPECT_EQ(line({100, std::nan(""), 92, 100}), "# %#");
  EXPECT_EQ(line({100, 99}), "##");
  EXPECT_EQ(line({50, 50}, {0, 100}), "++");  // of a group whose greatest value is 100
  EXPECT_EQ(line({-7, -3.5, 0}), ".+#");
  EXPECT_EQ(line({0, 0}), "..");
  EXPECT_EQ(line({}), "");
}

TEST(Quantity, HasUnits) {
  EXPECT_EQ(FormatQuantity(1.5 * 1048576, "bytes_per_second"), "1.50 MiB/s");
  EXPECT_EQ(FormatQuantity(0, "bytes"), "0 B");
  EXPECT_EQ(FormatQuantity(1023.9, "bytes"), "1.00 KiB");
  EXPECT_EQ(FormatQuantity(0.852, "ratio"), "85.2 %");
  EXPECT_EQ(FormatQuantity(1.8e9, "hertz"), "1.80 GHz");
  EXPECT_EQ(FormatQuantity(0.00088, "seconds"), "880 us");
  EXPECT_EQ(FormatQuantity(12, "", true), "12 /s");
  EXPECT_EQ(FormatQuantity(std::nan(""), "bytes"), "-");
}

}  // namespace
}  // namespace profd::client
