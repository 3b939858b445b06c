#include <array>

#include "driver/abi/channels.h"
#include "sim/emitters.h"

namespace profd::sim {
namespace {

// Instruction profiling. The specification has sizes, no layout: behind 32 bytes that the vendor's
// analyser does not read follows a running count, so that a byte lost or doubled shows.
class InstrEmitter final : public Emitter {
 public:
  InstrEmitter(Target target, size_t record_size) : target_(target), record_size_(record_size) {}
  void Emit(const Tick& tick, std::string* out) override {
    out->append(kUnread, '\0');
    const uint64_t busy = target_.model().Total(kSioRx, tick.scenario_ns);
    for (size_t at = kUnread; at < record_size_; at += 2 * sizeof(uint64_t)) {
      AppendLe(static_cast<uint64_t>(tick.index), out);
      AppendLe(busy, out);
    }
  }
  size_t BytesPerTick() const override { return record_size_; }

 private:
  static constexpr size_t kUnread = 32;
  const Target target_;
  const size_t record_size_;
};

// A record every 10 ms, whatever the cycles: the rate of real cores is not what this is for.
std::unique_ptr<RecordStream> MakeInstr(const StreamStart& start) {
  constexpr uint32_t kRecordMs = 10;
  const auto config = start.CopyExactly<abi::InstrProfileCfg>();
  if (!config || start.para.sample_period != 0 || start.para.channel_type != abi::kProfTsType ||
      config->period < 300 || config->period > 30000 || config->pc_sampling > 1) {
    return nullptr;
  }
  uint32_t core = 1;
  for (uint32_t group = 0; group < abi::kInstrGroups; ++group) {
    if (abi::InstrChannel(group, 0) == start.channel) core = 0;
  }
  const size_t record_size = abi::InstrRecordSize(core);
  return start.Periodic(record_size, kRecordMs,
                        std::make_unique<InstrEmitter>(start.target, record_size));
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
