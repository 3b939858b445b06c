#include "client/commands/stream.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/text.h"
#include "client/cli_message.h"
#include "client/parse.h"
#include "client/render.h"
#include "client/signals.h"
#include "export/rows/text.h"

namespace profd::client {
namespace {

// Far above what a node has; bounds what a daemon gone wrong can make us keep.
constexpr size_t kMaxSeries = 1'000'000;
// A collector's slowest pace is a sample in a few seconds.
constexpr int64_t kHintNs = 5 * kNsPerSecond;

enum class Format { kText, kJson, kCsv };

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

// "name" and "name{a="1",b="2"}" in label order.
std::string TextName(const v1::SeriesInfo& series) {
  std::map<std::string, std::string> sorted(series.labels().begin(), series.labels().end());
  std::string name = Printable(series.metric());
  std::string labels;
  for (const auto& [key, value] : sorted) {
    labels += (labels.empty() ? "" : ",") + Printable(key) + "=" + Quoted(Printable(value));
  }
  return labels.empty() ? name : name + "{" + labels + "}";
}

std::string CsvColumns(const v1::SeriesInfo& series) {
  std::map<std::string, std::string> sorted(series.labels().begin(), series.labels().end());
  std::string labels;
  for (const auto& [key, value] : sorted) {
    labels += (labels.empty() ? "" : ";") + Printable(key) + "=" + Printable(value);
  }
  const int64_t device = series.has_device() ? static_cast<int64_t>(series.device()) : -1;
  return fmt::format("{},{},{},{}", CsvField(Printable(series.metric())), device, CsvField(labels),
                     CsvField(Printable(series.collector())));
}

std::string JsonPrefix(const v1::SeriesInfo& series) {
  Json json = ToJson(series);
  json.erase("id");
  std::string text = JsonText(json, /*indent=*/false);
  text.pop_back();
  return text;
}

class Printer {
 public:
  Printer(const Context& context, Format format, bool raw_time, uint64_t count)
      : context_(context), format_(format), raw_time_(raw_time), count_(count) {
    if (format_ == Format::kCsv) {
      context_.io.out << (raw_time_ ? "time_ns" : "time") << ",value,metric,device,labels,collector"
                      << std::endl;
    }
  }

  // False when nothing more is wanted.
  bool Take(const v1::SampleChunk& chunk) {
    for (const v1::SeriesInfo& series : chunk.series()) {
      if (series_.size() < kMaxSeries) series_[series.id()] = Prefix(series);
    }
    for (const v1::SampleValue& sample : chunk.samples()) {
      Print(sample, chunk.wall_offset_ns());
      if (count_ != 0 && printed_ >= count_) break;
    }
    context_.io.out.flush();
    ReportDrops(chunk.dropped());
    return context_.io.out.good() && (count_ == 0 || printed_ < count_);
  }
  uint64_t printed() const { return printed_; }

 private:
  std::string Prefix(const v1::SeriesInfo& series) const {
    switch (format_) {
      case Format::kText:
        return TextName(series);
      case Format::kJson:
        return JsonPrefix(series);
      case Format::kCsv:
        return CsvColumns(series);
    }
    return "";
  }

  void Print(const v1::SampleValue& sample, int64_t wall_offset_ns) {
    auto series = series_.find(sample.series());
    if (series == series_.end()) {
      if (unknown_++ == 0) Warn(context_, "the daemon sent samples of series it did not describe");
      return;
    }
    ++printed_;
    const std::string& prefix = series->second;
    double value = sample.value();
    const int64_t raw_ns = sample.time_ns();
    // Both are the daemon's words: their sum may not fit.
    int64_t wall_ns = 0;
    if (__builtin_add_overflow(raw_ns, wall_offset_ns, &wall_ns)) wall_ns = raw_ns;
    switch (format_) {
      case Format::kText:
        context_.io.out << fmt::format(
            "{} {} {}\n",
            raw_time_ ? fmt::format("{:.6f}", static_cast<double>(raw_ns) / 1e9) : Utc(wall_ns),
            prefix, value);
        break;
      case Format::kJson:
        context_.io.out << fmt::format("{},\"time_ns\":{},\"wall_ns\":{},\"value\":{}}}\n", prefix,
                                       raw_ns, wall_ns,
                                       std::isfinite(value) ? fmt::format("{}", value) : "null");
        break;
      case Format::kCsv:
        context_.io.out << fmt::format(
            "{},{},{}\n", raw_time_ ? std::to_string(raw_ns) : Utc(wall_ns), value, prefix);
        break;
    }
  }

  std::string Utc(int64_t wall_ns) {
    std::array<char, 40> text{};
    return {text.data(), utc_.Append(text.data(), wall_ns)};
  }

  void ReportDrops(uint64_t dropped) {
    if (dropped <= dropped_) return;
    Warn(context_, fmt::format("{} lost ({} in all): this reader is too slow", CountText(dropped - dropped_, "sample"), dropped));
    dropped_ = dropped;
  }

  const Context& context_;
  Format format_;
  bool raw_time_;
  exporting::Rfc3339 utc_;
  uint64_t count_;
  uint64_t printed_ = 0;
  uint64_t dropped_ = 0;
  uint64_t unknown_ = 0;
  std::unordered_map<uint32_t, std::string> series_;
};

Result<uint64_t> ParseCount(std::string_view text) {
  uint64_t count = 0;
  if (!ParseNumber(text, &count) || count == 0) {
    return InvalidArgument(fmt::format("\"{}\" is not an integer above zero", text));
  }
  return count;
}

v1::StreamSamplesRequest BuildRequest(const StreamOptions& options,
                                      std::vector<std::string>* problems) {
  v1::StreamSamplesRequest request;
  if (const auto names = ReadFlag("--collectors", options.collectors, ParseList, problems)) {
    request.mutable_collectors()->Assign(names->begin(), names->end());
  }
  if (const auto devices = ReadFlag("--devices", options.devices, ParseDevices, problems)) {
    request.mutable_devices()->Assign(devices->begin(), devices->end());
  }
  const auto interval_ms = ReadFlag("--interval", options.interval, ParseIntervalMs, problems);
  if (interval_ms) request.set_interval_ms(*interval_ms);
  if (const auto count = ReadFlag("--count", options.count, ParseCount, problems)) request.set_max_samples(*count);
  request.set_devices_only(options.devices_only);
  return request;
}

// A stream of a device that is not there would wait for ever: the daemon takes the list as a filter.
Status CheckDevices(const Context& context, const v1::StreamSamplesRequest& request) {
  if (request.devices().empty()) return {};
  Result<v1::Node> node = context.api.GetNode();
  if (!node.ok()) return node.status();
  std::vector<uint32_t> known;
  for (const v1::Device& device : node->devices()) known.push_back(device.id());
  std::string problems;
  for (uint32_t id : request.devices()) {
    if (std::ranges::find(known, id) != known.end()) continue;
    problems += fmt::format("{}devices: no device {} on this node (there are {})",
                            problems.empty() ? "" : "\n", id,
                            known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")));
  }
  return problems.empty() ? Status() : InvalidArgument(problems);
}

// "no sample of hbm, hccs"
std::string NoSample(const v1::StreamSamplesRequest& request, std::string_view which = "") {
  return fmt::format("no {}sample{}{}", which, request.collectors().empty() ? "" : " of ", fmt::join(request.collectors(), ", "));
}

}  // namespace

int RunStream(const Context& context, const StreamOptions& options) {
  std::vector<std::string> problems;
  v1::StreamSamplesRequest request = BuildRequest(options, &problems);
  Format format = context.json || options.format == "json" ? Format::kJson : Format::kText;
  if (options.format == "csv") {
    format = Format::kCsv;
    if (context.json) problems.emplace_back("--json and --format csv exclude each other");
  } else if (options.format != "text" && options.format != "json") {
    problems.push_back(fmt::format("--format \"{}\": must be one of text, json, csv", options.format));
  }
  if (options.activity && (options.collectors || options.devices || options.devices_only ||
                           options.interval || format == Format::kCsv)) {
    problems.emplace_back("--activity has no --collectors, --devices, --devices-only, --interval, --format csv");
  }
  if (!options.activity && !options.job.empty()) problems.emplace_back("--job needs --activity");
  if (!problems.empty()) return UsageError(context.io, "stream", problems);
  if (options.activity) {
    return RunStreamActivity(
        context, {format == Format::kJson, options.raw_time, options.job, request.max_samples()});
  }
  if (Status devices = CheckDevices(context, request); !devices.ok()) return Fail(context, devices);
  SignalWatch signals({SIGINT, SIGTERM});
  Printer printer(context, format, options.raw_time, request.max_samples());
  const int64_t begin_ns = context.clock.SteadyNs();
  bool hinted = false;
  context.api.SetWaitHook([&] {
    if (printer.printed() == 0 && context.clock.SteadyNs() - begin_ns >= kHintNs && !std::exchange(hinted, true)) {
      Warn(context, NoSample(request) + " so far; perhaps nothing records it: see `profctl list --active`");
    }
    return signals.Poll() == 0;
  });
  Status status = context.api.StreamSamples(
      request, [&](const v1::SampleChunk& chunk) { return printer.Take(chunk); });
  context.api.SetWaitHook(nullptr);
  if (signals.caught() != 0) return kExitOk;
  // A stream in which nothing came: whether the daemon is well is what another call shows.
  if (status.code() == StatusCode::kDeadlineExceeded && context.api.GetNode().ok()) {
    if (printer.printed() > 0) {
      return Fail(context, NotFound(NoSample(request, "further ") + " came within the time of --timeout, after " + CountText(printer.printed(), "sample") +
                                    "; what recorded them may have ended: see `profctl list --active`"));
    }
    return Fail(context, NotFound(NoSample(request) + " came within the time of --timeout; perhaps nothing records it: see "
                                  "`profctl list --active`"));
  }
  if (!status.ok()) {
    return Fail(context, status, NameOf("interval_ms", "--interval", options.interval));
  }
  return kExitOk;
}

}  // namespace profd::client
