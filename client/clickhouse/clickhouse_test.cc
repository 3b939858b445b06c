#include <gtest/gtest.h>

#include "client/clickhouse/clickhouse_server.h"
#include "client/clickhouse/run_source.h"
#include "client/clickhouse/url.h"

namespace profd::client {
namespace {

TEST(ClickHouseUrl, Parts) {
  const auto url = ParseClickHouseUrl("clickhouse://me:p%40ss%2F@[::1]:9000/profiles/run%201");
  ASSERT_TRUE(url.ok()) << url.status().message();
  EXPECT_FALSE(url->tls);
  EXPECT_EQ(url->user, "me");
  EXPECT_EQ(url->password, "p@ss/");
  EXPECT_EQ(url->host, "::1");
  EXPECT_EQ(url->port, 9000);
  EXPECT_EQ(url->database, "profiles");
  EXPECT_EQ(url->run, "run 1");
  EXPECT_EQ(url->Shown(), "clickhouse://[::1]:9000/profiles");
  const auto tls = ParseClickHouseUrl("clickhouses://db.example.com/profiles");
  ASSERT_TRUE(tls.ok());
  EXPECT_TRUE(tls->tls);
  EXPECT_EQ(tls->port, 8443);
  EXPECT_EQ(tls->run, "");
}

TEST(ClickHouseUrl, RefusedWithoutThePassword) {
  for (const char* text : {"http://x/y", "clickhouse:///db", "clickhouse://u:secret@h:x/db", "clickhouse://u:secret@h:0/db", "clickhouse://u:secret@h:/db",
                           "clickhouse://u:secret@h:70000/db", "clickhouse://u:secret@h/", "clickhouse://u:secret@h/a-b", "clickhouse://u:secret@h/a`b",
                           "clickhouse://u:secret@h/db/%01", "clickhouse://u:secret%0d%0aX: y@h/db", "clickhouse://u:secret@[::1/db"}) {
    const auto url = ParseClickHouseUrl(text);
    ASSERT_FALSE(url.ok()) << text;
    EXPECT_EQ(url.status().message().find("secret"), std::string::npos) << url.status().message();
  }
}

TEST(ClickHouseErrors, InTheServersWords) {
  EXPECT_EQ(ServerErrorText("Code: 193, e.displayText() = DB::Exception: Wrong password for user loader, e.what() = DB::Exception\n"), "Wrong password for user loader");
  EXPECT_EQ(ServerErrorText("Code: 60. DB::Exception: Table db.x does not exist. (UNKNOWN_TABLE) (version 24.8.1.1 (official build))"),
            "Table db.x does not exist. (UNKNOWN_TABLE)");
  EXPECT_EQ(ServerErrorText("HTTP status 502"), "HTTP status 502");
}

TEST(ClickHouseErrors, ByTheServersNumber) {
  EXPECT_EQ(ServerErrorCode("", "Code: 60. DB::Exception: Table db.x does not exist. (UNKNOWN_TABLE) (version 24.8.1.1 (official build))"), 60);
  EXPECT_EQ(ServerErrorCode("", "Code: 193, e.displayText() = DB::Exception: Wrong password for user loader"), 193);
  // Where the answer is JSON, so is the text of the error.
  EXPECT_EQ(ServerErrorCode("", R"json({"exception": "Code: 81. DB::Exception: Database db does not exist. (UNKNOWN_DATABASE) (version 24.3.1.1)"})json"), 81);
  EXPECT_EQ(ServerErrorCode("497", "anything"), 497);
  EXPECT_EQ(ServerErrorCode("", "<html>502 Bad Gateway</html>"), 0);
  EXPECT_EQ(ServerErrorCode("none", ""), 0);
}

TEST(ClickHouseErrors, OfAllServersOfAShard) {
  const char* refused = "Code: 279, e.displayText() = DB::NetException: All connection tries failed. Log: \n\nCode: 32, e.displayText() = DB::Exception: Attempt to read after eof, "
                        "e.what() = DB::Exception\nCode: 210, e.displayText() = DB::NetException: Connection refused (127.0.0.1:9000), e.what() = DB::NetException\n"
                        "Code: 210, e.displayText() = DB::NetException: Connection refused (127.0.0.1:9000), e.what() = DB::NetException\n\n, e.what() = DB::NetException\n";
  EXPECT_EQ(ServerErrorText(refused), "no server of a shard can be used: Attempt to read after eof; Connection refused (127.0.0.1:9000)");
  EXPECT_EQ(ServerErrorText("Code: 279, e.displayText() = DB::NetException: All connection tries failed. Log: \n\nThere is no table d.t_local on server: 127.0.0.1:9000\n\n, "
                            "e.what() = DB::NetException\n"),
            "no server of a shard can be used: There is no table d.t_local on server: 127.0.0.1:9000");
}

// What may pass by itself, and what does not.
TEST(ClickHouseErrors, Kinds) {
  for (const int code : {159, 210, 242, 279, 999}) EXPECT_EQ(StatusCodeOf(code, 500), StatusCode::kUnavailable) << code;
  for (const int code : {16, 170, 359}) EXPECT_EQ(StatusCodeOf(code, 500), StatusCode::kFailedPrecondition) << code;
  EXPECT_EQ(StatusCodeOf(497, 500), StatusCode::kPermissionDenied);
  EXPECT_EQ(StatusCodeOf(0, 502), StatusCode::kUnavailable);
  EXPECT_EQ(StatusCodeOf(0, 403), StatusCode::kUnauthenticated);
}

TEST(RankList, Ranges) {
  EXPECT_EQ(*ParseRankList("0,4-6"), (std::set<int>{0, 4, 5, 6}));
  EXPECT_TRUE(ParseRankList("")->empty());
  for (const char* text : {"x", "3-1", "-1", "0-2000000000", "1;2"}) EXPECT_FALSE(ParseRankList(text).ok()) << text;
}

}  // namespace
}  // namespace profd::client
