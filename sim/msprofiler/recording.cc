#include "sim/msprofiler/recording.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <ctime>
#include <utility>

#include "sim/device_clock.h"
#include "sim/host_counter.h"
#include "sim/msprofiler/config.h"
#include "sim/msprofiler/control_text.h"
#include "sim/msprofiler/msprofiler.h"
#include "sim/noise.h"

namespace profd::sim::aclprof {
namespace {

constexpr uint16_t kStarsMagic = 0x6BD3;
constexpr uint16_t kTaskBegin = 0, kTaskEnd = 1, kContextPmu = 0b101000;
constexpr uint8_t kStepTrace = 10, kFlip = 14;
constexpr uint16_t kAicpuLevel = 6000;

struct StarsLog {
  uint16_t head = 0, magic = kStarsMagic, stream = 0, task = 0;
  uint64_t count = 0;
  uint16_t accelerator = 0, queue = 0, reserved[22] = {};
};
static_assert(sizeof(StarsLog) == 64);

struct ContextPmu {
  uint16_t head = kContextPmu, magic = kStarsMagic, stream = 0, task = 0;
  uint64_t reserved0 = 0;
  uint16_t sub_task = 0, context = 0, ffts = 0, reserved1 = 0;
  uint64_t reserved2 = 0;
  uint64_t cycles = 0, overflow = 0, counters[8] = {};
  uint64_t begin = 0, end = 0;
};
static_assert(sizeof(ContextPmu) == 128 && offsetof(ContextPmu, cycles) == 32 && offsetof(ContextPmu, begin) == 112);

struct TsTrack {
  uint8_t mode = 0, tag = 0;
  uint16_t size = 40;
  uint32_t reserved = 0;
  uint64_t count = 0;
  uint8_t body[24] = {};
};
static_assert(sizeof(TsTrack) == 40);

struct L2Record {
  uint16_t type = 0, stream = 0, task = 0, reserved = 0;
  uint64_t events[8] = {};
};
static_assert(sizeof(L2Record) == 72);

// The counter that the driver of this device reports, too (of a scenario that does not choose a seed).
uint64_t DeviceCount(uint32_t device, int64_t raw_ns) {
  constexpr uint64_t kSeed = 1;
  const DeviceClock clock(kSeed, static_cast<int>(device), static_cast<int64_t>(kDeviceMhz * 1e6));
  return clock.Counter(clock.FromHost(raw_ns));
}

template <class T>
void Put(uint8_t* body, size_t offset, const T& value) {
  std::memcpy(body + offset, &value, sizeof value);
}

struct Tag {
  uint16_t level;
  uint32_t type;
  const char* name;
};
constexpr std::array<Tag, 3> kCompactTags = {{{prof::kRuntimeLevel, prof::kTrackType, "task_track"},
                                              {prof::kNodeLevel, prof::kNodeBasicType, "node_basic_info"},
                                              {prof::kNodeLevel, prof::kNodeHcclOpType, "hccl_op_info"}}};
constexpr std::array<Tag, 3> kAdditionalTags = {{{prof::kNodeLevel, prof::kNodeTensorType, "tensor_info"},
                                                 {prof::kModelLevel, prof::kModelGraphIdMap, "graph_id_map"},
                                                 {prof::kHcclLevel, prof::kHcclInfoType, "hccl_info"}}};

template <class Tags, class Record>
std::string FileOf(const Tags& tags, const char* module, uint32_t aging, const Record& record) {
  for (const Tag& tag : tags) {
    if (tag.level != record.level || tag.type != record.type) continue;
    return fmt::format("{}.{}.{}", aging != 0 ? "aging" : "unaging", module, tag.name);
  }
  return "";
}

// PROF_<number>_<local time, ms>_<letters>
std::string NewName(const Clock& clock) {
  static std::atomic<uint32_t> number{0};
  const int64_t wall_ns = clock.WallNs();
  std::string letters;
  for (uint64_t hash = Hash(3, static_cast<uint64_t>(wall_ns)); letters.size() < 16; hash /= 3) {
    letters.push_back(static_cast<char>('A' + hash % 17));
  }
  return fmt::format("PROF_{:06}_{:%Y%m%d%H%M%S}{:03}_{}", ++number,
                     fmt::localtime(static_cast<time_t>(wall_ns / kNsPerSecond)), wall_ns % kNsPerSecond / 1'000'000,
                     letters);
}

}  // namespace

Result<std::unique_ptr<Recording>> Recording::Begin(const std::string& path, const RecordingRequest& wanted) {
  const std::string folder = path + "/" + NewName(SystemClock());
  Result<ResultFiles> host = ResultFiles::Make(folder + "/host", "", wanted.storage_limit_mb);
  if (!host.ok()) return host.status();
  return std::unique_ptr<Recording>(new Recording(folder, wanted, std::move(host).value()));
}

Recording::Recording(std::string folder, const RecordingRequest& wanted, ResultFiles host)
    : folder_(std::move(folder)), wanted_(wanted), host_(std::move(host)) {
  const auto count = static_cast<int64_t>(MsprofSysCycleTime());
  const bool counts = std::abs(count - clock_.MonotonicRawNs()) > kNsPerSecond;
  if (counts) host_mhz_ = static_cast<double>(HostCounterHz(clock_)) / 1e6;
  {
    MutexLock lock(mutex_);
    PutControl(host_, kHostId);
  }
  reader_ = std::thread([this] { Run(); });
}

Recording::~Recording() {
  stop_ = true;
  if (reader_.joinable()) reader_.join();
}

void Recording::PutControl(ResultFiles& to, int device) {
  const ControlFacts facts{device, wanted_.bits, wanted_.metrics, host_mhz_, folder_};
  // One behind the other: whatever lies between them is an error of every time.
  const int64_t raw_ns = clock_.MonotonicRawNs();
  const int64_t wall_ns = clock_.WallNs();
  const auto host_count = static_cast<uint64_t>(MsprofSysCycleTime());
  to.PutControl("info.json", InfoJson(facts));
  to.PutControl("sample.json", SampleJson(facts));
  to.PutControl("start_info", StartInfo(wall_ns, raw_ns));
  to.PutControl("host_start.log", HostStartLog(device, raw_ns, host_count));
  if (device != kHostId) to.PutControl("dev_start.log", DevStartLog(raw_ns, DeviceCount(static_cast<uint32_t>(device), raw_ns)));
}

int Recording::AddDevice(uint32_t device) {
  MutexLock lock(mutex_);
  if (!wanted_.devices.empty() && wanted_.devices.count(device) == 0) return kOk;
  if (devices_.count(device) != 0) return kAlreadyRun;
  const bool busy = simAclOpenLog(device) != 0;
  if (busy && Settings::The().busy_channel_fails) return kFailure;
  auto files = ResultFiles::Make(fmt::format("{}/device_{}", folder_, device), fmt::format(".{}", device),
                                 wanted_.storage_limit_mb);
  if (!files.ok()) return kFailure;
  DeviceFiles& added = devices_.emplace(device, std::move(files).value()).first->second;
  added.reading = !busy;
  PutControl(added.files, static_cast<int>(device));
  return kOk;
}

void Recording::EndDevice(uint32_t device, DeviceFiles& files) {
  ReadLog(device, files);
  if (std::exchange(files.reading, false)) simAclCloseLog(device);
  files.files.Flush();
  files.files.PutControl("end_info", EndInfo(clock_.WallNs(), clock_.MonotonicRawNs()));
}

void Recording::RemoveDevice(uint32_t device) {
  MutexLock lock(mutex_);
  const auto found = devices_.find(device);
  if (found != devices_.end() && found->second.reading) EndDevice(device, found->second);
}

void Recording::OnApi(uint32_t aging, const prof::Api& api) {
  MutexLock lock(mutex_);
  host_.AppendRecord(aging != 0 ? "aging.api_event.data" : "unaging.api_event.data", api);
}

void Recording::OnEvent(uint32_t aging, const prof::Event& event) {
  MutexLock lock(mutex_);
  host_.AppendRecord(aging != 0 ? "aging.api_event.data" : "unaging.api_event.data", event);
}

// The files have 16 bits for a task's number; each time they run over, a record of its own reports it.
void Recording::PutHostFlip(const prof::Compact& track) {
  prof::RuntimeTrack data;
  std::memcpy(&data, track.data, sizeof data);
  uint32_t& batch = host_batches_[{data.device, data.stream}];
  if (data.task >> 16 <= batch) return;
  batch = data.task >> 16;
  prof::Compact flip = track;
  data.task_type = prof::kTaskFlip;
  data.kernel_name = 0;
  flip.time = track.time - 1;
  std::memcpy(flip.data, &data, sizeof data);
  host_.AppendRecord("aging.compact.task_track", flip);
}

void Recording::OnCompact(uint32_t aging, const prof::Compact& record) {
  const std::string file = FileOf(kCompactTags, "compact", aging, record);
  if (file.empty()) return;
  MutexLock lock(mutex_);
  if (record.level == prof::kRuntimeLevel) PutHostFlip(record);
  host_.AppendRecord(file, record);
}

void Recording::OnAdditional(uint32_t aging, const prof::Additional& record) {
  const std::string file = FileOf(kAdditionalTags, "additional", aging, record);
  if (file.empty()) return;
  MutexLock lock(mutex_);
  host_.AppendRecord(file, record);
}

void Recording::OnTypeName(uint16_t level, uint32_t type, std::string_view name) {
  MutexLock lock(mutex_);
  types_[{level, type}] = name;
}
void Recording::OnName(uint64_t id, std::string_view text) {
  MutexLock lock(mutex_);
  names_[id] = text;
}

void Recording::Run() {
  while (!stop_) {
    {
      MutexLock lock(mutex_);
      for (auto& [device, files] : devices_) ReadLog(device, files);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void Recording::ReadLog(uint32_t device, DeviceFiles& to) {
  if (!to.reading) return;
  std::array<acl::LogRecord, 1024> records;
  for (size_t count; (count = simAclReadLog(device, records.data(), records.size())) > 0;) {
    for (size_t i = 0; i < count; ++i) OnLog(device, to, records[i]);
  }
}

void Recording::OnLog(uint32_t device, DeviceFiles& to, const acl::LogRecord& record) {
  const uint64_t count = DeviceCount(device, record.time_ns);
  if (record.kind == acl::kTaskTrace) {
    if ((wanted_.bits & kTrainingTrace) == 0) return;
    TsTrack track;
    track.tag = kStepTrace;
    track.count = count;
    Put(track.body, 0, record.value);
    Put(track.body, 8, record.model);
    Put(track.body, 16, static_cast<uint16_t>(record.stream));
    Put(track.body, 18, static_cast<uint16_t>(record.task));
    Put(track.body, 20, static_cast<uint16_t>(record.tag));
    return to.files.AppendRecord("ts_track.data", track);
  }
  if ((wanted_.bits & kTaskTimeL0) == 0) return;
  const std::pair key(record.stream, record.task);
  if (record.kind == acl::kTaskBegin) {
    PutFlip(to, record, count);
    to.begun[key] = count;
    return PutTask(to, record, count);
  }
  PutTask(to, record, count);
  const auto begun = to.begun.find(key);
  if (begun == to.begun.end()) return;
  const bool core = record.tag == acl::kEntryAicore || record.tag == acl::kEntryAivec;
  if (core) PutPmu(to, record, begun->second, count);
  if (record.tag == acl::kEntryAicpu) PutAicpu(device, to, record, begun->second, count);
  to.begun.erase(begun);
}

void Recording::PutFlip(DeviceFiles& to, const acl::LogRecord& record, uint64_t count) {
  uint32_t& batch = to.batches[record.stream];
  if (record.task >> 16 <= batch) return;
  batch = record.task >> 16;
  TsTrack track;
  track.tag = kFlip;
  track.count = count - 1;
  Put(track.body, 0, static_cast<uint16_t>(record.stream));
  Put(track.body, 2, static_cast<uint16_t>(batch));
  Put(track.body, 6, static_cast<uint16_t>(record.task));
  to.files.AppendRecord("ts_track.data", track);
}

void Recording::PutTask(DeviceFiles& to, const acl::LogRecord& record, uint64_t count) {
  StarsLog log;
  const uint16_t function = record.kind == acl::kTaskBegin ? kTaskBegin : kTaskEnd;
  log.head = static_cast<uint16_t>(function | (to.count++ % 16) << 6 | record.tag << 10);
  log.stream = static_cast<uint16_t>(record.stream);
  log.task = static_cast<uint16_t>(record.task);
  log.count = count;
  to.files.AppendRecord("stars_soc.data", log);
}

void Recording::PutPmu(DeviceFiles& to, const acl::LogRecord& record, uint64_t begin, uint64_t end) {
  const uint64_t cycles = (end - begin) * kAicoreMhz / static_cast<uint64_t>(kDeviceMhz);
  if ((wanted_.bits & kAicoreMetrics) != 0) {
    ContextPmu pmu;
    pmu.stream = static_cast<uint16_t>(record.stream);
    pmu.task = static_cast<uint16_t>(record.task);
    // No FFTS+: the core kind follows from the type alone.
    pmu.ffts = static_cast<uint16_t>((record.tag == acl::kEntryAivec ? 1 : 0) << 13);
    pmu.cycles = cycles;
    for (int i = 0; i < EventCount(wanted_.metrics); ++i) pmu.counters[i] = cycles * static_cast<uint64_t>(i + 1) / 10;
    pmu.begin = begin;
    pmu.end = end;
    to.files.AppendRecord("ffts_profile.data", pmu);
  }
  if ((wanted_.bits & kL2) == 0) return;
  L2Record l2;
  l2.stream = static_cast<uint16_t>(record.stream);
  l2.task = static_cast<uint16_t>(record.task);
  for (uint64_t i = 0; i < 8; ++i) l2.events[i] = cycles * (i + 1) / 20;
  to.files.AppendRecord("l2_cache.data", l2);
}

void Recording::PutAicpu(uint32_t device, DeviceFiles& to, const acl::LogRecord& record, uint64_t begin, uint64_t end) {
  if ((wanted_.bits & kAicpu) == 0) return;
  prof::Additional node;
  node.level = kAicpuLevel;
  node.data_size = 128;
  node.time = end;
  const uint64_t us = (end - begin) / static_cast<uint64_t>(kDeviceMhz);
  Put(node.data, 0, static_cast<uint16_t>(record.stream));
  Put(node.data, 2, static_cast<uint16_t>(record.task));
  Put(node.data, 16, begin);
  for (const size_t timestamp : {size_t{24}, size_t{32}, size_t{40}}) Put(node.data, timestamp, begin / static_cast<uint64_t>(kDeviceMhz));
  Put(node.data, 56, end);
  Put(node.data, 68, device);
  Put(node.data, 72, begin);
  Put(node.data, 80, begin);
  Put(node.data, 96, end);
  Put(node.data, 112, static_cast<uint32_t>(us));
  to.files.AppendRecord("aicpu.data", node);
}

bool Recording::End() {
  stop_ = true;
  reader_.join();
  MutexLock lock(mutex_);
  for (const auto& [id, text] : names_) {
    host_.Append("unaging.additional.hash_dic", fmt::format("{}:{}\n", id, text));
  }
  for (const auto& [type, name] : types_) {
    host_.Append("unaging.additional.type_info_dic", fmt::format("{}_{}:{}\n", type.first, type.second, name));
  }
  host_.Flush();
  host_.PutControl("end_info", EndInfo(clock_.WallNs(), clock_.MonotonicRawNs()));
  disk_full_ = host_.disk_full();
  for (auto& [device, files] : devices_) {
    if (files.reading) EndDevice(device, files);
    disk_full_ = disk_full_ || files.files.disk_full();
  }
  return !disk_full_;
}

}  // namespace profd::sim::aclprof
