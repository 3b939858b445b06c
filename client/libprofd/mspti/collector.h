// Collects from this process through MSPTI while sessions request it (plugin_collector.h); the records go into an
// activity ring.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "base/overhead_budget.h"
#include "client/libprofd/mspti/buffer_pool.h"
#include "client/libprofd/mspti/mspti_library.h"
#include "client/libprofd/mspti/translator.h"
#include "client/libprofd/plugin_collector.h"
#include "proto/attach/activity_writer.h"

namespace profd::lib::mspti {

class Collector final : public PluginCollector {
 public:
  // How long what is tried again rests, and when no record is silence.
  struct Pauses {
    Milliseconds waiting{1000};
    Milliseconds busy{10'000};
    Milliseconds silence{3000};
    Milliseconds settle{50};       // from the first to the next flush of an end
    Milliseconds last_flush{1000};  // flushes of an end together
    Milliseconds budget{OverheadBudget::kWindowNs / 1'000'000};  // of which the mean cost is held against what it may be
  };
  explicit Collector(Pauses pauses) : pauses_(pauses), budget_(std::chrono::nanoseconds(pauses.budget).count()) {}

  // As in profd_collect_calls.
  int Start(const profd_collect_config& config);
  int ring() const { return ring_fd_.load(std::memory_order_acquire); }

  // What the vendor's library calls; on any thread.
  void Request(uint8_t** buffer, size_t* size);
  void Complete(uint8_t* buffer, size_t valid);
  // The process ends: what is in the vendor's buffers is delivered within a second, or not at all. Called more than
  // once, of which the first counts.
  void AtExit() override;

 private:
  int MakeRing(uint64_t bytes) REQUIRES(mutex_);
  void Run() override;
  void AddToReport(profd_collect_report* report) override REQUIRES(mutex_);
  // One round; how long until the next.
  Milliseconds Round(uint32_t kinds, Milliseconds flush);
  void UpdateBudget(uint32_t kinds, uint32_t max_permille);
  void EndStart(uint64_t number);

  Milliseconds Attach(uint32_t kinds);
  bool Subscribe();
  Called Unsubscribe();
  void EnableKinds(uint32_t kinds);
  bool EnableOne(uint32_t bit, Called* refused);
  void DisableAllBut(uint32_t kinds);
  void Detach();
  void Flush();
  bool AreMarksTaken();
  void LookForMstx();
  void WalkReturned() REQUIRES(walk_mutex_);
  void SetServed();
  uint64_t CountSteps();
  uint32_t DeviceKinds() const;
  uint64_t CountWatched() const;
  void WatchSilence();
  void Fail(const char* call, const Called& called);
  enum class ExitAfter { kNothing, kSubscribe, kEnable, kFlush, kRecords };
  void CoverExit(ExitAfter what);

  const Pauses pauses_;
  std::atomic<int> ring_fd_{-1};

  bool has_news_ GUARDED_BY(mutex_) = false;  // another config
  uint64_t starts_ GUARDED_BY(mutex_) = 0;
  uint64_t flushed_ GUARDED_BY(mutex_) = 0;  // the start up to which records are in the ring
  std::string version_ GUARDED_BY(mutex_);

  BufferPool pool_;
  // Where the strings of a buffer are gone when its callback returns, it is walked in the callback.
  std::atomic<bool> walks_in_callback_{false};
  Mutex walk_mutex_;
  std::unique_ptr<attach::ActivityWriter> writer_;  // made once, under mutex_ before the thread
  std::unique_ptr<Translator> translator_ GUARDED_BY(walk_mutex_);
  std::atomic<uint64_t> records_{0};
  std::atomic<bool> exits_{false};
  std::atomic<int64_t> callbacks_ns_{0};  // CPU time of buffers walked in callbacks

  // Of the thread.
  MsptiLibrary library_;
  bool loaded_ = false;
  bool subscribed_ = false;
  bool owes_unsubscribe_ = false;
  bool gave_up_ = false;  // unsupported or failed: until the next start
  uint32_t asked_ = 0;
  uint32_t enabled_kinds_ = 0;  // bits by the vendor's numbers
  uint32_t ever_enabled_ = 0;   // the same
  OverheadBudget budget_;
  uint32_t left_out_ = 0;  // of the requested kinds
  State served_;
  std::string clock_note_;  // of the last step of CLOCK_REALTIME; added to served_'s detail
  std::optional<bool> marks_taken_;  // by libprofd, at the last look since Subscribe
  bool is_mstx_mapped_ = false;      // at the last look
  ExitAfter exit_after_ = ExitAfter::kNothing;
  uint64_t device_records_ = 0;
  uint64_t watched_seen_ = 0;
  uint64_t records_seen_ = 0;  // when one of the watched came last
  uint64_t steps_seen_ = 0;
  std::chrono::steady_clock::time_point quiet_since_;
};

}  // namespace profd::lib::mspti
