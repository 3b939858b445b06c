#include <algorithm>
#include <array>
#include <vector>

#include "driver/abi/channels.h"
#include "sim/emitters.h"

namespace profd::sim {
namespace {

constexpr size_t kSocRecord = 64;
constexpr uint64_t kMiB = uint64_t{1} << 20;

uint64_t Delta(const DeviceModel& model, Quantity quantity, const Tick& tick) {
  return model.Total(quantity, tick.scenario_ns) - model.Total(quantity, tick.before_ns);
}

// MB/s over the tick's interval.
uint64_t MbPerSecond(uint64_t bytes, const Tick& tick) {
  const auto ns = static_cast<double>(std::max<int64_t>(1, tick.scenario_ns - tick.before_ns));
  return static_cast<uint64_t>(static_cast<double>(bytes) * 1e9 / ns / static_cast<double>(kMiB));
}

// What every record of channel 52 begins with: type, running count, sub type, magic, system counter; then, but for the
// levels, the number of what it is about and three words that are 0.
struct SocTick {
  const Target& target;
  const Tick& tick;
  uint8_t& count;
  std::string* out;

  void AppendHead(abi::SocProfileType type, unsigned subtype) const {
    const unsigned head = static_cast<unsigned>(type) | ((count & 0xFu) << 6) | ((subtype & 0x3Fu) << 10);
    count = static_cast<uint8_t>((count + 1) & 0xF);
    AppendLe(out, static_cast<uint16_t>(head), abi::kSocProfileMagic, uint32_t{0},
             target.clock().Counter(tick.now_ns));
  }
  void AppendHead(abi::SocProfileType type, unsigned subtype, uint16_t number) const {
    AppendHead(type, subtype);
    AppendLe(out, uint16_t{0}, number);
    AppendZeroWords(3);
  }
  void AppendZeroWords(size_t words) const { out->append(words * 4, '\0'); }
  uint64_t Delta(Quantity quantity) const { return profd::sim::Delta(target.model(), quantity, tick); }
};

// Requests, responses, snoops, data; they add up to `bytes`.
void AppendSplit(uint64_t bytes, std::string* out) {
  const uint64_t request = bytes / 20, response = bytes / 25, snoop = bytes / 100;
  const uint64_t data = std::min<uint64_t>(bytes - request - response - snoop, UINT32_MAX);
  AppendLe(out, static_cast<uint32_t>(request), static_cast<uint32_t>(response), static_cast<uint32_t>(snoop),
           static_cast<uint32_t>(data));
}

// Bytes since the record before, for each die's channel. All zero on single-die chips
// (driver-abi 2.4). The fields have 32 bits: what does not fit (periods beyond about 40 ms at full
// load) is reported as the largest value.
constexpr uint16_t kDieChannels = 2;
void EmitSio(const SocTick& to) {
  const uint64_t rx = to.Delta(kSioRx);
  const uint64_t tx = to.Delta(kSioTx);
  for (uint16_t acc = 0; acc < kDieChannels; ++acc) {
    to.AppendHead(abi::SocProfileType::kSio, 0, acc);
    AppendSplit(rx / kDieChannels, to.out);
    AppendSplit(tx / kDieChannels, to.out);
  }
}

// What the accelerators beside the cores move: DMA for PCIe and RoCE, media engines.
constexpr uint16_t kAccelerators = 4;
void EmitAccPmu(const SocTick& to) {
  const uint64_t in = MbPerSecond(to.Delta(kPcieRxCompletion) + to.Delta(kRoceRx), to.tick);
  const uint64_t written = MbPerSecond(to.Delta(kPcieTxPosted) + to.Delta(kRoceTx), to.tick);
  for (uint16_t acc = 0; acc < kAccelerators; ++acc) {
    const uint64_t share = acc + 1u;
    to.AppendHead(abi::SocProfileType::kAccPmu, 0, acc);
    AppendLe(to.out, in * share / 10, written * share / 10, std::min<uint64_t>(64, in * share / 8'000),
             std::min<uint64_t>(64, written * share / 8'000));
  }
}

void EmitChipTrans(const SocTick& to) {
  const auto append = [&to](unsigned kind, unsigned id, uint64_t first, uint64_t second) {
    to.AppendHead(abi::SocProfileType::kChipTrans, kind, static_cast<uint16_t>(id & 63));
    AppendLe(to.out, MbPerSecond(first, to.tick), MbPerSecond(second, to.tick));
    to.AppendZeroWords(4);
  };
  const DeviceModel& model = to.target.model();
  const int64_t now = to.tick.scenario_ns, before = to.tick.before_ns;
  for (unsigned link = kFirstHccsLink; link < kFirstHccsLink + to.target.chip().hccs_links; ++link) {
    append(abi::kChipTransPaLink, link - kFirstHccsLink, model.LinkRx(link, now) - model.LinkRx(link, before),
           model.LinkTx(link, now) - model.LinkTx(link, before));
  }
  append(abi::kChipTransPcie, 0, to.Delta(kPcieTxPosted), to.Delta(kPcieRxCompletion));
}

void EmitSocLevels(const SocTick& to) {
  const auto ns = static_cast<double>(std::max<int64_t>(1, to.tick.scenario_ns - to.tick.before_ns));
  const auto moved = static_cast<double>(to.Delta(kHbmRead) + to.Delta(kHbmWrite));
  const double load = std::min(1.0, moved * 1e9 / ns / to.target.chip().hbm_bytes_per_s);
  const auto mata = static_cast<unsigned>(load * 7.99);
  const auto l2 = static_cast<unsigned>(load * 255.9);
  to.AppendHead(abi::SocProfileType::kSocLevels, 0);
  to.AppendZeroWords(4);
  AppendLe(to.out, static_cast<uint16_t>(mata | (l2 << 3)), uint16_t{0});
  to.AppendZeroWords(7);
}

// The streams of QosStreams(), in its order.
uint64_t StreamMb(const Target& target, const Tick& tick, uint8_t id) {
  const DeviceModel& model = target.model();
  const std::span<const QosStream> streams = QosStreams(target.chip());
  if (id == streams[0].mpam_id) {
    return MbPerSecond(model.HccsRx(tick.scenario_ns) - model.HccsRx(tick.before_ns), tick);
  }
  if (id == streams[1].mpam_id) return MbPerSecond(Delta(model, kHbmRead, tick), tick);
  if (id == streams[2].mpam_id) return MbPerSecond(Delta(model, kHbmWrite, tick), tick);
  return MbPerSecond(Delta(model, kPcieRxCompletion, tick), tick);
}

Emitter QosEmitter(Target target, std::vector<uint8_t> mpam_ids) {
  return {64, [target, mpam_ids](const Tick& tick, std::string* out) {
    constexpr size_t kSlots = 10;
    AppendLe(out, uint64_t{0}, uint64_t{0}, target.clock().Counter(tick.now_ns));
    for (size_t slot = 0; slot < kSlots; ++slot) {
      const uint64_t mb = slot < mpam_ids.size() ? StreamMb(target, tick, mpam_ids[slot]) : 0;
      AppendLe(out, static_cast<uint32_t>(mb));
    }
  }};
}

// Event driven: every report period the changes since the last report, in records of up to 55
// entries. The first report states what holds at the start. 910B also reports AI Core and bus
// voltage (types 1 and 2): each type has a history of its own, for voltages settle after the
// frequency, and the bus rail follows large changes only.
class LpEmitter {
 public:
  LpEmitter(Target target, int64_t period_ns) : target_(target), period_ns_(period_ns) {}

  void Emit(const Tick& tick, std::string* out) const {
    const DeviceModel& model = target_.model();
    const unsigned types = HasVoltage() ? 3 : 1;
    for (unsigned type = 0; type < types; ++type) {
      const int64_t late_ns = type * kSettleNs;
      const int64_t from_ns = tick.before_ns - late_ns;
      uint32_t value = ValueOf(type, model.AicoreMhz(from_ns));
      std::vector<Entry> entries;
      if (tick.index == 1) entries.push_back({tick.before_ns, value});
      for (const FreqEvent& event : model.FreqEvents(from_ns, tick.scenario_ns - late_ns)) {
        if (value == ValueOf(type, event.mhz)) continue;
        value = ValueOf(type, event.mhz);
        entries.push_back({event.t_ns + late_ns, value});
      }
      AppendRecords(tick, type, entries, out);
    }
  }
  int64_t NextTick(int64_t index, int64_t start_ns) const {
    if (index <= 1) return index;
    const Node& node = *target_.node;
    const int64_t from =
        node.ToScenario(target_.clock().ToHost(start_ns + (index - 1) * period_ns_)) - 2 * kSettleNs;
    const int64_t next = target_.model().NextFreqEvent(from);
    // Clock conversions are exact to 1 ns; stay on the early side, an empty report costs nothing.
    const int64_t ticks =
        next == kForever ? int64_t{1} << 20 : (next - from) / (period_ns_ + period_ns_ / 1000);
    return index + std::max<int64_t>(0, ticks);
  }

 private:
  static constexpr size_t kEntries = 55;
  static constexpr size_t kRecord = 888;
  static constexpr int64_t kSettleNs = 40'000;  // of the AI Core rail; of the bus rail twice
  struct Entry {
    int64_t t_ns = 0;
    uint32_t value = 0;
  };

  bool HasVoltage() const { return target_.chip().aiv_cores > 0; }
  uint32_t ValueOf(unsigned type, unsigned mhz) const {
    if (type == 0) return mhz;
    if (type == 1) return DeviceModel::AicoreMillivolts(mhz);
    return 2 * mhz > target_.chip().aic_mhz ? 800 : 750;
  }
  void AppendRecords(const Tick& tick, unsigned type, const std::vector<Entry>& entries,
                     std::string* out) const {
    for (size_t first = 0; first < entries.size(); first += kEntries) {
      const size_t end = std::min(entries.size(), first + kEntries);
      const size_t begin_size = out->size();
      AppendLe(out, static_cast<uint32_t>(end - first), uint32_t{type});
      for (size_t i = first; i < end; ++i) {
        const int64_t ago_ns = tick.scenario_ns - entries[i].t_ns;
        AppendLe(out, target_.clock().Counter(tick.now_ns - ago_ns), entries[i].value, uint32_t{0});
      }
      out->resize(begin_size + kRecord, '\0');
    }
  }
  Target target_;
  int64_t period_ns_;
};

constexpr auto kQosStreams = std::to_array<QosStream>(
    {{12, "st_mpamid_12"}, {13, "st_mpamid_13"}, {14, "st_mpamid_14"}, {15, "st_mpamid_15"}});

// driver-abi 4.2: some callers ask for period 0 in channels 52 and 133; this is what they get.
constexpr uint32_t kZeroPeriodMs = 10;

std::unique_ptr<RecordStream> MakeLp(const StreamStart& start) {
  const auto config = start.CopyExactly<abi::LpmCfg>();
  if (!config || !ValidPeriod(config->period) || config->version != 1) return nullptr;
  const LpEmitter lp(start.target, PeriodNs(config->period));
  // A channel that reports changes keeps far more time in its ring than its size suggests.
  constexpr size_t kBytesPerTick = 16;
  return start.Periodic(888, config->period,
                        {kBytesPerTick, [lp](const Tick& tick, std::string* out) { lp.Emit(tick, out); },
                         [lp](int64_t index, int64_t start_ns) { return lp.NextTick(index, start_ns); }});
}

std::unique_ptr<RecordStream> MakeQos(const StreamStart& start) {
  const auto config = start.CopyExactly<abi::QosProfileConfig>();
  if (!config || config->period > kMaxPeriodMs || config->stream_num < 1 ||
      config->stream_num > abi::kMaxMpamIds) {
    return nullptr;
  }
  std::vector<uint8_t> ids(config->mpam_id, config->mpam_id + config->stream_num);
  const std::span<const QosStream> known = QosStreams(start.target.chip());
  for (uint8_t id : ids) {
    if (std::ranges::find(known, id, &QosStream::mpam_id) == known.end()) return nullptr;
  }
  const uint32_t period_ms = config->period == 0 ? kZeroPeriodMs : config->period;
  return start.Periodic(64, period_ms, QosEmitter(start.target, std::move(ids)));
}

// The running count in the head of channel 52's records is shared by its emitters.
std::unique_ptr<RecordStream> MakeSocProfile(const StreamStart& start) {
  // The longer form (84 bytes) belongs to chips we do not simulate.
  const auto config = start.CopyExactly<abi::SocProfileCfg>();
  if (!config) return nullptr;
  struct Row {
    abi::CommonSampleSwitch sample_switch;
    size_t records;  // of a tick
    void (*emit)(const SocTick&);
  };
  const Row rows[] = {
      {config->acc_pmu, kAccelerators, EmitAccPmu},
      {config->on_chip, 1, EmitSocLevels},
      {config->inter_die, kDieChannels, EmitSio},
      {config->inter_chip, start.target.chip().hccs_links + 1, EmitChipTrans},
  };
  const auto count = std::make_shared<uint8_t>(uint8_t{0});
  std::unique_ptr<RecordStream> stream = start.Empty(kSocRecord);
  for (const auto& [sample_switch, records, emit] : rows) {
    if (sample_switch.inner_switch > abi::kSwitchDisable) return nullptr;
    if (sample_switch.inner_switch != abi::kSwitchEnable) continue;
    if (sample_switch.period > kMaxPeriodMs) return nullptr;
    const uint32_t period_ms = sample_switch.period == 0 ? kZeroPeriodMs : sample_switch.period;
    const auto emit_all = [target = start.target, count, emit = emit](const Tick& tick, std::string* out) {
      emit(SocTick{target, tick, *count, out});
    };
    stream->AddTicker(PeriodNs(period_ms), {kSocRecord * records, emit_all});
  }
  return stream;
}

}  // namespace

std::span<const StreamSource> SocStreams() {
  static constexpr auto kSources = std::to_array<StreamSource>({
      {abi::kChannelLp, MakeLp},
      {abi::kChannelQos, MakeQos},
      {abi::kChannelStarsSocProfile, MakeSocProfile},
  });
  return kSources;
}

std::span<const QosStream> QosStreams(const ChipSpec& chip) {
  return chip.aiv_cores > 0 ? std::span<const QosStream>(kQosStreams)
                            : std::span<const QosStream>();
}

}  // namespace profd::sim
