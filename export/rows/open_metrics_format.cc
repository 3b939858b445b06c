// OpenMetrics text with times, as `promtool tsdb create-blocks-from openmetrics` takes it
// (docs/export.md).
#include <atomic>
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

// Of one series before they go to the spool, and of all series of a sink.
constexpr size_t kSeriesBytes = 4096;
constexpr size_t kSinkBytes = 8u << 20;
constexpr size_t kMaxRowKeys = 16384;

struct Shared {
  MetricFamilies families;
  std::atomic<uint64_t> rows{0};
};

struct Writer {
  size_t column = 0;
  double scale = 1;
  bool whole = false;
  MetricFamilies::Series* series = nullptr;  // null: left out
  std::string prefix;
  std::string buffer;
  int64_t last_ms = INT64_MIN;
};
using Writers = std::vector<Writer>;

// Readers cut timestamps to full milliseconds after multiplying a double: one microsecond more makes
// sure that a full millisecond does not become the one before.
char* AppendSeconds(char* out, int64_t t_ns) {
  int64_t us = t_ns / 1000;
  if (us % 1000 == 0) ++us;
  out = AppendInt(out, us / 1'000'000);
  *out++ = '.';
  int64_t part = us % 1'000'000;
  for (int64_t digit = 100'000; digit > 0; digit /= 10) {
    *out++ = static_cast<char>('0' + part / digit % 10);
  }
  return out;
}

class OpenMetricsSink : public FormatSink {
 public:
  OpenMetricsSink(Shared* shared, const DumpInfo& dump, const Strings& strings)
      : shared_(*shared), dump_(dump), strings_(strings) {}

  void Take(const Batch& batch) override {
    SeriesMap<Writers>& map = maps_.try_emplace({batch.table->id, batch.device}, *batch.table).first->second;
    for (size_t row = 0; row < batch.rows() && status_.ok(); ++row) {
      Writers* writers = map.Find(batch, row);
      if (writers == nullptr && map.size() >= kMaxRowKeys) {
        ++left_out_;
        continue;
      }
      if (writers == nullptr) writers = map.Add(Make(batch, map.keys()));
      for (Writer& writer : *writers) Write(&writer, batch, row);
    }
    if (buffered_ > kSinkBytes) FlushAll();
  }
  void TakeEvent(const Event&) override {}
  Status Finish() override {
    FlushAll();
    shared_.rows += rows_;
    if (left_out_ > 0) shared_.families.AddLeftOut(left_out_);
    return status_;
  }

 private:
  Writers Make(const Batch& batch, std::span<const uint64_t> keys) {
    std::vector<Label> place = {{"node", dump_.hostname}, {"dump", dump_.name}};
    if (!dump_.job_id.empty()) place.push_back({"job", dump_.job_id});
    if (std::optional<int> rank = dump_.RankOf(batch.device)) {
      place.push_back({"rank", std::to_string(*rank)});
    }
    if (batch.device >= 0) place.push_back({"device", std::to_string(batch.device)});
    Writers writers;
    for (MetricColumn& metric : MetricsOf(*batch.table, keys, strings_)) {
      metric.labels.insert(metric.labels.begin(), place.begin(), place.end());
      Writer& writer = writers.emplace_back();
      writer.column = metric.column;
      writer.scale = metric.scale;
      writer.whole = metric.whole;
      writer.series = shared_.families.Add(metric.metric, metric.labels, &writer.prefix);
    }
    return writers;
  }

  void Write(Writer* writer, const Batch& batch, size_t row) {
    int64_t t_ns = batch.t_ns[row];
    int64_t ms = t_ns / 1'000'000;
    // Of each millisecond the first sample; nothing that goes back in time.
    if (writer->series == nullptr || ms <= writer->last_ms || t_ns < 0) {
      ++left_out_;
      return;
    }
    writer->last_ms = ms;
    char text[96];
    char* end = writer->whole
                    ? AppendInt(text, batch.Ints(writer->column)[row])
                    : AppendReal(text, batch.Number(writer->column, row) * writer->scale, "NaN");
    *end++ = ' ';
    end = AppendSeconds(end, t_ns);
    *end++ = '\n';
    size_t before = writer->buffer.size();
    writer->buffer += writer->prefix;
    writer->buffer.append(text, end);
    buffered_ += writer->buffer.size() - before;
    ++rows_;
    if (writer->buffer.size() > kSeriesBytes) Flush(writer);
  }

  void Flush(Writer* writer) {
    if (writer->buffer.empty()) return;
    if (status_.ok()) status_ = shared_.families.Append(writer->series, writer->buffer);
    buffered_ -= writer->buffer.size();
    writer->buffer.clear();
  }

  void FlushAll() {
    for (auto& [key, map] : maps_) {
      for (auto& [keys, writers] : map) {
        for (Writer& writer : writers) Flush(&writer);
      }
    }
  }

  Shared& shared_;
  const DumpInfo& dump_;
  const Strings& strings_;
  std::map<std::pair<TableId, int>, SeriesMap<Writers>> maps_;
  size_t buffered_ = 0;
  uint64_t rows_ = 0;
  uint64_t left_out_ = 0;
  Status status_;
};

class OpenMetricsFormat : public Format {
 public:
  std::string_view name() const override { return "openmetrics"; }
  bool Wants(TableId table) const override { return !MetricColumns(TableOf(table)).empty(); }
  FormatWants wants() const override { return {}; }

  Status Begin(const ExportPlan& plan) override {
    plan_ = &plan;
    RETURN_IF_ERROR(out_.Create(plan.out_dir + "/samples_" + plan.timestamp + ".om", plan.go_on));
    return shared_.families.Begin(plan.out_dir);
  }
  Result<std::unique_ptr<FormatSink>> Open(const ExportTask& task) override {
    return std::unique_ptr<FormatSink>(
        std::make_unique<OpenMetricsSink>(&shared_, *plan_->dumps[task.dump], *plan_->strings));
  }
  Status End(bool complete, std::vector<OutputFile>* files) override {
    Status status = complete ? shared_.families.Write(&out_) : Status();
    if (complete && status.ok()) status = out_.Commit();
    if (complete && status.ok()) {
      files->push_back({out_.path(), out_.bytes(), shared_.rows});
    } else {
      out_.Discard();
    }
    return status;
  }

 private:
  const ExportPlan* plan_ = nullptr;
  Shared shared_;
  SharedFile out_;
};

}  // namespace

std::unique_ptr<Format> MakeOpenMetricsFormat() { return std::make_unique<OpenMetricsFormat>(); }

}  // namespace profd::exporting
