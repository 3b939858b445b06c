// Device memory in use: application, device, software modules (channels 130, 131, 142).
#include <fmt/format.h>

#include "collectors/channel_decoder.h"
#include "collectors/channel_plan.h"
#include "collectors/collector_list.h"
#include "collectors/metric_table.h"
#include "driver/abi/hal_abi.h"
#include "driver/records/micros_widener.h"
#include "driver/records/module_mem.h"
#include "driver/records/npu_mem.h"

namespace profd {
namespace {

constexpr CollectorSpec kNpuMemSpec = {
    .name = "npu_mem",
    .source = CollectorSource::kChannel,
    .summary = "device memory in use: application, device, software modules",
    .options = {{{.key = "sys_hardware_mem_freq"}}},
    .default_hz = 50,
    .max_hz = 100,
};

using records::ModuleMemRecord;
using records::NpuMemRecord;

constexpr std::array<std::string_view, NpuMemRecord::kKinds> kKinds = {"app", "device"};

class UsageDecoder final : public BinaryDecoder<UsageDecoder, NpuMemRecord> {
 public:
  UsageDecoder(int device, SeriesRegistry& registry) : series_(registry) {
    constexpr MetricId kUsed = MetricByName("atlas_npu_memory_used_bytes");
    for (size_t kind = 0; kind < kKinds.size(); ++kind) {
      ids_[kind] = {series_.Add(kUsed, device, {kKinds[kind], "ddr"}),
                    series_.Add(kUsed, device, {kKinds[kind], "hbm"})};
    }
  }

  bool DecodeRecord(const NpuMemRecord& record, const TimeBase& time, SampleBatch& out) {
    std::optional<Timestamp> timestamp = TimestampFromMicros(micros_.Widen(record.timestamp), time);
    double seconds = 0;
    if (!timestamp || !record.IsPlausible() ||
        timers_[record.kind].Next(*timestamp, &seconds) == IntervalTimer::Step::kNotLater) {
      return false;
    }
    out.Emit(ids_[record.kind][0], timestamp->host_ns, static_cast<double>(record.ddr_bytes));
    out.Emit(ids_[record.kind][1], timestamp->host_ns, static_cast<double>(record.hbm_bytes));
    return true;
  }

  void Reset() override {
    micros_ = {};
    for (IntervalTimer& timer : timers_) timer.Reset();
  }

 private:
  SeriesSet series_;
  records::MicrosWidener micros_;
  std::array<std::array<SeriesId, 2>, kKinds.size()> ids_;
  std::array<IntervalTimer, kKinds.size()> timers_;  // refuse repeated timestamps
};

class ModuleDecoder final : public BinaryDecoder<ModuleDecoder, ModuleMemRecord> {
 public:
  ModuleDecoder(int device, SeriesRegistry& registry) : device_(device), series_(registry) {}

  bool DecodeRecord(const ModuleMemRecord& record, const TimeBase& time, SampleBatch& out) {
    std::optional<Timestamp> timestamp = TimestampFromHostCount(record.timestamp, time);
    if (!timestamp || !record.IsPlausible()) return false;
    if (!record.IsKnown()) return true;
    const uint32_t id = record.module;
    Module* module = modules_.FindOrAdd(id, [this, id] { return MakeModule(id); });
    double seconds = 0;
    if (module == nullptr ||
        module->timer.Next(*timestamp, &seconds) == IntervalTimer::Step::kNotLater) {
      return false;
    }
    out.Emit(module->reserved, timestamp->host_ns, static_cast<double>(record.bytes));
    return true;
  }

  void Reset() override {
    for (Module& module : modules_.states()) module.timer.Reset();
  }

 private:
  struct Module {
    SeriesId reserved = kNoSeries;
    IntervalTimer timer{};  // refuses repeated timestamps
  };

  Module MakeModule(uint32_t id) {
    constexpr MetricId kReserved = MetricByName("atlas_npu_module_memory_reserved_bytes");
    std::string name(records::ModuleName(id));
    if (name.empty()) name = fmt::format("MODULE_{}", id);
    return {.reserved = series_.Add(kReserved, device_, {name})};
  }

  int device_;
  SeriesSet series_;
  IdTable<Module> modules_;
};

constexpr std::array<uint32_t, 3> kChannels = {abi::kChannelNpuAppMem, abi::kChannelNpuMem,
                                               abi::kChannelNpuModuleMem};

Status ProbeNpuMem(const Host&, const DeviceInfo& device) {
  return NeedAnyChannel(device, {kChannels[0], kChannels[1], kChannels[2]});
}

std::vector<ChannelRequest> PlanNpuMem(const DeviceInfo& device, const ChannelOptions& options) {
  std::vector<ChannelRequest> requests;
  for (uint32_t channel : kChannels) {
    if (!HasChannel(device, channel)) continue;
    ChannelRequest request = PeriodicRequest(channel, PeriodMs(options.hz, kMinMemoryPeriodMs));
    abi::MemCfg config{};
    config.period = request.sample_period_ms;
    config.event = channel == abi::kChannelNpuMem ? abi::kMemCfgEventDevice : abi::kMemCfgEventApp;
    // Requests timestamps in host counter cycles, which is only useful when their length is known.
    config.res1 = channel == abi::kChannelNpuModuleMem && options.host_counter_hz > 0 ? 1 : 0;
    request.user_data = UserData(config);
    requests.push_back(std::move(request));
  }
  return requests;
}

std::unique_ptr<ChannelDecoder> MakeNpuMemDecoder(const DeviceInfo& device, uint32_t channel,
                                                  SeriesRegistry& registry) {
  if (channel == abi::kChannelNpuModuleMem) {
    return std::make_unique<ModuleDecoder>(device.id, registry);
  }
  return std::make_unique<UsageDecoder>(device.id, registry);
}

}  // namespace

constinit const CollectorEntry kNpuMemCollector = {
    .spec = &kNpuMemSpec,
    .probe_device = ProbeNpuMem,
    .plan = PlanNpuMem,
    .make_decoder = MakeNpuMemDecoder,
};

}  // namespace profd
