#include "daemon/metrics/scrape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/duration_counts.h"
#include "collectors/histogram.h"
#include "collectors/metric_table.h"
#include "daemon/metrics/metric_store.h"

namespace profd {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kNow = 1000 * kNsPerSecond;
constexpr int64_t kDefault = ScraperTable::kDefaultWindowNs;

TEST(ScraperTable, AWindowReachesBackToTheScrapersOwnLastVisit) {
  ScraperTable table;
  EXPECT_EQ(table.Window("10.0.0.1", "Prometheus/2.42", kNow), kDefault);
  EXPECT_EQ(table.Window("10.0.0.2", "Prometheus/2.42", kNow + kNsPerSecond), kDefault);
  EXPECT_EQ(table.Window("10.0.0.1", "curl/7", kNow + 2 * kNsPerSecond), kDefault);
  EXPECT_EQ(table.Window("10.0.0.1", "Prometheus/2.42", kNow + 30 * kNsPerSecond),
            30 * kNsPerSecond);
  EXPECT_EQ(table.Window("10.0.0.2", "Prometheus/2.42", kNow + 6 * kNsPerSecond), 5 * kNsPerSecond);
}

TEST(ScraperTable, WindowsHaveLimits) {
  ScraperTable table;
  table.Window("a", "x", kNow);
  EXPECT_EQ(table.Window("a", "x", kNow + 1), ScraperTable::kMinWindowNs);
  EXPECT_EQ(table.Window("a", "x", kNow + kNsPerSecond * 3600), ScraperTable::kMaxWindowNs);
  EXPECT_EQ(table.Window("a", "x", kNow), ScraperTable::kMinWindowNs);
}

TEST(ScraperTable, ForgetsTheOneThatIsAwayLongest) {
  ScraperTable table;
  for (int i = 0; i < 33; ++i) table.Window(std::to_string(i), "x", kNow + i);
  EXPECT_EQ(table.Window("1", "x", kNow + 2 * kNsPerSecond), 2 * kNsPerSecond - 1);
  EXPECT_EQ(table.Window("0", "x", kNow + 2 * kNsPerSecond), kDefault);
}

std::string Page(const MetricStore& store, int64_t now_ns, int64_t window_ns = kDefault) {
  const StoreFamilies families(store, now_ns, window_ns);
  const std::string text = prometheus::TextSerializer().Serialize(families.Collect());
  // Written fast, but not differently, and the store has back what it lent.
  for (int i = 0; i < 2; ++i) {
    std::ostringstream written;
    families.Write(written);
    EXPECT_EQ(written.str(), text);
  }
  return text;
}

TEST(StoreFamilies, LabelsAreEscapedWhereTheyMustBe) {
  MetricStore store;
  constexpr MetricId kInfo = MetricByName("atlas_driver_info");
  for (const auto& [first, last] : {std::pair("plain", "q\"\\\n"), std::pair("q\"\\\n", "plain")}) {
    store.Write(std::vector<Sample>{{store.Intern(kInfo, kHostDevice, {first, "x y", last}), kNow, 1}});
  }
  const std::string text = Page(store, kNow);
  EXPECT_THAT(text, HasSubstr("{driver_version=\"plain\",dcmi_version=\"x y\",api=\"q\\\"\\\\\\n\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("{driver_version=\"q\\\"\\\\\\n\",dcmi_version=\"x y\",api=\"plain\"} 1\n"));
}

TEST(StoreFamilies, AWindowHasALineForEachFigure) {
  MetricStore store;
  store.SetDeviceLabels(0, "3", "u");
  SeriesId id =
      store.Intern(MetricByName("atlas_npu_hccs_bandwidth_bytes_per_second"), 0, {"all", "tx"});
  store.Write(std::vector<Sample>{{id, kNow - 3 * kNsPerSecond, 8}});
  store.Write(std::vector<Sample>{{id, kNow - 2 * kNsPerSecond, 2}});
  store.Write(std::vector<Sample>{{id, kNow - kNsPerSecond, 5}});
  const std::string text = Page(store, kNow);
  const std::string line =
      "atlas_npu_hccs_bandwidth_window_bytes_per_second{npu=\"3\",uuid=\"u\",link=\"all\","
      "direction=\"tx\",stat=";
  EXPECT_THAT(text,
              HasSubstr(line + "\"min\"} 2\n" + line + "\"avg\"} 5\n" + line + "\"max\"} 8\n"));
  EXPECT_THAT(text, HasSubstr("atlas_npu_hccs_bandwidth_bytes_per_second{npu=\"3\",uuid=\"u\","
                              "link=\"all\",direction=\"tx\"} 5\n"));
  // A window of two seconds.
  EXPECT_THAT(Page(store, kNow, 2 * kNsPerSecond),
              HasSubstr(line + "\"max\"} 5\n"));
}

TEST(StoreFamilies, ASourceWithStatsGivesToEachItsOwnFigure) {
  MetricStore store;
  constexpr MetricId kPcie = MetricByName("atlas_npu_pcie_bandwidth_bytes_per_second");
  const double first[] = {1, 10, 4};
  const double second[] = {2, 20, 6};
  const char* stats[] = {"min", "max", "avg"};
  for (int i = 0; i < 3; ++i) {
    SeriesId id = store.Intern(kPcie, 0, {"tx", "posted", stats[i]});
    store.Write(std::vector<Sample>{{id, kNow - kNsPerSecond, first[i]}});
    store.Write(std::vector<Sample>{{id, kNow, second[i]}});
  }
  const std::string text = Page(store, kNow);
  const std::string line =
      "atlas_npu_pcie_bandwidth_window_bytes_per_second{npu=\"0\",uuid=\"\",direction=\"tx\","
      "type=\"posted\",stat=";
  EXPECT_THAT(text, HasSubstr("gauge\n" + line + "\"min\"} 1\n" + line + "\"max\"} 20\n" + line + "\"avg\"} 5\n"));
}

TEST(StoreFamilies, ScrapersOfDifferentPaceEachSeeADip) {
  MetricStore store;
  ScraperTable table;
  SeriesId id = store.Intern(MetricByName("atlas_npu_power_watts"), 0, {"chip"});
  auto min_of = [&](const char* who, int64_t now) {
    const std::string text = Page(store, now, table.Window(who, "x", now));
    constexpr std::string_view kLine =
        "\natlas_npu_power_window_watts{npu=\"0\",uuid=\"\",scope=\"chip\",stat=\"min\"} ";
    const size_t at = text.find(kLine);
    return at == text.npos ? -1.0 : std::strtod(text.c_str() + at + kLine.size(), nullptr);
  };
  int64_t now = kNow;
  auto run = [&](int seconds, double dip) {
    for (int i = 0; i < seconds * 50; ++i, now += 20 * kNsPerMs) {
      store.Write(std::vector<Sample>{{id, now, i == 7 ? dip : 300}});
    }
  };
  run(1, 300);
  min_of("slow", now);
  min_of("fast", now);
  run(5, 40);
  EXPECT_EQ(min_of("fast", now), 40);
  run(5, 300);
  EXPECT_EQ(min_of("fast", now), 300);
  run(5, 300);
  EXPECT_EQ(min_of("slow", now), 40);
  // Timestamped before the scrape, delivered after it: in the next window of both.
  store.Write(std::vector<Sample>{{id, now - 3 * kNsPerSecond, 20}});
  run(4, 300);
  EXPECT_EQ(min_of("slow", now), 20);
  EXPECT_EQ(min_of("fast", now), 20);
}

// Any metric will do: how a histogram is put together does not depend on the table's row.
TEST(StoreFamilies, HistogramsAreOneFamily) {
  constexpr auto kHistogram = [] {
    for (size_t i = 0; i < kMetrics.size(); ++i) {
      if (kMetrics[i].type == MetricType::kHistogram) return i;
    }
    return size_t{kNoMetric};
  }();
  if (kHistogram == kNoMetric) GTEST_SKIP() << "the table has no histogram";
  MetricStore store;
  SampleBatch batch;
  HistogramSeries get(store, static_cast<MetricId>(kHistogram), kHostDevice, {"get"},
                      DurationCounts::kBoundsSeconds);
  HistogramSeries put(store, static_cast<MetricId>(kHistogram), kHostDevice, {"put"},
                      DurationCounts::kBoundsSeconds);
  DurationCounts counts;
  counts.Observe(100'000);  // the bound belongs to its class
  counts.Observe(100'001);
  counts.Observe(60 * kNsPerSecond);
  get.Emit(counts.counts, counts.sum_seconds(), kNow, batch);
  put.Emit({}, 0, kNow, batch);
  store.Write(batch.samples());
  const std::string text = Page(store, kNow);
  const std::string name(kMetrics[kHistogram].name);
  const std::string label(kMetrics[kHistogram].labels);
  const auto line = [&](const std::string& suffix, const std::string& le, const std::string& value) {
    return name + suffix + "{" + label + "=\"get\"" + (le.empty() ? "" : ",le=\"" + le + "\"") + "} " + value + "\n";
  };
  EXPECT_THAT(text, HasSubstr("# TYPE " + name + " histogram\n" + line("_count", "", "3") +
                              line("_sum", "", "60.000200001") + line("_bucket", "0.0001", "1") +
                              line("_bucket", "0.001", "2")));
  EXPECT_THAT(text, HasSubstr(line("_bucket", "10", "2") + line("_bucket", "+Inf", "3")));
  EXPECT_THAT(text, HasSubstr(name + "_count{" + label + "=\"put\"} 0\n"));
}

// Ids are used again: the parts of a histogram and other series lie among each other.
TEST(StoreFamilies, AHistogramIsCompleteWhateverIdsItsPartsHave) {
  constexpr MetricId kCalls = MetricByName("profd_dcmi_call_duration_seconds");
  MetricStore store;
  const SeriesId sum = store.Intern(kCalls, kHostDevice, {"b", kHistogramSum});
  const SeriesId two = store.Intern(kCalls, kHostDevice, {"b", "10"});
  const SeriesId other = store.Intern(kCalls, kHostDevice, {"a", "0.5"});
  const SeriesId others = store.Intern(kCalls, kHostDevice, {"a", kHistogramInfinity});
  const SeriesId all = store.Intern(kCalls, kHostDevice, {"b", kHistogramInfinity});
  const SeriesId one = store.Intern(kCalls, kHostDevice, {"b", "2"});
  const SeriesId wrong = store.Intern(kCalls, kHostDevice, {"b", "often"});
  store.Write(std::vector<Sample>{{sum, kNow, 7.5}, {two, kNow, 2}, {other, kNow, 1}, {others, kNow, 1},
                                  {all, kNow, 3}, {one, kNow, 1}, {wrong, kNow, 9}});
  const std::string text = Page(store, kNow);
  const std::string name = "profd_dcmi_call_duration_seconds";
  EXPECT_EQ(text.substr(text.find(" histogram\n")),
            " histogram\n" + name + "_count{call=\"b\"} 3\n" + name + "_sum{call=\"b\"} 7.5\n" +
                name + "_bucket{call=\"b\",le=\"2\"} 1\n" + name + "_bucket{call=\"b\",le=\"10\"} 2\n" +
                name + "_bucket{call=\"b\",le=\"+Inf\"} 3\n" + name + "_count{call=\"a\"} 1\n" +
                name + "_sum{call=\"a\"} 0\n" + name + "_bucket{call=\"a\",le=\"0.5\"} 1\n" +
                name + "_bucket{call=\"a\",le=\"+Inf\"} 1\n");
}

TEST(StoreFamilies, AnIdGivenToAnotherSeriesHasItsLabels) {
  constexpr MetricId kPower = MetricByName("atlas_npu_power_watts");
  MetricStore store;
  const SeriesId first = store.Intern(kPower, 0, {"chip"});
  store.Write(std::vector<Sample>{{first, kNow, 1}});
  EXPECT_THAT(Page(store, kNow), HasSubstr("scope=\"chip\"} 1\n"));
  store.Release(first);
  const SeriesId second = store.Intern(kPower, 1, {"board"});
  ASSERT_EQ(first, second);
  store.Write(std::vector<Sample>{{second, kNow, 2}});
  const std::string text = Page(store, kNow);
  EXPECT_THAT(text, HasSubstr("npu=\"1\",uuid=\"\",scope=\"board\"} 2\n"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("\"chip\"")));
}

}  // namespace
}  // namespace profd
