#include <algorithm>
#include <array>
#include <vector>

#include "driver/abi/channels.h"
#include "sim/emitters.h"
#include "sim/host_counter.h"

namespace profd::sim {
namespace {

uint64_t SinceStartUs(const Tick& tick) {
  return static_cast<uint64_t>((tick.now_ns - tick.start_ns) / 1'000);
}

// What one of `parts` equal units (HBM stacks, DDR channels, cache slices) counted between two
// instants. Differences of a floored total, so counts over any span add up to the span's total.
uint64_t PartCount(const DeviceModel& model, Quantity quantity, const Tick& tick,
                   uint64_t divisor) {
  return model.Total(quantity, tick.scenario_ns) / divisor -
         model.Total(quantity, tick.before_ns) / divisor;
}

class HbmEmitter final : public Emitter {
 public:
  HbmEmitter(Target target, std::vector<uint32_t> events)
      : target_(target), events_(std::move(events)) {}
  void Emit(const Tick& tick, std::string* out) override {
    for (uint32_t id = 0; id < kIds; ++id) {
      for (uint32_t event : events_) {
        const Quantity quantity = event == 0 ? kHbmRead : kHbmWrite;
        AppendLe(SinceStartUs(tick), out);
        AppendLe(PartCount(target_.model(), quantity, tick, kIds * kUnitBytes), out);
        AppendLe(event, out);
        AppendLe(id, out);
      }
    }
  }
  size_t BytesPerTick() const override { return 24 * kIds * events_.size(); }

 private:
  static constexpr uint32_t kIds = 4;  // the analyser's fixed assumption
  static constexpr uint64_t kUnitBytes = 32;
  Target target_;
  std::vector<uint32_t> events_;
};

class DdrEmitter final : public Emitter {
 public:
  DdrEmitter(Target target, std::vector<uint32_t> events, uint32_t master)
      : target_(target), events_(std::move(events)), master_(master) {}
  void Emit(const Tick& tick, std::string* out) override {
    for (uint32_t event : events_) {
      const Quantity quantity = event == 0 ? kDdrRead : kDdrWrite;
      AppendLe(static_cast<uint32_t>(SinceStartUs(tick)), out);
      AppendLe(static_cast<uint32_t>(PartCount(target_.model(), quantity, tick, kUnitBytes)), out);
      AppendLe(event, out);
      AppendLe(uint32_t{0}, out);  // one controller
      AppendLe(master_, out);
    }
  }
  size_t BytesPerTick() const override { return 20 * events_.size(); }

 private:
  static constexpr uint64_t kUnitBytes = 32;  // 256 bit
  Target target_;
  std::vector<uint32_t> events_;
  uint32_t master_;
};

// Eight PMU events per slice. Events 0 and 1 add up to the accesses, 4 and 6 to the look-ups, 2, 3,
// 5 and 7 to the hits.
class LlcEmitter final : public Emitter {
 public:
  LlcEmitter(Target target, bool write) : target_(target), codes_(write ? kWrite : kRead) {}
  void Emit(const Tick& tick, std::string* out) override {
    const uint64_t ids = target_.chip().llc_ids;
    const uint64_t lines = PartCount(target_.model(), kLlcLines, tick, ids);
    const uint64_t hits = std::min(lines, PartCount(target_.model(), kLlcHits, tick, ids));
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
      for (size_t event = 0; event < counts.size(); ++event) {
        AppendLe(SinceStartUs(tick), out);
        AppendLe(counts[event], out);
        AppendLe(codes_[event], out);
        AppendLe(id, out);
      }
    }
  }
  size_t BytesPerTick() const override { return size_t{24} * 8 * target_.chip().llc_ids; }

 private:
  static constexpr std::array<uint32_t, 8> kRead = {0x00, 0x01, 0x02, 0x13, 0x20, 0x22, 0x34, 0x36};
  static constexpr std::array<uint32_t, 8> kWrite = {0x00, 0x01, 0x03, 0x14,
                                                     0x21, 0x23, 0x35, 0x37};
  Target target_;
  std::array<uint32_t, 8> codes_;
};

class NpuMemEmitter final : public Emitter {
 public:
  NpuMemEmitter(Target target, uint32_t event) : target_(target), event_(event) {}
  void Emit(const Tick& tick, std::string* out) override {
    const DeviceModel& model = target_.model();
    const bool app = event_ == 0;
    AppendLe(static_cast<uint32_t>(SinceStartUs(tick)), out);
    AppendLe(event_, out);
    AppendLe(uint64_t{0}, out);
    AppendLe(app ? model.DdrUsedBytes(tick.scenario_ns) / 2 : model.DdrUsedBytes(tick.scenario_ns),
             out);
    AppendLe(app ? model.HbmAppBytes(tick.scenario_ns) : model.HbmUsedBytes(tick.scenario_ns), out);
  }
  size_t BytesPerTick() const override { return 32; }

 private:
  Target target_;
  uint32_t event_;
};

class ModuleMemEmitter final : public Emitter {
 public:
  ModuleMemEmitter(Target target, bool host_cycles) : target_(target), host_cycles_(host_cycles) {}
  void Emit(const Tick& tick, std::string* out) override {
    const uint64_t timestamp =
        host_cycles_ ? HostCounterAt(target_.node->clock(), target_.node->played().ToReal(
                                                                target_.clock().ToHost(tick.now_ns)))
                     : target_.clock().Counter(tick.now_ns);
    for (const ModuleMemory& module : ModuleTable()) {
      AppendLe(module.id, out);
      AppendLe(uint32_t{0}, out);
      AppendLe(timestamp, out);
      AppendLe(target_.model().ModuleBytes(module, tick.scenario_ns), out);
    }
  }
  size_t BytesPerTick() const override { return 24 * ModuleTable().size(); }

 private:
  Target target_;
  bool host_cycles_;
};

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
    return start.Periodic(24, para.sample_period,
                          std::make_unique<HbmEmitter>(start.target, std::move(events)));
  }
  return start.Periodic(20, para.sample_period,
                        std::make_unique<DdrEmitter>(start.target, std::move(events), head[1]));
}

std::unique_ptr<RecordStream> MakeLlc(const StreamStart& start) {
  const auto config = start.CopyExactly<abi::LlcCfg>();
  if (!config || !ValidPeriod(start.para.sample_period) || !ValidPeriod(config->period) ||
      (config->sample_type != abi::kLlcSampleRead && config->sample_type != abi::kLlcSampleWrite)) {
    return nullptr;
  }
  const bool write = config->sample_type == abi::kLlcSampleWrite;
  return start.Periodic(24, start.para.sample_period,
                        std::make_unique<LlcEmitter>(start.target, write));
}

std::unique_ptr<RecordStream> MakeMem(const StreamStart& start) {
  const auto config = start.CopyExactly<abi::MemCfg>();
  const bool device = start.channel == abi::kChannelNpuMem;
  if (!config || !ValidPeriod(start.para.sample_period) || !ValidPeriod(config->period) ||
      config->event != (device ? abi::kMemCfgEventDevice : abi::kMemCfgEventApp)) {
    return nullptr;
  }
  if (start.channel == abi::kChannelNpuModuleMem) {
    return start.Periodic(24, start.para.sample_period,
                          std::make_unique<ModuleMemEmitter>(start.target, config->res1 == 1));
  }
  return start.Periodic(32, start.para.sample_period,
                        std::make_unique<NpuMemEmitter>(start.target, config->event));
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
