#include "daemon/metrics/scrape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/duration_counts.h"
#include "collectors/histogram.h"
#include "collectors/metric_table.h"
#include "daemon/metrics/metric_store.h"

namespace profd {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
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

TEST(FamiliesAsText, EscapesAndPrintsNumbersShortest) {
  MetricFamily family;
  family.name = "x_total";
  family.help = "a \\ and\na line";
  family.type = prometheus::MetricType::Counter;
  ClientMetric metric;
  metric.label = {{"a", "q\"\\\n"}, {"b", ""}};
  metric.counter.value = 0.0001;
  family.metric = {metric, ClientMetric()};
  family.metric[1].counter.value = std::numeric_limits<double>::infinity();
  EXPECT_EQ(FamiliesAsText({family}),
            "# HELP x_total a \\\\ and\\na line\n# TYPE x_total counter\n"
            "x_total{a=\"q\\\"\\\\\\n\",b=\"\"} 0.0001\nx_total +Inf\n");
}

TEST(AtlasFamilies, AWindowHasALineForEachFigure) {
  MetricStore store;
  store.SetDeviceLabels(0, "3", "u");
  SeriesId id =
      store.Intern(MetricByName("atlas_npu_hccs_bandwidth_bytes_per_second"), 0, {"all", "tx"});
  store.Write(std::vector<Sample>{{id, kNow - 3 * kNsPerSecond, 8}});
  store.Write(std::vector<Sample>{{id, kNow - 2 * kNsPerSecond, 2}});
  store.Write(std::vector<Sample>{{id, kNow - kNsPerSecond, 5}});
  const std::string text = FamiliesAsText(AtlasFamilies(store, kNow, kDefault));
  const std::string line =
      "atlas_npu_hccs_bandwidth_window_bytes_per_second{npu=\"3\",uuid=\"u\",link=\"all\","
      "direction=\"tx\",stat=";
  EXPECT_THAT(text,
              HasSubstr(line + "\"min\"} 2\n" + line + "\"avg\"} 5\n" + line + "\"max\"} 8\n"));
  EXPECT_THAT(text, HasSubstr("atlas_npu_hccs_bandwidth_bytes_per_second{npu=\"3\",uuid=\"u\","
                              "link=\"all\",direction=\"tx\"} 5\n"));
  // A window of two seconds.
  EXPECT_THAT(FamiliesAsText(AtlasFamilies(store, kNow, 2 * kNsPerSecond)),
              HasSubstr(line + "\"max\"} 5\n"));
}

TEST(AtlasFamilies, ASourceWithStatsGivesToEachItsOwnFigure) {
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
  const std::string text = FamiliesAsText(AtlasFamilies(store, kNow, kDefault));
  const std::string line =
      "atlas_npu_pcie_bandwidth_window_bytes_per_second{npu=\"0\",uuid=\"\",direction=\"tx\","
      "type=\"posted\",stat=";
  const size_t begin = text.find(line);
  ASSERT_NE(begin, std::string::npos);
  EXPECT_EQ(text.substr(begin),
            line + "\"min\"} 1\n" + line + "\"max\"} 20\n" + line + "\"avg\"} 5\n");
}

TEST(AtlasFamilies, ScrapersOfDifferentPaceEachSeeADip) {
  MetricStore store;
  ScraperTable table;
  SeriesId id = store.Intern(MetricByName("atlas_npu_power_watts"), 0, {"chip"});
  auto min_of = [&](const char* who, int64_t now) {
    for (const MetricFamily& family : AtlasFamilies(store, now, table.Window(who, "x", now))) {
      if (family.name == "atlas_npu_power_window_watts") return family.metric[0].gauge.value;
    }
    return -1.0;
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
  // Stamped before the scrape, delivered after it: in the next window of both.
  store.Write(std::vector<Sample>{{id, now - 3 * kNsPerSecond, 20}});
  run(4, 300);
  EXPECT_EQ(min_of("slow", now), 20);
  EXPECT_EQ(min_of("fast", now), 20);
}

// Any metric will do: how a histogram is put together does not depend on the table's row.
TEST(AtlasFamilies, HistogramsAreOneFamily) {
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
  const std::string text = FamiliesAsText(AtlasFamilies(store, kNow, kDefault));
  const std::string name(kMetrics[kHistogram].name);
  const std::string label(kMetrics[kHistogram].labels);
  EXPECT_THAT(text, HasSubstr("# TYPE " + name + " histogram\n" + name + "_bucket{" + label +
                              "=\"get\",le=\"0.0001\"} 1\n" + name + "_bucket{" + label +
                              "=\"get\",le=\"0.001\"} 2\n"));
  EXPECT_THAT(text,
              HasSubstr(name + "_bucket{" + label + "=\"get\",le=\"10\"} 2\n" + name + "_bucket{" +
                        label + "=\"get\",le=\"+Inf\"} 3\n" + name + "_sum{" + label +
                        "=\"get\"} 60.000200001\n" + name + "_count{" + label + "=\"get\"} 3\n"));
  EXPECT_THAT(text, HasSubstr(name + "_count{" + label + "=\"put\"} 0\n"));
}

}  // namespace
}  // namespace profd
