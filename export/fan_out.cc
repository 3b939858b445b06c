#include "export/fan_out.h"

#include <utility>

namespace profd::exporting {

RunningFormat::RunningFormat(std::unique_ptr<Format> format) : format_(std::move(format)) {
  for (const TableSpec& table : Tables()) {
    if (format_->Wants(table.id)) tables_ |= TableBit(table.id);
  }
  events_ = format_->wants().events;
}

void RunningFormat::Fail(const Status& error) {
  MutexLock lock(mutex_);
  if (error_.ok()) error_ = error;
  failed_.store(true, std::memory_order_relaxed);
}

Status RunningFormat::error() const {
  MutexLock lock(mutex_);
  return error_;
}

void FanOut::Open(std::vector<std::unique_ptr<RunningFormat>>& formats, const ExportTask& task,
                  uint64_t tables, bool events) {
  for (std::unique_ptr<RunningFormat>& format : formats) {
    uint64_t wanted = format->tables() & tables & filter_.tables;
    bool wants_events = format->events() && events && filter_.events;
    if (format->failed() || (wanted == 0 && !wants_events)) continue;
    Result<std::unique_ptr<FormatSink>> sink = format->format().Open(task);
    if (!sink.ok()) {
      format->Fail(sink.status());
      continue;
    }
    targets_.push_back({format.get(), std::move(*sink), wanted, wants_events});
  }
}

void FanOut::Take(const Batch& batch) {
  if (batch.rows() == 0 || !filter_.HasDevice(batch.device)) return;
  uint64_t bit = TableBit(batch.table->id);
  bool taken = false;
  for (Target& target : targets_) {
    if ((target.tables & bit) == 0) continue;
    target.sink->Take(batch);
    taken = true;
  }
  if (taken) rows_ += batch.rows();
}

void FanOut::TakeEvent(const Event& event) {
  // What a process did is shown whichever devices are.
  if (event.device >= 0 && !filter_.HasDevice(event.device)) return;
  if (event.rank && !filter_.HasRank(*event.rank)) return;
  int64_t end = 0;
  if (__builtin_add_overflow(event.t_ns, event.dur_ns, &end)) end = event.t_ns;
  // What ends when the window begins has no time in it.
  const bool ends_before = end < filter_.window.from_ns || (end == filter_.window.from_ns && event.dur_ns > 0);
  if (ends_before || event.t_ns > filter_.window.to_ns) return;
  steps_.Add(event);
  bool taken = false;
  for (Target& target : targets_) {
    if (!target.events) continue;
    target.sink->TakeEvent(event);
    taken = true;
  }
  if (taken) ++rows_;
}

void FanOut::Finish() {
  for (Target& target : targets_) {
    Status finished = target.sink->Finish();
    if (!finished.ok()) target.format->Fail(finished);
  }
  targets_.clear();
}

}  // namespace profd::exporting
