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

class PcieEmitter final : public Emitter {
 public:
  explicit PcieEmitter(Target target) : target_(target) {}
  void Emit(const Tick& tick, std::string* out) override {
    AppendLe(static_cast<uint64_t>(tick.now_ns), out);
    AppendLe(target_.device, out);
    AppendRate(tick, kPcieTxPosted, out);
    AppendRate(tick, kPcieTxNonPosted, out);
    AppendRate(tick, kPcieTxCompletion, out);
    AppendLatency(tick, out);
    AppendRate(tick, kPcieRxPosted, out);
    AppendRate(tick, kPcieRxNonPosted, out);
    AppendRate(tick, kPcieRxCompletion, out);
  }
  size_t BytesPerTick() const override { return 96; }

 private:
  static uint64_t NoiseOf(Quantity quantity) {
    return uint64_t{kNoisePcie} + static_cast<uint64_t>(quantity);
  }
  // min, max, average in B/us over the interval.
  void AppendRate(const Tick& tick, Quantity quantity, std::string* out) const {
    const DeviceModel& model = target_.model();
    const uint64_t bytes =
        model.Total(quantity, tick.scenario_ns) - model.Total(quantity, tick.before_ns);
    const double average =
        static_cast<double>(bytes) * 1e3 /
        static_cast<double>(std::max<int64_t>(1, tick.scenario_ns - tick.before_ns));
    const double spread =
        0.05 + 0.1 * Unit(Hash(target_.node->scenario().seed, NoiseOf(quantity), target_.device,
                               static_cast<uint64_t>(tick.index)));
    const double limit = target_.chip().pcie_bytes_per_s / 1e6;
    AppendLe(static_cast<uint32_t>(average * (1 - spread)), out);
    AppendLe(static_cast<uint32_t>(std::lround(std::min(limit, average * (1 + spread)))), out);
    AppendLe(static_cast<uint32_t>(average), out);
  }
  void AppendLatency(const Tick& tick, std::string* out) const {
    const double u = Unit(Hash(target_.node->scenario().seed, NoiseOf(kQuantities), target_.device,
                               static_cast<uint64_t>(tick.index)));
    AppendLe(static_cast<uint32_t>(620 + 40 * u), out);
    AppendLe(static_cast<uint32_t>(1900 + 700 * u), out);
    AppendLe(static_cast<uint32_t>(880 + 150 * u), out);
  }
  Target target_;
};

class HccsEmitter final : public Emitter {
 public:
  explicit HccsEmitter(Target target) : target_(target) {}
  void Emit(const Tick& tick, std::string* out) override {
    AppendTextTimestamp(tick.now_ns, out);
    fmt::format_to(std::back_inserter(*out), " {} {}\n", target_.model().HccsTx(tick.scenario_ns),
                   target_.model().HccsRx(tick.scenario_ns));
  }
  size_t BytesPerTick() const override { return 24; }

 private:
  Target target_;
};

class NetEmitter final : public Emitter {
 public:
  NetEmitter(Target target, bool roce) : target_(target), roce_(roce) {}
  void Emit(const Tick& tick, std::string* out) override {
    const Side rx = Read(tick, false);
    const Side tx = Read(tick, true);
    AppendTextTimestamp(tick.now_ns, out);
    fmt::format_to(std::back_inserter(*out), " {} {} {} {} {} {} {} {} {} {} {} {} {} 0\n",
                   target_.chip().roce_mbit_per_s, rx.packet_rate, rx.byte_rate, rx.packets,
                   rx.bytes, 0, 0, tx.packet_rate, tx.byte_rate, tx.packets, tx.bytes,
                   roce_ ? target_.model().RoceRetries(tick.scenario_ns) / 10 : 0, 0);
  }
  size_t BytesPerTick() const override { return 60; }

 private:
  struct Side {
    uint64_t packet_rate, byte_rate, packets, bytes;
  };
  uint64_t BytesAt(bool tx, int64_t t_ns) const {
    const DeviceModel& model = target_.model();
    if (roce_) return model.Total(tx ? kRoceTx : kRoceRx, t_ns);
    return tx ? model.MacTx(t_ns) : model.MacRx(t_ns);
  }
  Side Read(const Tick& tick, bool tx) const {
    const uint64_t now = BytesAt(tx, tick.scenario_ns);
    const uint64_t before = BytesAt(tx, tick.before_ns);
    const auto ns = static_cast<double>(std::max<int64_t>(1, tick.scenario_ns - tick.before_ns));
    const auto per_second = [ns](uint64_t count) {
      return static_cast<uint64_t>(static_cast<double>(count) * 1e9 / ns);
    };
    return {per_second(PacketsOf(now) - PacketsOf(before)), per_second(now - before),
            PacketsOf(now), now};
  }
  Target target_;
  bool roce_;
};

std::unique_ptr<RecordStream> MakePcie(const StreamStart& start) {
  if (!start.TakesNothing()) return nullptr;
  return start.Periodic(96, start.para.sample_period, std::make_unique<PcieEmitter>(start.target));
}

std::unique_ptr<RecordStream> MakeHccs(const StreamStart& start) {
  return start.Text(abi::kHccsHeader, std::make_unique<HccsEmitter>(start.target));
}

std::unique_ptr<RecordStream> MakeNet(const StreamStart& start) {
  return start.Text(kNetHeader,
                    std::make_unique<NetEmitter>(start.target, start.channel == abi::kChannelRoce));
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
