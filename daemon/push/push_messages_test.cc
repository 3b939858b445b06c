#include "daemon/push/push_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <snappy.h>

#include <cmath>
#include <map>
#include <string>

#include "push/otlp_metrics.pb.h"
#include "push/remote_write.pb.h"

namespace profd {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr int64_t kWall = 1'700'000'000'123'456'789;

PushFacts Facts() {
  PushFacts facts;
  facts.wall_ns = kWall;
  facts.start_wall_ns = kWall - 1'000'000'000;
  facts.version = "1.2";
  facts.about = {{"job", "profd"}, {"instance", "n1"}};
  return facts;
}

constexpr std::string_view kText =
    "# HELP atlas_npu_temperature_celsius Temperature of an NPU\n"
    "# TYPE atlas_npu_temperature_celsius gauge\n"
    "atlas_npu_temperature_celsius{npu=\"0\",uuid=\"\"} 41.5\n"
    "atlas_npu_temperature_celsius{npu=\"1\",uuid=\"u \\\"1\\\" \\\\ \\n{}\"} -3e-2\n"
    "# HELP profd_pushed_total Things\n"
    "# TYPE profd_pushed_total counter\n"
    "profd_pushed_total 7\n"
    "# TYPE odd gauge\n"
    "odd{instance=\"own\"} NaN\n"
    "odd{a=\"+\"} +Inf\n";

std::map<std::string, std::string> LabelsOf(const remote_write::TimeSeries& series) {
  std::map<std::string, std::string> labels;
  std::string last;
  for (const auto& label : series.labels()) {
    EXPECT_LT(last, label.name()) << "the protocol wants them sorted";
    last = label.name();
    labels[label.name()] = label.value();
  }
  return labels;
}

remote_write::WriteRequest Unpacked(const PushMessage& message) {
  std::string plain;
  remote_write::WriteRequest request;
  EXPECT_TRUE(snappy::Uncompress(message.body.data(), message.body.size(), &plain));
  EXPECT_TRUE(request.ParseFromString(plain));
  return request;
}

TEST(RemoteWrite, HasEverySample) {
  std::vector<PushMessage> messages = RemoteWriteMessages(kText, Facts());
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].samples, 5U);
  const remote_write::WriteRequest request = Unpacked(messages[0]);
  ASSERT_EQ(request.timeseries_size(), 5);
  EXPECT_THAT(LabelsOf(request.timeseries(0)),
              ElementsAre(Pair("__name__", "atlas_npu_temperature_celsius"), Pair("instance", "n1"),
                          Pair("job", "profd"), Pair("npu", "0")));
  EXPECT_EQ(request.timeseries(0).samples(0).value(), 41.5);
  EXPECT_EQ(request.timeseries(0).samples(0).timestamp(), 1'700'000'000'123);
  EXPECT_EQ(LabelsOf(request.timeseries(1))["uuid"], "u \"1\" \\ \n{}");
  EXPECT_EQ(request.timeseries(1).samples(0).value(), -0.03);
  EXPECT_EQ(LabelsOf(request.timeseries(2))["__name__"], "profd_pushed_total");
  // What a series says of itself wins.
  EXPECT_EQ(LabelsOf(request.timeseries(3))["instance"], "own");
  EXPECT_TRUE(std::isnan(request.timeseries(3).samples(0).value()));
  EXPECT_TRUE(std::isinf(request.timeseries(4).samples(0).value()));
}

std::map<std::string, std::string> AttributesOf(const google::protobuf::RepeatedPtrField<otlp::KeyValue>& all) {
  std::map<std::string, std::string> attributes;
  for (const auto& pair : all) attributes[pair.key()] = pair.value().string_value();
  return attributes;
}

TEST(Otlp, GaugesAndCounters) {
  std::vector<PushMessage> messages = OtlpMessages(kText, Facts());
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].samples, 5U);
  otlp::ExportRequest request;
  ASSERT_TRUE(request.ParseFromString(messages[0].body));
  ASSERT_EQ(request.resource_metrics_size(), 1);
  EXPECT_THAT(AttributesOf(request.resource_metrics(0).resource().attributes()),
              UnorderedElementsAre(Pair("job", "profd"), Pair("instance", "n1")));
  ASSERT_EQ(request.resource_metrics(0).scope_metrics_size(), 1);
  const otlp::ScopeMetrics& scope = request.resource_metrics(0).scope_metrics(0);
  EXPECT_EQ(scope.scope().version(), "1.2");
  ASSERT_EQ(scope.metrics_size(), 3);
  const otlp::Metric& temperature = scope.metrics(0);
  EXPECT_EQ(temperature.name(), "atlas_npu_temperature_celsius");
  EXPECT_EQ(temperature.description(), "Temperature of an NPU");
  EXPECT_EQ(temperature.unit(), "Cel");
  ASSERT_EQ(temperature.gauge().data_points_size(), 2);
  EXPECT_EQ(temperature.gauge().data_points(0).as_double(), 41.5);
  EXPECT_EQ(temperature.gauge().data_points(0).time_unix_nano(), static_cast<uint64_t>(kWall));
  EXPECT_THAT(AttributesOf(temperature.gauge().data_points(0).attributes()),
              UnorderedElementsAre(Pair("npu", "0"), Pair("uuid", "")));
  const otlp::Metric& counter = scope.metrics(1);
  EXPECT_TRUE(counter.sum().is_monotonic());
  EXPECT_EQ(counter.sum().aggregation_temporality(), otlp::CUMULATIVE);
  EXPECT_EQ(counter.sum().data_points(0).as_double(), 7);
  EXPECT_EQ(counter.sum().data_points(0).start_time_unix_nano(), static_cast<uint64_t>(kWall - 1'000'000'000));
}

TEST(Otlp, Histograms) {
  constexpr std::string_view kHistogram =
      "# HELP h Durations\n# TYPE h histogram\n"
      "h_bucket{npu=\"0\",le=\"0.1\"} 2\nh_bucket{npu=\"0\",le=\"1\"} 5\nh_bucket{npu=\"0\",le=\"+Inf\"} 6\n"
      "h_sum{npu=\"0\"} 4.5\nh_count{npu=\"0\"} 6\n"
      "h_bucket{npu=\"1\",le=\"+Inf\"} 1\nh_sum{npu=\"1\"} 9\nh_count{npu=\"1\"} 1\n";
  std::vector<PushMessage> messages = OtlpMessages(kHistogram, Facts());
  otlp::ExportRequest request;
  ASSERT_EQ(messages.size(), 1U);
  ASSERT_TRUE(request.ParseFromString(messages[0].body));
  const otlp::Metric& metric = request.resource_metrics(0).scope_metrics(0).metrics(0);
  ASSERT_EQ(metric.histogram().data_points_size(), 2);
  const otlp::HistogramPoint& first = metric.histogram().data_points(0);
  EXPECT_THAT(first.bucket_counts(), ElementsAre(2, 3, 1));
  EXPECT_THAT(first.explicit_bounds(), ElementsAre(0.1, 1.0));
  EXPECT_EQ(first.count(), 6U);
  EXPECT_EQ(first.sum(), 4.5);
  EXPECT_THAT(AttributesOf(first.attributes()), ElementsAre(Pair("npu", "0")));
  const otlp::HistogramPoint& second = metric.histogram().data_points(1);
  EXPECT_THAT(second.bucket_counts(), ElementsAre(1));
  EXPECT_THAT(second.explicit_bounds(), ElementsAre());
}

TEST(PushMessages, ManySamplesAreSeveralMessages) {
  std::string text = "# HELP m Many\n# TYPE m gauge\n";
  const size_t count = 2 * kPushSamples + 10;
  for (size_t i = 0; i < count; ++i) text += "m{i=\"" + std::to_string(i) + "\"} " + std::to_string(i) + "\n";
  for (const std::vector<PushMessage>& messages : {OtlpMessages(text, Facts()), RemoteWriteMessages(text, Facts())}) {
    ASSERT_EQ(messages.size(), 3U);
    EXPECT_EQ(messages[0].samples, kPushSamples);
    EXPECT_EQ(messages[2].samples, 10U);
  }
  otlp::ExportRequest last;
  ASSERT_TRUE(last.ParseFromString(OtlpMessages(text, Facts())[2].body));
  const otlp::ResourceMetrics& all = last.resource_metrics(0);
  EXPECT_EQ(all.resource().attributes_size(), 2);
  EXPECT_EQ(all.scope_metrics(0).metrics(0).description(), "Many");
  EXPECT_EQ(all.scope_metrics(0).metrics(0).gauge().data_points_size(), 10);
}

TEST(PushMessages, WhatIsNoSampleIsLeftOut) {
  EXPECT_TRUE(RemoteWriteMessages("", Facts()).empty());
  EXPECT_TRUE(OtlpMessages("# a comment\n\nbroken{a=\"1\nx{ 1\nlonely\n", Facts()).empty());
}

}  // namespace
}  // namespace profd
