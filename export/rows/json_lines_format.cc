// JSON lines for a warehouse: one object per sample, every field always there (docs/export.md).
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "export/formats.h"
#include "export/number_text.h"
#include "export/rows/row_file.h"
#include "export/rows/series.h"
#include "export/rows/text.h"

namespace profd::exporting {
namespace {

constexpr size_t kBufferBytes = 256u << 10;
// More different rows than this are not remembered; keys are untrusted.
constexpr size_t kMaxSeries = 16384;

struct Shared {
  RowFile file;
  std::atomic<uint64_t> rows{0};
};

// Of one value column of one series: what stands between the time and the value.
struct Line {
  size_t column = 0;
  double scale = 1;
  bool whole = false;
  std::string middle;
};
using Lines = std::vector<Line>;

class JsonLinesSink : public FormatSink {
 public:
  JsonLinesSink(Shared* shared, const DumpInfo& dump, const Strings& strings)
      : shared_(*shared), dump_(dump), strings_(strings) {
    buffer_.reserve(kBufferBytes);
  }

  void Take(const Batch& batch) override {
    if (!status_.ok()) return;
    auto found = maps_.find({batch.table->id, batch.device});
    if (found == maps_.end()) {
      found =
          maps_.emplace(Key{batch.table->id, batch.device}, SeriesMap<Lines>(*batch.table)).first;
    }
    for (size_t row = 0; row < batch.rows() && status_.ok(); ++row) {
      Lines* lines = found->second.Find(batch, row);
      if (lines == nullptr) {
        if (found->second.size() >= kMaxSeries) found->second.Clear();
        lines = found->second.Add(Make(batch, found->second.keys()));
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
  struct Key {
    TableId table;
    int device;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const {
      return static_cast<size_t>(key.table) * 8191 + static_cast<size_t>(key.device);
    }
  };

  Lines Make(const Batch& batch, std::span<const uint64_t> keys) const {
    Lines lines;
    for (const MetricColumn& metric : MetricsOf(*batch.table, keys, strings_)) {
      Line line{metric.column, metric.scale, metric.whole, {}};
      std::string& text = line.middle;
      text = "\",\"node\":";
      AppendJsonText(&text, dump_.hostname);
      text += ",\"job\":";
      AppendJsonText(&text, dump_.job_id);
      text += ",\"rank\":" + (dump_.rank ? std::to_string(*dump_.rank) : "null");
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
      lines.push_back(std::move(line));
    }
    return lines;
  }

  void Write(const Line& line, const Batch& batch, size_t row) {
    constexpr std::string_view kTimeNs = "{\"time_ns\":";
    constexpr std::string_view kTime = ",\"time\":\"";
    char text[128];
    char* end = text;
    std::memcpy(end, kTimeNs.data(), kTimeNs.size());
    end = AppendInt(end + kTimeNs.size(), batch.t_ns[row]);
    std::memcpy(end, kTime.data(), kTime.size());
    end = time_.Append(end + kTime.size(), batch.t_ns[row]);
    buffer_.append(text, end);
    buffer_ += line.middle;
    end = line.whole ? AppendInt(text, batch.Ints(line.column)[row])
                     : AppendReal(text, batch.Number(line.column, row) * line.scale, "null");
    *end++ = '}';
    *end++ = '\n';
    buffer_.append(text, end);
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
  std::unordered_map<Key, SeriesMap<Lines>, KeyHash> maps_;
  uint64_t rows_ = 0;
  Status status_;
};

class JsonLinesFormat : public Format {
 public:
  std::string_view name() const override { return "jsonl"; }
  bool Wants(TableId table) const override { return !MetricColumns(TableOf(table)).empty(); }
  bool WantsEvents() const override { return false; }

  Status Begin(const ExportPlan& plan) override {
    plan_ = &plan;
    return shared_.file.Create(plan.out_dir + "/samples_" + plan.stamp + ".jsonl");
  }
  Result<std::unique_ptr<FormatSink>> Open(const ExportTask& task) override {
    return std::unique_ptr<FormatSink>(
        std::make_unique<JsonLinesSink>(&shared_, *plan_->dumps[task.dump], *plan_->strings));
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
  const ExportPlan* plan_ = nullptr;
  Shared shared_;
};

}  // namespace

std::unique_ptr<Format> MakeJsonLinesFormat() { return std::make_unique<JsonLinesFormat>(); }

}  // namespace profd::exporting
