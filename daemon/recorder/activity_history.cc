#include "daemon/recorder/activity_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace profd {
namespace {

using attach::ActivityType;
using attach::CollectState;
using attach::FrameHead;
using attach::NameHead;

// Leaves at once; also what the writer takes before other sessions get their turn.
constexpr size_t kBlockBytes = size_t{256} << 10;
constexpr size_t kTurnBatches = (size_t{1} << 20) / kBlockBytes;
// What an id costs by itself.
constexpr size_t kNameBytes = sizeof(std::string);

// In front of a block's frames.
struct BlockHead {
  uint64_t dropped = 0;  // by the process's count, before these
};

attach::CollectKinds KindsOf(std::string_view level) {
  using enum attach::CollectKind;
  if (level == "l0") return {kKernel, kCommunication};
  return {kKernel, kCommunication, kNodeApi, kMarker, kMemory};
}

bool IsKept(ActivityType type) {
  switch (type) {
    case ActivityType::kKernel:
    case ActivityType::kCommunication:
    case ActivityType::kApi:
    case ActivityType::kMarker:
    case ActivityType::kMemory:
    case ActivityType::kLoss:
      return true;
    default:  // names are kept with their process
      return false;
  }
}

template <class T>
void Put(const T& value, std::vector<std::byte>* out) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  out->insert(out->end(), bytes.begin(), bytes.end());
}

}  // namespace

Result<std::unique_ptr<ActivityHistory>> ActivityHistory::Create(const RecorderRing::Options& options,
                                                                 std::string_view level, int64_t now_ns) {
  Result<std::shared_ptr<RecorderRing>> ring = RecorderRing::Create(options, now_ns);
  if (!ring.ok()) return ring.status();
  return std::unique_ptr<ActivityHistory>(new ActivityHistory(std::move(ring).value(), level, options.max_age_ns));
}

ActivityHistory::ActivityHistory(std::shared_ptr<RecorderRing> ring, std::string_view level, int64_t max_age_ns)
    : ring_(std::move(ring)),
      route_(ring_->AddRoute(false)),
      block_bytes_(std::min(kBlockBytes, ring_->stats().max_bytes / 4)),
      max_age_ns_(max_age_ns),
      kinds_(KindsOf(level)) {
  block_.reserve(block_bytes_);
}

attach::SessionNotice ActivityHistory::Notice() const {
  attach::SessionNotice notice;
  notice.session_id = kRecorderSession;
  notice.state = attach::kRecording;
  attach::CollectRequest& request = notice.collect.emplace();
  request.kinds = kinds_;
  request.flush_ms = kFlushMs;
  request.provider = attach::CollectProvider::kMspti;
  return notice;
}

bool ActivityHistory::Join(const TrainingProcess& process) {
  if (process.job_id.empty() || processes_.size() >= kMaxProcesses) return false;
  processes_[process.attach_id].facts = process;
  return true;
}

bool ActivityHistory::Process::collects() const {
  return gone_ns == 0 && report && (report->state == CollectState::kOn || report->state == CollectState::kPartial ||
                                    report->state == CollectState::kSilent);
}

ManifestProcess ActivityHistory::Process::Describe() const {
  ManifestProcess out{facts.pid, facts.rank, gone_ns == 0, facts.devices, facts.command};
  if (!report) return out;
  out.provider = WordOf(report->provider);
  out.collector_state = gone_ns == 0 ? WordOf(report->state) : "ended";
  out.collector_detail = report->detail;
  out.collector_version = report->version;
  return out;
}

void ActivityHistory::OnReport(uint64_t attach_id, const attach::CollectorReport& report, int64_t now_ns) {
  const auto found = processes_.find(attach_id);
  if (found == processes_.end() || report.session_id != kRecorderSession) return;
  Process& process = found->second;
  const bool collected = process.collects();
  process.report = report;
  // The application forbids it: from the start on, nothing is missing.
  const bool refuses = report.state == CollectState::kOff && !report.detail.empty();
  if (!refuses || collected) Follow(&process, {LossReason::kProfilerBusy, std::nullopt, now_ns, 0}, refuses || report.state == CollectState::kBusy);
  kinds_.ForEach([&](attach::CollectKind kind) {
    Follow(&process, {LossReason::kOverBudget, kind, now_ns, 0}, report.left_out.Has(kind));
  });
}

// `one`: what begins or ends now.
void ActivityHistory::Follow(Process* process, const MissingTime& one, bool is_missing) {
  const auto is_same = [&one](const MissingTime& other) { return other.reason == one.reason && other.kind == one.kind; };
  const auto last = std::find_if(process->missing.rbegin(), process->missing.rend(), is_same);
  const bool was_missing = last != process->missing.rend() && last->to_ns == 0;
  if (is_missing == was_missing) return;
  if (!is_missing) {
    last->to_ns = one.from_ns;
  } else if (static_cast<size_t>(std::ranges::count_if(process->missing, is_same)) < kMaxMissing) {
    process->missing.push_back(one);
  } else {
    last->to_ns = 0;
  }
}

void ActivityHistory::OnGone(uint64_t attach_id, bool in_good_order, int64_t now_ns) {
  const auto found = processes_.find(attach_id);
  if (found == processes_.end()) return;
  Process& process = found->second;
  process.in_good_order = in_good_order || !process.collects();
  process.gone_ns = now_ns;
  for (MissingTime& missing : process.missing) {
    if (missing.to_ns == 0) missing.to_ns = now_ns;
  }
}

void ActivityHistory::LearnName(Process* process, uint32_t id, std::string_view text) {
  const size_t bytes = text.size() + kNameBytes;
  if (names_bytes_ + bytes > kMaxNamesBytes || !process->names.Learn(id, text).ok()) {
    ++names_refused_;
    return;
  }
  names_bytes_ += bytes;
  process->names_bytes += bytes;
}

// The reader has checked the frame.
void ActivityHistory::Learn(Process* process, const ActivityFrame& frame) {
  std::span<const std::byte> rest = frame.records;
  for (uint16_t i = 0; i < frame.count && rest.size() >= sizeof(NameHead); ++i) {
    NameHead head{};
    std::memcpy(&head, rest.data(), sizeof head);
    const size_t bytes = sizeof head + attach::AlignedUp8(head.bytes);
    if (bytes > rest.size()) return;
    if (process->names.Find(head.id).empty()) {
      LearnName(process, head.id, {reinterpret_cast<const char*>(rest.data()) + sizeof head, head.bytes});
    }
    rest = rest.subspan(bytes);
  }
}

void ActivityHistory::Append(uint64_t attach_id, uint64_t records, int64_t now_ns) {
  BlockInfo info{.seq = attach_id, .records = static_cast<uint32_t>(records), .host_ns = now_ns};
  ring_->Append(route_, info, block_);
  block_.clear();
}

void ActivityHistory::Take(const ActivityBatch& batch, int64_t now_ns) {
  const auto found = processes_.find(batch.attach_id);
  if (found == processes_.end()) return;
  block_.clear();
  Put(BlockHead{batch.dropped}, &block_);
  uint64_t records = 0;
  for (const ActivityFrame& frame : batch.frames) {
    if (frame.type == ActivityType::kNames) Learn(&found->second, frame);
    if (!IsKept(frame.type)) continue;
    const FrameHead head{static_cast<uint32_t>(sizeof(FrameHead) + frame.records.size()),
                         static_cast<uint16_t>(frame.type), frame.count, frame.base_ns};
    if (block_.size() + head.length > block_bytes_) {
      Append(batch.attach_id, std::exchange(records, 0), now_ns);
      Put(BlockHead{}, &block_);
    }
    Put(head, &block_);
    block_.insert(block_.end(), frame.records.begin(), frame.records.end());
    records += frame.count;
  }
  if (block_.size() == sizeof(BlockHead) && batch.dropped == 0) return;
  Append(batch.attach_id, records, now_ns);
  found->second.last_ns = now_ns;
}

void ActivityHistory::Expire(int64_t now_ns) {
  ring_->Expire(now_ns);
  const int64_t held_from = ring_->stats().complete_from_ns;
  const int64_t missing_from = std::max(held_from, now_ns - max_age_ns_);
  for (auto& [id, process] : processes_) {
    std::erase_if(process.missing, [missing_from](const MissingTime& one) { return one.to_ns != 0 && one.to_ns <= missing_from; });
  }
  std::erase_if(processes_, [&](const auto& entry) {
    const Process& process = entry.second;
    if (process.gone_ns == 0 || process.last_ns > held_from || !process.missing.empty()) return false;
    names_bytes_ -= process.names_bytes;
    return true;
  });
}

ActivityHistory::Past ActivityHistory::Read(int64_t from_ns,
                                            const std::function<bool(const TrainingProcess&)>& wanted,
                                            int64_t now_ns) const {
  Past past;
  past.read_ns = now_ns;
  for (const auto& [id, process] : processes_) {
    const bool over = process.gone_ns != 0 && process.gone_ns < from_ns;
    if (!over && wanted(process.facts)) past.processes.emplace(id, process);
  }
  past.blocks = ring_->Read(route_, from_ns);
  past.held_from_ns = ring_->stats().complete_from_ns;
  return past;
}

size_t ActivityHistory::collecting() const {
  return static_cast<size_t>(std::ranges::count_if(processes_, [](const auto& entry) { return entry.second.collects(); }));
}

std::string ActivityHistory::Problem() const {
  size_t here = 0;
  size_t idle = 0;
  std::string first;
  for (const auto& [id, process] : processes_) {
    if (process.gone_ns != 0) continue;
    ++here;
    if (process.collects() || ++idle > 1) continue;
    first = fmt::format("process {}: ", process.facts.pid);
    if (!process.report) {
      first += "has not answered yet";
    } else {
      first += fmt::format("{}{}{}", WordOf(process.report->state), process.report->detail.empty() ? "" : ": ", process.report->detail);
    }
  }
  if (idle == 0 || here == 1) return first;  // without a process there is nothing to deliver
  return fmt::format("{} of {} processes do not collect: {}", idle, here, first);
}

ActivityPast::ActivityPast(ActivityHistory::Past past) : past_(std::make_shared<const ActivityHistory::Past>(std::move(past))) {}

std::vector<MissingTime> ActivityPast::Missing() const {
  std::vector<MissingTime> all;
  for (const auto& [id, process] : past_->processes) all.insert(all.end(), process.missing.begin(), process.missing.end());
  for (MissingTime& one : all) {
    if (one.to_ns == 0) one.to_ns = past_->read_ns;
  }
  if (evicted_) all.push_back(*evicted_);
  return all;
}

const ActivityBatch* ActivityPast::Next() {
  ReplayBlock block;
  while (past_->blocks != nullptr && past_->blocks->Next(&block)) {
    if (block.after_loss) NoteEvicted(block.info.host_ns);
    last_ns_ = block.info.host_ns;
    if (Parse(block)) return &batch_;
  }
  if (past_->blocks != nullptr && past_->blocks->lost_end()) NoteEvicted(past_->read_ns);
  return nullptr;
}

void ActivityPast::NoteEvicted(int64_t until_ns) {
  if (!evicted_) evicted_ = {LossReason::kRecorderEvicted, std::nullopt, std::max(last_ns_, past_->held_from_ns), 0};
  evicted_->to_ns = until_ns;
}

bool ActivityPast::Parse(const ReplayBlock& block) {
  const auto process = past_->processes.find(block.info.seq);
  if (process == past_->processes.end() || block.bytes.size() < sizeof(BlockHead)) return false;
  BlockHead about;
  std::memcpy(&about, block.bytes.data(), sizeof about);
  frames_.clear();
  for (std::span<const std::byte> rest = block.bytes.subspan(sizeof about); !rest.empty();) {
    FrameHead head{};
    std::memcpy(&head, rest.data(), sizeof head);
    ActivityFrame& frame = frames_.emplace_back();
    frame.type = static_cast<ActivityType>(head.type);
    frame.count = head.count;
    frame.base_ns = head.base_ns;
    frame.records = rest.subspan(sizeof head, head.length - sizeof head);
    rest = rest.subspan(head.length);
  }
  batch_ = {};
  batch_.attach_id = process->first;
  batch_.pid = process->second.facts.pid;
  batch_.rank = process->second.facts.rank;
  batch_.frames = frames_;
  batch_.names = std::shared_ptr<const ActivityNameTable>(past_, &process->second.names);
  batch_.dropped = about.dropped;
  return true;
}

ActivityReplay::ActivityReplay(std::shared_ptr<WriterSession> dump, attach::CollectKinds kinds,
                               ActivityHistory::Past past, int64_t start_ns, int64_t end_ns)
    : activity_(std::move(dump), kinds, start_ns), past_(std::move(past)), end_ns_(end_ns) {
  activity_.SetEnd(end_ns);
}

void ActivityReplay::Run(DumpWriter& writer, std::function<void()> done) {
  writer.Post([self = shared_from_this(), &writer, done = std::move(done)]() mutable {
    for (size_t batches = 0; batches < kTurnBatches; ++batches) {
      const ActivityBatch* const batch = self->past_.Next();
      if (batch == nullptr) {
        self->End();
        done();
        return;
      }
      self->activity_.Take(*batch);
    }
    self->Run(writer, std::move(done));
  });
}

void ActivityReplay::End() {
  for (const MissingTime& missing : past_.Missing()) activity_.AddMissing(missing);
  for (const auto& [id, process] : past_.processes()) {
    if (process.gone_ns != 0) activity_.OnGone(id, process.in_good_order, process.gone_ns);
  }
  activity_.End(end_ns_);
}

}  // namespace profd
