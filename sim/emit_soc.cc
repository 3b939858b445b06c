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

// The head every record of channel 52 shares: type, running count, sub type, magic, system counter.
class SocEmitter : public Emitter {
 public:
  SocEmitter(Target target, std::shared_ptr<uint8_t> count)
      : target_(target), count_(std::move(count)) {}

 protected:
  void AppendHead(const Tick& tick, abi::SocProfileType type, unsigned subtype, std::string* out) {
    const unsigned head =
        static_cast<unsigned>(type) | ((*count_ & 0xFu) << 6) | ((subtype & 0x3Fu) << 10);
    *count_ = static_cast<uint8_t>((*count_ + 1) & 0xF);
    AppendLe(static_cast<uint16_t>(head), out);
    AppendLe(abi::kSocProfileMagic, out);
    AppendLe(uint32_t{0}, out);
    AppendLe(target_.clock().Counter(tick.now_ns), out);
  }
  void AppendZeroWords(size_t words, std::string* out) const { out->append(words * 4, '\0'); }
  Target target_;

 private:
  std::shared_ptr<uint8_t> count_;
};

// Bytes since the record before, for each die's channel. All zero on single-die chips
// (driver-abi 2.4). The fields have 32 bits: what does not fit (periods beyond about 40 ms at full
// load) is reported as the largest value.
class SioEmitter final : public SocEmitter {
 public:
  using SocEmitter::SocEmitter;
  void Emit(const Tick& tick, std::string* out) override {
    const uint64_t rx = Delta(target_.model(), kSioRx, tick);
    const uint64_t tx = Delta(target_.model(), kSioTx, tick);
    for (uint16_t acc = 0; acc < kDieChannels; ++acc) {
      AppendHead(tick, abi::SocProfileType::kSio, 0, out);
      AppendLe(uint16_t{0}, out);
      AppendLe(acc, out);
      AppendZeroWords(3, out);
      AppendSplit(rx / kDieChannels, out);
      AppendSplit(tx / kDieChannels, out);
    }
  }
  size_t BytesPerTick() const override { return kSocRecord * kDieChannels; }

 private:
  static constexpr uint16_t kDieChannels = 2;
  // Requests, responses, snoops, data; they add up to `bytes`.
  static void AppendSplit(uint64_t bytes, std::string* out) {
    const uint64_t request = bytes / 20, response = bytes / 25, snoop = bytes / 100;
    AppendLe(static_cast<uint32_t>(request), out);
    AppendLe(static_cast<uint32_t>(response), out);
    AppendLe(static_cast<uint32_t>(snoop), out);
    const uint64_t data = bytes - request - response - snoop;
    AppendLe(static_cast<uint32_t>(std::min<uint64_t>(data, UINT32_MAX)), out);
  }
};

class AccPmuEmitter final : public SocEmitter {
 public:
  using SocEmitter::SocEmitter;
  void Emit(const Tick& tick, std::string* out) override {
    // What the accelerators beside the cores move: DMA for PCIe and RoCE, media engines.
    const DeviceModel& model = target_.model();
    const uint64_t in =
        MbPerSecond(Delta(model, kPcieRxCompletion, tick) + Delta(model, kRoceRx, tick), tick);
    const uint64_t written =
        MbPerSecond(Delta(model, kPcieTxPosted, tick) + Delta(model, kRoceTx, tick), tick);
    for (uint16_t acc = 0; acc < kAccelerators; ++acc) {
      const uint64_t share = acc + 1u;
      AppendHead(tick, abi::SocProfileType::kAccPmu, 0, out);
      AppendLe(uint16_t{0}, out);
      AppendLe(acc, out);
      AppendZeroWords(3, out);
      AppendLe(in * share / 10, out);
      AppendLe(written * share / 10, out);
      AppendLe(std::min<uint64_t>(64, in * share / 8'000), out);
      AppendLe(std::min<uint64_t>(64, written * share / 8'000), out);
    }
  }
  size_t BytesPerTick() const override { return kSocRecord * kAccelerators; }

 private:
  static constexpr uint16_t kAccelerators = 4;
};

class ChipTransEmitter final : public SocEmitter {
 public:
  using SocEmitter::SocEmitter;
  void Emit(const Tick& tick, std::string* out) override {
    const DeviceModel& model = target_.model();
    const unsigned links = target_.chip().hccs_links;
    for (unsigned link = kFirstHccsLink; link < kFirstHccsLink + links; ++link) {
      const uint64_t rx = model.LinkRx(link, tick.scenario_ns) - model.LinkRx(link, tick.before_ns);
      const uint64_t tx = model.LinkTx(link, tick.scenario_ns) - model.LinkTx(link, tick.before_ns);
      AppendOne(tick, abi::kChipTransPaLink, link - kFirstHccsLink, rx, tx, out);
    }
    AppendOne(tick, abi::kChipTransPcie, 0, Delta(model, kPcieTxPosted, tick),
              Delta(model, kPcieRxCompletion, tick), out);
  }
  size_t BytesPerTick() const override { return kSocRecord * (target_.chip().hccs_links + 1); }

 private:
  void AppendOne(const Tick& tick, unsigned kind, unsigned id, uint64_t first, uint64_t second,
                 std::string* out) {
    AppendHead(tick, abi::SocProfileType::kChipTrans, kind, out);
    AppendLe(uint16_t{0}, out);
    AppendLe(static_cast<uint16_t>(id & 63), out);
    AppendZeroWords(3, out);
    AppendLe(MbPerSecond(first, tick), out);
    AppendLe(MbPerSecond(second, tick), out);
    AppendZeroWords(4, out);
  }
};

class SocLevelEmitter final : public SocEmitter {
 public:
  using SocEmitter::SocEmitter;
  void Emit(const Tick& tick, std::string* out) override {
    const DeviceModel& model = target_.model();
    const auto ns = static_cast<double>(std::max<int64_t>(1, tick.scenario_ns - tick.before_ns));
    const auto moved =
        static_cast<double>(Delta(model, kHbmRead, tick) + Delta(model, kHbmWrite, tick));
    const double load = std::min(1.0, moved * 1e9 / ns / target_.chip().hbm_bytes_per_s);
    const auto mata = static_cast<unsigned>(load * 7.99);
    const auto l2 = static_cast<unsigned>(load * 255.9);
    AppendHead(tick, abi::SocProfileType::kSocLevels, 0, out);
    AppendZeroWords(4, out);
    AppendLe(static_cast<uint16_t>(mata | (l2 << 3)), out);
    AppendLe(uint16_t{0}, out);
    AppendZeroWords(7, out);
  }
  size_t BytesPerTick() const override { return kSocRecord; }
};

class QosEmitter final : public Emitter {
 public:
  QosEmitter(Target target, std::vector<uint8_t> mpam_ids)
      : target_(target), mpam_ids_(std::move(mpam_ids)) {}
  void Emit(const Tick& tick, std::string* out) override {
    AppendLe(uint32_t{0}, out);
    AppendLe(uint32_t{0}, out);
    AppendLe(uint64_t{0}, out);
    AppendLe(target_.clock().Counter(tick.now_ns), out);
    for (size_t slot = 0; slot < kSlots; ++slot) {
      const uint64_t mb = slot < mpam_ids_.size() ? StreamMb(tick, mpam_ids_[slot]) : 0;
      AppendLe(static_cast<uint32_t>(mb), out);
    }
  }
  size_t BytesPerTick() const override { return 64; }

 private:
  static constexpr size_t kSlots = 10;
  // The streams of QosStreams(), in its order.
  uint64_t StreamMb(const Tick& tick, uint8_t id) const {
    const DeviceModel& model = target_.model();
    const std::span<const QosStream> streams = QosStreams(target_.chip());
    if (id == streams[0].mpam_id)
      return MbPerSecond(model.HccsRx(tick.scenario_ns) - model.HccsRx(tick.before_ns), tick);
    if (id == streams[1].mpam_id) return MbPerSecond(Delta(model, kHbmRead, tick), tick);
    if (id == streams[2].mpam_id) return MbPerSecond(Delta(model, kHbmWrite, tick), tick);
    return MbPerSecond(Delta(model, kPcieRxCompletion, tick), tick);
  }
  Target target_;
  std::vector<uint8_t> mpam_ids_;
};

// Event driven: every report period the changes since the last report, in records of up to 55
// entries. The first report states what holds at the start. 910B also reports AI Core and bus
// voltage (types 1 and 2): each type has a history of its own, for voltages settle after the
// frequency, and the bus rail follows large changes only.
class LpEmitter final : public Emitter {
 public:
  LpEmitter(Target target, int64_t period_ns) : target_(target), period_ns_(period_ns) {}

  void Emit(const Tick& tick, std::string* out) override {
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
  // A channel that reports changes keeps far more time in its ring than its size suggests.
  size_t BytesPerTick() const override { return 16; }
  int64_t NextTick(int64_t index, int64_t start_ns) const override {
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
      AppendLe(static_cast<uint32_t>(end - first), out);
      AppendLe(uint32_t{type}, out);
      for (size_t i = first; i < end; ++i) {
        const int64_t ago_ns = tick.scenario_ns - entries[i].t_ns;
        AppendLe(target_.clock().Counter(tick.now_ns - ago_ns), out);
        AppendLe(entries[i].value, out);
        AppendLe(uint32_t{0}, out);
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
  return start.Periodic(888, config->period,
                        std::make_unique<LpEmitter>(start.target, PeriodNs(config->period)));
}

std::unique_ptr<RecordStream> MakeQos(const StreamStart& start) {
  const auto config = start.CopyExactly<abi::QosProfileConfig>();
  if (!config || config->period > kMaxPeriodMs || config->stream_num < 1 ||
      config->stream_num > abi::kMaxMpamIds) {
    return nullptr;
  }
  std::vector<uint8_t> ids(config->mpam_id, config->mpam_id + config->stream_num);
  for (uint8_t id : ids) {
    bool known = false;
    for (const QosStream& stream : QosStreams(start.target.chip())) {
      known = known || stream.mpam_id == id;
    }
    if (!known) return nullptr;
  }
  const uint32_t period_ms = config->period == 0 ? kZeroPeriodMs : config->period;
  return start.Periodic(64, period_ms, std::make_unique<QosEmitter>(start.target, std::move(ids)));
}

template <class T>
std::unique_ptr<Emitter> Make(Target target, std::shared_ptr<uint8_t> count) {
  return std::make_unique<T>(target, std::move(count));
}

// The running count in the head of channel 52's records is shared by its emitters.
std::unique_ptr<RecordStream> MakeSocProfile(const StreamStart& start) {
  // The longer form (84 bytes) belongs to chips we do not simulate.
  const auto config = start.CopyExactly<abi::SocProfileCfg>();
  if (!config) return nullptr;
  using MakeEmitter = std::unique_ptr<Emitter> (*)(Target, std::shared_ptr<uint8_t>);
  const std::pair<abi::CommonSampleSwitch, MakeEmitter> rows[] = {
      {config->acc_pmu, Make<AccPmuEmitter>},
      {config->on_chip, Make<SocLevelEmitter>},
      {config->inter_die, Make<SioEmitter>},
      {config->inter_chip, Make<ChipTransEmitter>},
  };
  const auto count = std::make_shared<uint8_t>(uint8_t{0});
  std::unique_ptr<RecordStream> stream = start.Empty(64);
  for (const auto& [sample_switch, make] : rows) {
    if (sample_switch.inner_switch > abi::kSwitchDisable) return nullptr;
    if (sample_switch.inner_switch != abi::kSwitchEnable) continue;
    if (sample_switch.period > kMaxPeriodMs) return nullptr;
    const uint32_t period_ms = sample_switch.period == 0 ? kZeroPeriodMs : sample_switch.period;
    stream->AddTicker(PeriodNs(period_ms), make(start.target, count));
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
