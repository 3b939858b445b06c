#include "daemon/push/push_messages.h"

#include <snappy.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "base/text.h"
#include "push/otlp_metrics.pb.h"
#include "push/remote_write.pb.h"

namespace profd {
namespace {

constexpr int64_t kNsPerMillisecond = 1'000'000;

struct Family {
  std::string_view name;
  std::string_view help;
  std::string_view type;  // "gauge", "counter", "histogram"
};

struct TextSample {
  std::string_view name;
  PushLabels labels;
  double value = 0;
};

double NumberOf(std::string_view text) {
  if (text == "+Inf") return std::numeric_limits<double>::infinity();
  if (text == "-Inf") return -std::numeric_limits<double>::infinity();
  double value = std::numeric_limits<double>::quiet_NaN();
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// The text behind an opening quote up to the closing one, which `*at` is left behind.
std::string Unquoted(std::string_view line, size_t* at) {
  std::string text;
  for (; *at < line.size() && line[*at] != '"'; ++*at) {
    char c = line[*at];
    if (c == '\\' && *at + 1 < line.size()) {
      c = line[++*at];
      if (c == 'n') c = '\n';
    }
    text += c;
  }
  ++*at;
  return text;
}

// `name{a="x",b="y"} 1`; what is no such line has no name.
TextSample SampleOf(std::string_view line) {
  TextSample sample;
  size_t at = std::min(line.find_first_of("{ "), line.size());
  const std::string_view name = line.substr(0, at);
  if (at < line.size() && line[at] == '{') {
    ++at;
    while (at < line.size() && line[at] != '}') {
      const size_t equals = line.find("=\"", at);
      if (equals == std::string_view::npos) return sample;
      std::string label(line.substr(at, equals - at));
      at = equals + 2;
      sample.labels.emplace_back(std::move(label), Unquoted(line, &at));
      if (at < line.size() && line[at] == ',') ++at;
    }
    ++at;
  }
  if (at + 1 >= line.size() || line[at] != ' ') return sample;
  sample.name = name;
  sample.value = NumberOf(line.substr(at + 1));
  return sample;
}

// Calls `visit` for every sample, in order.
void ReadText(std::string_view text, const std::function<void(const Family&, TextSample)>& visit) {
  Family family;
  auto word = [](std::string_view line, size_t from) {
    return line.substr(from, line.find(' ', from) - from);
  };
  for (std::string_view line; NextLine(&text, &line);) {
    if (line.starts_with("# HELP ") || line.starts_with("# TYPE ")) {
      const std::string_view name = word(line, 7);
      if (name != family.name) family = {name, {}, {}};
      const size_t rest = std::min(7 + name.size() + 1, line.size());
      (line[2] == 'H' ? family.help : family.type) = line.substr(rest);
    } else if (!line.empty() && line.front() != '#') {
      TextSample sample = SampleOf(line);
      if (!sample.name.empty()) visit(family, std::move(sample));
    }
  }
}

// Remote write ---------------------------------------------------------------------------------------

PushMessage Packed(const remote_write::WriteRequest& request) {
  PushMessage message;
  message.samples = static_cast<size_t>(request.timeseries_size());
  const std::string plain = request.SerializeAsString();
  snappy::Compress(plain.data(), plain.size(), &message.body);
  return message;
}

// OTLP -----------------------------------------------------------------------------------------------

template <class Repeated>
void AddAttributes(const PushLabels& labels, Repeated* out) {
  for (const auto& [name, value] : labels) {
    otlp::KeyValue& pair = *out->Add();
    pair.set_key(name);
    pair.mutable_value()->set_string_value(value);
  }
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

  void Add(const Family& family, TextSample sample) {
    if (family.type == "histogram") {
      AddHistogramLine(family, std::move(sample));
      return;
    }
    otlp::Metric& metric = MetricOf(family);
    const bool counts = family.type == "counter";
    if (counts) {
      metric.mutable_sum()->set_aggregation_temporality(otlp::CUMULATIVE);
      metric.mutable_sum()->set_is_monotonic(true);
    }
    otlp::NumberPoint& point =
        counts ? *metric.mutable_sum()->add_data_points() : *metric.mutable_gauge()->add_data_points();
    if (counts) point.set_start_time_unix_nano(static_cast<uint64_t>(facts_.start_wall_ns));
    point.set_time_unix_nano(static_cast<uint64_t>(facts_.wall_ns));
    point.set_as_double(sample.value);
    AddAttributes(sample.labels, point.mutable_attributes());
    Added();
  }

  std::vector<PushMessage> End() {
    Flush();
    return std::move(messages_);
  }

 private:
  // Buckets in ascending order, then sum, then count.
  void AddHistogramLine(const Family& family, TextSample sample) {
    if (sample.name.ends_with("_bucket") && !sample.labels.empty() && sample.labels.back().first == "le") {
      const double bound = NumberOf(sample.labels.back().second);
      const auto count = static_cast<uint64_t>(std::max(0.0, sample.value));
      histogram_.add_bucket_counts(count - std::min(count, below_));
      if (!std::isinf(bound)) histogram_.add_explicit_bounds(bound);
      below_ = count;
    } else if (sample.name.ends_with("_sum")) {
      histogram_.set_sum(sample.value);
    } else if (sample.name.ends_with("_count")) {
      histogram_.set_count(static_cast<uint64_t>(std::max(0.0, sample.value)));
      histogram_.set_start_time_unix_nano(static_cast<uint64_t>(facts_.start_wall_ns));
      histogram_.set_time_unix_nano(static_cast<uint64_t>(facts_.wall_ns));
      AddAttributes(sample.labels, histogram_.mutable_attributes());
      otlp::Histogram& all = *MetricOf(family).mutable_histogram();
      all.set_aggregation_temporality(otlp::CUMULATIVE);
      *all.add_data_points() = std::move(histogram_);
      histogram_.Clear();
      below_ = 0;
      Added();
    }
  }

  otlp::Metric& MetricOf(const Family& family) {
    if (scope_ == nullptr) Begin();
    const int last = scope_->metrics_size() - 1;
    if (last >= 0 && scope_->metrics(last).name() == family.name) return *scope_->mutable_metrics(last);
    otlp::Metric& metric = *scope_->add_metrics();
    metric.set_name(std::string(family.name));
    metric.set_description(std::string(family.help));
    metric.set_unit(std::string(UnitOf(family.name)));
    return metric;
  }

  void Begin() {
    otlp::ResourceMetrics& all = *request_.add_resource_metrics();
    AddAttributes(facts_.about, all.mutable_resource()->mutable_attributes());
    scope_ = all.add_scope_metrics();
    scope_->mutable_scope()->set_name("profd");
    scope_->mutable_scope()->set_version(facts_.version);
  }

  void Added() {
    if (++samples_ >= kPushSamples) Flush();
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
  otlp::HistogramPoint histogram_;       // that is being read
  uint64_t below_ = 0;                   // of its last bucket
  size_t samples_ = 0;
  std::vector<PushMessage> messages_;
};

}  // namespace

std::vector<PushMessage> OtlpMessages(std::string_view text, const PushFacts& facts) {
  OtlpWriter writer(facts);
  ReadText(text, [&writer](const Family& family, TextSample sample) {
    writer.Add(family, std::move(sample));
  });
  return writer.End();
}

std::vector<PushMessage> RemoteWriteMessages(std::string_view text, const PushFacts& facts) {
  std::vector<PushMessage> messages;
  remote_write::WriteRequest request;
  std::map<std::string, std::string> labels;  // sorted, as the protocol wants them
  ReadText(text, [&](const Family&, TextSample sample) {
    labels.clear();
    for (auto& [name, value] : sample.labels) {
      if (!value.empty()) labels[name] = std::move(value);
    }
    for (const auto& [name, value] : facts.about) labels.emplace(name, value);
    labels["__name__"] = sample.name;
    remote_write::TimeSeries& series = *request.add_timeseries();
    for (const auto& [name, value] : labels) {
      remote_write::Label& label = *series.add_labels();
      label.set_name(name);
      label.set_value(value);
    }
    remote_write::Sample& one = *series.add_samples();
    one.set_value(sample.value);
    one.set_timestamp(facts.wall_ns / kNsPerMillisecond);
    if (static_cast<size_t>(request.timeseries_size()) < kPushSamples) return;
    messages.push_back(Packed(request));
    request.Clear();
  });
  if (request.timeseries_size() > 0) messages.push_back(Packed(request));
  return messages;
}

}  // namespace profd
