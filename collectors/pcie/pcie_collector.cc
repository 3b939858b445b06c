// PCIe bandwidth by transaction type and read latency (channel 3).
#include "collectors/channel_decoder.h"
#include "collectors/channel_plan.h"
#include "collectors/collector_list.h"
#include "collectors/metric_table.h"
#include "driver/abi/hal_abi.h"
#include "driver/records/pcie.h"

namespace profd {
namespace {

constexpr CollectorSpec kPcieSpec = {
    .name = "pcie",
    .source = CollectorSource::kChannel,
    .summary = "PCIe bandwidth by transaction type, and read latency",
    .options = {{{.key = "sys_interconnection_freq"}}},
    .default_hz = 50,
    .max_hz = 50,
    .overview = true,
};

using records::PcieRecord;

constexpr size_t kGroups = std::tuple_size_v<decltype(PcieRecord::groups)>;
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

class PcieDecoder final : public BinaryDecoder<PcieDecoder, PcieRecord> {
 public:
  PcieDecoder(int device, SeriesRegistry& registry) : series_(registry) {
    constexpr MetricId kBandwidth = MetricByName("atlas_npu_pcie_bandwidth_bytes_per_second");
    constexpr MetricId kLatency = MetricByName("atlas_npu_pcie_read_latency_seconds");
    for (size_t group = 0; group < kGroups; ++group) {
      auto [direction, type] = kGroupLabels[group];
      for (size_t stat = 0; stat < kStats.size(); ++stat) {
        ids_[group][stat] = group == PcieRecord::kLatency
                                ? series_.Add(kLatency, device, {kStats[stat]})
                                : series_.Add(kBandwidth, device, {direction, type, kStats[stat]});
      }
    }
  }

  bool DecodeRecord(const PcieRecord& record, const TimeBase& time, SampleBatch& out) {
    std::optional<Timestamp> timestamp = TimestampFromDeviceNs(record.timestamp, time);
    if (!timestamp || !record.HasValues()) return false;
    double seconds = 0;
    if (timer_.Next(*timestamp, &seconds) == IntervalTimer::Step::kNotLater) return false;
    for (size_t group = 0; group < kGroups; ++group) {
      const PcieRecord::Stats& stats = record.groups[group];
      const double unit = group == PcieRecord::kLatency ? kNano : kBytesPerMicro;
      out.Emit(ids_[group][0], timestamp->host_ns, stats.Minimum() * unit);
      out.Emit(ids_[group][1], timestamp->host_ns, stats.max * unit);
      out.Emit(ids_[group][2], timestamp->host_ns, stats.avg * unit);
    }
    return true;
  }

  void Reset() override { timer_.Reset(); }

 private:
  SeriesSet series_;
  IntervalTimer timer_;  // refuses repeated timestamps
  std::array<std::array<SeriesId, 3>, kGroups> ids_;
};

}  // namespace

constinit const CollectorEntry kPcieCollector = {
    .spec = &kPcieSpec,
    .probe_device = ProbeChannel<abi::kChannelPcie>,
    .plan = PlanPeriodic<abi::kChannelPcie>,
    .make_decoder = MakeDecoderOf<PcieDecoder>,
};

}  // namespace profd
