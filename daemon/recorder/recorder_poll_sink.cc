#include "daemon/recorder/recorder_poll_sink.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "daemon/data/host_file_buffer.h"
#include "daemon/session/session_poll_sink.h"

namespace profd {
namespace {

// Small enough for any ring, large enough for a poll of most collectors.
constexpr size_t kBundleBytes = 32 * 1024;

bool IsOfAProcess(const SeriesDescription& description) {
  return std::ranges::any_of(description.labels, [](const auto& label) { return label.first == "pid"; });
}

}  // namespace

RecorderPollSink::RecorderPollSink(const MetricStore& store, const Clock& clock,
                                   std::shared_ptr<RecorderRing> ring,
                                   const std::map<int, RecorderRing::RouteId>& routes,
                                   bool vendor_files)
    : store_(store), clock_(clock), ring_(std::move(ring)), vendor_files_(vendor_files) {
  for (const auto& [device, route] : routes) bundles_[device].route = route;
}

void RecorderPollSink::Add(Bundle& bundle, std::string_view file, std::string_view lines) {
  if (bundle.text_records.size() + lines.size() > kBundleBytes) Flush(bundle, clock_.MonotonicRawNs());
  AppendHostText(file, lines, &bundle.text_records);
  ++bundle.count;
}

void RecorderPollSink::Flush(Bundle& bundle, int64_t now_ns) {
  if (bundle.count == 0) return;
  BlockInfo info{.records = bundle.count, .host_ns = now_ns};
  ring_->Append(bundle.route, info, std::as_bytes(std::span(bundle.text_records)));
  bundle.text_records.clear();
  bundle.count = 0;
}

void RecorderPollSink::WriteHostFile(std::string_view file, std::string_view lines) {
  auto bundle = bundles_.find(kHostDevice);
  if (bundle != bundles_.end() && !file.empty()) Add(bundle->second, file, lines);
}

const RecorderPollSink::Name& RecorderPollSink::NameOf(SeriesId series) {
  Name& name = names_[series];
  uint32_t generation = store_.Generation(series);
  if (!name.columns.empty() && name.generation == generation) return name;
  name.generation = generation;
  name.bundle = nullptr;
  name.columns = "gone";
  SeriesDescription description;
  if (!store_.Describe(series, &description) || IsOfAProcess(description)) return name;
  name.columns = SeriesColumns(description);
  auto bundle = bundles_.find(description.device);
  if (bundle != bundles_.end()) name.bundle = &bundle->second;
  return name;
}

void RecorderPollSink::OnSamples(std::span<const Sample> samples) {
  if (vendor_files_) return;
  for (const Sample& sample : samples) {
    const Name& name = NameOf(sample.series);
    if (name.bundle == nullptr) continue;
    fmt::format_to(std::back_inserter(name.bundle->lines), "{}\t{}\t{}\n", sample.time_ns,
                   name.columns, sample.value);
  }
  for (auto& [device, bundle] : bundles_) {
    if (!bundle.lines.empty()) Add(bundle, {}, bundle.lines);
    bundle.lines.clear();
  }
}

void RecorderPollSink::NoteNotRead(LossReason reason, uint64_t polls, int64_t now_ns) {
  auto bundle = bundles_.find(kHostDevice);
  if (polls == 0 || bundle == bundles_.end()) return;
  ring_->AppendLoss(bundle->second.route, {.host_ns = now_ns, .records = polls}, reason);
}

// Polls that are missing were due before this one, so that they are noted first. One timestamp for all devices makes
// their samples one record.
void RecorderPollSink::OnReading(const Status& status, uint64_t late, uint64_t left_out) {
  const int64_t now = clock_.MonotonicRawNs();
  NoteNotRead(LossReason::kLate, late, now);
  NoteNotRead(LossReason::kOverBudget, left_out, now);
  for (auto& [device, bundle] : bundles_) Flush(bundle, now);
  MutexLock lock(mutex_);
  last_error_ = status.ok() ? std::string() : status.message();
}

std::string RecorderPollSink::LastError() const {
  MutexLock lock(mutex_);
  return last_error_;
}

}  // namespace profd
