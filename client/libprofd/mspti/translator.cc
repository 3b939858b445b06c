#include "client/libprofd/mspti/translator.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "client/libprofd/mspti/mspti_abi.h"

namespace profd::lib::mspti {
namespace {

constexpr size_t kMaxVisible = 64;
constexpr uint16_t kLeastFlagWithDevice = 8;
constexpr int64_t kLeastStepNs = 1'000'000;
constexpr int64_t kMostSlew = 2000;                 // 1/2000: the kernel's limit, 500 ppm
constexpr int64_t kDeviceDelayNs = 200'000'000;  // from the end of a task to its record

uint64_t FirstTime(uint32_t kind, const uint8_t* record) {
  switch (kind) {
    case kMarker:
      return MarkerRecord::kTimestamp.Read(record);
    case kMemory:
      return MemoryRecord::kStart.Read(record);
    case kMemset:
      return MemsetRecord::kStart.Read(record);
    case kMemcpy:
      return MemcpyRecord::kStart.Read(record);
    case kCommunication:
      return CommunicationRecord::kStart.Read(record);
    case kExternalCorrelation:
      return 0;
    default:
      return KernelRecord::kStart.Read(record);  // where it is in all the others, too
  }
}

// Of one that has a time.
uint64_t LastTime(uint32_t kind, const uint8_t* record) {
  switch (kind) {
    case kMarker:
      return MarkerRecord::kTimestamp.Read(record);
    case kMemory:
      return MemoryRecord::kEnd.Read(record);
    case kMemset:
      return MemsetRecord::kEnd.Read(record);
    case kMemcpy:
      return MemcpyRecord::kEnd.Read(record);
    case kCommunication:
      return CommunicationRecord::kEnd.Read(record);
    default:
      return KernelRecord::kEnd.Read(record);  // where it is in all the others, too
  }
}

bool IsOfDevice(uint32_t kind) { return kind == kKernel || kind == kCommunication || kind == kHccl; }

bool HasDeviceTimes(uint32_t kind, const uint8_t* record) {
  return kind == kMarker ? MarkerRecord::kSource.Read(record) == kSourceDevice : IsOfDevice(kind);
}

attach::ApiLevel LevelOf(uint32_t kind) {
  switch (kind) {
    case kAclApi:
      return attach::ApiLevel::kAcl;
    case kNodeApi:
      return attach::ApiLevel::kNode;
    case kRuntimeApi:
      return attach::ApiLevel::kRuntime;
    default:
      return attach::ApiLevel::kUnknown;
  }
}

}  // namespace

std::vector<uint16_t> ReadVisibleDevices(const char* text_or_null) {
  std::vector<uint16_t> devices;
  std::string_view text = text_or_null == nullptr ? "" : text_or_null;
  while (!text.empty()) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    uint16_t device = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), device);
    if (error != std::errc() || devices.size() == kMaxVisible) return {};
    devices.push_back(device);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    if (text.empty()) break;
    if (text.front() != ',') return {};
    text.remove_prefix(1);
  }
  return devices;
}

Translator::Times Translator::TimesOf(uint64_t start, uint64_t end, const ClockPair& clock) {
  const Times times{clock.ToRaw(start), end - start};
  if (end >= start) return times;
  // Across a step of the vendor's clock, some microseconds every 7 s.
  writer_.CountClamped();
  return {times.start_ns, 0};
}

template <class Record>
void Translator::AddTimed(const Times& times, Record record) {
  record.duration = static_cast<uint32_t>(times.duration);
  record.duration_high = static_cast<uint32_t>(times.duration >> 32);
  writer_.AddAt(times.start_ns, record);
}

template <class Record>
void Translator::SetDevice(uint32_t logical, Record* record) const {
  record->logical_device = record->device = attach::kNoDevice;
  if (logical >= attach::kNoDevice) return;
  record->logical_device = static_cast<uint16_t>(logical);
  if (visible_devices_.empty()) {
    record->device = record->logical_device;
  } else if (logical < visible_devices_.size()) {
    record->device = visible_devices_[logical];
  }
}

void Translator::PutKernel(const uint8_t* record, const ClockPair& clock) {
  using R = KernelRecord;
  attach::KernelRecord kernel{};
  kernel.stream = R::kStream.Read(record);
  kernel.correlation = R::kCorrelation.Read(record);
  kernel.name = writer_.Intern(R::kName.Read(record));
  kernel.type = static_cast<uint16_t>(writer_.Intern(R::kType.Read(record)));
  SetDevice(R::kDevice.Read(record), &kernel);
  AddTimed(TimesOf(R::kStart.Read(record), R::kEnd.Read(record), clock), kernel);
}

void Translator::PutCommunication(const uint8_t* record, const ClockPair& clock) {
  using R = CommunicationRecord;
  attach::CommunicationRecord communication{};
  communication.stream = R::kStream.Read(record);
  communication.correlation = R::kCorrelation.Read(record);
  communication.count = R::kCount.Read(record);
  communication.name = writer_.Intern(R::kName.Read(record));
  communication.communicator = writer_.Intern(R::kCommunicator.Read(record));
  communication.algorithm = writer_.Intern(R::kAlgorithm.Read(record));
  communication.data_type = static_cast<uint16_t>(R::kDataType.Read(record));
  SetDevice(R::kDevice.Read(record), &communication);
  AddTimed(TimesOf(R::kStart.Read(record), R::kEnd.Read(record), clock), communication);
}

void Translator::PutHccl(const uint8_t* record, const ClockPair& clock) {
  using R = HcclRecord;
  attach::CommunicationRecord communication{};
  communication.stream = R::kStream.Read(record);
  communication.name = writer_.Intern(R::kName.Read(record));
  communication.communicator = writer_.Intern(R::kCommunicator.Read(record));
  communication.data_type = static_cast<uint16_t>(kInvalidDataType);
  communication.bandwidth = static_cast<float>(R::kBandwidth.Read(record));
  SetDevice(R::kDevice.Read(record), &communication);
  AddTimed(TimesOf(R::kStart.Read(record), R::kEnd.Read(record), clock), communication);
}

void Translator::PutApi(uint32_t kind, const uint8_t* record, const ClockPair& clock) {
  using R = ApiRecord;
  attach::ApiRecord api{};
  api.thread = R::kThread.Read(record);
  api.correlation = R::kCorrelation.Read(record);
  api.name = writer_.Intern(R::kName.Read(record));
  api.level = static_cast<uint16_t>(LevelOf(kind));
  AddTimed(TimesOf(R::kStart.Read(record), R::kEnd.Read(record), clock), api);
}

void Translator::AwaitDevice(const attach::MarkerRecord& host) {
  if (host.flag < kLeastFlagWithDevice || host.name == 0) return;  // the end of a range has no name
  if (awaited_.size() >= kMaxAwaited) awaited_.erase(awaited_.begin());
  awaited_[host.id] = {host.name, host.domain};
}

void Translator::TakeTexts(attach::MarkerRecord* device) {
  const auto found = awaited_.find(device->id);
  if (found == awaited_.end()) return;
  device->name = found->second.name;
  device->domain = found->second.domain;
  awaited_.erase(found);
}

void Translator::PutMarker(const uint8_t* record, const ClockPair& clock) {
  using R = MarkerRecord;
  attach::MarkerRecord marker{};
  marker.flag = static_cast<uint16_t>(R::kFlag.Read(record));
  marker.id = R::kId.Read(record);
  marker.name = writer_.Intern(R::kName.Read(record));
  marker.domain = writer_.Intern(R::kDomain.Read(record));
  marker.stream = attach::kNoStream;
  const bool device = R::kSource.Read(record) == kSourceDevice;
  if (leaves_out_host_markers_ && !device) return AwaitDevice(marker);
  if (device) {
    TakeTexts(&marker);
    marker.source = static_cast<uint16_t>(attach::MarkerSource::kDevice);
    marker.stream = R::kStream.Read(record);
    SetDevice(R::kDevice.Read(record), &marker);
  } else {
    marker.thread = R::kThread.Read(record);
    SetDevice(kInvalidDevice, &marker);
  }
  writer_.AddAt(clock.ToRaw(R::kTimestamp.Read(record)), marker);
}

void Translator::PutExternal(const uint8_t* record, const ClockPair& clock) {
  using R = ExternalCorrelationRecord;
  writer_.Add(attach::ExternalCorrelationRecord{R::kCorrelation.Read(record),
                                                R::kExternalId.Read(record),
                                                R::kExternalKind.Read(record), 0},
              clock.raw_ns);
}

void Translator::PutMemory(const uint8_t* record, const ClockPair& clock) {
  using R = MemoryRecord;
  attach::MemoryRecord memory{};
  const bool release = R::kOperation.Read(record) == kRelease;
  memory.operation = static_cast<uint8_t>(release ? attach::MemoryOperation::kRelease
                                                  : attach::MemoryOperation::kAllocate);
  memory.detail = static_cast<uint16_t>(R::kMemoryKind.Read(record));
  memory.stream = R::kStream.Read(record);
  memory.correlation = R::kCorrelation.Read(record);
  memory.bytes = R::kBytes.Read(record);
  memory.address = R::kAddress.Read(record);
  SetDevice(R::kDevice.Read(record), &memory);
  AddTimed(TimesOf(R::kStart.Read(record), R::kEnd.Read(record), clock), memory);
}

void Translator::PutMemset(const uint8_t* record, const ClockPair& clock) {
  using R = MemsetRecord;
  attach::MemoryRecord memory{};
  memory.operation = static_cast<uint8_t>(attach::MemoryOperation::kSet);
  memory.is_async = R::kIsAsync.Read(record) != 0;
  memory.stream = R::kStream.Read(record);
  memory.correlation = R::kCorrelation.Read(record);
  memory.bytes = R::kBytes.Read(record);
  memory.address = R::kValue.Read(record);
  SetDevice(R::kDevice.Read(record), &memory);
  AddTimed(TimesOf(R::kStart.Read(record), R::kEnd.Read(record), clock), memory);
}

void Translator::PutMemcpy(const uint8_t* record, const ClockPair& clock) {
  using R = MemcpyRecord;
  attach::MemoryRecord memory{};
  memory.operation = static_cast<uint8_t>(attach::MemoryOperation::kCopy);
  memory.is_async = R::kIsAsync.Read(record) != 0;
  memory.detail = static_cast<uint16_t>(R::kCopyKind.Read(record));
  memory.stream = R::kStream.Read(record);
  memory.correlation = R::kCorrelation.Read(record);
  memory.bytes = R::kBytes.Read(record);
  SetDevice(R::kDevice.Read(record), &memory);
  AddTimed(TimesOf(R::kStart.Read(record), R::kEnd.Read(record), clock), memory);
}

void Translator::Put(uint32_t kind, const uint8_t* record, const ClockPair& clock) {
  switch (kind) {
    case kKernel:
      return PutKernel(record, clock);
    case kCommunication:
      return PutCommunication(record, clock);
    case kHccl:
      return PutHccl(record, clock);
    case kMarker:
      return PutMarker(record, clock);
    case kExternalCorrelation:
      return PutExternal(record, clock);
    case kMemory:
      return PutMemory(record, clock);
    case kMemset:
      return PutMemset(record, clock);
    case kMemcpy:
      return PutMemcpy(record, clock);
    default:
      return PutApi(kind, record, clock);
  }
}

std::string Translator::ClockStep::Text() const {
  std::array<char, 192> text{};
  std::snprintf(text.data(), text.size(),
                "CLOCK_REALTIME was set by %+.3f s between %.3f and %.3f s of CLOCK_MONOTONIC_RAW: times of some "
                "seconds after it may be off by that",
                static_cast<double>(by_ns) / 1e9, static_cast<double>(from_raw_ns) / 1e9,
                static_cast<double>(to_raw_ns) / 1e9);
  return text.data();
}

void Translator::NoteClock(const ClockPair& clock) {
  if (!clocks_.empty()) {
    ClockPair& last = clocks_.back();
    const int64_t elapsed_ns = clock.raw_ns - last.raw_ns;
    if (elapsed_ns <= 0) return;  // buffers may overtake each other
    const int64_t by_ns = clock.real_ns - last.real_ns - elapsed_ns;
    if (std::abs(by_ns) <= kLeastStepNs + elapsed_ns / kMostSlew) {
      last = clock;
      return;
    }
    step_ = {by_ns, last.raw_ns, clock.raw_ns};
  }
  if (clocks_.size() == kMostClocks) {
    clocks_.erase(clocks_.begin());
    for (size_t& in_use : clock_in_use_) in_use -= in_use > 0;
  }
  clocks_.push_back(clock);
}

void Translator::StartClocks(const ClockPair& now) {
  clocks_ = {now};
  clock_in_use_ = {};
  step_ = {};
}

// After a step of CLOCK_REALTIME the vendor's library has its pair of before for up to 7 s, and what of the host's
// times it does not convert follows at once. A record is made when it ends, while its buffer is lent: with another pair
// its end may lie outside of that. As long as it does not the pair stays: steps and delays may be equally long.
const ClockPair& Translator::ClockOf(uint32_t kind, const uint8_t* record, const ClockPair& clock) {
  if (oldest_clock_ + 1 == clocks_.size() || kind == kExternalCorrelation) return clock;
  const uint64_t end = LastTime(kind, record);
  const auto fits = [&](const ClockPair& pair) {
    const int64_t end_ns = pair.ToRaw(end);
    return end_ns >= lent_raw_ns_ - kDeviceDelayNs && end_ns <= returned_raw_ns_ + kLeastStepNs;
  };
  size_t& in_use = clock_in_use_[HasDeviceTimes(kind, record) ? 1 : 0];
  if (!fits(clocks_[in_use])) {
    size_t newest = clocks_.size();
    while (newest > oldest_clock_ && !fits(clocks_[newest - 1])) --newest;
    if (newest > oldest_clock_) in_use = newest - 1;
  }
  return clocks_[in_use];
}

void Translator::Walk(const uint8_t* data, size_t valid, const ClockPair& clock, int64_t lent_raw_ns) {
  using attach::LossReason;
  NoteClock(clock);
  lent_raw_ns_ = lent_raw_ns;
  returned_raw_ns_ = clock.raw_ns;
  const auto may_be_in_use = [&](const ClockPair& pair) { return pair.raw_ns + kKeptNs >= lent_raw_ns; };
  const auto oldest = std::find_if(clocks_.begin(), clocks_.end() - 1, may_be_in_use);
  oldest_clock_ = static_cast<size_t>(oldest - clocks_.begin());
  for (size_t& in_use : clock_in_use_) {
    if (in_use < oldest_clock_) in_use = clocks_.size() - 1;
  }
  bool clock_told = false;
  for (size_t at = 0; at < valid;) {
    const size_t left = valid - at;
    if (left < kKindField.end()) {
      return writer_.CountLostBytes(LossReason::kCutBuffer, left, clock.raw_ns);
    }
    const uint32_t kind = kKindField.Read(data + at);
    const size_t size = RecordSize(kind);
    if (size == 0) return writer_.CountLostBytes(LossReason::kUnknownKind, left, clock.raw_ns);
    if (size > left) return writer_.CountLostBytes(LossReason::kCutBuffer, left, clock.raw_ns);
    if (!clock_told) {
      const auto first = static_cast<int64_t>(FirstTime(kind, data + at));
      const ClockPair& used = ClockOf(kind, data + at, clock);
      writer_.Add(attach::ClockRecord{used.real_ns, used.raw_ns, first}, clock.raw_ns);
      clock_told = true;
    }
    Put(kind, data + at, ClockOf(kind, data + at, clock));
    ++records_;
    device_records_ += IsOfDevice(kind);
    at += size;
  }
}

}  // namespace profd::lib::mspti
