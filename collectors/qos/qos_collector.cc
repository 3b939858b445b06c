// Memory bandwidth by QoS stream (channel 133).
#include <algorithm>
#include <string>

#include "collectors/channel_decoder.h"
#include "collectors/channel_plan.h"
#include "collectors/collector_list.h"
#include "collectors/metric_table.h"
#include "driver/abi/hal_abi.h"
#include "driver/records/qos.h"

namespace profd {
namespace {

constexpr CollectorSpec kQosSpec = {
    .name = "qos",
    .source = CollectorSource::kChannel,
    .summary = "memory bandwidth by QoS stream",
    .options = {{{.key = "sys_hardware_mem_freq"}}},
    .default_hz = 50,
    .max_hz = 100,
};

using records::QosRecord;

constexpr size_t kSlots = std::tuple_size_v<decltype(QosRecord::streams)>;
// prof_start_para carries this constant; the period that counts is in the user data (driver-abi
// 3.2).
constexpr uint32_t kNominalPeriodMs = 100;

class QosDecoder final : public BinaryDecoder<QosDecoder, QosRecord> {
 public:
  QosDecoder(int device, SeriesRegistry& registry) : device_(device), series_(registry) {
    ids_.fill(kNoSeries);
  }

  bool DecodeRecord(const QosRecord& record, const TimeBase& time, SampleBatch& out) {
    std::optional<Timestamp> timestamp = TimestampFromDeviceCount(record.timestamp, time);
    if (!timestamp) return false;
    double seconds = 0;
    if (timer_.Next(*timestamp, &seconds) == IntervalTimer::Step::kNotLater) return false;
    for (size_t slot = 0; slot < kSlots; ++slot) {
      const uint32_t value = record.streams[slot];
      // The record does not say how many slots are in use: one that never moved anything is not
      // shown, one that did stays.
      if (ids_[slot] == kNoSeries) {
        if (value == 0) continue;
        ids_[slot] = series_.Add(MetricByName("atlas_npu_qos_bandwidth_bytes_per_second"), device_,
                                 {"all", std::to_string(slot)});
      }
      out.Emit(ids_[slot], timestamp->host_ns, value * kMebi);
    }
    return true;
  }

  void Reset() override { timer_.Reset(); }

 private:
  int device_;
  SeriesSet series_;
  IntervalTimer timer_;  // refuses repeated timestamps
  std::array<SeriesId, kSlots> ids_;
};

// Without streams there is nothing to measure, and the driver refuses an empty list.
std::vector<ChannelRequest> PlanQos(const DeviceInfo& device, const ChannelOptions& options) {
  if (!HasChannel(device, abi::kChannelQos) || device.mpam_ids.empty()) return {};
  ChannelRequest request = PeriodicRequest(abi::kChannelQos, kNominalPeriodMs);
  abi::QosProfileConfig config{};
  config.period = PeriodMs(options.hz, kMinMemoryPeriodMs);
  size_t streams = std::min<size_t>(device.mpam_ids.size(), abi::kMaxMpamIds);
  config.stream_num = static_cast<uint16_t>(streams);
  std::copy_n(device.mpam_ids.begin(), streams, config.mpam_id);
  request.user_data = UserData(config);
  request.effective_hz = 1000.0 / config.period;
  return {request};
}

SampleFields QosSampleJson(const ChannelOptions&, std::span<const DeviceInfo* const> devices) {
  return {{"qosEvents", QosEvents(devices, kSlots)}};
}

}  // namespace

constinit const CollectorEntry kQosCollector = {
    .spec = &kQosSpec,
    .probe_device = ProbeChannel<abi::kChannelQos>,
    .plan = PlanQos,
    .make_decoder = MakeDecoderOf<QosDecoder>,
    .sample = QosSampleJson,
};

}  // namespace profd
