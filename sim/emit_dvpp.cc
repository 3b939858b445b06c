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

uint64_t BusyUs(const Target& target, unsigned type, int64_t t_ns) {
  return target.model().Total(static_cast<Quantity>(kDvppVdecBusy + type), t_ns) / 1'000;
}

uint64_t Percent(uint64_t busy_us, int64_t span_ns) {
  const auto span_us = static_cast<uint64_t>(std::max<int64_t>(1'000, span_ns)) / 1'000;
  return std::min<uint64_t>(100, busy_us * 100 / span_us);
}

void EmitEngine(const Target& target, const Tick& tick, unsigned type, unsigned id, std::string* out) {
  const int64_t period_ns = tick.scenario_ns - tick.before_ns;
  const int64_t start_ns = tick.scenario_ns - (tick.now_ns - tick.start_ns);
  const uint64_t now = BusyUs(target, type, tick.scenario_ns);
  const uint64_t before = BusyUs(target, type, tick.before_ns);
  const uint64_t earlier = BusyUs(target, type, tick.before_ns - period_ns);
  const uint64_t frame = kFrameUs[type];
  AppendTextTimestamp(tick.now_ns, out);
  fmt::format_to(std::back_inserter(*out), " 0 {} {} {} {} {}% {} {} {}% {} {}\n", type, id, now, now / frame,
                 Percent(now - BusyUs(target, type, start_ns), tick.scenario_ns - start_ns), now - before,
                 now / frame - before / frame, Percent(now - before, period_ns), before - earlier,
                 before / frame - earlier / frame);
}

// Of all engines: < 0.
Emitter DvppEmitter(Target target, int engine_type) {
  return {40 * kEngineIds * (engine_type < 0 ? kDvppEngines : 1), [=](const Tick& tick, std::string* out) {
    for (unsigned type = 0; type < kDvppEngines; ++type) {
      if (engine_type >= 0 && static_cast<unsigned>(engine_type) != type) continue;
      for (unsigned id = 0; id < kEngineIds; ++id) EmitEngine(target, tick, type, id, out);
    }
  }};
}

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
  return start.Text(kHeader, DvppEmitter(start.target, DvppEngineType(start.channel)));
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
