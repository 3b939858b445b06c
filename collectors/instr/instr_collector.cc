// Instruction profiling of the AI Cores (910B, one channel for each core of a core group). There are no live metrics:
// a record comes every few hundred cycles.
#include <fmt/format.h>

#include "collectors/channel_decoder.h"
#include "collectors/channel_plan.h"
#include "collectors/collector_list.h"
#include "driver/abi/channels.h"
#include "driver/abi/hal_abi.h"

namespace profd {
namespace {

constexpr double kDefaultCycles = 1000;  // AI Core cycles between records, the vendor's default

int64_t CyclesOf(double number) {
  return static_cast<int64_t>(number > 0 ? number : kDefaultCycles);
}

std::string InstrBusy(double cycles) {
  return fmt::format("profiles instructions every {} cycles", CyclesOf(cycles));
}

constexpr CollectorSpec kInstrSpec = {
    .name = "instr",
    .source = CollectorSource::kChannel,
    .summary = "bandwidth and latency of AI Core and AI Vector instructions",
    .options = {{{.key = "instr_profiling_freq", .use = OptionUse::kNumber, .busy = InstrBusy}}},
    .max_hz = 0,
};

// The 950 has channels of the same numbers with other parameters and records (driver-abi 3.5).
Status ProbeInstr(const Host&, const DeviceInfo& device) {
  Status listed = NeedAnyChannel(device, {abi::InstrChannel(0, 0)});
  if (!listed.ok() || device.chip_id == static_cast<int>(abi::kChip910B)) return listed;
  return Unimplemented("Ascend910B (A2) only");
}

std::vector<ChannelRequest> PlanInstr(const DeviceInfo& device, const ChannelOptions& options) {
  std::vector<ChannelRequest> plan;
  if (device.chip_id != static_cast<int>(abi::kChip910B)) return plan;
  const abi::InstrProfileCfg config = {
      .period = static_cast<uint32_t>(CyclesOf(options.values[0])), .pc_sampling = 0};
  for (uint32_t group = 0; group < abi::kInstrGroups; ++group) {
    for (uint32_t core = 0; core < abi::kInstrCores; ++core) {
      const uint32_t channel = abi::InstrChannel(group, core);
      if (!HasChannel(device, channel)) continue;
      plan.push_back({.channel = channel, .task_scheduler_owned = true, .user_data = UserData(config)});
    }
  }
  return plan;
}

// Counts records: their fields are for exports.
template <size_t kRecordSize>
class InstrDecoder final : public BinaryDecoder<InstrDecoder<kRecordSize>,
                                                std::array<std::byte, kRecordSize>> {
 public:
  bool DecodeRecord(const std::array<std::byte, kRecordSize>&, const TimeBase&, SampleBatch&) {
    return true;
  }
  void Reset() override {}
};

std::unique_ptr<ChannelDecoder> MakeInstrDecoder(const DeviceInfo&, uint32_t channel, SeriesRegistry&) {
  if (abi::FindChannelFormat(channel)->record_size == abi::InstrRecordSize(0)) {
    return std::make_unique<InstrDecoder<abi::InstrRecordSize(0)>>();
  }
  return std::make_unique<InstrDecoder<abi::InstrRecordSize(1)>>();
}

SampleFields InstrSampleJson(const ChannelOptions& options, std::span<const DeviceInfo* const>) {
  return {{"instrProfiling", "on"}, {"instrProfilingFreq", CyclesOf(options.values[0])}};
}

}  // namespace

constinit const CollectorEntry kInstrCollector = {
    .spec = &kInstrSpec,
    .probe_device = ProbeInstr,
    .plan = PlanInstr,
    .make_decoder = MakeInstrDecoder,
    .sample = InstrSampleJson,
};

}  // namespace profd
