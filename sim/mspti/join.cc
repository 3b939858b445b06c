#include "sim/mspti/join.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "sim/mspti/buffers.h"
#include "sim/mspti/config.h"
#include "sim/mspti/real_time.h"
#include "sim/profapi/hash.h"

namespace profd::sim::mspti {
namespace {

constexpr size_t kTracksOfThread = 64;  // what a launch may consist of
constexpr size_t kCollectives = 4096;   // that wait for the device

template <class Data>
Data DataOf(const prof::Compact& record) {
  Data data;
  std::memcpy(&data, record.data, sizeof data);
  return data;
}

}  // namespace

Join& Join::The() {
  static Join* const the = new Join;
  return *the;
}

Join::Key Join::KeyOf(uint32_t device, uint32_t stream, uint32_t task) const {
  return {device, streams_left_out_ ? 0 : stream, task};
}

void Join::AddName(std::string_view text) {
  MutexLock lock(names_mutex_);
  names_.try_emplace(prof::HashText(text), text);
}

void Join::AddType(uint16_t level, uint32_t type, std::string_view name) {
  MutexLock lock(names_mutex_);
  types_[{level, type}] = name;
}

std::string Join::NameOf(uint64_t id) {
  MutexLock lock(names_mutex_);
  const auto it = names_.find(id);
  return it == names_.end() ? "" : it->second;
}

std::string Join::TypeOf(uint16_t level, uint32_t type) {
  MutexLock lock(names_mutex_);
  const auto it = types_.find({level, type});
  return it == types_.end() ? "" : it->second;
}

uint64_t Join::CorrelationOf(uint32_t thread) {
  MutexLock lock(mutex_);
  return threads_[thread].correlation;
}

size_t Join::waiting() const {
  MutexLock lock(mutex_);
  return tracks_.size();
}

void Join::PutApi(uint32_t kind, const prof::Api& api, const std::string& name) {
  if (!enabled(kind)) return;
  ApiRecord record{};
  record.kind = kind;
  record.start = RealTime::The().FromHost(api.begin);
  record.end = RealTime::The().FromHost(api.end);
  record.process = static_cast<uint32_t>(::getpid());
  record.thread = api.thread;
  record.correlation = threads_[api.thread].correlation;
  Buffers::The().Put(record, {{offsetof(ApiRecord, name), name}});
}

void Join::OnApi(const prof::Api& api) {
  Buffers::RefuseInCallback();
  ++host_reports_;
  MutexLock lock(mutex_);
  if (api.level == prof::kNodeLevel && api.type == prof::kNodeLaunchType) {
    threads_[api.thread].launch = api;
  }
  const std::string name =
      api.level == prof::kNodeLevel ? NameOf(api.item) : TypeOf(api.level, api.type);
  if (name.empty()) return;  // silently
  if (api.level == prof::kAclLevel) PutApi(kAclApi, api, name);
  if (api.level == prof::kNodeLevel) PutApi(kNodeApi, api, name);
  if (api.level == prof::kRuntimeLevel) PutApi(kRuntimeApi, api, name);
  if (api.level == prof::kAclLevel || api.level == prof::kNodeLevel) PutApi(kApi, api, name);
}

void Join::OnCompact(uint32_t aging, const prof::Compact& record) {
  Buffers::RefuseInCallback();
  ++host_reports_;
  MutexLock lock(mutex_);
  if (record.level == prof::kRuntimeLevel && record.type == prof::kTrackType) OnTrack(record, aging == 0);
  if (record.level == prof::kNodeLevel && record.type == prof::kNodeHcclOpType)
    OnCollective(record, aging == 0);
}

void Join::PutExternal(uint64_t correlation) {
  if (!enabled(kExternalCorrelation)) return;
  for (uint32_t kind = 1; kind < kExternalKinds; ++kind) {
    if (external_[kind].empty()) continue;
    Buffers::The().Put(ExternalRecord{kExternalCorrelation, kind, external_[kind].back(), correlation}, {});
  }
}

void Join::OnTrack(const prof::Compact& record, bool repeats) {
  const auto data = DataOf<prof::RuntimeTrack>(record);
  const Key key = KeyOf(data.device, data.stream, data.task);
  Thread& thread = threads_[record.thread];
  thread.tracks.push_back({record.time, data.stream, key});
  if (thread.tracks.size() > kTracksOfThread) thread.tracks.pop_front();
  const std::string type = TypeOf(prof::kRuntimeLevel, static_cast<uint32_t>(data.task_type));
  if (!type.starts_with("KERNEL")) return;
  const auto known = tracks_.find(key);
  if (known != tracks_.end() && known->second.repeats && repeats) return;  // reported again at a START
  thread.correlation = ++correlation_;
  PutExternal(correlation_);
  const Track track = {type, data.kernel_name, correlation_, data.stream, repeats};
  const auto it = finished_.find(key);
  const bool is_over = it != finished_.end();
  if (is_over) {
    PutKernel(key, track, it->second);
    finished_.erase(it);
  }
  if (repeats || !is_over) tracks_[key] = track;
}

void Join::OnCollective(const prof::Compact& record, bool repeats) {
  Thread& thread = threads_[record.thread];
  Collective collective;
  collective.info = DataOf<prof::HcclOpInfo>(record);
  collective.name = thread.launch.item;
  collective.correlation = thread.correlation;
  bool any = false;
  for (const auto& [time, stream, key] : thread.tracks) {
    if (time < thread.launch.begin || time > thread.launch.end) continue;
    if (!any) collective.first = key;
    if (!any) collective.stream = stream;
    collective.last = key;
    any = true;
  }
  thread.tracks.clear();
  if (!any) return;
  collective.repeats = repeats;
  const bool known = std::ranges::any_of(collectives_, [&](const Collective& other) {
    return other.repeats && other.first == collective.first;
  });
  if (known && repeats) return;
  for (const Key& key : {collective.first, collective.last}) {
    if (const auto it = finished_.find(key); it != finished_.end()) {
      Fill(collective, key, it->second);
    }
  }
  if (PutIfWhole(collective)) return;
  collectives_.push_back(collective);
  if (collectives_.size() > kCollectives) collectives_.pop_front();
}

bool Join::PutIfWhole(Collective& collective) {
  if (!collective.begin_ns || !collective.end_ns) return false;
  PutCollective(collective);
  collective.begin_ns.reset();
  collective.end_ns.reset();
  return !collective.repeats;
}

bool Join::Fill(Collective& collective, const Key& key, const Times& times) {
  if (key != collective.first && key != collective.last) return false;
  if (key == collective.first) collective.begin_ns = times.begin_ns;
  if (key == collective.last) collective.end_ns = times.end_ns;
  return true;
}

void Join::OnLog(uint32_t device, const acl::LogRecord& record) {
  const Key key = KeyOf(device, record.stream, record.task);
  MutexLock lock(mutex_);
  if (record.kind == acl::kTaskBegin) begun_[key] = record.time_ns;
  if (record.kind != acl::kTaskEnd) return;
  const auto begun = begun_.find(key);
  if (begun == begun_.end()) {
    // A lost begin loses the record.
    if (const auto track = tracks_.find(key); track != tracks_.end() && !track->second.repeats) tracks_.erase(track);
    return;
  }
  OnFinished(key, {begun->second, record.time_ns});
  begun_.erase(begun);
}

void Join::OnFinished(const Key& key, const Times& times) {
  if (const auto it = tracks_.find(key); it != tracks_.end()) {
    PutKernel(key, it->second, times);
    if (!it->second.repeats) tracks_.erase(it);
    return;
  }
  for (auto it = collectives_.begin(); it != collectives_.end(); ++it) {
    if (!Fill(*it, key, times)) continue;
    if (PutIfWhole(*it)) collectives_.erase(it);
    return;
  }
  finished_[key] = times;
  finished_order_.push_back(key);
  if (finished_order_.size() > kUnmatched) {
    finished_.erase(finished_order_.front());
    finished_order_.pop_front();
  }
}

void Join::PutKernel(const Key& key, const Track& track, const Times& times) {
  if (!enabled(kKernel)) return;
  KernelRecord record{};
  record.kind = kKernel;
  record.start = RealTime::The().FromRaw(times.begin_ns);
  record.end = RealTime::The().FromRaw(times.end_ns);
  if (Config::The().backwards.exchange(false)) record.end = record.start - 1'000;
  record.device = key.device;
  record.stream = track.stream;
  record.correlation = track.correlation;
  Buffers::The().Put(record, {{offsetof(KernelRecord, type), track.type},
                              {offsetof(KernelRecord, name), NameOf(track.name)}});
  if (Config::The().profile() == Profile::kNext && track.correlation % 8 == 0) {
    Buffers::The().Put(NextRecord{kNextKind, {}}, {});
  }
}

void Join::PutCollective(const Collective& collective) {
  if (!enabled(kCommunication)) return;
  CommunicationRecord record{};
  record.kind = kCommunication;
  record.data_type = collective.info.data_type;
  record.count = collective.info.count;
  record.device = collective.first.device;
  record.stream = collective.stream;
  record.start = RealTime::The().FromRaw(*collective.begin_ns);
  record.end = RealTime::The().FromRaw(*collective.end_ns);
  record.correlation = collective.correlation;
  Buffers::The().Put(record, {{offsetof(CommunicationRecord, algorithm), NameOf(collective.info.algorithm)},
                              {offsetof(CommunicationRecord, name), NameOf(collective.name)},
                              {offsetof(CommunicationRecord, group), NameOf(collective.info.group)}});
}

int Join::PushExternal(int kind, uint64_t id) {
  if (kind < 1 || kind >= static_cast<int>(kExternalKinds)) return kInvalidParameter;
  MutexLock lock(mutex_);
  external_[static_cast<size_t>(kind)].push_back(id);
  return kOk;
}

int Join::PopExternal(int kind, uint64_t* last) {
  if (kind < 1 || kind >= static_cast<int>(kExternalKinds) || last == nullptr) {
    return kInvalidParameter;
  }
  MutexLock lock(mutex_);
  std::vector<uint64_t>& stack = external_[static_cast<size_t>(kind)];
  if (stack.empty()) return kQueueEmpty;
  *last = stack.back();
  stack.pop_back();
  return kOk;
}

}  // namespace profd::sim::mspti
