// DDR traffic by controller and direction (channel 7).
#include "collectors/collector_list.h"
#include "collectors/memory_traffic.h"
#include "collectors/metric_table.h"
#include "driver/abi/hal_abi.h"
#include "driver/records/ddr.h"
#include "driver/records/micros_widener.h"

namespace profd {
namespace {

constexpr CollectorSpec kDdrSpec = {
    .name = "ddr",
    .source = CollectorSource::kChannel,
    .summary = "DDR traffic by controller and direction",
    .options = {{{.key = "sys_hardware_mem_freq"}}},
    .default_hz = 50,
    .max_hz = 100,
};

using records::DdrRecord;

class DdrDecoder final : public BinaryDecoder<DdrDecoder, DdrRecord> {
 public:
  DdrDecoder(const DeviceInfo& device, SeriesRegistry& registry)
      : bytes_per_access_(records::DdrBits(device.chip_id) / 8.0),
        traffic_(device.id, MetricByName("atlas_npu_ddr_bandwidth_bytes_per_second"), MetricByName("atlas_npu_ddr_bytes_total"),
                 registry) {}

  bool DecodeRecord(const DdrRecord& record, const TimeBase& time, SampleBatch& out) {
    const std::optional<Timestamp> timestamp = TimestampFromMicros(micros_.Widen(record.timestamp), time);
    return timestamp && record.IsPlausible() &&
           traffic_.Add(record.controller, record.event, *timestamp, static_cast<double>(record.count) * bytes_per_access_, out);
  }

  void Reset() override {
    micros_ = {};
    traffic_.Reset();
  }

 private:
  double bytes_per_access_;
  records::MicrosWidener micros_;
  MemoryTraffic traffic_;
};

}  // namespace

constinit const CollectorEntry kDdrCollector = {
    .spec = &kDdrSpec,
    .probe_device = ProbeChannel<abi::kChannelDdr>,
    .plan = PlanMemoryTraffic<abi::kChannelDdr>,
    .make_decoder = MakeDecoderOf<DdrDecoder>,
};

}  // namespace profd
