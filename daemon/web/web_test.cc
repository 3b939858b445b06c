#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <array>

#include "base/clock.h"
#include "collectors/metric_table.h"
#include "daemon/metrics/metric_store.h"
#include "daemon/web/connection_limits.h"
#include "daemon/web/gzip.h"
#include "daemon/web/http_text.h"
#include "daemon/web/status_board.h"
#include "daemon/web/web_connection.h"

namespace profd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

TEST(ConnectionLimits, OneAddressDoesNotShutOthersOut) {
  ConnectionLimits limits(4, 2);
  EXPECT_EQ(limits.Enter("a"), Admission::kServe);
  EXPECT_EQ(limits.Enter("a"), Admission::kServe);
  EXPECT_EQ(limits.Enter("a"), Admission::kRefuseAddress);
  EXPECT_EQ(limits.Enter("b"), Admission::kServe);
  EXPECT_EQ(limits.Enter("c"), Admission::kServe);
  EXPECT_EQ(limits.Enter("d"), Admission::kRefuseTotal);
  EXPECT_EQ(limits.open(), 4U);
  limits.Leave("a", Admission::kRefuseAddress);
  limits.Leave("a", Admission::kServe);
  EXPECT_EQ(limits.Enter("d"), Admission::kServe);
  EXPECT_EQ(limits.Enter("a"), Admission::kRefuseTotal);
}

TEST(ConnectionLimits, OnlySomeRefusalsAreAnswered) {
  ConnectionLimits limits(1, 1);
  EXPECT_EQ(limits.Enter("a"), Admission::kServe);
  for (size_t i = 0; i < ConnectionLimits::kMaxRefusals; ++i) {
    EXPECT_EQ(limits.Enter("a"), Admission::kRefuseAddress);
  }
  EXPECT_EQ(limits.Enter("a"), Admission::kDropAddress);
  EXPECT_EQ(limits.Enter("b"), Admission::kDropTotal);
  limits.Leave("a", Admission::kDropAddress);
  limits.Leave("a", Admission::kRefuseAddress);
  EXPECT_EQ(limits.Enter("b"), Admission::kRefuseTotal);
}

TEST(AnswerBuffer, KeepsTheBufferOfOneAnswerWithinALimit) {
  AnswerBuffer buffer;
  std::string text(300'000, 'x');
  const char* memory = text.data();
  buffer.Give(std::move(text));
  buffer.Give(std::string(1000, 'y'));  // less than there is
  buffer.Give(std::string(AnswerBuffer::kMaxBytes + 1, 'z'));
  EXPECT_GE(buffer.bytes(), 300'000U);
  EXPECT_LE(buffer.bytes(), AnswerBuffer::kMaxBytes);
  std::string again = buffer.Take();
  EXPECT_EQ(again, "");
  again.resize(300'000, 'a');
  EXPECT_EQ(again.data(), memory);
  EXPECT_LT(buffer.bytes(), 1000U);
}

std::string Unpack(const std::string& packed) {
  z_stream z{};
  EXPECT_EQ(::inflateInit2(&z, 15 + 16), Z_OK);
  std::string copy = packed;
  z.next_in = reinterpret_cast<Bytef*>(copy.data());
  z.avail_in = static_cast<uInt>(copy.size());
  std::string out;
  std::array<char, 4096> piece{};
  int code = Z_OK;
  while (code == Z_OK) {
    z.next_out = reinterpret_cast<Bytef*>(piece.data());
    z.avail_out = static_cast<uInt>(piece.size());
    code = ::inflate(&z, Z_NO_FLUSH);
    out.append(piece.data(), piece.size() - z.avail_out);
  }
  EXPECT_EQ(code, Z_STREAM_END);
  ::inflateEnd(&z);
  return out;
}

TEST(Gzip, KeepsEveryByteAgainAndAgain) {
  GzipCompressor gzip;
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "atlas_npu_up{npu=\"" + std::to_string(i) + "\"} 1\n";
  for (const std::string& one : {text, std::string(), std::string("a"), text + "end"}) {
    std::string packed;
    ASSERT_TRUE(gzip.Compress(one, &packed));
    EXPECT_EQ(Unpack(packed), one);
  }
}

TEST(Gzip, OnlyWhoTakesIt) {
  for (const char* yes : {"gzip", "GZIP", "deflate, gzip;q=0.5", "gzip ; q=1.0", "*", "br, *;q=0.1",
                          "x-gzip", "gzip;q=0.001"}) {
    EXPECT_TRUE(AcceptsGzip(yes)) << yes;
  }
  for (const char* no : {"", "identity", "gzip;q=0", "gzip;q=0.000, *", "*;q=0", "deflate,br", "gzipped",
                         ",,;"}) {
    EXPECT_FALSE(AcceptsGzip(no)) << no;
  }
}

TEST(HttpText, Targets) {
  EXPECT_EQ(ParseTarget("/metrics?names=atlas")->path, "/metrics");
  EXPECT_EQ(ParseTarget("/metrics?names=atlas")->query, "names=atlas");
  EXPECT_EQ(ParseTarget("/%6detrics")->path, "/metrics");
  for (const char* bad : {"", "metrics", "http://h/metrics", "/%", "/%4", "/%zz", "/a%00", "/a%0ab"}) {
    EXPECT_FALSE(ParseTarget(bad)) << bad;
  }
}

TEST(HttpText, QueryValues) {
  EXPECT_THAT(*QueryValues("a=1&names=x%2Cy&b&names=z", "names"), ElementsAre("x,y", "z"));
  EXPECT_THAT(*QueryValues("names", "names"), ElementsAre(""));
  EXPECT_THAT(*QueryValues("", "names"), ElementsAre());
  EXPECT_FALSE(QueryValues("names=%", "names"));
}

TEST(HttpText, DateAndEscapes) {
  EXPECT_EQ(HttpDate(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(EscapeHtml("<a href='x'>&\"\n"), "&lt;a href=&#39;x&#39;&gt;&amp;&quot; ");
  EXPECT_THAT(MergeHeaders({{"A", "1"}, {"B", "2"}}, {{"B", ""}, {"C", "3"}}),
              ElementsAre(Pair("A", "1"), Pair("C", "3")));
}

NodeView Node() {
  return {.version = "1.2", .hostname = "n<1>",
          .devices = {{0, "0", "Ascend910B", "ok", {}}, {1, "1", "Ascend910B", "down", {"has \"gone\""}}},
          .collectors = {{"host_cpu", true, ""}, {"npu_state", false, ""}}, .sessions = 3, .flight_recorder = "off"};
}

TEST(StatusBoard, HealthFollowsTheBeat) {
  StatusBoard board;
  EXPECT_EQ(board.Health(kNsPerSecond).status, 503);
  board.Pin(Node(), 100 * kNsPerSecond);
  EXPECT_EQ(board.Health(101 * kNsPerSecond).body, "ok\n");
  WebResponse late = board.Health(120 * kNsPerSecond);
  EXPECT_EQ(late.status, 503);
  EXPECT_THAT(late.body, HasSubstr("20 s ago"));
  board.Pin(Node(), 121 * kNsPerSecond);
  EXPECT_EQ(board.Health(121 * kNsPerSecond).status, 200);
}

TEST(StatusBoard, APictureWithoutAViewerIsSeldomDrawn) {
  StatusBoard board;
  EXPECT_TRUE(board.WantsPicture(kNsPerSecond));
  board.Pin(Node(), 100 * kNsPerSecond);
  EXPECT_TRUE(board.WantsPicture(101 * kNsPerSecond)) << "collectors are still beginning";
  board.Pin(Node(), 200 * kNsPerSecond);
  EXPECT_FALSE(board.WantsPicture(201 * kNsPerSecond));
  board.Touch(204 * kNsPerSecond);
  EXPECT_TRUE(board.WantsPicture(205 * kNsPerSecond)) << "too old for the first who looks";
  EXPECT_EQ(board.Health(218 * kNsPerSecond).status, 200);
  board.Pin(Node(), 300 * kNsPerSecond);
  EXPECT_NE(board.view(), nullptr);
  EXPECT_TRUE(board.WantsPicture(301 * kNsPerSecond)) << "it is requested";
}

TEST(StatusBoard, ReadyWhenEverythingHasBegun) {
  StatusBoard board;
  EXPECT_THAT(board.Readiness(0).body, HasSubstr("sockets: not ready"));
  board.SetListening();
  board.SetDumpsSeen();
  EXPECT_THAT(board.Readiness(0).body, HasSubstr("metrics: not ready"));
  NodeView view = Node();
  board.Pin(view, kNsPerSecond);
  WebResponse waiting = board.Readiness(kNsPerSecond);
  EXPECT_EQ(waiting.status, 503);
  EXPECT_THAT(waiting.body, HasSubstr("not run yet: npu_state"));
  EXPECT_EQ(board.Readiness(60 * kNsPerSecond).status, 200) << "a hanging card does not delay readiness";
  view.collectors[1] = {"npu_state", true, "no answer"};
  board.Pin(view, 2 * kNsPerSecond);
  WebResponse ready = board.Readiness(2 * kNsPerSecond);
  EXPECT_EQ(ready.status, 200);
  EXPECT_THAT(ready.body, HasSubstr("collector npu_state: degraded: no answer"));
  EXPECT_THAT(ready.body, HasSubstr("npu 0: ready\nnpu 1: down: has \"gone\""));
  // What `profctl health` does not call ok is not ready here.
  view.devices[0] = {0, "0", "Ascend910B", "unknown", {"dcmi_init has not returned for 9 s"}};
  view.devices[1] = {1, "1", "Ascend910B", "unknown", {}};
  board.Pin(view, 3 * kNsPerSecond);
  EXPECT_EQ(board.Readiness(3 * kNsPerSecond).status, 200);
  EXPECT_THAT(board.Readiness(3 * kNsPerSecond).body,
              HasSubstr("npu 0: unknown: dcmi_init has not returned for 9 s\nnpu 1: unknown\n"));
}

TEST(StatusBoard, NoNpuIsReady) {
  StatusBoard board;
  board.SetListening();
  board.SetDumpsSeen();
  NodeView view;
  view.driver_problem = "no libascend_hal.so";
  board.Pin(view, kNsPerSecond);
  EXPECT_EQ(board.Readiness(kNsPerSecond).status, 200);
  EXPECT_THAT(board.Readiness(kNsPerSecond).body,
              HasSubstr("npus: ready: host only (no libascend_hal.so)"));
}

TEST(StatusPage, EscapesWhatItShows) {
  PageFacts facts;
  facts.figures["0"] = {"63 %", "1.0 of 64.0 GiB", "299 W", "51 °C", ""};
  facts.jobs = {{"<j42>", "alice", {"0", "1"}, 1200}};
  std::string page = RenderPage(Node(), facts, {"atlas"});
  EXPECT_THAT(page, HasSubstr("profd on n&lt;1&gt;"));
  EXPECT_THAT(page, Not(HasSubstr("n<1>")));
  EXPECT_THAT(page, HasSubstr("2 NPUs, 3 active sessions"));
  EXPECT_THAT(page, HasSubstr("<span class=\"good\">ok</span></td><td>63 %</td>"));
  EXPECT_THAT(page, HasSubstr("<span class=\"bad\">down</span>"));
  // In a row of its own: beside the figures the page is not wide enough for it.
  EXPECT_THAT(page, HasSubstr("</tr>\n<tr class=\"why\"><td></td><td class=\"text long\" colspan=\"7\">has &quot;gone&quot;</td></tr>"));
  EXPECT_THAT(page, HasSubstr("<td class=\"text long\">&lt;j42&gt;</td><td>alice</td><td>0, 1</td><td>1200</td>"));
  EXPECT_THAT(page, Not(HasSubstr("Simulated")));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("http://")));
  EXPECT_THAT(RenderPage(Node(), {}, {"atlas"}), Not(HasSubstr("<h2>Jobs"))) << "attribution is off";
  EXPECT_THAT(page, Not(HasSubstr("<h2>Advice")));
  NodeView advised = Node();
  advised.advice = {{"hang", "job <j42>", "no step ends", "Look at the stacks"}};
  page = RenderPage(advised, {}, {"atlas"});
  EXPECT_THAT(page, HasSubstr("<span class=\"warn\">hang</span></td><td>job &lt;j42&gt;</td><td class=\"text\">no step ends</td>"));
  // An advice with a word as long as a setting's name makes the table no wider than the page.
  EXPECT_THAT(page, HasSubstr(".advice td.text { min-width: 13rem; overflow-wrap: anywhere; }"));
  EXPECT_THAT(page, HasSubstr("<div class=\"wide advice\"><table>"));
}

TEST(PageFacts, AreThoseOfTheMetrics) {
  constexpr int64_t kNow = 100 * kNsPerSecond;
  MetricStore store;
  auto put = [&store](MetricId metric, int device, std::vector<std::string_view> labels,
                      double value) {
    Sample sample{store.Intern(metric, device, labels), kNow, value};
    store.Write(std::span(&sample, 1));
  };
  put(MetricByName("atlas_npu_utilization_ratio"), 1, {"aicore"}, 0.634);
  put(MetricByName("atlas_npu_utilization_ratio"), 1, {"vector"}, 0.1);
  put(MetricByName("atlas_npu_hbm_used_bytes"), 1, {}, 2147483648.0);
  put(MetricByName("atlas_npu_hbm_size_bytes"), 1, {}, 68719476736.0);
  put(MetricByName("atlas_npu_frequency_hertz"), 1, {"aicore"}, 9.9e8);
  for (int device : {1, 2}) put(MetricByName("atlas_npu_job_info"), device, {"j42", "alice", "slurm"}, 1);
  put(MetricByName("atlas_npu_step"), kHostDevice, {"1", "j42", "0", "4711"}, 12);
  put(MetricByName("atlas_npu_step"), kHostDevice, {"2", "j42", "1", "4712"}, 14);
  PageFacts facts = ReadPageFacts(store, kNow);
  EXPECT_THAT(facts.figures["1"], ElementsAre("63 %", "2.0 of 64.0 GiB", "", "", "990 MHz"));
  ASSERT_EQ(facts.jobs.size(), 1U);
  EXPECT_EQ(facts.jobs[0].user, "alice");
  EXPECT_THAT(facts.jobs[0].npus, ElementsAre("1", "2"));
  EXPECT_EQ(facts.jobs[0].step, 14);
}

}  // namespace
}  // namespace profd
