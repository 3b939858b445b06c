// Takes a polled collector's output into the recorder's ring: text records of vendor files as they are, our
// own samples by device, so that a dump for one user holds nothing of another's devices. Series of
// single processes are left out: their owners are not known later. Called on sampler threads.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/mutex.h"
#include "daemon/collect/poll_engine.h"
#include "daemon/metrics/metric_store.h"
#include "daemon/recorder/recorder_ring.h"

namespace profd {

class RecorderPollSink final : public PollSink {
 public:
  // Routes by device, kHostDevice among them; samples of other devices are left out.
  RecorderPollSink(const MetricStore& store, const Clock& clock, std::shared_ptr<RecorderRing> ring,
                   const std::map<int, RecorderRing::RouteId>& routes, bool vendor_files);

  void WriteHostFile(std::string_view file, std::string_view lines) override;
  bool Wanted() const override { return bundles_.contains(kHostDevice); }
  void OnSamples(std::span<const Sample> samples) override;
  void OnReading(const Status& status, uint64_t late, uint64_t left_out) override;

  // Of the last poll; empty if it succeeded.
  std::string LastError() const;

 private:
  // Text records on their way, in HostFileBuffer' layout.
  struct Bundle {
    RecorderRing::RouteId route = 0;
    std::string lines;  // of our own samples
    std::string text_records;
    uint32_t count = 0;
  };
  struct Name {
    uint32_t generation = 0;
    Bundle* bundle = nullptr;  // null: not recorded
    std::string columns;
  };
  const Name& NameOf(SeriesId series);
  void Add(Bundle& bundle, std::string_view file, std::string_view lines);
  void Flush(Bundle& bundle, int64_t now_ns);
  void NoteNotRead(LossReason reason, uint64_t polls, int64_t now_ns);

  const MetricStore& store_;
  const Clock& clock_;
  const std::shared_ptr<RecorderRing> ring_;
  const bool vendor_files_;
  std::map<int, Bundle> bundles_;  // by device
  std::unordered_map<SeriesId, Name> names_;
  mutable Mutex mutex_;
  std::string last_error_ GUARDED_BY(mutex_);
};

}  // namespace profd
