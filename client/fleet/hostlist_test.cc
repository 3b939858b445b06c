#include "client/fleet/hostlist.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace profd::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> Names(const NodeList& list) {
  std::vector<std::string> names;
  for (const NodeName& node : list.nodes) names.push_back(node.text);
  return names;
}

std::vector<std::string> Expanded(std::string_view text) {
  std::vector<std::string> problems;
  NodeList list = ParseNodeList(text, kDefaultTlsPort, &problems);
  EXPECT_THAT(problems, IsEmpty()) << text;
  return Names(list);
}

std::vector<std::string> ProblemsOf(std::string_view text) {
  std::vector<std::string> problems;
  (void)ParseNodeList(text, kDefaultTlsPort, &problems);
  return problems;
}

TEST(Hostlist, ExpandsAsSlurmDoes) {
  EXPECT_THAT(Expanded("host"), ElementsAre("host"));
  EXPECT_THAT(Expanded("host[1-3]"), ElementsAre("host1", "host2", "host3"));
  EXPECT_THAT(Expanded("host[01-03]"), ElementsAre("host01", "host02", "host03"));
  EXPECT_THAT(Expanded("host[8-11]"), ElementsAre("host8", "host9", "host10", "host11"));
  EXPECT_THAT(Expanded("host[08-11]"), ElementsAre("host08", "host09", "host10", "host11"));
  EXPECT_THAT(Expanded("host[098-101]"), ElementsAre("host098", "host099", "host100", "host101"));
  EXPECT_THAT(Expanded("a[1,5,07]"), ElementsAre("a1", "a5", "a07"));
  EXPECT_THAT(Expanded("a[1-2,09],b"), ElementsAre("a1", "a2", "a09", "b"));
  EXPECT_THAT(Expanded("rack[1-2]n[01-02]"),
              ElementsAre("rack1n01", "rack1n02", "rack2n01", "rack2n02"));
  EXPECT_THAT(Expanded("a[0-0].cluster.local"), ElementsAre("a0.cluster.local"));
  EXPECT_THAT(Expanded("[1-2]a"), ElementsAre("1a", "2a"));
  EXPECT_THAT(Expanded("10.0.0.[1-2]"), ElementsAre("10.0.0.1", "10.0.0.2"));
}

TEST(Hostlist, PortsAddressesAndSockets) {
  EXPECT_THAT(Expanded("a[1-2]:9470"), ElementsAre("a1:9470", "a2:9470"));
  EXPECT_THAT(Expanded("127.0.0.1:[9001-9003]"),
              ElementsAre("127.0.0.1:9001", "127.0.0.1:9002", "127.0.0.1:9003"));
  EXPECT_THAT(Expanded("[fd00::7]:9470,[::1]"), ElementsAre("[fd00::7]:9470", "[::1]"));
  EXPECT_THAT(Expanded("unix:/run/n[1-2]/s"), ElementsAre("unix:/run/n1/s", "unix:/run/n2/s"));

  std::vector<std::string> problems;
  NodeList list = ParseNodeList("a,b:1,[::1],[::1]:7,unix:/s,fd00::7", 5000, &problems);
  ASSERT_EQ(list.nodes.size(), 6u);
  EXPECT_EQ(list.nodes[0].endpoint.address, "a:5000");
  EXPECT_EQ(list.nodes[1].endpoint.address, "b:1");
  EXPECT_EQ(list.nodes[2].endpoint.address, "[::1]:5000");
  EXPECT_EQ(list.nodes[3].endpoint.address, "[::1]:7");
  EXPECT_FALSE(list.nodes[4].endpoint.remote());
  EXPECT_EQ(list.nodes[4].endpoint.socket, "/s");
  EXPECT_EQ(list.nodes[5].endpoint.address, "[fd00::7]:5000");
  NodeList fallback = ParseNodeList("a", kDefaultTlsPort, &problems);
  EXPECT_EQ(fallback.nodes[0].endpoint.address, "a:9465");
}

TEST(Hostlist, FilesHaveLinesCommentsAndBlanks) {
  EXPECT_THAT(Expanded("# all of rack 1\n\n  n1   n2\r\n n[3-4], n5 # five\n#n6\n,n7"),
              ElementsAre("n1", "n2", "n3", "n4", "n5", "n7"));
}

TEST(Hostlist, DuplicatesAreRemovedAndReported) {
  std::vector<std::string> problems;
  NodeList list = ParseNodeList("b,a[1-3],a2,a2,b:9465,b:1", kDefaultTlsPort, &problems);
  EXPECT_THAT(Names(list), ElementsAre("b", "a1", "a2", "a3", "b:1"));
  EXPECT_THAT(list.duplicates, ElementsAre("a2", "b:9465"));
}

TEST(Hostlist, EveryProblemAtOnce) {
  EXPECT_THAT(ProblemsOf("a[1-,b[],c[3-1],d],e,f[1-2"),
              ElementsAre(HasSubstr("\"1-\" is neither"), HasSubstr("has no \"]\"")));
  EXPECT_THAT(ProblemsOf("b[],c[3-1],d],e"),
              ElementsAre(HasSubstr("\"\" is neither"), HasSubstr("\"3-1\" runs backwards"),
                          HasSubstr("\"d]\": there is a \"]\"")));
}

TEST(Hostlist, RefusesInvalidLists) {
  struct Case {
    const char* text;
    const char* says;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"", "is empty"},
           {" # nothing\n", "is empty"},
           {"a,,b", "nothing before a comma"},
           {",a", "nothing before a comma"},
           {"a,", "nothing behind the last comma"},
           {"a[1", "has no \"]\""},
           {"a]1", "without its \"[\""},
           {"a[[1-2]]", "is neither a number nor a range"},
           {"a[1--2]", "is neither a number nor a range"},
           {"a[-2]", "is neither a number nor a range"},
           {"a[+1]", "is neither a number nor a range"},
           {"a[1,]", "is neither a number nor a range"},
           {"a[1234567890]", "is neither a number nor a range"},
           {"a[x]", "is neither a number nor a range"},
           {"a:0", "is not a node"},
           {"a:65536", "is not a node"},
           {"a:", "is not a node"},
           {"a:x", "is not a node"},
           {"-a", "is not a node"},
           {"a/b", "is not a node"},
           {"[::1]x", "is not a node"},
           {"a;b", "is not a node"},
           {"unix:run/s", "begins with \"/\""},
           {"unix:", "begins with \"/\""}}) {
    auto problems = ProblemsOf(c.text);
    ASSERT_EQ(problems.size(), 1u) << c.text;
    EXPECT_THAT(problems[0], HasSubstr(c.says)) << c.text;
  }
  EXPECT_THAT(ProblemsOf("unix:/" + std::string(106, 'x')), IsEmpty());
  EXPECT_EQ(ProblemsOf("unix:/" + std::string(107, 'x')).size(), 1u);
}

TEST(Hostlist, IsBounded) {
  EXPECT_EQ(Expanded("a[1-65536]").size(), kMaxNodes);
  EXPECT_THAT(ProblemsOf("a[1-65537]"), ElementsAre(HasSubstr("longer than 65536")));
  EXPECT_THAT(ProblemsOf("a[1-65536],b"), ElementsAre(HasSubstr("longer than 65536")));
  EXPECT_THAT(ProblemsOf("a[0-999999999][0-999999999][0-999999999]"),
              ElementsAre(HasSubstr("longer than 65536")));
  EXPECT_THAT(ProblemsOf("a[1]b[1]c[1]d[1]e[1]f[1]g[1]h[1]i[1]"),
              ElementsAre(HasSubstr("too many brackets")));
  std::string much;
  for (int i = 0; i < 100; ++i) much += fmt::format("{}a[ ", i);
  auto problems = ProblemsOf(much);
  ASSERT_EQ(problems.size(), 21u);
  EXPECT_THAT(problems.back(), HasSubstr("and 80 more"));
}

}  // namespace
}  // namespace profd::client
