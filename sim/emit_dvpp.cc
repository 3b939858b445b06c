#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "driver/abi/channels.h"
#include "sim/emitters.h"

namespace profd::sim {
namespace {

// How long an engine works on a frame, us, by engine type (dump-format 2.4).
constexpr std::array<uint64_t, kDvppEngines> kFrameUs = {450, 900, 700, 800, 250, 1000, 600};
constexpr unsigned kEngineIds = 2;  // instances of each type

class DvppEmitter final : public Emitter {
 public:
  DvppEmitter(Target target, int engine_type) : target_(target), engine_type_(engine_type) {}

  void Emit(const Tick& tick, std::string* out) override {
    for (unsigned type = 0; type < kDvppEngines; ++type) {
      if (engine_type_ >= 0 && static_cast<unsigned>(engine_type_) != type) continue;
      for (unsigned id = 0; id < kEngineIds; ++id) EmitEngine(tick, type, id, out);
    }
  }
  size_t BytesPerTick() const override { return 40 * kEngineIds * (engine_type_ < 0 ? 7 : 1); }

 private:
  uint64_t BusyUs(unsigned type, int64_t t_ns) const {
    return target_.model().Total(static_cast<Quantity>(kDvppVdecBusy + type), t_ns) / 1'000;
  }
  void EmitEngine(const Tick& tick, unsigned type, unsigned id, std::string* out) const {
    const int64_t period_ns = tick.scenario_ns - tick.before_ns;
    const int64_t start_ns = tick.scenario_ns - (tick.now_ns - tick.start_ns);
    const uint64_t now = BusyUs(type, tick.scenario_ns);
    const uint64_t before = BusyUs(type, tick.before_ns);
    const uint64_t earlier = BusyUs(type, tick.before_ns - period_ns);
    const uint64_t frame = kFrameUs[type];
    AppendTextTimestamp(tick.now_ns, out);
    fmt::format_to(std::back_inserter(*out), " 0 {} {} {} {} {}% {} {} {}% {} {}\n", type, id, now,
                   now / frame, Percent(now - BusyUs(type, start_ns), tick.scenario_ns - start_ns),
                   now - before, now / frame - before / frame, Percent(now - before, period_ns),
                   before - earlier, before / frame - earlier / frame);
  }
  static uint64_t Percent(uint64_t busy_us, int64_t span_ns) {
    const auto span_us = static_cast<uint64_t>(std::max<int64_t>(1'000, span_ns)) / 1'000;
    return std::min<uint64_t>(100, busy_us * 100 / span_us);
  }
  Target target_;
  int engine_type_;
};

// The vendor's parser learns from the first line whether lines carry a dvpp_id.
constexpr std::string_view kHeader =
    "time_stamp(s):time_stamp(ns) dvpp_id engine_type engine_id all_time all_frame "
    "all_utilization proc_time proc_frame proc_utilization last_time last_frame\n";

// Channel 6 has all of them (< 0), channels 135..141 one each, in id order.
int DvppEngineType(unsigned channel) {
  if (channel == abi::kChannelDvpp) return -1;
  constexpr int kTypes[] = {5, 3, 0, 1, 4, 2, 6};
  return kTypes[channel - abi::kChannelDvppVenc];
}

std::unique_ptr<RecordStream> MakeDvpp(const StreamStart& start) {
  return start.Text(kHeader,
                    std::make_unique<DvppEmitter>(start.target, DvppEngineType(start.channel)));
}

}  // namespace

std::span<const StreamSource> DvppStreams() {
  static constexpr auto kSources = std::to_array<StreamSource>({
      {abi::kChannelDvpp, MakeDvpp},
      {abi::kChannelDvppVenc, MakeDvpp},
      {abi::kChannelDvppVenc + 1, MakeDvpp},
      {abi::kChannelDvppVenc + 2, MakeDvpp},
      {abi::kChannelDvppVenc + 3, MakeDvpp},
      {abi::kChannelDvppVenc + 4, MakeDvpp},
      {abi::kChannelDvppVenc + 5, MakeDvpp},
      {abi::kChannelDvppVenc + 6, MakeDvpp},
  });
  return kSources;
}

}  // namespace profd::sim
