#include "daemon/archive/archive_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/config/daemon_config.h"

namespace profd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ArchiveSubject Subject() {
  return {.kind = "sessions", .job_id = "llm-7b", .label = "before", .session = "71bd0e29b475", .uid = 1000};
}

TEST(ArchiveRuleTest, ByKindJobAndLabel) {
  EXPECT_TRUE(IsArchived({"all"}, Subject()));
  EXPECT_TRUE(IsArchived({"recorder", "sessions"}, Subject()));
  EXPECT_FALSE(IsArchived({"recorder", "sampling"}, Subject()));
  EXPECT_TRUE(IsArchived({"job=llm-*"}, Subject()));
  EXPECT_FALSE(IsArchived({"job=bert"}, Subject()));
  EXPECT_TRUE(IsArchived({"label=bef?re"}, Subject()));
  EXPECT_FALSE(IsArchived({"label=after"}, Subject()));
}

TEST(ArchiveRuleTest, NamesOfRuns) {
  ArchiveSubject subject = Subject();
  EXPECT_EQ(ArchiveRunName(DaemonConfig().archive_run, subject, "n1"), "1000-llm-7b-71bd0e29b475");
  EXPECT_EQ(ArchiveRunName("{host}/{label}", subject, "n1"), "n1/before");
  subject.segment = 2;
  EXPECT_EQ(ArchiveRunName("{job}", subject, "n1"), "llm-7b.2") << "does not replace the first segment";
  subject = ArchiveSubject();
  subject.kind = "recorder";
  EXPECT_EQ(ArchiveRunName("{job} {label}", subject, "n1"), "n1 recorder") << "of no job, without a label";
  EXPECT_EQ(ArchiveRunName("{session}", subject, "n1"), "n1");
}

TEST(ArchiveRuleTest, NamesOfRunsFitIntoTheDatabase) {
  ArchiveSubject subject = Subject();
  subject.job_id = "a\nb\x7f";
  EXPECT_EQ(ArchiveRunName("{job}", subject, "n1"), "a_b_");
  std::string text;
  for (int i = 0; i < 100; ++i) text += "\xe4\xb8\xad";
  subject.job_id = text;
  subject.segment = 12;
  const std::string name = ArchiveRunName("{job}", subject, "n1");
  EXPECT_LE(name.size(), kMaxRunName);
  EXPECT_EQ(name, text.substr(0, 195) + ".12") << "no half of a character";
}

std::vector<std::string> ProblemsOf(const DaemonConfig& config) {
  std::vector<std::string> problems;
  CheckArchive(config, &problems);
  return problems;
}

TEST(ArchiveRuleTest, OffNothingIsWrong) {
  DaemonConfig config;
  config.archive_which = {"nonsense"};
  EXPECT_THAT(ProblemsOf(config), IsEmpty());
}

TEST(ArchiveRuleTest, EveryProblemIsListed) {
  DaemonConfig config;
  config.archive_to = "http://db/profiles";
  config.archive_which = {"all", "nonsense", "job="};
  config.archive_run = "{jobs}-{session";
  config.archive_retry_first_s = 100;
  config.archive_retry_longest_s = 10;
  EXPECT_THAT(ProblemsOf(config), ElementsAre(HasSubstr("archive.to must be clickhouse://"), HasSubstr("\"nonsense\""), HasSubstr("\"job=\""),
                                              HasSubstr("{jobs}"), HasSubstr("without its }"), HasSubstr("retry_first_s = 100")));
  config = DaemonConfig();
  config.archive_which = {};
  config.archive_run = "";
  config.archive_to = "clickhouse://db";
  EXPECT_THAT(ProblemsOf(config), ElementsAre(HasSubstr("archive.to"), HasSubstr("archive.which"), HasSubstr("archive.run must have 1")));
}

TEST(ArchiveRuleTest, Addresses) {
  DaemonConfig config;
  for (const char* good : {"clickhouse://db/profiles", "clickhouses://loader@db.example.com:8443/p_1", "clickhouse://[::1]:8123/profiles",
                           "clickhouse://[::1]/profiles", "clickhouses://loader@db:65535/profiles"}) {
    config.archive_to = good;
    EXPECT_THAT(ProblemsOf(config), IsEmpty()) << good;
  }
  for (const char* bad : {"clickhouse://", "clickhouse:///x", "clickhouse://db/", "clickhouse://user@/x", "clickhouse://db/a/run", "clickhouse://d b/x"}) {
    config.archive_to = bad;
    EXPECT_THAT(ProblemsOf(config), ElementsAre(HasSubstr("archive.to"))) << bad;
  }
  // As profctl, which would be the first to find it.
  for (const char* bad : {"clickhouse://db:99999/x", "clickhouse://db:0/x", "clickhouse://db:/x", "clickhouse://u@db:http/x", "clickhouse://:8123/x",
                          "clickhouse://::1/x", "clickhouse://[::1/x", "clickhouse://[::1]8123/x", "clickhouse://[::1]:65536/x", "clickhouse://[]:8123/x"}) {
    config.archive_to = bad;
    EXPECT_THAT(ProblemsOf(config), ElementsAre(HasSubstr("a port of 1..65535"))) << bad;
  }
  config.archive_to = "clickhouse://loader:secret@db/x";
  EXPECT_THAT(ProblemsOf(config), ElementsAre(::testing::AllOf(HasSubstr("password"), ::testing::Not(HasSubstr("secret")))));
}

}  // namespace
}  // namespace profd
