#include "collectors/proc/process_tracker.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "base/text.h"

namespace profd {
namespace {

constexpr int64_t kScanPeriodNs = kNsPerSecond;
// Of one tracker; a daemon has two per session that watches processes, and needs descriptors for
// other things as well.
constexpr size_t kMaxKeptFiles = 2048;
constexpr size_t kKeptShareOfLimit = 16;
// Bounds the table of a node that is full of processes that no session requested.
constexpr size_t kMaxKnown = 65536;
// A launcher forks and then executes: the first look may still see the launcher's environment and
// name, one a second later does not.
constexpr uint8_t kLooks = 2;
constexpr size_t kVerifiedPerScan = 64;
// Children have higher numbers than their parents except where numbers wrapped around, so one or
// two passes do; the rest of a chain made to be long waits for the next scan.
constexpr int kDescentPasses = 8;

constexpr std::array<std::string_view, 6> kJobVariables = {
    "PROFD_JOB_ID", "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID", "MA_JOB_ID"};

size_t KeptFilesLimit() {
  struct rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return std::min<size_t>(kMaxKeptFiles, static_cast<size_t>(limit.rlim_cur / kKeptShareOfLimit));
}

// The numbers among the names in a folder, ascending.
Status ListNumbers(const RootedFs& proc, std::string_view folder, std::vector<int>* numbers) {
  numbers->clear();
  Status status = proc.Visit(folder, [numbers](std::string_view name) {
    int number = 0;
    if (ParseNumber(name, &number) && number > 0) numbers->push_back(number);
  });
  std::ranges::sort(*numbers);
  return status;
}

}  // namespace

ProcessTracker::ProcessTracker(const RootedFs& proc, ProcessScope scope, Options options)
    : proc_(&proc),
      scope_(std::move(scope)),
      options_(options),
      pace_(kScanPeriodNs),
      clock_(proc) {
  if (options_.max_kept_files == 0) options_.max_kept_files = KeptFilesLimit();
  std::ranges::sort(scope_.pids);
}

Status ProcessTracker::Refresh(int64_t due_ns) {
  if (scope_.empty()) return {};
  if (some_gone_) ForgetGone();
  if (!pace_.Due(due_ns)) return {};
  RETURN_IF_ERROR(ListPids());
  LookAtSome();
  ForgetGone();
  AddListed();
  SpreadToDescendants();
  UpdateTracked();
  Status findings = Findings();
  first_scan_ = false;
  return findings;
}

Status ProcessTracker::ListPids() {
  RETURN_IF_ERROR(ListNumbers(*proc_, "", &listed_));
  processes_left_out_ = 0;
  threads_left_out_ = 0;
  if (listed_.size() > kMaxKnown) {
    processes_left_out_ = listed_.size() - kMaxKnown;
    listed_.resize(kMaxKnown);
  }
  for (ListedProcess& known : known_) {
    if (!std::ranges::binary_search(listed_, known.pid)) known.gone = true;
  }
  return {};
}

void ProcessTracker::ForgetGone() {
  some_gone_ = false;
  auto gone = [](const ListedProcess& known) {
    return known.gone || (known.process != nullptr && known.process->gone);
  };
  if (std::ranges::none_of(known_, gone)) return;
  for (ListedProcess& known : known_) {
    if (gone(known) && known.process != nullptr) Release(*known.process);
  }
  std::erase_if(known_, gone);
  tracked_.clear();
  for (ListedProcess& known : known_) {
    if (known.process != nullptr) tracked_.push_back(known.process.get());
  }
}

void ProcessTracker::AddListed() {
  const size_t before = known_.size();
  size_t at = 0;
  for (int pid : listed_) {
    while (at < before && known_[at].pid < pid) ++at;
    if (at < before && known_[at].pid == pid) continue;
    ListedProcess known;
    known.pid = pid;
    Look(known);
    if (!known.gone) known_.push_back(std::move(known));
  }
  std::ranges::sort(known_, {}, &ListedProcess::pid);
}

// The second look at what is new, and a look at some of the watched ones: is that still the process
// we mean, and what is its name now?
void ProcessTracker::LookAtSome() {
  for (ListedProcess& known : known_) {
    if (!known.gone && known.looks < kLooks) Look(known);
  }
  if (known_.empty()) return;
  size_t verified = 0;
  for (size_t i = 0; i < known_.size() && verified < kVerifiedPerScan; ++i) {
    next_verified_ = (next_verified_ + 1) % known_.size();
    ListedProcess& known = known_[next_verified_];
    if (known.gone || known.process == nullptr) continue;
    if (RanSinceLook(known)) Look(known);
    ++verified;
  }
}

// What has not run is who it was, and has not changed its name. True where that is unknown.
bool ProcessTracker::RanSinceLook(ListedProcess& known) const {
  const int64_t ran_ns = clock_.usable() ? ProcessClock::Read(known.pid) : -1;
  const int64_t before = std::exchange(known.ran_ns, ran_ns);
  return ran_ns < 0 || ran_ns != before;
}

void ProcessTracker::Look(ListedProcess& known) {
  const bool again = known.looks > 0;
  const bool settled = known.looks >= kLooks;
  if (!settled) ++known.looks;
  const uint64_t start_before = known.start_ticks;
  if (!LookAtStat(known)) return;
  if (again && start_before != 0 && known.start_ticks != start_before) {
    // A successor under the same number, new in every respect.
    known.gone = true;
    return;
  }
  known.allowed = OwnerAllowed(known.pid);
  if (first_scan_ && std::ranges::binary_search(scope_.pids, known.pid)) {
    known.in_job = true;
  }
  if (!settled && !known.in_job && !scope_.job_id.empty() && known.allowed) {
    known.in_job = EnvironmentNamesJob(known.pid);
  }
}

bool ProcessTracker::LookAtStat(ListedProcess& known) {
  path_ = fmt::format("{}/stat", known.pid);
  TextFile file(*proc_, path_);
  Result<std::string_view> text = file.Read(scratch_);
  if (!text.ok()) {
    known.gone = text.status().code() == StatusCode::kNotFound;
    return false;
  }
  PidStat stat;
  if (!ParsePidStat(*text, &stat) || stat.pid != known.pid) return false;
  known.ppid = stat.ppid;
  known.start_ticks = stat.start_ticks;
  known.kernel_thread = stat.kernel_thread();
  if (known.comm != stat.comm) known.comm = stat.comm.substr(0, 256);
  return true;
}

bool ProcessTracker::OwnerAllowed(int pid) const {
  if (scope_.only_uid == UINT32_MAX) return true;
  Result<UniqueFd> folder = proc_->Open(fmt::format("{}", pid));
  struct stat facts = {};
  return folder.ok() && fstat(folder->get(), &facts) == 0 && facts.st_uid == scope_.only_uid;
}

bool ProcessTracker::EnvironmentNamesJob(int pid) {
  path_ = fmt::format("{}/environ", pid);
  TextFile file(*proc_, path_);
  Result<std::string_view> text = file.Read(scratch_);
  if (!text.ok()) return false;  // not ours to read, or gone: then it is not watched
  for (std::string_view rest = *text; !rest.empty();) {
    const size_t end = rest.find('\0');
    const std::string_view entry = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos || entry.substr(equals + 1) != scope_.job_id) continue;
    const std::string_view name = entry.substr(0, equals);
    if (std::ranges::find(kJobVariables, name) != kJobVariables.end()) {
      return true;
    }
  }
  return false;
}

ProcessTracker::ListedProcess* ProcessTracker::Find(int pid) {
  auto at = std::ranges::lower_bound(known_, pid, {}, &ListedProcess::pid);
  return at != known_.end() && at->pid == pid ? &*at : nullptr;
}

void ProcessTracker::SpreadToDescendants() {
  if (scope_.pids.empty() && scope_.job_id.empty()) return;
  for (int pass = 0; pass < kDescentPasses; ++pass) {
    bool changed = false;
    for (ListedProcess& known : known_) {
      if (known.in_job || known.ppid <= 0) continue;
      const ListedProcess* parent = Find(known.ppid);
      if (parent == nullptr || !parent->in_job) continue;
      known.in_job = true;
      changed = true;
    }
    if (!changed) return;
  }
}

void ProcessTracker::UpdateTracked() {
  size_t count = 0;
  for (ListedProcess& known : known_) {
    const bool wanted = known.allowed && (scope_.all || known.in_job);
    if (!wanted && known.process != nullptr) {  // became another user's: set-user-id execution
      Release(*known.process);
      known.process.reset();
    }
    if (known.process != nullptr) ++count;
  }
  tracked_.clear();
  for (ListedProcess& known : known_) {
    const bool wanted = known.allowed && (scope_.all || known.in_job);
    if (!wanted) continue;
    if (known.process == nullptr) {
      if (count >= options_.max_processes) {
        ++processes_left_out_;
        continue;
      }
      ++count;
      Track(known);
    }
    known.process->in_job = known.in_job;
    if (known.process->comm != known.comm) known.process->comm = known.comm;
    tracked_.push_back(known.process.get());
    if (options_.threads && known.in_job) RefreshThreads(*known.process);
  }
}

void ProcessTracker::Track(ListedProcess& known) {
  known.process = std::make_unique<TrackedProcess>();
  TrackedProcess& process = *known.process;
  process.pid = known.pid;
  process.start_ticks = known.start_ticks;
  process.kernel_thread = known.kernel_thread;
  process.file = KeepBelowLimit(fmt::format("{}/{}", known.pid, options_.file));
}

KeptFile ProcessTracker::KeepBelowLimit(std::string_view path) {
  if (kept_files_ >= options_.max_kept_files) return {};
  Result<KeptFile> file = proc_->Keep(path);
  if (!file.ok()) return {};
  ++kept_files_;
  return std::move(file).value();
}

void ProcessTracker::Release(TrackedProcess& process) {
  if (process.file.valid()) --kept_files_;
  for (TrackedThread& thread : process.threads) {
    if (thread.file.valid()) --kept_files_;
  }
  thread_count_ -= process.threads.size();
  process.threads.clear();
  process.file = KeptFile();
}

void ProcessTracker::RefreshThreads(TrackedProcess& process) {
  path_.clear();
  fmt::format_to(std::back_inserter(path_), "{}/task", process.pid);
  if (!ListNumbers(*proc_, path_, &tids_).ok()) return;
  const std::vector<int>& tids = tids_;
  thread_count_ -= process.threads.size();
  std::erase_if(process.threads, [&](const TrackedThread& thread) {
    const bool gone = thread.gone || !std::ranges::binary_search(tids, thread.tid);
    if (gone && thread.file.valid()) --kept_files_;
    return gone;
  });
  const size_t before = process.threads.size();
  size_t at = 0;
  for (int tid : tids) {
    while (at < before && process.threads[at].tid < tid) ++at;
    if (at < before && process.threads[at].tid == tid) continue;
    if (thread_count_ + process.threads.size() >= options_.max_threads) {
      ++threads_left_out_;
      continue;
    }
    process.threads.push_back(
        {tid, KeepBelowLimit(fmt::format("{}/task/{}/stat", process.pid, tid)), false});
  }
  thread_count_ += process.threads.size();
  std::ranges::sort(process.threads, {}, &TrackedThread::tid);
}

Status ProcessTracker::Findings() {
  if (first_scan_) {
    std::string missing;
    for (int pid : scope_.pids) {
      const ListedProcess* known = Find(pid);
      if (known != nullptr && known->process != nullptr) continue;
      fmt::format_to(std::back_inserter(missing), "{}{}", missing.empty() ? "" : ", ", pid);
      if (missing.size() > 200) break;
    }
    if (!missing.empty()) return NotFound("no process to watch with pid " + missing);
  }
  if (processes_left_out_ > 0 && !processes_reported_) {
    processes_reported_ = true;
    return ResourceExhausted(fmt::format("{} processes are not measured: the limit is {}",
                                         processes_left_out_, options_.max_processes));
  }
  if (threads_left_out_ > 0 && !threads_reported_) {
    threads_reported_ = true;
    return ResourceExhausted(fmt::format("{} threads are not measured: the limit is {}",
                                         threads_left_out_, options_.max_threads));
  }
  return {};
}

template <class... Args>
Result<std::string_view> ProcessTracker::ReadAt(const KeptFile& kept, fmt::format_string<const Args&...> path,
                                                const Args&... args) {
  if (kept.valid()) return kept.Read({buffer_.data(), buffer_.size()});
  path_.clear();
  fmt::format_to(std::back_inserter(path_), path, args...);
  Result<size_t> size = proc_->ReadInto(path_, {buffer_.data(), buffer_.size()});
  if (!size.ok()) return size.status();
  return std::string_view(buffer_.data(), *size);
}

Result<std::string_view> ProcessTracker::Read(TrackedProcess& process) {
  Result<std::string_view> text = ReadAt(process.file, "{}/{}", process.pid, options_.file);
  if (!text.ok() && text.status().code() == StatusCode::kNotFound) MarkGone(process);
  return text;
}

Result<std::string_view> ProcessTracker::Read(const TrackedProcess& process,
                                              TrackedThread& thread) {
  Result<std::string_view> text = ReadAt(thread.file, "{}/task/{}/stat", process.pid, thread.tid);
  if (!text.ok() && text.status().code() == StatusCode::kNotFound) thread.gone = true;
  return text;
}

}  // namespace profd
