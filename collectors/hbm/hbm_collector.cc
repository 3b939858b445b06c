// HBM traffic by stack and direction (channel 1).
#include "collectors/collector_list.h"
#include "collectors/memory_traffic.h"
#include "collectors/metric_table.h"
#include "driver/abi/hal_abi.h"
#include "driver/records/hbm.h"

namespace profd {
namespace {

constexpr CollectorSpec kHbmSpec = {
    .name = "hbm",
    .source = CollectorSource::kChannel,
    .summary = "HBM traffic by stack and direction",
    .options = {{{.key = "sys_hardware_mem_freq"}}},
    .default_hz = 50,
    .max_hz = 100,
};

using records::HbmRecord;

constexpr double kBytesPerAccess = 32;

class HbmDecoder final : public BinaryDecoder<HbmDecoder, HbmRecord> {
 public:
  HbmDecoder(int device, SeriesRegistry& registry)
      : traffic_(device, MetricByName("atlas_npu_hbm_bandwidth_bytes_per_second"), MetricByName("atlas_npu_hbm_bytes_total"), registry) {}

  bool DecodeRecord(const HbmRecord& record, const TimeBase& time, SampleBatch& out) {
    if (!record.IsPlausible()) return false;
    const std::optional<Timestamp> timestamp = TimestampFromMicros(record.timestamp, time);
    return timestamp &&
           traffic_.Add(record.stack, record.event, *timestamp, static_cast<double>(record.count) * kBytesPerAccess, out);
  }

  void Reset() override { traffic_.Reset(); }

 private:
  MemoryTraffic traffic_;
};

}  // namespace

constinit const CollectorEntry kHbmCollector = {
    .spec = &kHbmSpec,
    .probe_device = ProbeChannel<abi::kChannelHbm>,
    .plan = PlanMemoryTraffic<abi::kChannelHbm>,
    .make_decoder = MakeDecoderOf<HbmDecoder>,
};

}  // namespace profd
