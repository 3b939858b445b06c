#include <algorithm>
#include <array>
#include <vector>

#include "driver/abi/channels.h"
#include "sim/emitters.h"
#include "sim/host_counter.h"

namespace profd::sim {
namespace {

constexpr uint64_t kUnitBytes = 32;  // what HBM and DDR count in: 256 bit

uint64_t SinceStartUs(const Tick& tick) {
  return static_cast<uint64_t>((tick.now_ns - tick.start_ns) / 1'000);
}

// What one of `divisor` equal units (HBM stacks, DDR channels, cache slices) counted between two
// instants. Differences of a floored total, so counts over any span add up to the span's total.
uint64_t PartCount(const Target& target, Quantity quantity, const Tick& tick, uint64_t divisor) {
  return target.model().Total(quantity, tick.scenario_ns) / divisor -
         target.model().Total(quantity, tick.before_ns) / divisor;
}

Emitter HbmEmitter(Target target, std::vector<uint32_t> events) {
  constexpr uint32_t kIds = 4;  // the analyser's fixed assumption
  return {24 * kIds * events.size(), [target, events](const Tick& tick, std::string* out) {
    for (uint32_t id = 0; id < kIds; ++id) {
      for (uint32_t event : events) {
        const Quantity quantity = event == 0 ? kHbmRead : kHbmWrite;
        AppendLe(out, SinceStartUs(tick), PartCount(target, quantity, tick, kIds * kUnitBytes), event, id);
      }
    }
  }};
}

Emitter DdrEmitter(Target target, std::vector<uint32_t> events, uint32_t master) {
  return {20 * events.size(), [target, events, master](const Tick& tick, std::string* out) {
    for (uint32_t event : events) {
      const uint64_t count = PartCount(target, event == 0 ? kDdrRead : kDdrWrite, tick, kUnitBytes);
      constexpr uint32_t kController = 0;  // there is one
      AppendLe(out, static_cast<uint32_t>(SinceStartUs(tick)), static_cast<uint32_t>(count), event, kController,
               master);
    }
  }};
}

// Eight PMU events per slice. Events 0 and 1 add up to the accesses, 4 and 6 to the look-ups, 2, 3,
// 5 and 7 to the hits.
Emitter LlcEmitter(Target target, bool write) {
  using Codes = std::array<uint32_t, 8>;
  const Codes codes = write ? Codes{0x00, 0x01, 0x03, 0x14, 0x21, 0x23, 0x35, 0x37}
                            : Codes{0x00, 0x01, 0x02, 0x13, 0x20, 0x22, 0x34, 0x36};
  return {size_t{24} * codes.size() * target.chip().llc_ids, [target, codes](const Tick& tick, std::string* out) {
    const uint64_t ids = target.chip().llc_ids;
    const uint64_t lines = PartCount(target, kLlcLines, tick, ids);
    const uint64_t hits = std::min(lines, PartCount(target, kLlcHits, tick, ids));
    std::array<uint64_t, 8> counts{};
    counts[1] = lines / 3;
    counts[0] = lines - counts[1];
    counts[6] = lines * 2 / 5;
    counts[4] = lines - counts[6];
    counts[2] = hits / 3;
    counts[3] = hits / 4;
    counts[5] = hits / 5;
    counts[7] = hits - counts[2] - counts[3] - counts[5];
    for (uint32_t id = 0; id < ids; ++id) {
      for (size_t i = 0; i < counts.size(); ++i) AppendLe(out, SinceStartUs(tick), counts[i], codes[i], id);
    }
  }};
}

Emitter NpuMemEmitter(Target target, uint32_t event) {
  return {32, [target, event](const Tick& tick, std::string* out) {
    const DeviceModel& model = target.model();
    const bool app = event == 0;
    const uint64_t ddr = model.DdrUsedBytes(tick.scenario_ns);
    AppendLe(out, static_cast<uint32_t>(SinceStartUs(tick)), event, uint64_t{0}, app ? ddr / 2 : ddr,
             app ? model.HbmAppBytes(tick.scenario_ns) : model.HbmUsedBytes(tick.scenario_ns));
  }};
}

Emitter ModuleMemEmitter(Target target, bool host_cycles) {
  return {24 * ModuleTable().size(), [target, host_cycles](const Tick& tick, std::string* out) {
    const int64_t host_ns = target.node->played().ToReal(target.clock().ToHost(tick.now_ns));
    const uint64_t timestamp =
        host_cycles ? HostCounterAt(target.node->clock(), host_ns) : target.clock().Counter(tick.now_ns);
    for (const ModuleMemory& module : ModuleTable()) {
      AppendLe(out, module.id, uint32_t{0}, timestamp, target.model().ModuleBytes(module, tick.scenario_ns));
    }
  }};
}

std::unique_ptr<RecordStream> MakeMemEvent(const StreamStart& start) {
  const abi::ProfStartPara& para = start.para;
  if (para.user_data == nullptr || para.user_data_size < abi::kMemEventCfgHead ||
      !ValidPeriod(para.sample_period)) {
    return nullptr;
  }
  uint32_t head[3];
  std::memcpy(head, para.user_data, sizeof head);
  const uint32_t count = head[2];
  constexpr uint32_t kMaxEvents = 2;
  if (count < 1 || count > kMaxEvents || para.user_data_size != abi::kMemEventCfgHead + 4 * count ||
      !ValidPeriod(head[0])) {
    return nullptr;
  }
  std::vector<uint32_t> events(count);
  std::memcpy(events.data(), static_cast<const char*>(para.user_data) + sizeof head, 4 * count);
  for (uint32_t event : events) {
    if (event != abi::kMemEventRead && event != abi::kMemEventWrite) return nullptr;
  }
  if (start.channel == abi::kChannelHbm) {
    return start.Periodic(24, para.sample_period, HbmEmitter(start.target, std::move(events)));
  }
  return start.Periodic(20, para.sample_period, DdrEmitter(start.target, std::move(events), head[1]));
}

std::unique_ptr<RecordStream> MakeLlc(const StreamStart& start) {
  const auto config = start.CopyExactly<abi::LlcCfg>();
  if (!config || !ValidPeriod(start.para.sample_period) || !ValidPeriod(config->period) ||
      (config->sample_type != abi::kLlcSampleRead && config->sample_type != abi::kLlcSampleWrite)) {
    return nullptr;
  }
  const bool write = config->sample_type == abi::kLlcSampleWrite;
  return start.Periodic(24, start.para.sample_period, LlcEmitter(start.target, write));
}

std::unique_ptr<RecordStream> MakeMem(const StreamStart& start) {
  const auto config = start.CopyExactly<abi::MemCfg>();
  const bool device = start.channel == abi::kChannelNpuMem;
  if (!config || !ValidPeriod(start.para.sample_period) || !ValidPeriod(config->period) ||
      config->event != (device ? abi::kMemCfgEventDevice : abi::kMemCfgEventApp)) {
    return nullptr;
  }
  if (start.channel == abi::kChannelNpuModuleMem) {
    return start.Periodic(24, start.para.sample_period, ModuleMemEmitter(start.target, config->res1 == 1));
  }
  return start.Periodic(32, start.para.sample_period, NpuMemEmitter(start.target, config->event));
}

}  // namespace

std::span<const StreamSource> MemoryStreams() {
  static constexpr auto kSources = std::to_array<StreamSource>({
      {abi::kChannelHbm, MakeMemEvent},
      {abi::kChannelDdr, MakeMemEvent},
      {abi::kChannelLlc, MakeLlc},
      {abi::kChannelNpuAppMem, MakeMem},
      {abi::kChannelNpuMem, MakeMem},
      {abi::kChannelNpuModuleMem, MakeMem},
  });
  return kSources;
}

}  // namespace profd::sim
