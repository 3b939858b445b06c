#include "client/libprofd/mspti/translator.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "client/libprofd/mspti/mspti_abi.h"
#include "proto/attach/device_environment.h"

namespace profd::lib::mspti {
namespace {

constexpr size_t kMaxVisible = 64;
constexpr uint16_t kLeastFlagWithDevice = 8;
constexpr int64_t kLeastStepNs = 1'000'000;
constexpr int64_t kMostSlew = 2000;                 // 1/2000: the kernel's limit, 500 ppm
constexpr int64_t kDeviceDelayNs = 200'000'000;  // from the end of a task to its record

struct Span {
  uint64_t first = 0;
  uint64_t last = 0;
};

template <class Record>
Span SpanOf(const uint8_t* bytes) {
  const auto record = Read<Record>(bytes);
  return {record.start, record.end};
}

Span SpanOf(uint32_t kind, const uint8_t* record) {
  switch (kind) {
    case kMarker:
      return {Read<MarkerRecord>(record).timestamp, Read<MarkerRecord>(record).timestamp};
    case kMemory:
      return SpanOf<MemoryRecord>(record);
    case kMemset:
      return SpanOf<MemsetRecord>(record);
    case kMemcpy:
      return SpanOf<MemcpyRecord>(record);
    case kCommunication:
      return SpanOf<CommunicationRecord>(record);
    case kExternalCorrelation:
      return {};
    default:
      return SpanOf<ApiRecord>(record);  // times are where they are in all the others, too
  }
}

bool IsOfDevice(uint32_t kind) { return kind == kKernel || kind == kCommunication || kind == kHccl; }

bool HasDeviceTimes(uint32_t kind, const uint8_t* record) {
  return kind == kMarker ? Read<MarkerRecord>(record).source == kSourceDevice : IsOfDevice(kind);
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

// "2,3,0" or "4-7"; empty: none, or no such list.
std::vector<uint16_t> ReadDevices(std::string_view text) {
  std::vector<uint16_t> devices;
  const auto skip_blanks = [&text] { text.remove_prefix(std::min(text.find_first_not_of(' '), text.size())); };
  const auto read_number = [&](uint16_t* number) {
    skip_blanks();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    skip_blanks();
    return error == std::errc();
  };
  while (!text.empty()) {
    uint16_t first = 0;
    if (!read_number(&first)) return {};
    uint16_t last = first;
    if (text.starts_with('-')) {
      text.remove_prefix(1);
      if (!read_number(&last) || last < first) return {};
    }
    if (last - first >= static_cast<int>(kMaxVisible - devices.size())) return {};
    for (int device = first; device <= last; ++device) devices.push_back(static_cast<uint16_t>(device));
    if (text.empty()) break;
    if (text.front() != ',') return {};
    text.remove_prefix(1);
  }
  return devices;
}

}  // namespace

std::vector<uint16_t> VisibleDevices() {
  for (const char* name : attach::kVisibleDevicesVariables) {
    const char* text = ::getenv(name);
    if (text == nullptr) continue;
    std::vector<uint16_t> devices = ReadDevices(text);
    if (!devices.empty()) return devices;
  }
  return {};
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

void Translator::PutKernel(const uint8_t* bytes, const ClockPair& clock) {
  const auto record = Read<KernelRecord>(bytes);
  attach::KernelRecord kernel{};
  kernel.stream = record.stream;
  kernel.correlation = record.correlation;
  kernel.name = writer_.Intern(record.name);
  kernel.type = static_cast<uint16_t>(writer_.Intern(record.type));
  SetDevice(record.device, &kernel);
  AddTimed(TimesOf(record.start, record.end, clock), kernel);
}

void Translator::PutCommunication(const uint8_t* bytes, const ClockPair& clock) {
  const auto record = Read<CommunicationRecord>(bytes);
  attach::CommunicationRecord communication{};
  communication.stream = record.stream;
  communication.correlation = record.correlation;
  communication.count = record.count;
  communication.name = writer_.Intern(record.name);
  communication.communicator = writer_.Intern(record.communicator);
  communication.algorithm = writer_.Intern(record.algorithm);
  communication.data_type = static_cast<uint16_t>(record.data_type);
  SetDevice(record.device, &communication);
  AddTimed(TimesOf(record.start, record.end, clock), communication);
}

void Translator::PutHccl(const uint8_t* bytes, const ClockPair& clock) {
  const auto record = Read<HcclRecord>(bytes);
  attach::CommunicationRecord communication{};
  communication.stream = record.stream;
  communication.name = writer_.Intern(record.name);
  communication.communicator = writer_.Intern(record.communicator);
  communication.data_type = static_cast<uint16_t>(kInvalidDataType);
  communication.bandwidth = static_cast<float>(record.bandwidth);
  SetDevice(record.device, &communication);
  AddTimed(TimesOf(record.start, record.end, clock), communication);
}

void Translator::PutApi(uint32_t kind, const uint8_t* bytes, const ClockPair& clock) {
  const auto record = Read<ApiRecord>(bytes);
  attach::ApiRecord api{};
  api.thread = record.thread;
  api.correlation = record.correlation;
  api.name = writer_.Intern(record.name);
  api.level = static_cast<uint16_t>(LevelOf(kind));
  AddTimed(TimesOf(record.start, record.end, clock), api);
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

void Translator::PutMarker(const uint8_t* bytes, const ClockPair& clock) {
  const auto record = Read<MarkerRecord>(bytes);
  attach::MarkerRecord marker{};
  marker.flag = static_cast<uint16_t>(record.flag);
  marker.id = record.id;
  marker.name = writer_.Intern(record.name);
  marker.domain = writer_.Intern(record.domain);
  marker.stream = attach::kNoStream;
  const bool device = record.source == kSourceDevice;
  if (leaves_out_host_markers_ && !device) return AwaitDevice(marker);
  if (device) {
    TakeTexts(&marker);
    marker.source = static_cast<uint16_t>(attach::MarkerSource::kDevice);
    marker.stream = record.thread_or_stream;
    SetDevice(record.process_or_device, &marker);
  } else {
    marker.thread = record.thread_or_stream;
    SetDevice(kInvalidDevice, &marker);
  }
  writer_.AddAt(clock.ToRaw(record.timestamp), marker);
}

void Translator::PutExternal(const uint8_t* bytes, const ClockPair& clock) {
  const auto record = Read<ExternalCorrelationRecord>(bytes);
  writer_.Add(attach::ExternalCorrelationRecord{record.correlation, record.external_id, record.external_kind, 0}, clock.raw_ns);
}

template <class Record>
void Translator::AddMemory(const Record& record, attach::MemoryOperation operation, attach::MemoryRecord memory, const ClockPair& clock) {
  memory.operation = static_cast<uint8_t>(operation);
  memory.stream = record.stream;
  memory.correlation = record.correlation;
  memory.bytes = record.bytes;
  SetDevice(record.device, &memory);
  AddTimed(TimesOf(record.start, record.end, clock), memory);
}

void Translator::PutMemory(const uint8_t* bytes, const ClockPair& clock) {
  const auto record = Read<MemoryRecord>(bytes);
  attach::MemoryRecord memory{};
  memory.detail = static_cast<uint16_t>(record.memory_kind);
  memory.address = record.address;
  AddMemory(record, record.operation == kRelease ? attach::MemoryOperation::kRelease : attach::MemoryOperation::kAllocate, memory, clock);
}

void Translator::PutMemset(const uint8_t* bytes, const ClockPair& clock) {
  const auto record = Read<MemsetRecord>(bytes);
  attach::MemoryRecord memory{};
  memory.is_async = record.is_async != 0;
  memory.address = record.value;
  AddMemory(record, attach::MemoryOperation::kSet, memory, clock);
}

void Translator::PutMemcpy(const uint8_t* bytes, const ClockPair& clock) {
  const auto record = Read<MemcpyRecord>(bytes);
  attach::MemoryRecord memory{};
  memory.is_async = record.is_async != 0;
  memory.detail = static_cast<uint16_t>(record.copy_kind);
  AddMemory(record, attach::MemoryOperation::kCopy, memory, clock);
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
  const uint64_t end = SpanOf(kind, record).last;
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
    if (left < sizeof(uint32_t)) {
      return writer_.CountLostBytes(LossReason::kCutBuffer, left, clock.raw_ns);
    }
    const uint32_t kind = Read<uint32_t>(data + at);
    const size_t size = RecordSize(kind);
    if (size == 0) return writer_.CountLostBytes(LossReason::kUnknownKind, left, clock.raw_ns);
    if (size > left) return writer_.CountLostBytes(LossReason::kCutBuffer, left, clock.raw_ns);
    if (!clock_told) {
      const auto first = static_cast<int64_t>(SpanOf(kind, data + at).first);
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
