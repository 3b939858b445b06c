#include "analysis/report_xlsx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <map>

#include "base/testing/temp_dir.h"

namespace profd::analysis {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Inflated(const char* from, size_t bytes) {
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, -MAX_WBITS), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(from));
  stream.avail_in = static_cast<uInt>(bytes);
  std::string text;
  char buffer[4096];
  int code = Z_OK;
  while (code == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(buffer);
    stream.avail_out = sizeof buffer;
    code = inflate(&stream, Z_NO_FLUSH);
    text.append(buffer, sizeof buffer - stream.avail_out);
  }
  inflateEnd(&stream);
  return text;
}

// The parts of a workbook by name.
std::map<std::string, std::string> PartsOf(const std::string& path) {
  const std::string bytes = ReadText(path);
  const auto number = [&bytes](size_t at) {
    return static_cast<size_t>(static_cast<unsigned char>(bytes[at])) |
           static_cast<size_t>(static_cast<unsigned char>(bytes[at + 1])) << 8;
  };
  std::map<std::string, std::string> parts;
  constexpr size_t kHeader = 30;
  for (size_t at = bytes.find("PK\3\4"); at != std::string::npos;
       at = bytes.find("PK\3\4", at + 1)) {
    const size_t data = at + kHeader + number(at + 26) + number(at + 28);
    parts[bytes.substr(at + kHeader, number(at + 26))] =
        Inflated(bytes.data() + data, bytes.size() - data);
  }
  return parts;
}

Json FindingOf(std::string_view check, std::string_view title, Json rows) {
  return {{"check", check},
          {"dimension", "schedule"},
          {"priority", "low"},
          {"rank", nullptr},
          {"cost_ms", nullptr},
          {"cost_of", "step"},
          {"title", title},
          {"evidence", "e"},
          {"advice", Json::array()},
          {"code", Json::array()},
          {"places", Json::array()},
          {"table", {{"columns", {"name"}}, {"rows", std::move(rows)}}}};
}

class ReportXlsx : public ::testing::Test {
 protected:
  std::map<std::string, std::string> Write(const Json& findings, const SheetLimits& limits = {}) {
    EXPECT_TRUE(WriteXlsx(findings, Language::kEnglish, path_, limits).ok());
    return PartsOf(path_);
  }
  TempDir dir_;
  const std::string path_ = dir_ / "findings.xlsx";
};

TEST_F(ReportXlsx, ReportsRowsThatDoNotFit) {
  const Json rows = {{"one"}, {"two"}, {"three"}, {"four"}};
  const auto all = Write(Json::array({FindingOf("gc", "t", rows)}), {.rows = 5});
  EXPECT_THAT(all.at("xl/worksheets/sheet2.xml"), HasSubstr("four"));
  EXPECT_FALSE(all.contains("xl/worksheets/sheet3.xml"));
  const auto cut = Write(Json::array({FindingOf("gc", "t", rows)}), {.rows = 4});
  EXPECT_THAT(cut.at("xl/worksheets/sheet2.xml"), HasSubstr("two"));
  EXPECT_THAT(cut.at("xl/worksheets/sheet2.xml"), Not(HasSubstr("three")));
  EXPECT_THAT(cut.at("xl/worksheets/sheet2.xml"), HasSubstr("2 more rows are left out"));
  EXPECT_THAT(cut.at("xl/worksheets/sheet3.xml"), HasSubstr("GC Analysis: 2 more rows"));
}

TEST_F(ReportXlsx, NamesOfSheetsAreCutAndDiffer) {
  const Json rows = {{"x"}};
  const std::string book =
      Write(Json::array(
                {FindingOf("a", "A title [of] more than thirty-one characters", rows),
                 FindingOf("b", "A title [of] More than thirty-one characters, too", rows),
                 FindingOf(
                     "c",
                     std::string(20, 'x') +
                         "\xE4\xB8\xAD\xE4\xB8\xAD\xE4\xB8\xAD\xE4\xB8\xAD\xE4\xB8\xAD\xE4\xB8\xAD"
                         "\xE4\xB8\xAD\xE4\xB8\xAD\xE4\xB8\xAD\xE4\xB8\xAD\xE4\xB8\xAD\xE4\xB8\xAD",
                     rows)}))
          .at("xl/workbook.xml");
  EXPECT_THAT(book, HasSubstr("name=\"A title  of  more than thirty-o\""));
  EXPECT_THAT(book, HasSubstr("name=\"A title  of  More than thir (2)\""));
  std::string eleven;
  for (int i = 0; i < 11; ++i) eleven += "\xE4\xB8\xAD";
  EXPECT_THAT(book, HasSubstr("name=\"" + std::string(20, 'x') + eleven + "\""));
}

TEST_F(ReportXlsx, DoesNotCutANumberInTheNameOfASheet) {
  const Json rows = {{"x"}};
  const std::string book =
      Write(Json::array({FindingOf("a", "The other ranks wait for rank 3 on node0", rows),
                         FindingOf("b", "The other ranks wait for rank 311 on node38", rows),
                         FindingOf("c", "The other ranks wait by rank 31", rows)}))
          .at("xl/workbook.xml");
  EXPECT_THAT(book, HasSubstr("name=\"The other ranks wait for rank 3\""));
  EXPECT_THAT(book, HasSubstr("name=\"The other ranks wait for rank\""));
  EXPECT_THAT(book, HasSubstr("name=\"The other ranks wait by rank 31\""));
}

TEST_F(ReportXlsx, CutsTextAtCharacters) {
  // Two units of UTF-16 each.
  std::string faces;
  for (int i = 0; i < 40; ++i) faces += "\xF0\x9F\x98\x80";
  const std::string sheet = Write(Json::array({FindingOf("gc", "t", {{faces}})}), {.text = 41})
                                .at("xl/worksheets/sheet2.xml");
  const std::string end = " ... (cut; 80 characters)";  // 25 of 41 units: 16 are left, 8 characters
  EXPECT_THAT(sheet, HasSubstr(faces.substr(0, 8 * 4) + end));
  EXPECT_THAT(sheet, Not(HasSubstr(faces.substr(0, 9 * 4))));
}

TEST_F(ReportXlsx, AcceptsTextThatIsNotUtf8) {
  const auto parts = Write(Json::array({FindingOf(
      "gc", "t", {{"a\xFFz\x01\r\n"}, {"\xED\xA0\x80"}, {"\xEF\xBF\xBF<&"}, {nullptr}, {true}})}));
  const std::string& sheet = parts.at("xl/worksheets/sheet2.xml");
  EXPECT_THAT(sheet, HasSubstr("a\xEF\xBF\xBDz?\n"));
  EXPECT_THAT(sheet, HasSubstr("?&lt;&amp;"));
  EXPECT_THAT(sheet, Not(HasSubstr("\xED\xA0\x80")));
}

TEST_F(ReportXlsx, ReportsWhereItCannotWrite) {
  EXPECT_FALSE(WriteXlsx(Json::array(), Language::kEnglish, "/nowhere/at/all.xlsx").ok());
}

}  // namespace
}  // namespace profd::analysis
