// Takes a polled collector's output into a session's dump: files in the vendor's layout where the
// collector has them, our own samples file otherwise. Called on sampler threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/mutex.h"
#include "daemon/collect/poll_engine.h"
#include "daemon/data/dump_writer.h"
#include "daemon/data/host_file_buffer.h"
#include "daemon/metrics/metric_store.h"

namespace profd {

class SessionPollSink final : public PollSink {
 public:
  // `dump_or_null` null: only counts.
  SessionPollSink(const MetricStore& store, std::shared_ptr<WriterSession> dump_or_null,
                  const CollectorSpec& spec, double hz);

  void WriteHostFile(std::string_view file, std::string_view lines) override;
  bool Wanted() const override { return text_records_.has_value(); }
  char* Reserve(std::string_view file, size_t bytes) override;
  void OnSamples(std::span<const Sample> samples) override;
  void OnReading(const Status& status, uint64_t late, uint64_t left_out) override;

  // Before it is polled: what was kept of the collector (null: nothing), read every `hz` until `now_ns`.
  void Replay(std::shared_ptr<BlockSource> history_or_null, double hz, int64_t now_ns);

  const DumpFeed* feed() const { return text_records_ ? text_records_->feed() : nullptr; }
  uint64_t readings() const { return readings_.load(std::memory_order_relaxed); }
  uint64_t missed() const { return missed_.load(std::memory_order_relaxed); }
  uint64_t left_out() const { return left_out_.load(std::memory_order_relaxed); }
  // Of the last poll; empty if it succeeded.
  std::string LastError() const;

 private:
  const std::string& NameOf(SeriesId series);

  const MetricStore& store_;
  const std::shared_ptr<WriterSession> dump_;
  const bool vendor_files_;
  std::atomic<uint64_t> readings_{0};
  std::atomic<uint64_t> missed_{0};
  std::atomic<uint64_t> left_out_{0};
  mutable Mutex mutex_;
  std::string last_error_ GUARDED_BY(mutex_);
  // Sampler thread only: names of series by id and generation, and the text being built.
  struct Name {
    uint32_t generation = 0;
    std::string text;
  };
  std::unordered_map<SeriesId, Name> names_;
  std::string lines_;
  std::optional<HostFileBuffer> text_records_;  // with a dump; flushed after each poll
};

// Columns metric, device and labels of samples.tsv: "name\t0\ta=1,b=2"; in values ',', '=' and '\\'
// have a backslash before them, control bytes are spaces.
std::string SeriesColumns(const SeriesDescription& description);

}  // namespace profd
