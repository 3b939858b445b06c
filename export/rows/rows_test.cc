#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "dump/test_support.h"
#include "export/formats.h"
#include "export/rows/metric_families.h"
#include "export/rows/series.h"
#include "export/rows/text.h"

namespace profd::exporting {
namespace {

using Json = nlohmann::json;

constexpr int64_t kT = 1767225600040000000;  // 2026-01-01T00:00:00.04Z

class RowsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dump_.name = "PROF_1";
    dump_.hostname = "n\"1";
    dump_.job_id = "j42";
    dump_.rank = 3;
    plan_.dumps = {&dump_};
    plan_.out_dir = dir_.path();
    plan_.timestamp = "20260101000000";
    plan_.strings = &strings_;
  }

  // Rows of hccs, qos and own samples through `format`; what it wrote.
  std::string Export(std::unique_ptr<Format> format, bool complete = true) {
    EXPECT_TRUE(format->Begin(plan_).ok());
    auto sink = format->Open({0, nullptr, nullptr});
    EXPECT_TRUE(sink.ok());
    Feed(sink->get());
    EXPECT_TRUE((*sink)->Finish().ok());
    sink->reset();
    files_.clear();
    EXPECT_TRUE(format->End(complete, &files_).ok());
    return files_.empty() ? "" : ReadText(files_[0].path);
  }

  void Feed(FormatSink* sink) {
    BatchBuilder hccs(TableOf(TableId::kHccs), 0, {}, *sink);
    hccs.Add(kT, 1.5, 2.0);
    hccs.Add(kT + 20'000'000, 0.0, 0.1);
    BatchBuilder qos(TableOf(TableId::kQos), 1, {}, *sink);
    qos.Add(kT, strings_.Intern("SD\\MA"), int64_t{0}, int64_t{7});
    BatchBuilder own(TableOf(TableId::kSample), -1, {}, *sink);
    own.Add(kT, strings_.Intern("x_seconds_total"), strings_.Intern("a=b,c=d"), 4.0);
    own.Add(kT + 1, strings_.Intern("x_seconds_total"), strings_.Intern("a=b,c=d"), 5.0);
    hccs.Flush();
    own.Flush();
    qos.Flush();
  }

  TempDir dir_;
  Strings strings_;
  DumpInfo dump_;
  ExportPlan plan_;
  std::vector<OutputFile> files_;
};

TEST_F(RowsTest, JsonLines) {
  std::string text = Export(MakeJsonLinesFormat());
  std::vector<Json> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
  ASSERT_EQ(lines.size(), 7u);
  EXPECT_EQ(files_.at(0).rows, 7u);
  EXPECT_EQ(files_.at(0).path, dir_ / "samples_20260101000000.jsonl");
  EXPECT_EQ(lines[0], Json::parse(R"({"time_ns":1767225600040000000,
      "time":"2026-01-01T00:00:00.040000000Z","node":"n\"1","job":"j42","rank":3,"device":0,
      "metric":"atlas_npu_hccs_bandwidth_bytes_per_second","labels":{"link":"all","direction":"tx"},
      "value":1572864})"));
  EXPECT_EQ(lines[3]["value"], 104857.6);
  EXPECT_EQ(lines[3]["time"], "2026-01-01T00:00:00.060000000Z");
  EXPECT_EQ(lines[4]["device"], nullptr);
  EXPECT_EQ(lines[4]["metric"], "x_seconds_total");
  EXPECT_EQ(lines[4]["labels"], Json::parse(R"({"a":"b","c":"d"})"));
  EXPECT_EQ(lines[6]["labels"], Json::parse(R"({"stream":"SD\\MA","die":"0"})"));
  EXPECT_EQ(FilesBelow(dir_.path()).size(), 1u);
}

TEST_F(RowsTest, OpenMetrics) {
  std::string place = "node=\"n\\\"1\",dump=\"PROF_1\",job=\"j42\",rank=\"3\"";
  EXPECT_EQ(
      Export(MakeOpenMetricsFormat()),
      "# TYPE atlas_npu_hccs_bandwidth_bytes_per_second gauge\n"
      "# UNIT atlas_npu_hccs_bandwidth_bytes_per_second bytes_per_second\n"
      "atlas_npu_hccs_bandwidth_bytes_per_second{" +
          place +
          ",device=\"0\",link=\"all\",direction=\"rx\"} 2097152 1767225600.040001\n"
          "atlas_npu_hccs_bandwidth_bytes_per_second{" +
          place +
          ",device=\"0\",link=\"all\",direction=\"rx\"} 104857.6 1767225600.060001\n"
          "atlas_npu_hccs_bandwidth_bytes_per_second{" +
          place +
          ",device=\"0\",link=\"all\",direction=\"tx\"} 1572864 1767225600.040001\n"
          "atlas_npu_hccs_bandwidth_bytes_per_second{" +
          place +
          ",device=\"0\",link=\"all\",direction=\"tx\"} 0 1767225600.060001\n"
          "# TYPE atlas_npu_qos_bandwidth_bytes_per_second gauge\n"
          "# UNIT atlas_npu_qos_bandwidth_bytes_per_second bytes_per_second\n"
          "atlas_npu_qos_bandwidth_bytes_per_second{" +
          place +
          ",device=\"1\",stream=\"SD\\\\MA\",die=\"0\"} 7340032 1767225600.040001\n"
          "# TYPE x_seconds counter\n# UNIT x_seconds seconds\n"
          "x_seconds_total{" +
          place +
          ",a=\"b\",c=\"d\"} 4 1767225600.040001\n"
          "# TYPE profd_export_left_out_samples gauge\n"
          "# HELP profd_export_left_out_samples 1 samples of a millisecond that has one already\n"
          "# EOF\n");
  EXPECT_EQ(files_.at(0).rows, 6u);
  EXPECT_EQ(FilesBelow(dir_.path()).size(), 1u);
}

TEST_F(RowsTest, NothingIsLeftOfWhatIsNotComplete) {
  Export(MakeJsonLinesFormat(), false);
  Export(MakeOpenMetricsFormat(), false);
  EXPECT_TRUE(FilesBelow(dir_.path()).empty());
}

// A series lies together though it was fed in turns with another, and in pieces.
TEST_F(RowsTest, SeriesLieTogether) {
  std::unique_ptr<Format> format = MakeOpenMetricsFormat();
  ASSERT_TRUE(format->Begin(plan_).ok());
  auto sink = format->Open({0, nullptr, nullptr});
  auto twin = format->Open({0, nullptr, nullptr});
  BatchBuilder hccs(TableOf(TableId::kHccs), 0, {}, **sink);
  for (int64_t i = 0; i < 5000; ++i) hccs.Add(kT + i * 1'000'000, double(i), double(-i));
  hccs.Flush();
  BatchBuilder same(TableOf(TableId::kHccs), 0, {}, **twin);
  same.Add(kT, 1.0, 1.0);  // has another's series: left out
  same.Flush();
  ASSERT_TRUE((*sink)->Finish().ok());
  ASSERT_TRUE((*twin)->Finish().ok());
  ASSERT_TRUE(format->End(true, &files_).ok());
  std::istringstream in(ReadText(files_.at(0).path));
  int rx = 0, tx = 0;
  std::string last;
  for (std::string line; std::getline(in, line);) {
    last = line;
    if (line.find("\"rx\"") != std::string::npos) {
      EXPECT_EQ(tx, 0);
      ++rx;
    } else if (line.find("\"tx\"") != std::string::npos) {
      ++tx;
    }
  }
  EXPECT_EQ(rx, 5000);
  EXPECT_EQ(tx, 5000);
  EXPECT_EQ(last, "# EOF");
}

TEST(MetricName, IsMadeValid) {
  EXPECT_EQ(MetricName("a_b:c9"), "a_b:c9");
  EXPECT_EQ(MetricName("9a b\n"), "_9a_b_");
  EXPECT_EQ(MetricName(""), "_");
  EXPECT_EQ(UnitOf("x_bytes"), "bytes");
  EXPECT_EQ(UnitOf("bytes"), "");
  EXPECT_EQ(UnitOf("x_kbytes"), "");
}

TEST(Rfc3339, Timestamps) {
  Rfc3339 time;
  char text[40];
  EXPECT_EQ(std::string(text, time.Append(text, -1)), "1969-12-31T23:59:59.999999999Z");
  EXPECT_EQ(std::string(text, time.Append(text, 0)), "1970-01-01T00:00:00.000000000Z");
}

TEST(CleanUtf8, ReplacesWhatIsNone) {
  EXPECT_EQ(CleanUtf8("a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\n"),
            "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\n");
  for (const char* bad :
       {"\x80", "\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\x01", "\x7f"}) {
    EXPECT_EQ(CleanUtf8(bad).find("\uFFFD"), 0u) << bad;
  }
}

// /metrics has two metrics for the AI Core's clock, and "all" where a chip does not tell dies apart.
TEST(Labels, OfRowsWithoutADie) {
  const Strings strings;
  const auto of = [&strings](TableId table, std::vector<int64_t> keys) {
    const std::vector<uint64_t> cells(keys.begin(), keys.end());
    const MetricColumn metric = MetricsOf(TableOf(table), cells, strings).at(0);
    std::string text = metric.metric;
    for (const Label& label : metric.labels) text += " " + label.key + "=" + label.value;
    return text;
  };
  EXPECT_EQ(of(TableId::kAicoreFreq, {-1}), "atlas_npu_frequency_hertz domain=aicore");
  EXPECT_EQ(of(TableId::kAicoreFreq, {1}), "atlas_npu_die_frequency_hertz die=1 domain=aicore");
  EXPECT_THAT(of(TableId::kQos, {0, -1}), ::testing::EndsWith(" die=all"));
  EXPECT_EQ(of(TableId::kHostCpu, {-1}), "atlas_host_cpu_usage_ratio cpu=all");
}

TEST(Labels, AreSplit) {
  EXPECT_EQ(ParseLabels("a=b,,x,=y,c="), (std::vector<Label>{{"a", "b"}, {"c", ""}}));
}

}  // namespace
}  // namespace profd::exporting
