#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "driver/abi/channels.h"
#include "sim/emitters.h"

namespace profd::sim {

void AppendTextTimestamp(int64_t device_ns, std::string* out) {
  fmt::format_to(std::back_inserter(*out), "{}:{:09}", device_ns / kNsPerSecond,
                 device_ns % kNsPerSecond);
}

namespace {

constexpr std::string_view kNetHeader =
    "time_stamp(s):time_stamp(ns) bandwidth rxPacket/s rxByte/s rxPackets rxBytes rxErrors "
    "rxDropped txPacket/s txByte/s txPackets txBytes txErrors txDropped funcId\n";

uint32_t U32(double value) { return static_cast<uint32_t>(value); }

// [0, 1), anew at each tick; of a quantity, or of them all.
double PcieNoise(const Target& target, const Tick& tick, Quantity quantity) {
  return Unit(Hash(target.node->scenario().seed, uint64_t{kNoisePcie} + static_cast<uint64_t>(quantity), target.device,
                   static_cast<uint64_t>(tick.index)));
}

// min, max, average in B/us over the interval.
void AppendPcieRate(const Target& target, const Tick& tick, Quantity quantity, std::string* out) {
  const uint64_t bytes =
      target.model().Total(quantity, tick.scenario_ns) - target.model().Total(quantity, tick.before_ns);
  const double average = static_cast<double>(bytes) * 1e3 /
                         static_cast<double>(std::max<int64_t>(1, tick.scenario_ns - tick.before_ns));
  const double spread = 0.05 + 0.1 * PcieNoise(target, tick, quantity);
  const double limit = target.chip().pcie_bytes_per_s / 1e6;
  const auto most = static_cast<uint32_t>(std::lround(std::min(limit, average * (1 + spread))));
  AppendLe(out, U32(average * (1 - spread)), most, U32(average));
}

Emitter PcieEmitter(Target target) {
  return {96, [target](const Tick& tick, std::string* out) {
    AppendLe(out, static_cast<uint64_t>(tick.now_ns), target.device);
    for (Quantity q : {kPcieTxPosted, kPcieTxNonPosted, kPcieTxCompletion}) AppendPcieRate(target, tick, q, out);
    const double u = PcieNoise(target, tick, kQuantities);
    AppendLe(out, U32(620 + 40 * u), U32(1900 + 700 * u), U32(880 + 150 * u));  // latency
    for (Quantity q : {kPcieRxPosted, kPcieRxNonPosted, kPcieRxCompletion}) AppendPcieRate(target, tick, q, out);
  }};
}

Emitter HccsEmitter(Target target) {
  return {24, [target](const Tick& tick, std::string* out) {
    AppendTextTimestamp(tick.now_ns, out);
    fmt::format_to(std::back_inserter(*out), " {} {}\n", target.model().HccsTx(tick.scenario_ns),
                   target.model().HccsRx(tick.scenario_ns));
  }};
}

struct NetSide {
  uint64_t packet_rate, byte_rate, packets, bytes;
};

NetSide ReadNetSide(const Target& target, const Tick& tick, bool roce, bool tx) {
  const auto bytes_at = [&](int64_t t_ns) {
    const DeviceModel& model = target.model();
    if (roce) return model.Total(tx ? kRoceTx : kRoceRx, t_ns);
    return tx ? model.MacTx(t_ns) : model.MacRx(t_ns);
  };
  const uint64_t now = bytes_at(tick.scenario_ns);
  const uint64_t before = bytes_at(tick.before_ns);
  const auto ns = static_cast<double>(std::max<int64_t>(1, tick.scenario_ns - tick.before_ns));
  const auto per_second = [ns](uint64_t count) { return static_cast<uint64_t>(static_cast<double>(count) * 1e9 / ns); };
  return {per_second(PacketsOf(now) - PacketsOf(before)), per_second(now - before), PacketsOf(now), now};
}

Emitter NetEmitter(Target target, bool roce) {
  return {60, [target, roce](const Tick& tick, std::string* out) {
    const NetSide rx = ReadNetSide(target, tick, roce, false);
    const NetSide tx = ReadNetSide(target, tick, roce, true);
    AppendTextTimestamp(tick.now_ns, out);
    fmt::format_to(std::back_inserter(*out), " {} {} {} {} {} 0 0 {} {} {} {} {} 0 0\n", target.chip().roce_mbit_per_s,
                   rx.packet_rate, rx.byte_rate, rx.packets, rx.bytes, tx.packet_rate, tx.byte_rate, tx.packets,
                   tx.bytes, roce ? target.model().RoceRetries(tick.scenario_ns) / 10 : 0);
  }};
}

std::unique_ptr<RecordStream> MakePcie(const StreamStart& start) {
  if (!start.TakesNothing()) return nullptr;
  return start.Periodic(96, start.para.sample_period, PcieEmitter(start.target));
}

std::unique_ptr<RecordStream> MakeHccs(const StreamStart& start) {
  return start.Text(abi::kHccsHeader, HccsEmitter(start.target));
}

std::unique_ptr<RecordStream> MakeNet(const StreamStart& start) {
  return start.Text(kNetHeader, NetEmitter(start.target, start.channel == abi::kChannelRoce));
}

}  // namespace

std::span<const StreamSource> LinkStreams() {
  static constexpr auto kSources = std::to_array<StreamSource>({
      {abi::kChannelPcie, MakePcie},
      {abi::kChannelHccs, MakeHccs},
      {abi::kChannelNic, MakeNet},
      {abi::kChannelRoce, MakeNet},
  });
  return kSources;
}

}  // namespace profd::sim
