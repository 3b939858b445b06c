// docs/jobs.md has the checks and limits that are in the code.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/testing/temp_dir.h"
#include "daemon/advice/check_ids.h"
#include "daemon/advice/checks.h"

namespace profd {
namespace {

std::string Document() { return ReadText(PROFD_SOURCE_DIR "/docs/jobs.md"); }

std::string ChecksTable() {
  std::string text = "| check | looks for | needs |\n|---|---|---|\n";
  for (const LiveCheck& check : LiveChecks()) text += fmt::format("| `{}` | {} | {} |\n", check.id, check.what, check.needs);
  return text;
}

// Of the live checks alone, and of those that have one of their names.
std::string LimitsTable() {
  std::string text = "| limit | value | unit | of |\n|---|---|---|---|\n";
  for (const analysis::Limit& limit : analysis::DefaultLimits()) {
    const bool live = limit.check == "live" || std::find(kLiveChecks.begin(), kLiveChecks.end(), limit.check) != kLiveChecks.end();
    if (!live || (limit.check == "aicpu" && limit.name != "share") || limit.name == "votes") continue;
    text += fmt::format("| `{}.{}` | {} | {} | {} |\n", limit.check, limit.name, limit.value, limit.unit, limit.what);
  }
  return text;
}

TEST(LiveAdviceDocumentTest, HasTheChecksAndLimitsOfTheCode) {
  const std::string document = Document();
  ASSERT_FALSE(document.empty());
  EXPECT_NE(document.find("\n\n" + ChecksTable() + "\n"), std::string::npos) << "docs/jobs.md shall have:\n" << ChecksTable();
  EXPECT_NE(document.find("\n\n" + LimitsTable() + "\n"), std::string::npos) << "docs/jobs.md shall have:\n" << LimitsTable();
}

}  // namespace
}  // namespace profd
