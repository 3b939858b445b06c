// DDR traffic by controller and direction (channel 7).
#include <fmt/format.h>

#include "collectors/channel_decoder.h"
#include "collectors/channel_plan.h"
#include "collectors/collector_list.h"
#include "collectors/metric_table.h"
#include "driver/abi/hal_abi.h"
#include "driver/records/ddr.h"

namespace profd {
namespace {

constexpr CollectorSpec kSpec = {
    .name = "ddr",
    .source = CollectorSource::kChannel,
    .summary = "DDR traffic by controller and direction",
    .options = {{{.key = "sys_hardware_mem_freq"}}},
    .default_hz = 50,
    .max_hz = 100,
    .always_on_hz = 0,
};

using records::DdrRecord;

constexpr double BytesPerAccess(int chip_id) { return records::DdrBits(chip_id) / 8.0; }
constexpr std::array<std::string_view, DdrRecord::kEvents> kDirections = {"read", "write"};

class DdrDecoder final : public BinaryDecoder<DdrDecoder, DdrRecord> {
 public:
  DdrDecoder(const DeviceInfo& device, SeriesRegistry& registry)
      : device_(device.id), bytes_per_access_(BytesPerAccess(device.chip_id)), series_(registry) {}

  bool DecodeRecord(const DdrRecord& record, const TimeBase& time, SampleBatch& out) {
    std::optional<Timestamp> timestamp = TimestampFromMicros(micros_.Widen(record.timestamp), time);
    if (!timestamp || !record.IsPlausible()) return false;
    const uint32_t id = record.controller;
    Controller* controller = controllers_.FindOrAdd(id, [this, id] { return MakeController(id); });
    if (controller == nullptr) return false;
    const uint32_t event = record.event;
    double seconds = 0;
    IntervalTimer::Step step = controller->timers[event].Next(*timestamp, &seconds);
    if (step != IntervalTimer::Step::kForward) return step == IntervalTimer::Step::kFirst;
    const double bytes = static_cast<double>(record.count) * bytes_per_access_;
    out.Emit(controller->bandwidth[event], timestamp->host_ns, bytes / seconds);
    if (bytes / seconds < kMaxPlausibleBytesPerSecond) controller->bytes[event] += bytes;
    out.Emit(controller->total[event], timestamp->host_ns, controller->bytes[event]);
    return true;
  }

  void Reset() override {
    micros_.Reset();
    for (Controller& state : controllers_.states()) {
      for (IntervalTimer& timer : state.timers) timer.Reset();
    }
  }

 private:
  struct Controller {
    std::array<SeriesId, 2> bandwidth;
    std::array<SeriesId, 2> total;
    // Continues where an earlier run of the channel ended. Multiples of an access stay exact
    // beyond a double's 53 bits.
    std::array<double, 2> bytes;
    std::array<IntervalTimer, 2> timers;
  };

  Controller MakeController(uint32_t id) {
    constexpr MetricId kBandwidth = MetricByName("atlas_npu_ddr_bandwidth_bytes_per_second");
    constexpr MetricId kTotal = MetricByName("atlas_npu_ddr_bytes_total");
    fmt::format_int name(id);
    std::string_view label(name.data(), name.size());
    Controller controller{};
    for (size_t i = 0; i < kDirections.size(); ++i) {
      controller.bandwidth[i] = series_.Add(kBandwidth, device_, {label, kDirections[i]});
      controller.total[i] = series_.Add(kTotal, device_, {label, kDirections[i]});
      controller.bytes[i] = series_.LastTotal(controller.total[i]);
    }
    return controller;
  }

  int device_;
  double bytes_per_access_;
  SeriesSet series_;
  MicrosUnwrapper micros_;
  IdTable<Controller> controllers_;
};

Status Probe(const Host&, const DeviceInfo& device) {
  return NeedAnyChannel(device, {abi::kChannelDdr});
}

std::vector<ChannelRequest> Plan(const DeviceInfo& device, const ChannelOptions& options) {
  if (!HasChannel(device, abi::kChannelDdr)) return {};
  return {MemoryTrafficRequest(abi::kChannelDdr, options.hz)};
}

std::unique_ptr<ChannelDecoder> MakeDecoder(const Host&, const DeviceInfo& device, uint32_t,
                                            SeriesRegistry& registry) {
  return std::make_unique<DdrDecoder>(device, registry);
}

}  // namespace

constinit const CollectorEntry kDdrCollector = {
    .spec = &kSpec,
    .probe_device = Probe,
    .probe_host = nullptr,
    .plan = Plan,
    .make_decoder = MakeDecoder,
    .make_poller = nullptr,
};

}  // namespace profd
