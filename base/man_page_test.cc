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
  page.Paragraph(".SH not a heading\n'no request' \\fBno font ~^`");
  EXPECT_EQ(page.text().substr(before),
            ".PP\n\\&.SH not a heading\n\\&\\(aqno request\\(aq \\efBno font \\(ti\\(ha\\(ga\n");
  page.Section("a \"b\"");
  EXPECT_TRUE(page.text().ends_with(".SH \"a \\(dqb\\(dq\"\n"));
}

TEST(ManPage, ExamplesKeepTheirLines) {
  ManPage page("x", 1, "", "y");
  size_t before = page.text().size();
  page.Example("  x --all\n    more\n");
  EXPECT_EQ(page.text().substr(before), ".PP\n.RS 4\n.nf\nx \\-\\-all\n  more\n.fi\n.RE\n");
}

}  // namespace
}  // namespace profd
