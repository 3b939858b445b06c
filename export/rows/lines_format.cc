// One line a sample, every field always there (docs/export.md): JSON lines for a warehouse, CSV for
// pandas and spreadsheets.
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "export/formats.h"
#include "export/number_text.h"
#include "export/rows/metric_families.h"
#include "export/rows/series.h"
#include "export/rows/text.h"
#include "export/shared_file.h"

namespace profd::exporting {
namespace {

constexpr size_t kBufferBytes = 256u << 10;
// More different rows than this are not remembered; keys are untrusted.
constexpr size_t kMaxSeries = 16384;

enum class LineStyle : uint8_t { kJson, kCsv };

struct Shared {
  explicit Shared(LineStyle line_style) : style(line_style) {}
  const LineStyle style;
  SharedFile file;
  std::atomic<uint64_t> rows{0};
};

constexpr std::string_view kCsvHeading =
    "time_ns,time,node,job,rank,device,metric,labels,value,unit\n";

// Quoted where it must be; the texts of a dump are untrusted.
std::string CsvCell(std::string_view text) {
  std::string clean = CleanUtf8(text);
  if (clean.find_first_of(",\"\r\n") == std::string::npos) return clean;
  std::string cell = "\"";
  for (char c : clean) cell.append(c == '"' ? 2 : 1, c);
  return cell + '"';
}

// Of one value column of one series: what stands between the time and the value.
struct Line {
  size_t column = 0;
  double scale = 1;
  bool whole = false;
  std::string middle;
  std::string end;
};
using Lines = std::vector<Line>;

class LinesSink : public FormatSink {
 public:
  LinesSink(Shared* shared, const DumpInfo& dump, const Strings& strings)
      : shared_(*shared), dump_(dump), strings_(strings) {
    buffer_.reserve(kBufferBytes);
  }

  void Take(const Batch& batch) override {
    if (!status_.ok()) return;
    SeriesMap<Lines>& map = maps_.try_emplace({batch.table->id, batch.device}, *batch.table).first->second;
    for (size_t row = 0; row < batch.rows() && status_.ok(); ++row) {
      Lines* lines = map.Find(batch, row);
      if (lines == nullptr) {
        if (map.size() >= kMaxSeries) map.Clear();
        lines = map.Add(Make(batch, map.keys()));
      }
      for (const Line& line : *lines) Write(line, batch, row);
    }
  }
  void TakeEvent(const Event&) override {}
  Status Finish() override {
    Flush();
    shared_.rows += rows_;
    return status_;
  }

 private:
  Lines Make(const Batch& batch, std::span<const uint64_t> keys) const {
    Lines lines;
    for (const MetricColumn& metric : MetricsOf(*batch.table, keys, strings_)) {
      Line line{metric.column, metric.scale, metric.whole, {}, {}};
      if (shared_.style == LineStyle::kJson) {
        MakeJson(batch, metric, &line);
      } else {
        MakeCsv(batch, metric, &line);
      }
      lines.push_back(std::move(line));
    }
    return lines;
  }

  void MakeJson(const Batch& batch, const MetricColumn& metric, Line* line) const {
    const std::optional<int> rank = dump_.RankOf(batch.device);
    std::string& text = line->middle;
    text = "\",\"node\":";
    AppendJsonText(&text, dump_.hostname);
    text += ",\"job\":";
    AppendJsonText(&text, dump_.job_id);
    text += ",\"rank\":" + (rank ? std::to_string(*rank) : "null");
    text += ",\"device\":" + (batch.device >= 0 ? std::to_string(batch.device) : "null");
    text += ",\"metric\":";
    AppendJsonText(&text, metric.metric);
    text += ",\"labels\":{";
    for (size_t i = 0; i < metric.labels.size(); ++i) {
      if (i > 0) text += ',';
      AppendJsonText(&text, metric.labels[i].key);
      text += ':';
      AppendJsonText(&text, metric.labels[i].value);
    }
    text += "},\"value\":";
    line->end = "}\n";
  }

  void MakeCsv(const Batch& batch, const MetricColumn& metric, Line* line) const {
    const std::optional<int> rank = dump_.RankOf(batch.device);
    std::string labels;
    for (const Label& label : metric.labels) {
      labels += (labels.empty() ? "" : ",") + label.key + '=' + label.value;
    }
    std::string& text = line->middle;
    text = ',' + CsvCell(dump_.hostname) + ',' + CsvCell(dump_.job_id) + ',';
    if (rank) text += std::to_string(*rank);
    text += ',';
    if (batch.device >= 0) text += std::to_string(batch.device);
    text += ',' + CsvCell(metric.metric) + ',' + CsvCell(labels) + ',';
    std::string_view name = metric.metric;
    if (name.ends_with("_total")) name.remove_suffix(std::string_view("_total").size());
    line->end = ',' + std::string(UnitOf(name)) + '\n';
  }

  void Write(const Line& line, const Batch& batch, size_t row) {
    const bool json = shared_.style == LineStyle::kJson;
    const std::string_view before_ns = json ? "{\"time_ns\":" : "";
    const std::string_view before_time = json ? ",\"time\":\"" : ",";
    char text[128];
    char* end = text;
    std::memcpy(end, before_ns.data(), before_ns.size());
    end = AppendInt(end + before_ns.size(), batch.t_ns[row]);
    std::memcpy(end, before_time.data(), before_time.size());
    end = time_.Append(end + before_time.size(), batch.t_ns[row]);
    buffer_.append(text, end);
    buffer_ += line.middle;
    end = line.whole ? AppendInt(text, batch.Ints(line.column)[row])
                     : AppendReal(text, batch.Number(line.column, row) * line.scale, json ? "null" : "");
    buffer_.append(text, end);
    buffer_ += line.end;
    ++rows_;
    if (buffer_.size() >= kBufferBytes - 4096) Flush();
  }

  void Flush() {
    if (!buffer_.empty() && status_.ok()) status_ = shared_.file.Append(buffer_);
    buffer_.clear();
  }

  Shared& shared_;
  const DumpInfo& dump_;
  const Strings& strings_;
  Rfc3339 time_;
  std::string buffer_;
  std::map<std::pair<TableId, int>, SeriesMap<Lines>> maps_;
  uint64_t rows_ = 0;
  Status status_;
};

class LinesFormat : public Format {
 public:
  explicit LinesFormat(LineStyle style) : shared_(style) {}
  std::string_view name() const override { return json() ? "jsonl" : "samples"; }
  bool Wants(TableId table) const override { return !MetricColumns(TableOf(table)).empty(); }
  FormatWants wants() const override { return {}; }

  Status Begin(const ExportPlan& plan) override {
    plan_ = &plan;
    RETURN_IF_ERROR(
        shared_.file.Create(plan.out_dir + "/samples_" + plan.timestamp + (json() ? ".jsonl" : ".csv")));
    return json() ? Status() : shared_.file.Append(kCsvHeading);
  }
  Result<std::unique_ptr<FormatSink>> Open(const ExportTask& task) override {
    return std::unique_ptr<FormatSink>(
        std::make_unique<LinesSink>(&shared_, *plan_->dumps[task.dump], *plan_->strings));
  }
  Status End(bool complete, std::vector<OutputFile>* files) override {
    if (!complete) {
      shared_.file.Discard();
      return {};
    }
    RETURN_IF_ERROR(shared_.file.Commit());
    files->push_back({shared_.file.path(), shared_.file.bytes(), shared_.rows});
    return {};
  }

 private:
  bool json() const { return shared_.style == LineStyle::kJson; }

  const ExportPlan* plan_ = nullptr;
  Shared shared_;
};

}  // namespace

std::unique_ptr<Format> MakeJsonLinesFormat() {
  return std::make_unique<LinesFormat>(LineStyle::kJson);
}
std::unique_ptr<Format> MakeSamplesFormat() {
  return std::make_unique<LinesFormat>(LineStyle::kCsv);
}

}  // namespace profd::exporting
