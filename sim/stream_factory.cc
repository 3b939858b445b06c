#include "sim/stream_factory.h"

#include <cstring>
#include <optional>
#include <utility>

#include "driver/abi/channels.h"
#include "sim/emitters.h"

namespace profd::sim {
namespace {

constexpr uint32_t kMaxPeriodMs = 1000;
// driver-abi 4.2: some callers ask for period 0 in channels 52 and 133; this is what they get.
constexpr uint32_t kZeroPeriodMs = 10;

// Copies the caller's bytes: they are freed right after the call.
template <class T>
std::optional<T> CopyExactly(const abi::ProfStartPara& para) {
  if (para.user_data == nullptr || para.user_data_size != sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, para.user_data, sizeof value);
  return value;
}

bool ValidPeriod(uint32_t ms) { return ms >= 1 && ms <= kMaxPeriodMs; }
int64_t PeriodNs(uint32_t ms) { return int64_t{ms} * kNsPerMs; }

struct Build {
  const Node& node;
  Target target;
  unsigned channel;
  const abi::ProfStartPara& para;

  std::unique_ptr<RecordStream> Empty(size_t record_size) const {
    return std::make_unique<RecordStream>(node, target.device, channel, record_size);
  }
  std::unique_ptr<RecordStream> Periodic(size_t record_size, uint32_t period_ms,
                                         std::unique_ptr<Emitter> emitter) const {
    std::unique_ptr<RecordStream> stream = Empty(record_size);
    stream->AddTicker(PeriodNs(period_ms), std::move(emitter));
    return stream;
  }
  std::unique_ptr<RecordStream> Text(std::string_view header,
                                     std::unique_ptr<Emitter> emitter) const {
    if (!TakesNothing()) return nullptr;
    std::unique_ptr<RecordStream> stream = Periodic(0, para.sample_period, std::move(emitter));
    stream->SetPrologue(std::string(header));
    return stream;
  }
  bool TakesNothing() const { return para.user_data_size == 0 && ValidPeriod(para.sample_period); }
};

std::unique_ptr<RecordStream> MakeMemEvent(const Build& build) {
  const abi::ProfStartPara& para = build.para;
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
  if (build.channel == abi::kChannelHbm) {
    return build.Periodic(24, para.sample_period, MakeHbmEmitter(build.target, std::move(events)));
  }
  return build.Periodic(20, para.sample_period,
                        MakeDdrEmitter(build.target, std::move(events), head[1]));
}

std::unique_ptr<RecordStream> MakeLlc(const Build& build) {
  const auto config = CopyExactly<abi::LlcCfg>(build.para);
  if (!config || !ValidPeriod(build.para.sample_period) || !ValidPeriod(config->period) ||
      (config->sample_type != abi::kLlcSampleRead && config->sample_type != abi::kLlcSampleWrite)) {
    return nullptr;
  }
  const bool write = config->sample_type == abi::kLlcSampleWrite;
  return build.Periodic(24, build.para.sample_period, MakeLlcEmitter(build.target, write));
}

std::unique_ptr<RecordStream> MakeMem(const Build& build) {
  const auto config = CopyExactly<abi::MemCfg>(build.para);
  const bool device = build.channel == abi::kChannelNpuMem;
  if (!config || !ValidPeriod(build.para.sample_period) || !ValidPeriod(config->period) ||
      config->event != (device ? abi::kMemCfgEventDevice : abi::kMemCfgEventApp)) {
    return nullptr;
  }
  if (build.channel == abi::kChannelNpuModuleMem) {
    return build.Periodic(24, build.para.sample_period,
                          MakeModuleMemEmitter(build.target, config->res1 == 1));
  }
  return build.Periodic(32, build.para.sample_period,
                        MakeNpuMemEmitter(build.target, config->event));
}

std::unique_ptr<RecordStream> MakeLp(const Build& build) {
  const auto config = CopyExactly<abi::LpmCfg>(build.para);
  if (!config || !ValidPeriod(config->period) || config->version != 1) return nullptr;
  return build.Periodic(888, config->period, MakeLpEmitter(build.target, PeriodNs(config->period)));
}

std::unique_ptr<RecordStream> MakeQos(const Build& build) {
  const auto config = CopyExactly<abi::QosProfileConfig>(build.para);
  if (!config || config->period > kMaxPeriodMs || config->stream_num < 1 ||
      config->stream_num > abi::kMaxMpamIds) {
    return nullptr;
  }
  std::vector<uint8_t> ids(config->mpam_id, config->mpam_id + config->stream_num);
  for (uint8_t id : ids) {
    bool known = false;
    for (const QosStream& stream : QosStreams(build.target.chip())) {
      known = known || stream.mpam_id == id;
    }
    if (!known) return nullptr;
  }
  const uint32_t period_ms = config->period == 0 ? kZeroPeriodMs : config->period;
  return build.Periodic(64, period_ms, MakeQosEmitter(build.target, std::move(ids)));
}

std::unique_ptr<RecordStream> MakeSocProfile(const Build& build) {
  // The longer form (84 bytes) belongs to chips we do not simulate.
  const auto config = CopyExactly<abi::SocProfileCfg>(build.para);
  if (!config) return nullptr;
  using Make = std::unique_ptr<Emitter> (*)(Target, std::shared_ptr<uint8_t>);
  const std::pair<abi::CommonSampleSwitch, Make> rows[] = {
      {config->acc_pmu, MakeAccPmuEmitter},
      {config->on_chip, MakeSocLevelEmitter},
      {config->inter_die, MakeSioEmitter},
      {config->inter_chip, MakeChipTransEmitter},
  };
  const auto count = std::make_shared<uint8_t>(uint8_t{0});
  std::unique_ptr<RecordStream> stream = build.Empty(64);
  for (const auto& [sample_switch, make] : rows) {
    if (sample_switch.inner_switch > abi::kSwitchDisable) return nullptr;
    if (sample_switch.inner_switch != abi::kSwitchEnable) continue;
    if (sample_switch.period > kMaxPeriodMs) return nullptr;
    const uint32_t period_ms = sample_switch.period == 0 ? kZeroPeriodMs : sample_switch.period;
    stream->AddTicker(PeriodNs(period_ms), make(build.target, count));
  }
  return stream;
}

// A record every 10 ms, whatever the cycles: the rate of real cores is not what this is for.
std::unique_ptr<RecordStream> MakeInstr(const Build& build, size_t record_size) {
  constexpr uint32_t kRecordMs = 10;
  const auto config = CopyExactly<abi::InstrProfileCfg>(build.para);
  if (!config || build.para.sample_period != 0 || build.para.channel_type != abi::kProfTsType ||
      config->period < 300 || config->period > 30000 || config->pc_sampling > 1) {
    return nullptr;
  }
  return build.Periodic(record_size, kRecordMs, MakeInstrEmitter(build.target, record_size));
}

// Channels 135..141 in id order.
int DvppEngineType(unsigned channel) {
  constexpr int kTypes[] = {5, 3, 0, 1, 4, 2, 6};
  return kTypes[channel - abi::kChannelDvppVenc];
}

}  // namespace

std::unique_ptr<RecordStream> MakeStream(const Node& node, unsigned device, unsigned channel,
                                         const abi::ProfStartPara& para) {
  const Build build{node, Target{&node, device}, channel, para};
  switch (channel) {
    case abi::kChannelHbm:
    case abi::kChannelDdr:
      return MakeMemEvent(build);
    case abi::kChannelLlc:
      return MakeLlc(build);
    case abi::kChannelNpuAppMem:
    case abi::kChannelNpuMem:
    case abi::kChannelNpuModuleMem:
      return MakeMem(build);
    case abi::kChannelLp:
      return MakeLp(build);
    case abi::kChannelQos:
      return MakeQos(build);
    case abi::kChannelStarsSocProfile:
      return MakeSocProfile(build);
    case abi::kChannelPcie:
      if (!build.TakesNothing()) return nullptr;
      return build.Periodic(96, para.sample_period, MakePcieEmitter(build.target));
    case abi::kChannelHccs:
      return build.Text(HccsHeader(), MakeHccsEmitter(build.target));
    case abi::kChannelNic:
    case abi::kChannelRoce:
      return build.Text(NetHeader(), MakeNetEmitter(build.target, channel == abi::kChannelRoce));
    case abi::kChannelDvpp:
      return build.Text(DvppHeader(), MakeDvppEmitter(build.target, -1));
    default:
      break;
  }
  if (channel >= abi::kChannelDvppVenc && channel <= abi::kChannelDvppScd) {
    return build.Text(DvppHeader(), MakeDvppEmitter(build.target, DvppEngineType(channel)));
  }
  for (uint32_t core = 0; core < abi::kInstrCores; ++core) {
    for (uint32_t group = 0; group < abi::kInstrGroups; ++group) {
      if (abi::InstrChannel(group, core) == channel) return MakeInstr(build, abi::InstrRecordSize(core));
    }
  }
  return build.Empty(1);
}

}  // namespace profd::sim
