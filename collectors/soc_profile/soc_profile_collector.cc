// Inter-die and inter-chip traffic, accelerator PMU, SoC levels, low power (channel 52).
#include <algorithm>

#include "collectors/channel_plan.h"
#include "collectors/collector_list.h"
#include "collectors/soc_profile/soc_profile_records.h"
#include "driver/abi/channels.h"
#include "driver/abi/hal_abi.h"
#include "driver/records/soc_profile.h"

namespace profd {
namespace {

// The parts of channel 52 (driver-abi 3.4), by place of their options.
constexpr size_t kMemory = 0;        // on-chip memory, QoS, accelerator PMU
constexpr size_t kInterconnect = 1;  // between dies and between chips

constexpr auto kRecordParts = std::to_array<RecordPart>({
    {static_cast<uint8_t>(abi::SocProfileType::kQos), kMemory},
    // Its records arrive every 20 ms whatever rate is requested.
    {static_cast<uint8_t>(abi::SocProfileType::kAccPmu), kMemory, false},
    {static_cast<uint8_t>(abi::SocProfileType::kSocLevels), kMemory},
    {static_cast<uint8_t>(abi::SocProfileType::kSio), kInterconnect},
    {static_cast<uint8_t>(abi::SocProfileType::kChipTrans), kInterconnect},
});

constexpr CollectorSpec kSocProfileSpec = {
    .name = "soc_profile",
    .source = CollectorSource::kChannel,
    .summary = "inter-die and inter-chip traffic, accelerator PMU, SoC levels, low power",
    .options = {{{.key = "sys_hardware_mem_freq", .use = OptionUse::kPart},
                 {.key = "sys_interconnection_freq", .use = OptionUse::kPart}}},
    .default_hz = 50,
    .max_hz = 100,
    .record_parts = kRecordParts,
};

constexpr uint32_t kLowPowerMicros = 10'000;
constexpr uint32_t kAccPmuPeriodMs = 20;  // whatever rate is requested (driver-abi 3.4)
constexpr uint32_t kMicrosPerMs = 1000;

// The on-chip part's period, in the driver's unit for this chip.
uint32_t MemoryPeriod(double hz, bool in_micros) {
  if (!in_micros) return PeriodMs(hz, kMinMemoryPeriodMs);
  constexpr double kMaxMicros = 1e6;
  constexpr double kMinMicros = 100;  // 10 kHz, the fastest the vendor's tools ask for
  return static_cast<uint32_t>(hz > 0 ? std::clamp(1e6 / hz, kMinMicros, kMaxMicros) : kMaxMicros);
}

// The links of the option; chips with neither have none between dies and chips to measure (driver-abi 2.4, 4.3).
bool HasLinks(const DeviceInfo& device) {
  return HasChannel(device, abi::kChannelPcie) || HasChannel(device, abi::kChannelHccs);
}

abi::CommonSampleSwitch Enabled(uint32_t period) {
  return {.inner_switch = abi::kSwitchEnable, .period = period};
}

// driver-abi 3.4; what was not requested stays zero.
std::vector<ChannelRequest> PlanSocProfile(const DeviceInfo& device, const ChannelOptions& options) {
  if (!HasChannel(device, abi::kChannelStarsSocProfile)) return {};
  const double memory_hz = options.values[kMemory];
  const double interconnect_hz = HasLinks(device) ? options.values[kInterconnect] : 0;
  if (memory_hz <= 0 && interconnect_hz <= 0) return {};
  bool in_micros = HasFeature(device, kChipMicroseconds);
  double periods_per_second = in_micros ? 1e6 : 1e3;
  ChannelRequest request;
  request.channel = abi::kChannelStarsSocProfile;
  abi::SocProfileQosCfg config{};
  if (memory_hz > 0) {
    uint32_t period = MemoryPeriod(memory_hz, in_micros);
    config.soc.acc_pmu = Enabled(kAccPmuPeriodMs);
    config.soc.on_chip = Enabled(period);
    request.effective_hz = periods_per_second / period;
    size_t streams = std::min<size_t>(device.mpam_ids.size(), abi::kMaxMpamIds);
    config.qos_config.period = period;
    config.qos_config.stream_num = static_cast<uint16_t>(streams);
    std::copy_n(device.mpam_ids.begin(), streams, config.qos_config.mpam_id);
  }
  if (interconnect_hz > 0) {
    uint32_t period = PeriodMs(interconnect_hz);
    if (in_micros) period *= kMicrosPerMs;
    config.soc.inter_die = Enabled(period);
    config.soc.inter_chip = Enabled(period);
    request.effective_hz = std::max(request.effective_hz, periods_per_second / period);
  }
  // As the vendor's tools do by default: the clock of the AI Cores, by die, is from here.
  if (HasFeature(device, kChipLowPower)) config.soc.power = Enabled(kLowPowerMicros);
  request.user_data = HasFeature(device, kChipStarsQos) ? UserData(config) : UserData(config.soc);
  return {request};
}

SampleFields SocProfileSampleJson(const ChannelOptions& options, std::span<const DeviceInfo* const> devices) {
  const auto any = [&](ChipFeature feature) {
    return std::ranges::any_of(devices, [&](const DeviceInfo* device) { return HasFeature(*device, feature); });
  };
  SampleFields fields;
  if (any(kChipLowPower)) fields["sysLp"] = "on";
  // Without the streams' names the vendor's analyser shows none of them (dump-format 1.5).
  if (any(kChipStarsQos) && options.values[kMemory] > 0) {
    fields["qosEvents"] = QosEvents(devices, records::SocQos::kStreamsV6);
  }
  return fields;
}

}  // namespace

constinit const CollectorEntry kSocProfileCollector = {
    .spec = &kSocProfileSpec,
    .probe_device = ProbeChannel<abi::kChannelStarsSocProfile>,
    .plan = PlanSocProfile,
    .make_decoder = MakeSocProfileDecoder,
    .sample = SocProfileSampleJson,
};

}  // namespace profd
