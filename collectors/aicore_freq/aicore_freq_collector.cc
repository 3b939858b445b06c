// AI Core frequency and, where the chip reports them, voltages (channel 132).
#include "collectors/channel_decoder.h"
#include "collectors/channel_plan.h"
#include "collectors/collector_list.h"
#include "collectors/metric_table.h"
#include "driver/abi/hal_abi.h"
#include "driver/records/lpm.h"

namespace profd {
namespace {

// The driver looks every 100 ms and reports changes only (driver-abi 3.2), so the rate is fixed.
constexpr uint32_t kPeriodMs = 100;
constexpr uint32_t kLpmVersion = 1;

constexpr CollectorSpec kAicoreFreqSpec = {
    .name = "aicore_freq",
    .source = CollectorSource::kChannel,
    .summary = "changes of AI Core frequency, and of voltages where the chip reports them",
    .default_hz = 1000.0 / kPeriodMs,
    .max_hz = 100,
    .with_device_options = true,
    .overview = true,
};

using records::LpmEntry;
using records::LpmRecord;

class AicoreFreqDecoder final : public BinaryDecoder<AicoreFreqDecoder, LpmRecord> {
 public:
  AicoreFreqDecoder(const DeviceInfo& device, SeriesRegistry& registry)
      : has_voltage_(HasFeature(device, kChipHasLpInfo)), series_(registry) {
    ids_.fill(kNoSeries);
    ids_[LpmRecord::kFrequencyMhz] =
        series_.Add(MetricByName("atlas_npu_frequency_hertz"), device.id, {"aicore"});
    if (!has_voltage_) return;
    constexpr MetricId kVoltage = MetricByName("atlas_npu_voltage_volts");
    ids_[LpmRecord::kAicoreMillivolts] = series_.Add(kVoltage, device.id, {"aicore"});
    ids_[LpmRecord::kBusMillivolts] = series_.Add(kVoltage, device.id, {"bus"});
  }

  bool DecodeRecord(const LpmRecord& record, const TimeBase& time, SampleBatch& out) {
    const uint32_t count = record.count();
    // Chips without voltages leave the type undefined.
    const uint32_t type = has_voltage_ ? record.type() : LpmRecord::kFrequencyMhz;
    if (count > LpmRecord::kMaxEntries || type >= LpmRecord::kTypes) return false;
    bool good = true;
    for (uint32_t i = 0; i < count; ++i) {
      const LpmEntry entry = record.entry(i);
      std::optional<Timestamp> timestamp = TimestampFromDeviceCount(entry.device_count, time);
      if (!timestamp) {
        good = false;
        continue;
      }
      if (timestamp->host_ns < time.channel_start_ns) {
        // A change from before the start only has the value at the start: the last one.
        std::optional<Timestamp> next =
            i + 1 < count ? TimestampFromDeviceCount(record.entry(i + 1).device_count, time)
                          : std::nullopt;
        if (next && next->host_ns < time.channel_start_ns) continue;
        timestamp->host_ns = time.channel_start_ns;
      }
      double seconds = 0;
      if (timers_[type].Next(*timestamp, &seconds) == IntervalTimer::Step::kNotLater) {
        good = false;
        continue;
      }
      out.Emit(ids_[type], timestamp->host_ns,
               entry.value * (type == LpmRecord::kFrequencyMhz ? 1e6 : 1e-3));
    }
    return good;
  }

  void Reset() override {
    for (IntervalTimer& timer : timers_) timer.Reset();
  }

 private:
  bool has_voltage_;
  SeriesSet series_;
  std::array<SeriesId, LpmRecord::kTypes> ids_;
  std::array<IntervalTimer, LpmRecord::kTypes> timers_;  // refuse repeated entries
};

std::vector<ChannelRequest> PlanAicoreFreq(const DeviceInfo& device, const ChannelOptions&) {
  if (!HasChannel(device, abi::kChannelLp)) return {};
  ChannelRequest request = PeriodicRequest(abi::kChannelLp, kPeriodMs);
  request.effective_hz = 0;
  request.user_data = UserData(abi::LpmCfg{.period = kPeriodMs, .version = kLpmVersion});
  return {request};
}

SampleFields AicoreFreqSampleJson(const ChannelOptions&, std::span<const DeviceInfo* const>) {
  return {{"ai_core_lpm", "on"}};
}

}  // namespace

constinit const CollectorEntry kAicoreFreqCollector = {
    .spec = &kAicoreFreqSpec,
    .probe_device = ProbeChannel<abi::kChannelLp>,
    .plan = PlanAicoreFreq,
    .make_decoder = MakeDecoderOf<AicoreFreqDecoder>,
    .sample = AicoreFreqSampleJson,
};

}  // namespace profd
