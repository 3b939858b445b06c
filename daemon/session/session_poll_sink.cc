#include "daemon/session/session_poll_sink.h"

#include <fmt/format.h>

#include <iterator>

#include "collectors/metric_table.h"

namespace profd {
namespace {

// What would break the columns or the pairs.
void AppendValue(std::string_view value, std::string* text) {
  for (char c : value) {
    if (c == ',' || c == '=' || c == '\\') *text += '\\';
    *text += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
}

}  // namespace

std::string SeriesColumns(const SeriesDescription& description) {
  std::string text =
      fmt::format("{}\t{}\t", kMetrics[description.metric].name, description.device);
  bool first = true;
  for (const auto& [name, value] : description.labels) {
    if (!first) text += ',';
    first = false;
    text += name;
    text += '=';
    AppendValue(value, &text);
  }
  return text;
}

SessionPollSink::SessionPollSink(const MetricStore& store,
                                 std::shared_ptr<WriterSession> dump_or_null,
                                 const CollectorSpec& spec, double hz)
    : store_(store), dump_(std::move(dump_or_null)), vendor_files_(spec.vendor_files) {
  if (dump_ == nullptr) return;
  FeedOptions options{.collector = std::string(spec.name), .hz = hz};
  text_records_.emplace(dump_, dump_->AddFeed(std::move(options)));
}

void SessionPollSink::Replay(std::shared_ptr<BlockSource> history_or_null, double hz, int64_t now_ns) {
  if (!text_records_ || history_or_null == nullptr) return;
  dump_->ReplayHost(std::move(history_or_null), text_records_->feed(), hz, now_ns);
}

void SessionPollSink::WriteHostFile(std::string_view file, std::string_view lines) {
  if (text_records_.has_value() && !file.empty()) text_records_->Add(file, lines);
}

char* SessionPollSink::Reserve(std::string_view file, size_t bytes) {
  return text_records_.has_value() && !file.empty() ? text_records_->Reserve(file, bytes) : nullptr;
}

const std::string& SessionPollSink::NameOf(SeriesId series) {
  Name& name = names_[series];
  uint32_t generation = store_.Generation(series);
  if (name.text.empty() || name.generation != generation) {
    SeriesDescription description;
    name.generation = generation;
    name.text = store_.Describe(series, &description) ? SeriesColumns(description) : "gone\t-1\t";
  }
  return name.text;
}

void SessionPollSink::OnSamples(std::span<const Sample> samples) {
  if (dump_ == nullptr || vendor_files_ || samples.empty()) return;
  lines_.clear();
  for (const Sample& sample : samples) {
    fmt::format_to(std::back_inserter(lines_), "{}\t{}\t{}\n", sample.time_ns,
                   NameOf(sample.series), sample.value);
  }
  text_records_->Add({}, lines_);
}

void SessionPollSink::OnReading(const Status& status, uint64_t late, uint64_t left_out) {
  if (text_records_) {
    text_records_->Flush();
    text_records_->feed()->CountLoss(LossReason::kLate, late, 0);
    text_records_->feed()->CountLoss(LossReason::kOverBudget, left_out, 0);
    if (status.ok()) text_records_->feed()->CountReading();
  }
  readings_.fetch_add(1, std::memory_order_relaxed);
  missed_.fetch_add(late, std::memory_order_relaxed);
  left_out_.fetch_add(left_out, std::memory_order_relaxed);
  MutexLock lock(mutex_);
  last_error_ = status.ok() ? std::string() : status.message();
}

std::string SessionPollSink::LastError() const {
  MutexLock lock(mutex_);
  return last_error_;
}

}  // namespace profd
