#include "daemon/push/push_messages.h"

#include <fmt/format.h>
#include <snappy.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "push/otlp_metrics.pb.h"
#include "push/remote_write.pb.h"

namespace profd {
namespace {

constexpr int64_t kNsPerMillisecond = 1'000'000;
constexpr size_t kMaxErrorText = 200;  // of a receiver's, in the log

using prometheus::ClientMetric;
using prometheus::MetricFamily;

double ValueOf(const MetricFamily& family, const ClientMetric& metric) {
  return family.type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value;
}

// Remote write ---------------------------------------------------------------------------------------

// Calls `take(suffix of the name, le, value)` for every sample that the metric has in the text format.
template <class Take>
void ForEachSample(const MetricFamily& family, const ClientMetric& metric, const Take& take) {
  if (family.type != prometheus::MetricType::Histogram) {
    take("", "", ValueOf(family, metric));
    return;
  }
  for (const ClientMetric::Bucket& bucket : metric.histogram.bucket) {
    const std::string le = std::isinf(bucket.upper_bound) ? "+Inf" : fmt::format("{:.16g}", bucket.upper_bound);
    take("_bucket", le, static_cast<double>(bucket.cumulative_count));
  }
  take("_sum", "", metric.histogram.sample_sum);
  take("_count", "", static_cast<double>(metric.histogram.sample_count));
}

PushMessage Packed(const remote_write::WriteRequest& request) {
  PushMessage message;
  message.samples = static_cast<size_t>(request.timeseries_size());
  const std::string plain = request.SerializeAsString();
  snappy::Compress(plain.data(), plain.size(), &message.body);
  return message;
}

// OTLP -----------------------------------------------------------------------------------------------

template <class Repeated>
void AddAttribute(const std::string& name, const std::string& value, Repeated* out) {
  otlp::KeyValue& pair = *out->Add();
  pair.set_key(name);
  pair.mutable_value()->set_string_value(value);
}

// The unit that Prometheus puts into the name, as UCUM writes it, where it is one of those in use.
std::string_view UnitOf(std::string_view name) {
  static constexpr std::pair<std::string_view, std::string_view> kUnits[] = {
      {"_seconds", "s"},     {"_bytes", "By"},  {"_bytes_per_second", "By/s"}, {"_celsius", "Cel"},
      {"_watts", "W"},       {"_volts", "V"},   {"_amperes", "A"},             {"_hertz", "Hz"},
      {"_ratio", "1"},       {"_joules", "J"},  {"_dbm", "dB[mW]"}};
  if (name.ends_with("_total")) name.remove_suffix(6);
  for (const auto& [suffix, unit] : kUnits) {
    if (name.ends_with(suffix)) return unit;
  }
  return {};
}

class OtlpWriter {
 public:
  explicit OtlpWriter(const PushFacts& facts) : facts_(facts) {}

  void Add(const MetricFamily& family, const ClientMetric& sample) {
    otlp::Metric& metric = MetricOf(family);
    if (family.type == prometheus::MetricType::Histogram) {
      AddHistogram(sample, metric.mutable_histogram());
    } else {
      const bool counts = family.type == prometheus::MetricType::Counter;
      if (counts) {
        metric.mutable_sum()->set_aggregation_temporality(otlp::CUMULATIVE);
        metric.mutable_sum()->set_is_monotonic(true);
      }
      otlp::NumberPoint& point =
          counts ? *metric.mutable_sum()->add_data_points() : *metric.mutable_gauge()->add_data_points();
      Describe(sample, counts, &point);
      point.set_as_double(ValueOf(family, sample));
    }
    if (++samples_ >= kPushSamples) Flush();
  }

  std::vector<PushMessage> End() {
    Flush();
    return std::move(messages_);
  }

 private:
  template <class Point>
  void Describe(const ClientMetric& sample, bool accumulates, Point* point) {
    // Not after the point itself, though the clock has been set back since.
    if (accumulates) point->set_start_time_unix_nano(static_cast<uint64_t>(std::min(facts_.start_wall_ns, facts_.wall_ns)));
    point->set_time_unix_nano(static_cast<uint64_t>(facts_.wall_ns));
    for (const ClientMetric::Label& label : sample.label) {
      AddAttribute(label.name, label.value, point->mutable_attributes());
    }
  }

  void AddHistogram(const ClientMetric& sample, otlp::Histogram* out) {
    out->set_aggregation_temporality(otlp::CUMULATIVE);
    otlp::HistogramPoint& point = *out->add_data_points();
    Describe(sample, true, &point);
    uint64_t below = 0;
    for (const ClientMetric::Bucket& bucket : sample.histogram.bucket) {
      point.add_bucket_counts(bucket.cumulative_count - std::min(bucket.cumulative_count, below));
      if (!std::isinf(bucket.upper_bound)) point.add_explicit_bounds(bucket.upper_bound);
      below = bucket.cumulative_count;
    }
    point.set_sum(sample.histogram.sample_sum);
    point.set_count(sample.histogram.sample_count);
  }

  otlp::Metric& MetricOf(const MetricFamily& family) {
    if (scope_ == nullptr) Begin();
    const int last = scope_->metrics_size() - 1;
    if (last >= 0 && scope_->metrics(last).name() == family.name) return *scope_->mutable_metrics(last);
    otlp::Metric& metric = *scope_->add_metrics();
    metric.set_name(family.name);
    metric.set_description(family.help);
    metric.set_unit(std::string(UnitOf(family.name)));
    return metric;
  }

  void Begin() {
    otlp::ResourceMetrics& all = *request_.add_resource_metrics();
    for (const auto& [name, value] : facts_.about) {
      AddAttribute(name, value, all.mutable_resource()->mutable_attributes());
    }
    scope_ = all.add_scope_metrics();
    scope_->mutable_scope()->set_name("profd");
    scope_->mutable_scope()->set_version(facts_.version);
  }

  void Flush() {
    if (samples_ == 0) return;
    messages_.push_back({request_.SerializeAsString(), samples_});
    request_.Clear();
    scope_ = nullptr;
    samples_ = 0;
  }

  const PushFacts& facts_;
  otlp::ExportRequest request_;
  otlp::ScopeMetrics* scope_ = nullptr;  // in request_
  size_t samples_ = 0;
  std::vector<PushMessage> messages_;
};

}  // namespace

std::vector<PushMessage> OtlpMessages(std::span<const MetricFamily> families, const PushFacts& facts) {
  OtlpWriter writer(facts);
  for (const MetricFamily& family : families) {
    for (const ClientMetric& metric : family.metric) writer.Add(family, metric);
  }
  return writer.End();
}

OtlpPartialSuccess ReadOtlpPartialSuccess(const std::string& body) {
  otlp::ExportResponse response;
  if (!response.ParseFromString(body)) return {};
  const otlp::PartialSuccess& partial = response.partial_success();
  return {static_cast<uint64_t>(std::max<int64_t>(partial.rejected_data_points(), 0)), partial.error_message().substr(0, kMaxErrorText)};
}

std::string ReadOtlpError(const std::string& body) {
  otlp::Status status;
  if (!status.ParseFromString(body) || status.message().empty()) return {};
  return ": " + status.message().substr(0, kMaxErrorText);
}

std::vector<PushMessage> RemoteWriteMessages(std::span<const MetricFamily> families, const PushFacts& facts) {
  std::vector<PushMessage> messages;
  remote_write::WriteRequest request;
  std::map<std::string, std::string> labels;  // sorted, as the protocol wants them
  const auto add = [&](double value) {
    remote_write::TimeSeries& series = *request.add_timeseries();
    for (const auto& [label, text] : labels) {
      remote_write::Label& one = *series.add_labels();
      one.set_name(label);
      one.set_value(text);
    }
    remote_write::Sample& sample = *series.add_samples();
    sample.set_value(value);
    sample.set_timestamp(facts.wall_ns / kNsPerMillisecond);
    if (static_cast<size_t>(request.timeseries_size()) < kPushSamples) return;
    messages.push_back(Packed(request));
    request.Clear();
  };
  for (const MetricFamily& family : families) {
    for (const ClientMetric& metric : family.metric) {
      ForEachSample(family, metric, [&](const char* suffix, const std::string& le, double value) {
        labels = {{"__name__", family.name + suffix}};
        if (!le.empty()) labels["le"] = le;
        for (const ClientMetric::Label& label : metric.label) {
          if (!label.value.empty()) labels[label.name] = label.value;
        }
        labels.insert(facts.about.begin(), facts.about.end());
        add(value);
      });
    }
  }
  if (request.timeseries_size() > 0) messages.push_back(Packed(request));
  return messages;
}

}  // namespace profd
