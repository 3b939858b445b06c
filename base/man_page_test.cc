#include "base/man_page.h"

#include <gtest/gtest.h>

namespace profd {
namespace {

TEST(ManPage, HasNameAndSections) {
  ManPage page("thing", 8, "thing 1.0", "does things");
  page.Section("OPTIONS");
  page.Entry("--out", "DIR", "Where it goes\nelse here");
  EXPECT_EQ(page.text(),
            ".TH \"THING\" 8 \"\" \"thing 1.0\" \"profd\"\n"
            ".SH \"NAME\"\nthing \\- does things\n"
            ".SH \"OPTIONS\"\n"
            ".TP\n\\fB\\-\\-out\\fR \\fIDIR\\fR\nWhere it goes\n.br\nelse here\n");
}

TEST(ManPage, NothingInATextIsMarkup) {
  ManPage page("x", 1, "", "y");
  size_t before = page.text().size();
  page.Entry("x", "", ".SH not a heading\n'no request' \\fBno font ~^`");
  EXPECT_EQ(page.text().substr(before),
            ".TP\n\\fBx\\fR\n\\&.SH not a heading\n.br\n"
            "\\&\\(aqno request\\(aq \\efBno font \\(ti\\(ha\\(ga\n");
  page.Section("a \"b\"");
  EXPECT_TRUE(page.text().ends_with(".SH \"a \\(dqb\\(dq\"\n"));
}

TEST(ManPage, ParagraphsAreFilled) {
  ManPage page("x", 1, "", "y");
  page.Section("A");
  size_t before = page.text().size();
  page.Paragraph("First word");
  page.Paragraph(std::string(70, 'a') + " b .c");
  EXPECT_EQ(page.text().substr(before),
            "First word\n.PP\n" + std::string(70, 'a') + " b\n\\&.c\n");
}

TEST(ManPage, ExamplesKeepTheirLines) {
  ManPage page("x", 1, "", "y");
  page.Entry("a", "", "b");
  size_t before = page.text().size();
  page.Example("  x --all\n    more\n");
  EXPECT_EQ(page.text().substr(before), ".PP\n.RS 4\n.nf\nx \\-\\-all\n  more\n.fi\n.RE\n");
}

}  // namespace
}  // namespace profd
