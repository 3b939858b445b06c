#include <algorithm>
#include <array>

#include "driver/abi/channels.h"
#include "sim/emitters.h"

namespace profd::sim {
namespace {

// A record every 10 ms, whatever the cycles: the rate of real cores is not what this is for.
constexpr uint32_t kRecordMs = 10;

// 32 bytes of fields without gaps, low bits first.
class FieldBlock {
 public:
  void Put(unsigned bits, uint64_t value) {
    for (unsigned i = 0; i < bits; ++i, ++at_) words_[at_ / 64] |= (value >> i & 1) << at_ % 64;
  }
  const std::array<uint64_t, 4>& words() const { return words_; }

 private:
  std::array<uint64_t, 4> words_{};
  unsigned at_ = 0;
};

// In every record stand the share of the time since the last one that a unit was busy, of the period's cycles, and
// what the group's share of memory traffic is. The 32 bytes in front are not known.
class InstrEmitter {
 public:
  InstrEmitter(Target target, uint32_t core, uint32_t period) : target_(target), core_(core), period_(period) {}

  void operator()(const Tick& tick, std::string* out) const {
    const uint64_t timestamp = target_.clock().Counter(tick.now_ns);
    out->append(32, '\0');
    const auto cycles = Cycles(tick, timestamp).words();
    if (core_ > 0) return AppendLe(out, cycles);
    const auto flow = Flow(tick, timestamp).words();
    for (size_t i = 0; i < cycles.size(); ++i) AppendLe(out, flow[i], cycles[i]);
  }

 private:
  // Counted from the scenario's start; the record has the low 12 bits.
  FieldBlock Cycles(const Tick& tick, uint64_t timestamp) const {
    const uint64_t cube = Busy(kCubeBusy, tick), vector = Busy(kVectorBusy, tick);
    FieldBlock block;
    block.Put(12, core_ > 0 ? vector : 0);
    block.Put(12, (cube + vector) / 8);
    block.Put(12, core_ > 0 ? 0 : cube);
    block.Put(12, cube / 2);
    block.Put(12, (cube + vector) / 3);
    block.Put(12, vector / 2);
    block.Put(12, 0);
    block.Put(12, core_ > 0 ? timestamp : 0);  // that of an AI Core is in its other block
    block.Put(12, core_ > 0 ? timestamp >> 12 : 0);
    block.Put(60, 0);
    block.Put(12, core_ > 0 ? timestamp >> 24 : 0);
    block.Put(12, core_ > 0 ? timestamp >> 36 : 0);
    block.Put(48, 0);
    block.Put(16, core_ > 0 ? timestamp >> 48 : 0);
    return block;
  }
  FieldBlock Flow(const Tick& tick, uint64_t timestamp) const {
    const uint64_t read = Moved(kHbmRead, tick), written = Moved(kHbmWrite, tick);
    FieldBlock block;
    block.Put(16, Least(read / 64, 16));
    block.Put(16, Least(written / 64, 16));
    block.Put(24, 300 + Least(read / 256, 16));
    block.Put(24, 200 + Least(written / 256, 16));
    block.Put(24, Least(read, 24));
    block.Put(24, Least(written, 24));
    block.Put(24, Least(read / 2, 24));
    block.Put(24, Least(written / 2, 24));
    block.Put(64, timestamp);
    block.Put(16, Least(read / 128, 16));
    return block;
  }
  uint64_t Busy(Quantity quantity, const Tick& tick) const {
    return target_.model().Total(quantity, tick.scenario_ns) / 1000 * period_ / (kRecordMs * 1000);
  }
  // KiB of one of the groups since the last record.
  uint64_t Moved(Quantity quantity, const Tick& tick) const {
    const DeviceModel& model = target_.model();
    return (model.Total(quantity, tick.scenario_ns) - model.Total(quantity, tick.before_ns)) / abi::kInstrGroups / 1024;
  }
  static uint64_t Least(uint64_t value, unsigned bits) { return std::min(value, (uint64_t{1} << bits) - 1); }

  const Target target_;
  const uint32_t core_;
  const uint32_t period_;
};

std::unique_ptr<RecordStream> MakeInstr(const StreamStart& start) {
  const auto config = start.CopyExactly<abi::InstrProfileCfg>();
  if (!config || start.para.sample_period != 0 || start.para.channel_type != abi::kProfTsType ||
      config->period < 300 || config->period > 30000 || config->pc_sampling > 1) {
    return nullptr;
  }
  uint32_t core = 1;
  for (uint32_t group = 0; group < abi::kInstrGroups; ++group) {
    if (abi::InstrChannel(group, 0) == start.channel) core = 0;
  }
  const size_t size = abi::InstrRecordSize(core);
  return start.Periodic(size, kRecordMs, {size, InstrEmitter(start.target, core, config->period)});
}

}  // namespace

std::span<const StreamSource> InstrStreams() {
  static constexpr auto kSources = [] {
    std::array<StreamSource, abi::kInstrGroups * abi::kInstrCores> sources{};
    for (uint32_t i = 0; i < sources.size(); ++i) {
      sources[i] = {abi::InstrChannel(i / abi::kInstrCores, i % abi::kInstrCores), MakeInstr};
    }
    return sources;
  }();
  return kSources;
}

}  // namespace profd::sim
