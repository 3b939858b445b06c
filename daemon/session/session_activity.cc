#include "daemon/session/session_activity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "daemon/session/session_feed.h"

namespace profd {
namespace {

using attach::ActivityType;

// Of a name beside its text, in the tables.
constexpr size_t kNameBytes = 128;

// Strings of one record's process, as numbers of the session.
class Ids {
 public:
  Ids(SessionNames* names, const ActivityBatch& batch)
      : names_(*names), process_(names->ProcessOf(batch.attach_id)), table_(*batch.names) {}
  uint32_t operator()(uint32_t ring_id) const {
    return ring_id == 0 ? 0 : names_.IdOf(process_, ring_id, table_);
  }

 private:
  SessionNames& names_;
  SessionNames::Process& process_;
  const ActivityNameTable& table_;
};

StoredKernel Stored(const attach::KernelRecord& r, int64_t start, uint32_t process, const Ids& id) {
  return {start,    DurationOf(r), r.correlation, r.stream,
          id(r.name), id(r.type), r.thread, process, r.device, r.logical_device};
}
StoredCommunication Stored(const attach::CommunicationRecord& r, int64_t start, uint32_t process,
                           const Ids& id) {
  return {start,    DurationOf(r),
          r.correlation, r.count, r.stream, id(r.name), id(r.communicator), id(r.algorithm),
          process,  r.bandwidth, r.device, r.logical_device, r.data_type, 0};
}
StoredApi Stored(const attach::ApiRecord& r, int64_t start, uint32_t process, const Ids& id) {
  return {start,    DurationOf(r), r.correlation, r.thread,
          id(r.name), process, r.level, 0};
}
StoredMarker Stored(const attach::MarkerRecord& r, int64_t start, uint32_t process, const Ids& id) {
  return {start,  r.id,     id(r.name), id(r.domain), r.thread, r.stream, process,
          r.flag, r.source, r.device,   r.logical_device, 0};
}
StoredMemory Stored(const attach::MemoryRecord& r, int64_t start, uint32_t process, const Ids&) {
  return {start,     DurationOf(r), r.correlation, r.bytes, r.address, r.stream, process,
          r.operation, r.is_async, r.detail, r.device, r.logical_device};
}

// By file.
constexpr std::array<ActivityType, kActivityFiles> kTypes = {ActivityType::kKernel, ActivityType::kCommunication, ActivityType::kApi,
                                                             ActivityType::kMarker, ActivityType::kMemory};
// The file of records of this type; nothing: of none, or of any.
std::optional<ActivityFileId> FileOfType(uint16_t type) {
  const auto* found = std::ranges::find(kTypes, static_cast<ActivityType>(type));
  if (found == kTypes.end()) return std::nullopt;
  return static_cast<ActivityFileId>(found - kTypes.begin());
}

// By kind; the level of calls.
struct KindRecords {
  ActivityFileId file;
  attach::ApiLevel level = attach::ApiLevel::kUnknown;
};
constexpr auto kKinds = std::to_array<KindRecords>({{ActivityFileId::kKernel},
                                                    {ActivityFileId::kCommunication},
                                                    {ActivityFileId::kApi, attach::ApiLevel::kAcl},
                                                    {ActivityFileId::kApi, attach::ApiLevel::kNode},
                                                    {ActivityFileId::kApi, attach::ApiLevel::kRuntime},
                                                    {ActivityFileId::kMarker},
                                                    {ActivityFileId::kMemory}});
static_assert(kKinds.size() == attach::kCollectKindWords.size());
constexpr const KindRecords& RecordsOf(attach::CollectKind kind) { return kKinds.at(static_cast<size_t>(kind)); }

}  // namespace

std::set<ActivityFileId> FilesOfKinds(attach::CollectKinds kinds) {
  std::set<ActivityFileId> files;
  kinds.ForEach([&files](attach::CollectKind kind) { files.insert(RecordsOf(kind).file); });
  return files;
}

uint32_t SessionNames::Assign(Process& process, uint32_t ring_id, const ActivityNameTable& names) {
  const std::string_view text = names.Find(ring_id);
  uint32_t id = 0;
  if (ring_id >= process.ids.size() && held_.Grow((ring_id + 1 - process.ids.size()) * sizeof(uint32_t))) {
    process.ids.resize(ring_id + 1, 0);
  }
  if (ring_id < process.ids.size()) {
    if (!text.empty()) {
      id = Add(text);
    } else if (last_ < kMaxNames && held_.Grow(kNameBytes)) {
      id = ++last_;
      process.nameless.insert(ring_id);
    }
  }
  if (id == 0) {
    ++refused_;
    return TooMany();
  }
  return process.ids[ring_id] = id;
}

void SessionNames::Forget(uint64_t attach_id) {
  const auto found = processes_.find(attach_id);
  if (found == processes_.end()) return;
  held_.Shrink(found->second.ids.size() * sizeof(uint32_t));
  processes_.erase(found);
}

uint32_t SessionNames::Add(std::string_view text) {
  if (const auto found = texts_.find(std::string(text)); found != texts_.end()) return found->second;
  if (last_ >= kMaxNames || bytes_ + text.size() > kMaxBytes || !held_.Grow(kNameBytes + text.size())) return 0;
  bytes_ += text.size();
  texts_.emplace(text, ++last_);
  fresh_.emplace_back(last_, text);
  return last_;
}

// Beside the limits: there is one.
uint32_t SessionNames::TooMany() {
  const auto [entry, is_new] = texts_.try_emplace(std::string(attach::kTooManyNames), last_ + 1);
  if (is_new) fresh_.emplace_back(++last_, attach::kTooManyNames);
  return entry->second;
}

void SessionNames::Learn(uint64_t attach_id, const ActivityNameTable& names) {
  const auto found = processes_.find(attach_id);
  if (found == processes_.end()) return;
  Process& process = found->second;
  std::erase_if(process.nameless, [&](uint32_t ring_id) {
    const std::string_view text = names.Find(ring_id);
    if (text.empty() || bytes_ + text.size() > kMaxBytes) return false;
    bytes_ += text.size();
    fresh_.emplace_back(process.ids[ring_id], text);
    return true;
  });
}

SessionActivity::SessionActivity(std::shared_ptr<WriterSession> dump, attach::CollectKinds kinds, int64_t start_raw_ns,
                                 std::shared_ptr<UserMemory> memory_or_null, uint32_t uid)
    : dump_(std::move(dump)), start_raw_ns_(start_raw_ns), names_(std::move(memory_or_null), uid) {
  kinds.ForEach([this](attach::CollectKind kind) {
    const ActivityFileId file = RecordsOf(kind).file;
    wanted_[static_cast<size_t>(file)] = true;
    if (file != ActivityFileId::kApi) return;
    levels_[static_cast<size_t>(RecordsOf(kind).level)] = true;
    levels_[static_cast<size_t>(attach::ApiLevel::kUnknown)] = true;
  });
}

HostFileBuffer& SessionActivity::BufferOf(ActivityFileId file) {
  std::unique_ptr<HostFileBuffer>& buffer = buffers_[static_cast<size_t>(file)];
  if (buffer != nullptr) return *buffer;
  FeedOptions options{.collector = std::string(FileOf(file).collector), .record_bytes = FileOf(file).record_bytes};
  buffer = std::make_unique<HostFileBuffer>(dump_, AddSessionFeed(*dump_, std::move(options)));
  return *buffer;
}

template <class Record>
void SessionActivity::TakeFrame(const ActivityBatch& batch, const ActivityFrame& frame) {
  const std::span<const Record> records = frame.As<Record>();
  const ActivityFileId file = *FileOfType(static_cast<uint16_t>(frame.type));
  if (!wanted_[static_cast<size_t>(file)]) return;
  const int64_t from_ns = StartOf(batch.pid);
  const bool is_within = frame.base_ns >= from_ns && frame.base_ns <= end_raw_ns_ - int64_t{UINT32_MAX};  // all of its records
  const auto passes = [&](const Record& record) {
    if constexpr (std::is_same_v<Record, attach::ApiRecord>) {
      if (!levels_[record.level]) return false;
    }
    if (is_within) return true;
    const int64_t begin_ns = frame.base_ns + record.start;
    return begin_ns >= from_ns && begin_ns <= end_raw_ns_;
  };
  const auto count = static_cast<size_t>(std::ranges::count_if(records, passes));
  if (count == 0) return;
  const Ids ids(&names_, batch);
  using Row = decltype(Stored(records[0], 0, 0, ids));
  HostFileBuffer& buffer = BufferOf(file);
  FlushNames();  // of rows before, which may be handed on now
  char* at = buffer.Reserve(FileOf(file).file, count * sizeof(Row), count);
  if (at == nullptr) {
    buffer.Lose(count * sizeof(Row), count);
    return;
  }
  for (const Record& record : records) {
    if (!passes(record)) continue;
    const Row row =
        Stored(record, frame.base_ns + record.start, static_cast<uint32_t>(batch.pid), ids);
    std::memcpy(at, &row, sizeof row);
    at += sizeof row;
  }
}

void SessionActivity::Expect(const ActivityBatch& batch) {
  std::array<size_t, kActivityFiles> bytes{};
  for (const ActivityFrame& frame : batch.frames) {
    const std::optional<ActivityFileId> file = FileOfType(static_cast<uint16_t>(frame.type));
    if (file) bytes[static_cast<size_t>(*file)] += frame.count * FileOf(*file).record_bytes;
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (buffers_[i] != nullptr) buffers_[i]->Expect(bytes[i]);
  }
}

void SessionActivity::Take(const ActivityBatch& batch) {
  Ring& ring = rings_[batch.attach_id];
  ring.dropped += batch.dropped;
  cost_ns_[batch.pid] += batch.cost_ns;
  if (batch.names_refused > 0) names_refused_[batch.pid] += batch.names_refused;
  Expect(batch);
  for (const ActivityFrame& frame : batch.frames) {
    switch (frame.type) {
      case ActivityType::kNames:
        names_.Learn(batch.attach_id, *batch.names);
        break;
      case ActivityType::kKernel:
        TakeFrame<attach::KernelRecord>(batch, frame);
        break;
      case ActivityType::kCommunication:
        TakeFrame<attach::CommunicationRecord>(batch, frame);
        break;
      case ActivityType::kApi:
        TakeFrame<attach::ApiRecord>(batch, frame);
        break;
      case ActivityType::kMarker:
        TakeFrame<attach::MarkerRecord>(batch, frame);
        break;
      case ActivityType::kMemory:
        TakeFrame<attach::MemoryRecord>(batch, frame);
        break;
      case ActivityType::kLoss:
        TakeLosses(batch, frame, &ring);
        break;
      case ActivityType::kPad:
      case ActivityType::kClock:
      case ActivityType::kExternalCorrelation:  // never requested
        break;
    }
    ring.last_ns = std::max(ring.last_ns, frame.base_ns);
  }
  Flush();
}

int64_t SessionActivity::StartOf(pid_t pid) const {
  const auto found = starts_.find(pid);
  return found == starts_.end() ? start_raw_ns_ : found->second;
}

void SessionActivity::TakeLosses(const ActivityBatch& batch, const ActivityFrame& frame, Ring* ring) {
  const int64_t start_ns = StartOf(batch.pid);
  const bool hands_over = stopped_ && !handed_over_.contains(batch.attach_id);
  for (const attach::LossRecord& loss : frame.As<attach::LossRecord>()) {
    if (static_cast<ActivityType>(loss.type) == ActivityType::kClock) continue;  // no record: not in `dropped` either
    const bool records = static_cast<attach::LossReason>(loss.reason) == attach::LossReason::kRingFull;
    if (records) ring->reported += loss.count;
    if (loss.to_ns < start_ns) continue;
    // A full ring says when the records began, a lost buffer only when it was noticed.
    if (loss.from_ns > end_raw_ns_ && (records || !hands_over)) continue;
    const std::optional<ActivityFileId> file = FileOfType(loss.type);
    if (file && !wanted_[static_cast<size_t>(*file)]) continue;
    if (records) {
      Lose(file, {LossReason::kRingFull, loss.count, 0, loss.from_ns, loss.to_ns});
    } else {
      Lose(file, {LossReason::kVendorBuffer, 0, loss.count, std::min(loss.from_ns, end_raw_ns_), std::min(loss.to_ns, end_raw_ns_)});
    }
  }
}

// Of any type: what the session wants first stands for all.
void SessionActivity::Lose(std::optional<ActivityFileId> file, const ManifestLoss& loss) {
  if (!file) {
    const auto* first = std::ranges::find(wanted_, true);
    if (first == wanted_.end()) return;
    file = static_cast<ActivityFileId>(first - wanted_.begin());
  }
  dump_->NoteLostBefore(BufferOf(*file).feed(), loss);
}

void SessionActivity::OnLeftOut(uint64_t attach_id, attach::CollectKinds kinds, int64_t now_raw_ns) {
  std::map<attach::CollectKind, int64_t>& known = rings_[attach_id].left_out;
  std::erase_if(known, [&](const auto& entry) {
    if (kinds.Has(entry.first)) return false;
    AddMissing({LossReason::kOverBudget, entry.first, entry.second, now_raw_ns});
    return true;
  });
  kinds.ForEach([&](attach::CollectKind kind) { known.try_emplace(kind, now_raw_ns); });
}

void SessionActivity::OnBusy(uint64_t attach_id, bool busy, int64_t now_raw_ns) {
  Ring& ring = rings_[attach_id];
  if (busy == (ring.busy_since_ns != 0)) return;
  if (busy) {
    ring.busy_since_ns = now_raw_ns;
  } else {
    EndBusy(ring, now_raw_ns);
  }
}

void SessionActivity::EndBusy(Ring& ring, int64_t now_raw_ns) {
  ring.busy_ns += AddMissing({LossReason::kProfilerBusy, std::nullopt, std::exchange(ring.busy_since_ns, 0), now_raw_ns});
  busy_ns_ = std::max(busy_ns_, ring.busy_ns);
}

int64_t SessionActivity::AddMissing(const MissingTime& missing) {
  std::optional<ActivityFileId> file;
  if (missing.kind) file = RecordsOf(*missing.kind).file;
  if (file && !wanted_[static_cast<size_t>(*file)]) return 0;
  const int64_t from = std::max(missing.from_ns, start_raw_ns_);
  const int64_t to = std::min(missing.to_ns, end_raw_ns_);
  if (from >= to) return 0;
  Lose(file, {missing.reason, 0, 0, from, to});
  // Those of the flight recorder do not name their process.
  if (missing.reason == LossReason::kProfilerBusy) busy_ns_ = std::max(busy_ns_, to - from);
  return to - from;
}

std::string SessionActivity::BusyText() const {
  if (busy_ns_ == 0) return {};
  return fmt::format(
      "no records for {:.3f} s: another profiler ran in the process, its device was kept for tuning, or the application did not "
      "allow it",
      static_cast<double>(busy_ns_) / 1e9);
}

std::string SessionActivity::NamesText() const {
  std::string text;
  for (const auto& [pid, names] : names_refused_) text += fmt::format("{}{} of process {}", text.empty() ? "" : ", ", names, pid);
  if (!text.empty()) text += fmt::format(" (which can have {} different ones, {} MiB)", attach::kMaxActivityNames - 1, attach::kMaxActivityNamesBytes >> 20);
  if (names_.refused() > 0) {
    text += fmt::format("{}{} of the session ({} different ones, {} MiB; {} MiB with everything else of its user, {} MiB of all users)",
                        text.empty() ? "" : ", ", names_.refused(), SessionNames::kMaxNames, SessionNames::kMaxBytes >> 20,
                        UserMemory::kPerUser >> 20, UserMemory::kPerNode >> 20);
  }
  return text.empty() ? text : fmt::format("names were too many and are recorded as \"{}\": {}", attach::kTooManyNames, text);
}

uint64_t SessionActivity::CostOf(pid_t pid) const {
  const auto found = cost_ns_.find(pid);
  return found == cost_ns_.end() ? 0 : found->second;
}

// Dropped by the process's count, and not reported in the ring: there was no space until the end.
void SessionActivity::EndRing(Ring& ring, int64_t now_raw_ns) {
  for (const auto& [kind, since_ns] : std::exchange(ring.left_out, {})) {
    AddMissing({LossReason::kOverBudget, kind, since_ns, now_raw_ns});
  }
  if (ring.busy_since_ns != 0) EndBusy(ring, now_raw_ns);
  const int64_t from = std::max(ring.last_ns, start_raw_ns_);
  if (ring.given_up) Lose(std::nullopt, {LossReason::kNotFetched, 0, 0, from, now_raw_ns});
  if (ring.dropped > ring.reported) Lose(std::nullopt, {LossReason::kRingFull, ring.dropped - ring.reported, 0, from, now_raw_ns});
}

void SessionActivity::OnGone(uint64_t attach_id, bool in_good_order, int64_t now_raw_ns) {
  Ring ring = rings_.contains(attach_id) ? rings_[attach_id] : Ring();
  rings_.erase(attach_id);
  names_.Forget(attach_id);
  EndRing(ring, now_raw_ns);
  if (in_good_order) return;
  const int64_t from = std::max(ring.last_ns, start_raw_ns_);
  Lose(std::nullopt, {LossReason::kProcessEnded, 0, 0, from, now_raw_ns});
}

void SessionActivity::OnNotHandedOver(uint64_t attach_id, int64_t now_raw_ns) {
  const auto ring = rings_.find(attach_id);
  const int64_t from = std::max(ring == rings_.end() ? 0 : ring->second.last_ns, start_raw_ns_);
  const int64_t to = std::min(now_raw_ns, end_raw_ns_);
  if (from < to) Lose(std::nullopt, {LossReason::kNotFetched, 0, 0, from, to});
}

void SessionActivity::End(int64_t now_raw_ns) {
  for (auto& [id, ring] : rings_) EndRing(ring, now_raw_ns);
  rings_.clear();
  Flush();
}

// Names go first: who reads what has reached the disk finds them.
void SessionActivity::FlushNames() {
  for (const auto& [id, text] : names_.TakeFresh()) {
    if (names_buffer_ == nullptr) {
      FeedOptions options{.collector = std::string(kActivityNamesCollector), .file = std::string(kActivityNamesFile)};
      names_buffer_ = std::make_unique<HostFileBuffer>(dump_, AddSessionFeed(*dump_, std::move(options)));
    }
    line_.clear();
    AppendActivityName(id, text, &line_);
    names_buffer_->Add({}, line_);
  }
  if (names_buffer_ != nullptr) names_buffer_->Flush();
}

void SessionActivity::Flush() {
  FlushNames();
  for (const auto& buffer : buffers_) {
    if (buffer != nullptr) buffer->Flush();
  }
}

SessionActivity::Count SessionActivity::CountOf(ActivityFileId file) const {
  const auto& buffer = buffers_[static_cast<size_t>(file)];
  if (buffer == nullptr) return {};
  const FeedCounters& counters = buffer->feed()->counters();
  return {counters.records.load(std::memory_order_relaxed), counters.bytes.load(std::memory_order_relaxed), buffer->feed()->losses().Total()};
}

// static
void SessionActivity::EditManifest(Manifest* manifest) {
  for (ManifestChannel& channel : manifest->channels) {
    const bool ours = channel.collector == kActivityNamesCollector ||
                      std::ranges::find(ActivityFiles(), channel.collector, &ActivityFile::collector) !=
                          ActivityFiles().end();
    if (ours && channel.channel == 0) channel.state = "finished";
  }
}

}  // namespace profd
