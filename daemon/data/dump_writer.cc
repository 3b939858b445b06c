#include "daemon/data/dump_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/fd.h"
#include "daemon/data/host_file_buffer.h"
#include "daemon/metrics/self_metrics.h"

namespace profd {
namespace {

// The queue is looked at five times per flush interval, within these bounds, even without a request for
// it: blocks are pushed without waking the thread, which makes pushing cheap and writing batched.
constexpr int64_t kLeastBatchNs = 50 * kNsPerMs;
constexpr int64_t kMostBatchNs = 200 * kNsPerMs;
constexpr int64_t kBatchesPerFlush = 5;
constexpr int64_t kFreeCheckNs = kNsPerSecond;
// So much is written at most without a look at the volume's free space.
constexpr uint64_t kSpaceCheckBytes = 4 << 20;

// What a session may take at once, buffers and threads' stacks included; with less it is not begun.
constexpr uint64_t kSessionMemory = 96 << 20;

// Descriptors that are left for connections, processes that attach, and files that are open for a moment.
constexpr size_t kKeptDescriptors = 24;
// Of a dump besides its data files: its directories, journal, marks, and the manifest while it is replaced.
constexpr size_t kDumpDescriptors = 8;

// How many descriptors a dump beside `others` may keep for files of which there may be thousands:
// opening one anew for every write, and having it synced when it is given back, costs more than
// writing. `least`: what it may keep if so many are free.
size_t DescriptorsForFiles(size_t least, size_t others, size_t limit, size_t free) {
  constexpr size_t kMost = 1024;
  constexpr size_t kShareOfLimit = 16;
  const size_t wanted = std::max(least, std::min(kMost, limit / (kShareOfLimit * (others + 1))));
  return std::clamp<size_t>(free / 2, 1, wanted);
}

size_t OpenDescriptors(size_t limit) {
  size_t count = 0;
  for (size_t fd = 0; fd < limit; ++fd) count += ::fcntl(static_cast<int>(fd), F_GETFD) != -1 ? 1 : 0;
  return count;
}

}  // namespace

DumpWriter::DumpWriter(DumpRoot root, const Clock& clock, BlockPool& pool, const Options& options)
    : root_(std::move(root)), clock_(clock), pool_(pool), options_(options) {
  free_bytes_.store(root_.FreeBytes().value_or(0), std::memory_order_relaxed);
  size_bytes_.store(root_.SizeBytes().value_or(0), std::memory_order_relaxed);
  sync_interval_ns_ = options.sync_interval_ns;
  thread_ = std::thread([this] {
    ::pthread_setname_np(::pthread_self(), "profd-writer");
    Run();
  });
}

DumpWriter::~DumpWriter() { Stop(); }

void DumpWriter::Stop() {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(mutex_);
    stop_ = true;
  }
  wake_.NotifyOne();
  thread_.join();
}

void DumpWriter::SetOptions(const Options& options) {
  Post([this, options] {
    {
      MutexLock lock(mutex_);
      options_ = options;
    }
    sync_interval_ns_ = options.sync_interval_ns;
    for (const auto& session : live_) session->queue_limit_ = options.queue_bytes;
  });
}

DumpWriter::Options DumpWriter::OptionsNow() {
  MutexLock lock(mutex_);
  return options_;
}

void DumpWriter::Push(Item item, bool wake) {
  {
    MutexLock lock(mutex_);
    queue_.push_back(std::move(item));
    woken_ = woken_ || wake;
  }
  if (wake) wake_.NotifyOne();
}

void DumpWriter::Post(std::function<void()> task) {
  Item item;
  item.task = std::move(task);
  Push(std::move(item), true);
}

std::shared_ptr<WriterSession> DumpWriter::Open(
    SessionDumpOptions options, size_t files,
    std::function<void(const Result<std::string>&)> done) {
  auto session = std::shared_ptr<WriterSession>(new WriterSession(*this));
  session->queue_limit_ = OptionsNow().queue_bytes;
  Post([this, session, files, options = std::move(options), done = std::move(done)]() mutable {
    Status ready = FindRoot();
    if (ready.ok()) ready = CheckFreeSpace();
    if (ready.ok()) ready = CheckMemory();
    session->planned_files_ = files + kDumpDescriptors + 2 * options.devices.size();
    if (ready.ok()) ready = PlanFiles(session->planned_files_, &options);
    options.clock = &clock_;
    options.sync = &sync_;
    options.sync_while_running = sync_interval_ns_ > 0;
    if (!ready.ok()) {
      done(ready);
      return;
    }
    auto dump = SessionDump::Create(root_, std::move(options));
    if (!dump.ok()) {
      done(dump.status());
      return;
    }
    session->dump_ = std::move(dump).value();
    session->bytes_ = session->dump_->bytes_written();
    live_.push_back(session);
    done(session->dump_->path());
  });
  return session;
}

// A folder that was removed underneath is made again; one that is now mounted over is followed.
Status DumpWriter::FindRoot() {
  if (root_.InPlace()) return {};
  RETURN_IF_ERROR(root_.CheckMounted());
  Result<DumpRoot> again = DumpRoot::Open(root_.path());
  if (!again.ok()) {
    return FailedPrecondition(fmt::format("the dump root is missing: {}; put it right, or set dump.root to another folder and "
                                          "restart profd", again.status().message()));
  }
  root_ = std::move(again).value();
  return {};
}

// What runs already may open all it was planned with.
Status DumpWriter::PlanFiles(size_t needed, SessionDumpOptions* options) const {
  struct rlimit allowed = {};
  if (::getrlimit(RLIMIT_NOFILE, &allowed) != 0) return {};
  const auto limit = static_cast<size_t>(std::min<rlim_t>(allowed.rlim_cur, 1u << 16));
  size_t taken = OpenDescriptors(limit) + kKeptDescriptors;
  for (const auto& session : live_) {
    if (session->dump_ == nullptr) continue;
    const size_t open = session->dump_->open_fds();
    taken += std::max(session->planned_files_, open) - open;
  }
  const size_t free = limit - std::min(limit, taken);
  if (free < needed) {
    return ResourceExhausted(fmt::format(
        "too few file descriptors: this session needs {} at once, and of the {} that profd may have {} are free beside "
        "those kept for connections; raise the limit (LimitNOFILE= of profd.service, ulimit -n), stop a session, or "
        "record less",
        needed, limit, free));
  }
  options->max_dynamic_fds =
      DescriptorsForFiles(options->max_dynamic_fds, live_.size(), limit, free - needed);
  return {};
}

// Only a limit of the address space is known beforehand.
Status DumpWriter::CheckMemory() {
  struct rlimit allowed = {};
  if (::getrlimit(RLIMIT_AS, &allowed) != 0 || allowed.rlim_cur == RLIM_INFINITY) return {};
  void* probe = ::mmap(nullptr, kSessionMemory, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (probe != MAP_FAILED) {
    ::munmap(probe, kSessionMemory);
    return {};
  }
  return ResourceExhausted(fmt::format(
      "too little memory for another session: profd's address space is limited to {} MB (ulimit -v), and less than the {} "
      "MB that a session may need are left; raise the limit or stop a session",
      allowed.rlim_cur >> 20, kSessionMemory >> 20));
}

Status DumpWriter::CheckFreeSpace() {
  const uint64_t min_free = OptionsNow().min_free_bytes;
  RETURN_IF_ERROR(root_.CheckWritable());
  Result<uint64_t> free = root_.FreeBytes();
  if (!free.ok()) return free.status();
  free_bytes_.store(*free, std::memory_order_relaxed);
  size_bytes_.store(root_.SizeBytes().value_or(0), std::memory_order_relaxed);
  if (*free >= min_free) return {};
  return ResourceExhausted("dump volume full: " + std::to_string(*free >> 20) + " MB free, " +
                           std::to_string(min_free >> 20) + " MB needed (dump.min_free_mb)");
}

void DumpWriter::Process(Item& item) {
  if (item.feed == nullptr) {
    item.task();
    return;
  }
  size_t footprint = item.block.footprint();
  item.session->Write(*item.feed, item.block.info(), item.block.bytes());
  item.session->queued_bytes_.fetch_sub(footprint, std::memory_order_relaxed);
  item.session->queued_data_.fetch_sub(item.block.bytes().size(), std::memory_order_relaxed);
  queued_bytes_.fetch_sub(footprint, std::memory_order_relaxed);
}

uint64_t DumpWriter::BytesToFree(uint64_t free, uint64_t min_free, uint64_t written) {
  if (min_free == 0) return 0;
  const uint64_t wanted = min_free + std::min(written, kSpaceCheckBytes);
  return wanted - std::min(wanted, free);
}

// Less free than there must be: the oldest slices of all users go; then the sessions end.
Status DumpWriter::FreeDiskSpace() {
  Status space = CheckFreeSpace();
  const uint64_t written = written_bytes_.load(std::memory_order_relaxed);
  const uint64_t since_last = written - std::exchange(written_at_free_, written);
  if (live_.empty() || !root_.CheckWritable().ok()) return space;
  const uint64_t free = free_bytes_.load(std::memory_order_relaxed);
  const uint64_t min_free = OptionsNow().min_free_bytes;
  const uint64_t missing = BytesToFree(free, min_free, since_last);
  if (missing == 0) return {};
  uint64_t freed = 0;
  while (freed < missing) {
    SessionDump* oldest = nullptr;
    for (const auto& session : live_) {
      SessionDump* dump = session->dump_.get();
      if (dump == nullptr || dump->closed().OldestNs() == 0) continue;
      if (oldest == nullptr || dump->closed().OldestNs() < oldest->closed().OldestNs()) oldest = dump;
    }
    if (oldest == nullptr) break;
    freed += oldest->closed().AgeFor(1);
  }
  // The space of a file that is just being synced is free a little later.
  if (freed >= missing) return {};
  // What is open now may go at the next look, when something has come after it.
  bool cut = false;
  for (const auto& session : live_) {
    if (session->dump_ != nullptr) cut = session->dump_->space().CutAll() || cut;
  }
  return cut || free + freed >= min_free ? Status() : space;
}

void DumpWriter::Flush(std::function<void()> done) {
  Post([this, done = std::move(done)] {
    FlushAll(true);
    done();
  });
}

void DumpWriter::FlushAll(bool sync) {
  Status space = FreeDiskSpace();
  // Open files still exist, but cannot be found by their path any more.
  const Status mounted = live_.empty() || root_.InPlace() ? Status() : root_.CheckMounted();
  for (const auto& session : live_) {
    if (session->dump_ == nullptr) continue;
    // Before what followed them reaches the disk.
    session->UpdateManifest(clock_.MonotonicRawNs());
    Status status = session->dump_->Flush();
    if (sync) session->dump_->Sync();
    if (!mounted.ok()) status = mounted;
    if (status.ok()) status = space;
    // As late as it is now: the disk may have taken its time, and losses have gone on meanwhile.
    session->UpdateManifest(clock_.MonotonicRawNs());
    session->CountAged();
    Status written = session->dump_->WriteManifestIfDue();
    if (status.ok()) status = written;
    session->SetHealth(status);
  }
}

void DumpWriter::Run() {
  std::vector<Item> batch;
  int64_t next_flush = clock_.SteadyNs();
  int64_t next_sync = next_flush + sync_interval_ns_;
  uint64_t written_at_look = 0;
  for (;;) {
    bool stopping = false;
    int64_t flush_interval = kFreeCheckNs;
    {
      MutexLock lock(mutex_);
      // Without a dump only tasks come, and they wake.
      const int64_t batch_ns =
          std::clamp(options_.flush_interval_ns / kBatchesPerFlush, kLeastBatchNs, kMostBatchNs);
      std::chrono::nanoseconds pause(live_.empty() ? kFreeCheckNs : batch_ns);
      if (stop_ && queue_.empty()) {
        // The sync thread still has something to say.
        wake_.WaitFor(lock, std::chrono::nanoseconds(kNsPerMs));
      } else {
        wake_.WaitFor(lock, pause, [this]() REQUIRES(mutex_) { return woken_ || stop_; });
      }
      woken_ = false;
      batch.swap(queue_);
      stopping = stop_;
      flush_interval = options_.flush_interval_ns;
    }
    for (Item& item : batch) Process(item);
    bool idle = batch.empty();
    batch.clear();
    int64_t now = clock_.SteadyNs();
    const uint64_t written = written_bytes_.load(std::memory_order_relaxed);
    if (now >= next_flush || written - written_at_look > kSpaceCheckBytes) {
      const bool due = now >= next_flush;
      const bool sync = due && sync_interval_ns_ > 0 && now >= next_sync;
      if (due || !FreeDiskSpace().ok()) FlushAll(sync);
      if (due) next_flush = now + flush_interval;
      if (sync) next_sync = now + sync_interval_ns_;
      written_at_look = written;
    }
    if (!stopping || !idle || !sync_.idle()) continue;
    MutexLock lock(mutex_);
    if (queue_.empty()) return;
  }
}

void DumpWriter::UpdateMetrics(SelfMetrics* self) const {
  constexpr MetricId kDropped = MetricByName("profd_dump_dropped_bytes_total");
  constexpr MetricId kMissing = MetricByName("profd_dump_missing_records_total");
  self->Set(MetricByName("profd_dump_bytes_total"), written_bytes_.load());
  self->Set(kDropped, dropped_full_.load(), ToString(LossReason::kQueueFull));
  self->Set(kDropped, dropped_error_.load(), ToString(LossReason::kWriteError));
  self->Set(kMissing, missing_driver_.load(), ToString(LossReason::kDriver));
  self->Set(kMissing, missing_late_.load(), ToString(LossReason::kLate));
  self->Set(kMissing, missing_left_out_.load(), ToString(LossReason::kOverBudget));
  {
    MutexLock lock(aged_mutex_);
    for (const auto& [collector, records] : aged_records_) self->Set(MetricByName("profd_dump_aged_records_total"), records, collector);
  }
  self->Set(MetricByName("profd_dump_queue_bytes"), queued_bytes_.load());
  self->Set(MetricByName("profd_dump_free_bytes"), free_bytes());
  if (const uint64_t size = size_bytes_.load(); size > 0) self->Set(MetricByName("profd_dump_volume_bytes"), size);
}

}  // namespace profd
