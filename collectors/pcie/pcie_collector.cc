#include "collectors/pcie/pcie_collector.h"

#include "collectors/channel_decoder.h"
#include "collectors/channel_plan.h"
#include "collectors/metric_table.h"
#include "driver/abi/hal_abi.h"
#include "driver/abi/records.h"

namespace profd {
namespace {

constexpr CollectorSpec kSpec = {
    .name = "pcie",
    .source = CollectorSource::kChannel,
    .summary = "PCIe bandwidth by transaction type, and read latency",
    .options = {{{.key = "sys_interconnection_freq"}}},
    .default_hz = 50,
    .max_hz = 50,
    .always_on_hz = 0,
};

// Record (dump-format 2.2): u64 device ns, u32 device id, then groups of u32 {min, max, avg}.
constexpr size_t kRecordSize = abi::pcie_record::kSize;
constexpr size_t kGroupsOffset = abi::pcie_record::kGroups;
constexpr size_t kGroups = abi::pcie_record::kGroupCount;
constexpr size_t kLatencyGroup = 3;
// A min that no transaction lowered.
constexpr uint32_t kNothingSeen = abi::pcie_record::kNoMinimum;
constexpr double kBytesPerMicro = 1e6;  // to bytes per second
constexpr double kNano = 1e-9;

constexpr std::array<std::array<std::string_view, 2>, kGroups> kGroupLabels = {{
    {"tx", "posted"},
    {"tx", "nonposted"},
    {"tx", "completion"},
    {},  // latency of tx nonposted
    {"rx", "posted"},
    {"rx", "nonposted"},
    {"rx", "completion"},
}};
constexpr std::array<std::string_view, 3> kStats = {"min", "max", "avg"};

class PcieDecoder final : public BinaryDecoder<PcieDecoder, kRecordSize> {
 public:
  PcieDecoder(int device, SeriesRegistry& registry) : series_(registry) {
    constexpr MetricId kBandwidth = MetricByName("atlas_npu_pcie_bandwidth_bytes_per_second");
    constexpr MetricId kLatency = MetricByName("atlas_npu_pcie_read_latency_seconds");
    for (size_t group = 0; group < kGroups; ++group) {
      auto [direction, type] = kGroupLabels[group];
      for (size_t stat = 0; stat < kStats.size(); ++stat) {
        ids_[group][stat] = group == kLatencyGroup
                                ? series_.Add(kLatency, device, {kStats[stat]})
                                : series_.Add(kBandwidth, device, {direction, type, kStats[stat]});
      }
    }
  }

  bool DecodeRecord(std::span<const std::byte> record, const TimeBase& time, SampleBatch& out) {
    std::optional<Stamp> stamp =
        StampFromDeviceNs(LoadUnchecked<uint64_t>(record, abi::pcie_record::kDeviceNs), time);
    if (!stamp) return false;
    std::array<std::array<uint32_t, 3>, kGroups> values;
    std::memcpy(&values, record.data() + kGroupsOffset, sizeof values);
    for (auto& group : values) {
      if (group[0] == kNothingSeen) group[0] = 0;
    }
    // The vendor's readers leave out records whose tx posted maximum is below the minimum.
    if (values[0][1] < values[0][0]) return false;
    double seconds = 0;
    if (timer_.Next(*stamp, &seconds) == IntervalTimer::Step::kNotLater) return false;
    for (size_t group = 0; group < kGroups; ++group) {
      for (size_t stat = 0; stat < kStats.size(); ++stat) {
        double value = values[group][stat];
        out.Emit(ids_[group][stat], stamp->host_ns,
                 group == kLatencyGroup ? value * kNano : value * kBytesPerMicro);
      }
    }
    return true;
  }

  void Reset() override { timer_.Reset(); }

 private:
  SeriesSet series_;
  IntervalTimer timer_;  // refuses repeated stamps
  std::array<std::array<SeriesId, 3>, kGroups> ids_;
};
static_assert(kGroupsOffset + sizeof(uint32_t[kGroups][3]) == kRecordSize);

Status Probe(const Host&, const DeviceInfo& device) {
  return NeedAnyChannel(device, {abi::kChannelPcie});
}

std::vector<ChannelRequest> Plan(const DeviceInfo& device, const ChannelOptions& options) {
  if (!HasChannel(device, abi::kChannelPcie)) return {};
  return {PeriodicRequest(abi::kChannelPcie, PeriodMs(options.hz))};
}

std::unique_ptr<ChannelDecoder> MakeDecoder(const Host&, const DeviceInfo& device, uint32_t,
                                            SeriesRegistry& registry) {
  return std::make_unique<PcieDecoder>(device.id, registry);
}

}  // namespace

constinit const CollectorEntry kPcieCollector = {
    .spec = &kSpec,
    .probe_device = Probe,
    .probe_host = nullptr,
    .plan = Plan,
    .make_decoder = MakeDecoder,
    .make_poller = nullptr,
};

}  // namespace profd
