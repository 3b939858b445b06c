// The one thread that writes dumps. Samplers push blocks into one bounded queue (per session: at most
// `queue_bytes` waiting; policy: drop newest, counted per feed); the thread filters (thins, rebases)
// and appends them, flushes at the flush interval and watches the disk.
//
// A session's feeds and commands go through the same queue as its blocks, so that everything happens
// in the order it was pushed: a finished session has seen all its blocks.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "collectors/collector.h"
#include "daemon/data/loss_ledger.h"
#include "daemon/data/process_files_dump.h"
#include "daemon/data/replay.h"
#include "driver/abi/channels.h"
#include "driver/block.h"
#include "dump/dump_root.h"
#include "dump/gap_detector.h"
#include "dump/dump_sync.h"
#include "dump/session_dump.h"
#include "dump/stream_filter.h"

namespace profd {

class SelfMetrics;

// One run of a driver channel, from start to stop.
struct ChannelEpoch {
  uint32_t number = 0;
  // Host clock when the channel was started: an estimate until the driver has answered; then, where timestamps count
  // from it, moved by the device's drift (DriftedStart).
  std::atomic<int64_t> start_ns{0};
  double hz = 0;  // what it runs at; 0 = event driven
  // Of the collector's parts (RecordPart::option); 0 = the part is off.
  std::array<double, kCollectorOptions> part_hz{};
  // The flight recorder does not take part: it may measure something else than that requests. It may join.
  std::atomic<bool> for_sessions{false};
};

inline DumpClocks ForDump(const ClockPair& pair) {
  return {pair.host_ns, pair.host_count, pair.device_ns, pair.device_count, pair.uncertainty_ns};
}

struct FeedCounters {
  std::atomic<uint64_t> records{0};  // written
  std::atomic<uint64_t> bytes{0};
  std::atomic<uint64_t> thinned_records{0};
  std::atomic<uint64_t> readings{0};       // of a polled collector, without error
};

// What one session wants of one channel of one device, or of one collector's host files.
struct FeedOptions {
  std::string collector = {};
  int device = -1;  // -1 = host
  uint32_t channel = 0;
  const abi::ChannelFormat* format = nullptr;  // null = host files
  // Base name; empty = the format's. Without a format: the one file all text records of the feed go to, of
  // the device or (device -1) of our own; empty = each text names its host file.
  std::string file = {};
  size_t record_bytes = 0;  // of host files of fixed records; 0: each text counts as one record
  double hz = 0;           // what the session asked for
  std::array<double, kCollectorOptions> part_hz{};
  std::span<const RecordPart> record_parts{};
  bool keep_all = false;  // no thinning, whatever the rates: a dump of what the recorder holds
  int64_t session_start_ns = 0;  // H of the device's start_info
  bool in_past = false;          // the session was requested after that
  int64_t silence_ns = 0;        // see LossLedger
  uint32_t chip_id = 0;
  double device_counter_hz = 0;
  double host_counter_hz = 0;
};

class WriterSession;

class DumpFeed {
 public:
  explicit DumpFeed(FeedOptions options) : options_(std::move(options)), losses_(options_.session_start_ns, options_.in_past, options_.silence_ns) {}
  const FeedOptions& options() const { return options_; }
  const FeedCounters& counters() const { return counters_; }
  const LossLedger& losses() const { return losses_; }
  // Any thread. Lost before it reached the writer: no block was free, or polls that did not take place
  // (LossLedger::Count). Ignored once the manifest has the last losses: a channel that did not end in time may deliver more.
  void CountLoss(LossReason reason, uint64_t records, uint64_t bytes) {
    if (!ended_.load(std::memory_order_relaxed)) losses_.Count(reason, records, bytes);
  }
  // A poll of the feed's collector, whose text records have been pushed.
  void CountReading() { counters_.readings.fetch_add(1, std::memory_order_relaxed); }
  bool thinned() const { return thinned_.load(std::memory_order_relaxed); }
  bool rebased() const { return rebased_.load(std::memory_order_relaxed); }

 private:
  friend class WriterSession;
  friend class DumpWriter;
  const FeedOptions options_;
  FeedCounters counters_;
  LossLedger losses_;
  std::atomic<bool> thinned_{false};
  std::atomic<bool> rebased_{false};
  std::atomic<bool> ended_{false};
  // Writer thread only.
  std::shared_ptr<ChannelEpoch> epoch_;
  std::unique_ptr<StreamFilter> filter_;
  bool open_ = false;
  SessionDump::Channel handle_ = 0;
  mutable size_t manifest_at_ = 0;  // where its channel was found in the manifest the last time
  std::unique_ptr<GapDetector> gap_detector_;  // looks for what the driver dropped
  std::unique_ptr<GapDetector> sum_gaps_;      // the same before thinning, where counts are added up; null: not so
  bool left_out_ = false;      // a file was one too many, and the manifest has it
  uint64_t missing_ = 0;       // found by one of them in the block being written
  uint64_t last_seq_ = 0;      // of its channel's blocks
  uint64_t thinned_before_ = 0;  // by the filters of earlier runs
  int64_t rebase_us_ = 0;
  double past_hz_ = 0;  // with past_until_ns_: see ManifestChannel
  int64_t past_until_ns_ = 0;
  double channel_hz_ = 0;
  // Text records arrive in the same order in every poll: which host file came after which, by the
  // dump's numbers, and which one was the last.
  std::vector<SessionDump::HostFile> next_file_;
  SessionDump::HostFile last_file_ = 0;
  // Text records are from more than one instance of their collector, each of which counts its blocks: they
  // are counted anew, by file.
  bool renumber_ = false;
  // Own samples that the recorder held by device are one record for each poll.
  int64_t replayed_ns_ = 0;  // of the last block of host text from the recorder
  bool same_poll_ = false;
  std::map<std::string, uint64_t, std::less<>> next_index_;
  std::string renumbered_;
};

class DumpWriter {
 public:
  struct Options {
    uint64_t queue_bytes = 64ULL << 20;
    int64_t flush_interval_ns = kNsPerSecond;
    uint64_t min_free_bytes = 20ULL << 20;
    int64_t sync_interval_ns = 15 * kNsPerSecond;  // 0 = only at the end of a session
  };

  DumpWriter(DumpRoot root, const Clock& clock, BlockPool& pool, const Options& options);
  ~DumpWriter();  // stops
  // Finishes what is queued, then joins. What is pushed afterwards stays where it is.
  void Stop();

  void SetOptions(const Options& options);  // any thread

  // Makes the dump on the writer thread; `done` runs there with its path or the error. `files`: how many data files
  // are expected at once; kResourceExhausted when the process may not open so many more.
  std::shared_ptr<WriterSession> Open(SessionDumpOptions options, size_t files,
                                      std::function<void(const Result<std::string>&)> done);
  // Runs `task` on the writer thread, after everything pushed before.
  void Post(std::function<void()> task);
  // All that was pushed before is in its file, and forced to the disk, when `done` is called (writer thread).
  void Flush(std::function<void()> done);
  // Root and its free space; writer thread only (use Post).
  DumpRoot& root() { return root_; }
  uint64_t free_bytes() const { return free_bytes_.load(std::memory_order_relaxed); }
  void UpdateMetrics(SelfMetrics* self) const;
  // How much of the dumps must go where so much is free: at least `min_free` is then free at the next look, too, if as
  // much is written until then as since the last one (`written`).
  static uint64_t BytesToFree(uint64_t free, uint64_t min_free, uint64_t written);

 private:
  friend class WriterSession;
  // More than this waiting wakes the thread at once, and so does half of what a session may have.
  static constexpr uint64_t kWakeBytes = 4 << 20;
  struct Item {
    std::shared_ptr<WriterSession> session;  // a block may outlive the claim it was received for
    DumpFeed* feed = nullptr;  // null: a task
    BlockRef block;
    std::function<void()> task;
  };
  Options OptionsNow();
  void Push(Item item, bool wake);
  void Run();
  void Process(Item& item);
  Status FindRoot();
  // Whether `needed` descriptors are free for the dump, and how many more it may keep open.
  Status PlanFiles(size_t needed, SessionDumpOptions* options) const;
  static Status CheckMemory();
  // kResourceExhausted with the numbers when less than min_free_bytes is free, or the volume is read-only. Writer thread.
  Status CheckFreeSpace();
  Status FreeDiskSpace();
  void FlushAll(bool sync);

  DumpRoot root_;
  const Clock& clock_;
  BlockPool& pool_;
  Mutex mutex_;
  CondVar wake_;
  std::vector<Item> queue_ GUARDED_BY(mutex_);
  // Something was pushed that does not wait for the next look.
  bool woken_ GUARDED_BY(mutex_) = false;
  bool stop_ GUARDED_BY(mutex_) = false;
  Options options_ GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<WriterSession>> live_;  // writer thread
  std::atomic<uint64_t> written_bytes_{0};
  std::atomic<uint64_t> queued_bytes_{0};
  std::atomic<uint64_t> dropped_full_{0};
  std::atomic<uint64_t> dropped_error_{0};
  // Records of all sessions that never came: dropped by the driver, read too late, left out.
  std::atomic<uint64_t> missing_driver_{0};
  std::atomic<uint64_t> missing_late_{0};
  std::atomic<uint64_t> missing_left_out_{0};
  std::atomic<uint64_t> free_bytes_{0};
  std::atomic<uint64_t> size_bytes_{0};  // of the volume
  mutable Mutex aged_mutex_;
  // That limits have removed from dumps, by collector.
  std::map<std::string, uint64_t> aged_records_ GUARDED_BY(aged_mutex_);
  int64_t sync_interval_ns_ = 0;  // writer thread, once it runs
  uint64_t written_at_free_ = 0;  // writer thread: written_bytes_ at the last look at the free space
  DumpSync sync_;  // its callbacks post to the writer, which ends after it has nothing to do
  std::thread thread_;
};

// A session as the writer sees it. Stays alive while anything of it is queued: a channel that would
// not stop in time continues to push after Finish.
class WriterSession final : public ProcessFilesDump, public std::enable_shared_from_this<WriterSession> {
 public:
  // Any thread. The feed lives as long as the session.
  DumpFeed* AddFeed(FeedOptions options);
  void Push(DumpFeed* feed, BlockRef block);
  // For HostFileBuffer: a block for text records of host files (empty: there is none), one with `count` records in
  // its text records, records that found no space. A quarter of the pool is left to the driver's bytes: processes choose
  // how much they record.
  BlockBuilder NewTextBlock(size_t bytes) { return writer_.pool_.Get(bytes, writer_.pool_.max_bytes() / 4); }
  void PushTextRecords(DumpFeed* feed, BlockBuilder block, size_t used, uint64_t count);
  void CountLostTextRecords(DumpFeed* feed, size_t bytes, uint64_t records);
  // Blocks pushed after this belong to `epoch`, whose relative timestamps are rebased to the session's start.
  // `late`: the session has been waiting for it, which its manifest has.
  void SetEpoch(DumpFeed* feed, std::shared_ptr<ChannelEpoch> epoch, bool late);
  // What was kept of the feed's channel (or host text records), before anything that is pushed from now on.
  void Replay(std::shared_ptr<BlockSource> source, DumpFeed* feed);
  // The same for what was read by another hand: every `hz`, until `until_ns`.
  void ReplayHost(std::shared_ptr<BlockSource> source, DumpFeed* feed, double hz, int64_t until_ns);
  // The same for many feeds, bit by bit so that other sessions get their turn: `done` runs on the
  // writer thread at the end. `feed_of` returns whose a route is; null leaves the block out.
  using FeedOfRoute = std::function<DumpFeed*(uint32_t route)>;
  void ReplayAll(std::shared_ptr<BlockSource> source, FeedOfRoute feed_of,
                 std::function<void()> done);
  // Its device has stopped answering, or its channel could not be stopped for a restart: what arrives from now on may be
  // incomplete until the next epoch. `over`: it answers again, or the epoch's run has begun.
  void NoteOutage(DumpFeed* feed, bool over = false);
  // Its channel was released to another tool: nothing arrives until the next epoch.
  void NoteReleased(DumpFeed* feed);
  // Lost before it reached us, in order with what is pushed; records 0 = unknown.
  void NoteLostBefore(DumpFeed* feed, const ManifestLoss& what);
  // Its channel's stop has failed: what the driver still holds of it is out of reach.
  void NoteUnfetched(DumpFeed* feed);
  // Changes the manifest on the writer thread, in order with the blocks.
  // The devices' clocks at the start, by device; before the first block (see SessionDump::SetClocks).
  void SetClocks(std::map<int, std::optional<DumpClocks>> clocks);
  void EditManifest(std::function<void(Manifest&)> edit);
  // A device the session takes while it runs (SessionDump::AddDevice), with its clocks.
  void AddDevice(SessionDumpOptions::Device device, ManifestDevice described, SampleOptions sample);
  void BeginProcessFiles(ManifestProcessFiles facts, std::function<void(Result<UniqueFd>)> done) override;
  Status ReserveForFiles(uint64_t bytes, int64_t until_steady_ns) override;
  void EndProcessFiles(ManifestProcessFiles facts, uint64_t unused, std::vector<ProcessFile> files) override;
  // Where these are at last; after Finish.
  std::vector<ManifestProcessFiles> process_files() const;
  // Completes the dump; `done` runs on the writer thread with the first error there was. Where the end could not
  // be written, `unended` is then what the manifest would have contained.
  void Finish(EndFacts end, std::function<void(Manifest&)> last_edit,
              std::function<void(const Status&)> done);

  const std::optional<Manifest>& unended() const { return unended_; }

  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  // Records that were written and removed again, of which so many because the volume was nearly full; the others for
  // the limit of the dump.
  struct Removed {
    uint64_t records = 0;
    uint64_t for_space = 0;
  };
  Removed removed() const { return {removed_records_.load(std::memory_order_relaxed), removed_for_space_.load(std::memory_order_relaxed)}; }
  // What of it waits to be written; thinned channels will write less.
  uint64_t queued_bytes() const { return queued_data_.load(std::memory_order_relaxed); }
  // First error of writing (disk full, limit reached, ...); ok while all is well.
  Status health() const;
  // Every feed there is, for outcomes.
  void VisitFeeds(const std::function<void(const DumpFeed&)>& visit) const;

 private:
  friend class DumpWriter;
  explicit WriterSession(DumpWriter& writer) : writer_(writer) {}
  // False: no space for the block in the queue; its contents are counted as lost.
  bool Reserve(DumpFeed* feed, const BlockRef& block);
  // Writer thread:
  void Write(DumpFeed& feed, const BlockInfo& info, std::span<const std::byte> bytes);
  void WriteTextRecords(DumpFeed& feed, std::string_view text);
  Status AppendText(DumpFeed& feed, std::string_view file, std::string_view lines,
                    const SessionDump::Batch& batch);
  Status AppendHostText(DumpFeed& feed, std::string_view file, std::string_view lines,
                        const SessionDump::Batch& batch);
  void CountAged();
  void WriteChannel(DumpFeed& feed, const BlockInfo& info, std::span<const std::byte> bytes);
  void MakeFilter(DumpFeed& feed, int64_t now_ns);
  void WriteReplayed(DumpFeed& feed, const ReplayBlock& block);
  void NoteEvicted(int64_t now_ns);
  static std::string_view Renumber(DumpFeed& feed, std::string_view file, std::string_view lines);
  // The first error stays.
  void SetHealth(const Status& status);
  void Fail(const Status& status, DumpFeed& feed, uint64_t bytes, uint64_t records);
  void LeaveOut(const Status& status, DumpFeed& feed, uint64_t bytes);
  // What the driver left out shows in the timestamps only.
  void FindGaps(DumpFeed& feed, std::span<const std::byte> bytes, int64_t host_ns);
  void FindGapsOfSums(DumpFeed& feed, std::span<const std::byte> bytes, int64_t host_ns);
  void ResyncGaps(DumpFeed& feed, int64_t host_ns);
  void FinishGaps(DumpFeed& feed, int64_t host_ns);
  void EndRun(DumpFeed& feed);
  void NoteMissingOfSums(DumpFeed& feed, int64_t host_ns);
  void NoteMissing(DumpFeed& feed, int64_t host_ns);
  // Brings losses and counts of all feeds into the manifest.
  void UpdateManifest(int64_t host_ns);
  static ManifestLoss WriteErrorsOf(const ManifestChannel& channel);
  void CountGivenUp(const std::vector<ManifestLoss>& before);
  ManifestChannel& ManifestOf(const DumpFeed& feed);
  // Of the feed, in the manifest of the dump.
  LossLedger::Place PlaceOf(const DumpFeed& feed) { return {ManifestOf(feed), *dump_}; }

  DumpWriter& writer_;
  std::unique_ptr<SessionDump> dump_;  // writer thread
  size_t planned_files_ = 0;           // descriptors it will have
  mutable Mutex mutex_;
  std::vector<std::unique_ptr<DumpFeed>> feeds_ GUARDED_BY(mutex_);
  Status health_ GUARDED_BY(mutex_);
  std::vector<ManifestProcessFiles> process_files_ GUARDED_BY(mutex_);
  std::optional<Manifest> unended_;  // set before Finish is done, not changed afterwards
  std::atomic<uint64_t> queued_bytes_{0};  // of memory: full blocks, not what is used of them
  std::atomic<uint64_t> queued_data_{0};   // in them
  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint64_t> queue_limit_{0};
  std::atomic<uint64_t> removed_records_{0};
  std::atomic<uint64_t> removed_for_space_{0};
};

}  // namespace profd
