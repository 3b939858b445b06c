#include "export/compat.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

namespace profd::exporting {
namespace {

TEST(Compat, TheDocumentHasTheTable) {
  std::ifstream file(PROFD_EXPORT_DOC);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  ASSERT_FALSE(text.empty()) << PROFD_EXPORT_DOC;
  EXPECT_NE(text.find("\n" + DefectTable() + "\n"), std::string::npos)
      << "docs/export.md, \"Reproduced with --compat msprof\", must be:\n"
      << DefectTable();
}

}  // namespace
}  // namespace profd::exporting
