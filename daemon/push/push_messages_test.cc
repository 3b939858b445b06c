#include "daemon/push/push_messages.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <snappy.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "push/otlp_metrics.pb.h"
#include "push/remote_write.pb.h"

namespace profd {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr int64_t kWall = 1'700'000'000'123'456'789;

PushFacts Facts() {
  return {.wall_ns = kWall, .start_wall_ns = kWall - 1'000'000'000, .version = "1.2",
          .about = {{"job", "profd"}, {"instance", "n1"}}};
}

ClientMetric Sample(double value, std::vector<ClientMetric::Label> labels = {}) {
  ClientMetric metric;
  metric.label = std::move(labels);
  metric.gauge.value = metric.counter.value = value;
  return metric;
}

std::vector<MetricFamily> Families() {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return {{"atlas_npu_temperature_celsius",
           "Temperature of an NPU",
           MetricType::Gauge,
           {Sample(41.5, {{"npu", "0"}, {"uuid", ""}}), Sample(-3e-2, {{"npu", "1"}, {"uuid", "u \"1\" \\ \n{}"}})}},
          {"profd_pushed_total", "Things", MetricType::Counter, {Sample(7)}},
          {"odd", "", MetricType::Gauge, {Sample(std::nan(""), {{"instance", "own"}}), Sample(kInfinity, {{"a", "+"}})}}};
}

MetricFamily Histograms() {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  MetricFamily family{"h", "Durations", MetricType::Histogram, {Sample(0, {{"npu", "0"}}), Sample(0, {{"npu", "1"}})}};
  family.metric[0].histogram = {6, 4.5, {{2, 0.1}, {5, 1}, {6, kInfinity}}};
  family.metric[1].histogram = {1, 9, {{1, kInfinity}}};
  return family;
}

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
  std::vector<PushMessage> messages = RemoteWriteMessages(Families(), Facts());
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
  std::vector<PushMessage> messages = OtlpMessages(Families(), Facts());
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

// A point that begins after its own time is invalid.
TEST(Otlp, AClockThatWasSetBackMakesNoPointInvalid) {
  PushFacts facts = Facts();
  facts.start_wall_ns = kWall + 3'600'000'000'000;
  const std::vector<MetricFamily> families = {Families()[1], Histograms()};
  const std::vector<PushMessage> messages = OtlpMessages(families, facts);
  otlp::ExportRequest request;
  ASSERT_EQ(messages.size(), 1U);
  ASSERT_TRUE(request.ParseFromString(messages[0].body));
  const otlp::ScopeMetrics& scope = request.resource_metrics(0).scope_metrics(0);
  ASSERT_EQ(scope.metrics_size(), 2);
  EXPECT_EQ(scope.metrics(0).sum().data_points(0).start_time_unix_nano(), static_cast<uint64_t>(kWall));
  EXPECT_EQ(scope.metrics(1).histogram().data_points(0).start_time_unix_nano(), static_cast<uint64_t>(kWall));
}

TEST(Otlp, Histograms) {
  const std::vector<PushMessage> messages = OtlpMessages(std::vector{Histograms()}, Facts());
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

// NumberDataPoint.value is a oneof ("a point is considered invalid when [none] is present"), the sum of a
// histogram optional.
TEST(Otlp, ZeroIsAValue) {
  MetricFamily histogram{"h", "Durations", MetricType::Histogram, {Sample(0)}};
  histogram.metric[0].histogram = {0, 0, {{0, 1}}};
  const std::vector<MetricFamily> zeros = {
      {"g", "", MetricType::Gauge, {Sample(0)}}, {"c_total", "", MetricType::Counter, {Sample(0)}}, histogram};
  const std::vector<PushMessage> messages = OtlpMessages(zeros, Facts());
  otlp::ExportRequest request;
  ASSERT_EQ(messages.size(), 1U);
  ASSERT_TRUE(request.ParseFromString(messages[0].body));
  const otlp::ScopeMetrics& scope = request.resource_metrics(0).scope_metrics(0);
  ASSERT_EQ(scope.metrics_size(), 3);
  EXPECT_TRUE(scope.metrics(0).gauge().data_points(0).has_as_double());
  EXPECT_TRUE(scope.metrics(1).sum().data_points(0).has_as_double());
  EXPECT_TRUE(scope.metrics(2).histogram().data_points(0).has_sum());
}

TEST(RemoteWrite, AHistogramHasTheSamplesOfItsText) {
  const std::vector<PushMessage> messages = RemoteWriteMessages(std::vector{Histograms()}, Facts());
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].samples, 8U);
  const remote_write::WriteRequest request = Unpacked(messages[0]);
  std::string seen;
  for (const remote_write::TimeSeries& series : request.timeseries()) {
    std::map<std::string, std::string> labels = LabelsOf(series);
    seen += fmt::format("{}[{}]{} ", labels["__name__"] + labels["npu"], labels["le"], series.samples(0).value());
  }
  EXPECT_EQ(seen, "h_bucket0[0.1]2 h_bucket0[1]5 h_bucket0[+Inf]6 h_sum0[]4.5 h_count0[]6 "
                  "h_bucket1[+Inf]1 h_sum1[]9 h_count1[]1 ");
}

TEST(PushMessages, ManySamplesAreSeveralMessages) {
  const size_t count = 2 * kPushSamples + 10;
  MetricFamily family{"m", "Many", MetricType::Gauge, {}};
  for (size_t i = 0; i < count; ++i) {
    family.metric.push_back(Sample(static_cast<double>(i), {{"i", std::to_string(i)}}));
  }
  const std::vector<MetricFamily> many = {family};
  for (const std::vector<PushMessage>& messages : {OtlpMessages(many, Facts()), RemoteWriteMessages(many, Facts())}) {
    ASSERT_EQ(messages.size(), 3U);
    EXPECT_EQ(messages[0].samples, kPushSamples);
    EXPECT_EQ(messages[2].samples, 10U);
  }
  otlp::ExportRequest last;
  ASSERT_TRUE(last.ParseFromString(OtlpMessages(many, Facts())[2].body));
  const otlp::ResourceMetrics& all = last.resource_metrics(0);
  EXPECT_EQ(all.resource().attributes_size(), 2);
  EXPECT_EQ(all.scope_metrics(0).metrics(0).description(), "Many");
  EXPECT_EQ(all.scope_metrics(0).metrics(0).gauge().data_points_size(), 10);
}

TEST(PushMessages, AnswersOfAReceiverOfOtlp) {
  // partial_success (1) of rejected_data_points (1) and error_message (2); google.rpc.Status of code (1) and message (2).
  const OtlpPartialSuccess partial = ReadOtlpPartialSuccess(std::string("\x0a\x07\x08\x03\x12\x03old", 9));
  EXPECT_EQ(partial.rejected, 3U);
  EXPECT_EQ(partial.message, "old");
  for (const std::string& body : {std::string(), std::string("too old"), std::string("\x0a\x7f", 2)}) {
    EXPECT_EQ(ReadOtlpPartialSuccess(body).rejected, 0U);
    EXPECT_EQ(ReadOtlpPartialSuccess(body).message, "");
    EXPECT_EQ(ReadOtlpError(body), "");
  }
  EXPECT_EQ(ReadOtlpError(std::string("\x08\x03\x12\x03" "bad", 7)), ": bad");
}

TEST(PushMessages, WithoutSamplesThereIsNoMessage) {
  EXPECT_TRUE(RemoteWriteMessages({}, Facts()).empty());
  EXPECT_TRUE(OtlpMessages({}, Facts()).empty());
}

}  // namespace
}  // namespace profd
