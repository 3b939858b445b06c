// HBM traffic by stack and direction (channel 1).
#include <fmt/format.h>

#include "collectors/channel_decoder.h"
#include "collectors/channel_plan.h"
#include "collectors/collector_list.h"
#include "collectors/metric_table.h"
#include "driver/abi/hal_abi.h"
#include "driver/records/hbm.h"

namespace profd {
namespace {

constexpr CollectorSpec kSpec = {
    .name = "hbm",
    .source = CollectorSource::kChannel,
    .summary = "HBM traffic by stack and direction",
    .options = {{{.key = "sys_hardware_mem_freq"}}},
    .default_hz = 50,
    .max_hz = 100,
    .always_on_hz = 0,
};

using records::HbmRecord;

constexpr double kBytesPerAccess = 32;
constexpr std::array<std::string_view, HbmRecord::kEvents> kDirections = {"read", "write"};

class HbmDecoder final : public BinaryDecoder<HbmDecoder, HbmRecord> {
 public:
  HbmDecoder(int device, SeriesRegistry& registry) : device_(device), series_(registry) {}

  bool DecodeRecord(const HbmRecord& record, const TimeBase& time, SampleBatch& out) {
    if (!record.IsPlausible()) return false;
    std::optional<Timestamp> timestamp = TimestampFromMicros(record.timestamp, time);
    if (!timestamp) return false;
    const uint32_t id = record.stack;
    Stack* stack = stacks_.FindOrAdd(id, [this, id] { return MakeStack(id); });
    if (stack == nullptr) return false;
    const uint32_t event = record.event;
    double seconds = 0;
    IntervalTimer::Step step = stack->timers[event].Next(*timestamp, &seconds);
    if (step != IntervalTimer::Step::kForward) return step == IntervalTimer::Step::kFirst;
    const double bytes = static_cast<double>(record.count) * kBytesPerAccess;
    out.Emit(stack->bandwidth[event], timestamp->host_ns, bytes / seconds);
    if (bytes / seconds < kMaxPlausibleBytesPerSecond) stack->bytes[event] += bytes;
    out.Emit(stack->total[event], timestamp->host_ns, stack->bytes[event]);
    return true;
  }

  void Reset() override {
    for (Stack& state : stacks_.states()) {
      for (IntervalTimer& timer : state.timers) timer.Reset();
    }
  }

 private:
  struct Stack {
    std::array<SeriesId, 2> bandwidth;
    std::array<SeriesId, 2> total;
    // Continues where an earlier run of the channel ended. Multiples of an access stay exact
    // beyond a double's 53 bits.
    std::array<double, 2> bytes;
    std::array<IntervalTimer, 2> timers;
  };

  Stack MakeStack(uint32_t id) {
    constexpr MetricId kBandwidth = MetricByName("atlas_npu_hbm_bandwidth_bytes_per_second");
    constexpr MetricId kTotal = MetricByName("atlas_npu_hbm_bytes_total");
    fmt::format_int name(id);
    std::string_view label(name.data(), name.size());
    Stack stack{};
    for (size_t i = 0; i < kDirections.size(); ++i) {
      stack.bandwidth[i] = series_.Add(kBandwidth, device_, {label, kDirections[i]});
      stack.total[i] = series_.Add(kTotal, device_, {label, kDirections[i]});
      stack.bytes[i] = series_.LastTotal(stack.total[i]);
    }
    return stack;
  }

  int device_;
  SeriesSet series_;
  IdTable<Stack> stacks_;
};

Status Probe(const Host&, const DeviceInfo& device) {
  return NeedAnyChannel(device, {abi::kChannelHbm});
}

std::vector<ChannelRequest> Plan(const DeviceInfo& device, const ChannelOptions& options) {
  if (!HasChannel(device, abi::kChannelHbm)) return {};
  return {MemoryTrafficRequest(abi::kChannelHbm, options.hz)};
}

std::unique_ptr<ChannelDecoder> MakeDecoder(const Host&, const DeviceInfo& device, uint32_t,
                                            SeriesRegistry& registry) {
  return std::make_unique<HbmDecoder>(device.id, registry);
}

}  // namespace

constinit const CollectorEntry kHbmCollector = {
    .spec = &kSpec,
    .probe_device = Probe,
    .probe_host = nullptr,
    .plan = Plan,
    .make_decoder = MakeDecoder,
    .make_poller = nullptr,
};

}  // namespace profd
