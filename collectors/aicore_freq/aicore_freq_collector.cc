#include "collectors/aicore_freq/aicore_freq_collector.h"

#include "collectors/channel_decoder.h"
#include "collectors/channel_plan.h"
#include "collectors/metric_table.h"
#include "driver/abi/hal_abi.h"
#include "driver/abi/records.h"

namespace profd {
namespace {

// The driver looks every 100 ms and reports changes only (driver-abi 3.2), so the rate is fixed.
constexpr uint32_t kPeriodMs = 100;
constexpr uint32_t kLpmVersion = 1;

constexpr CollectorSpec kSpec = {
    .name = "aicore_freq",
    .source = CollectorSource::kChannel,
    .summary = "changes of AI Core frequency, and of voltages where the chip reports them",
    .options = {},
    .default_hz = 1000.0 / kPeriodMs,
    .max_hz = 100,
    .always_on_hz = 0,
    .with_device_options = true,
    .sample_note = SampleNote::kAicoreLpm,
};

namespace layout = abi::lpm_record;

// Record (dump-format 2.7): u32 valid entries, u32 type, then 55 entries {u64 device counter,
// u32 value, u32 reserved}.
constexpr size_t kRecordSize = layout::kSize;
constexpr size_t kEntriesOffset = layout::kEntries;
constexpr size_t kEntrySize = layout::kEntrySize;
constexpr uint32_t kMaxEntries = layout::kMaxEntries;
static_assert(kEntriesOffset + kMaxEntries * kEntrySize == kRecordSize);

enum EntryType : uint32_t { kFrequencyMhz = 0, kAicoreMillivolts = 1, kBusMillivolts = 2 };
constexpr size_t kTypes = 3;

class AicoreFreqDecoder final : public BinaryDecoder<AicoreFreqDecoder, kRecordSize> {
 public:
  AicoreFreqDecoder(const DeviceInfo& device, SeriesRegistry& registry)
      : has_voltage_(device.has_voltage_lp), series_(registry) {
    ids_.fill(kNoSeries);
    ids_[kFrequencyMhz] =
        series_.Add(MetricByName("atlas_npu_frequency_hertz"), device.id, {"aicore"});
    if (!has_voltage_) return;
    constexpr MetricId kVoltage = MetricByName("atlas_npu_voltage_volts");
    ids_[kAicoreMillivolts] = series_.Add(kVoltage, device.id, {"aicore"});
    ids_[kBusMillivolts] = series_.Add(kVoltage, device.id, {"bus"});
  }

  bool DecodeRecord(std::span<const std::byte> record, const TimeBase& time, SampleBatch& out) {
    uint32_t count = LoadUnchecked<uint32_t>(record, layout::kCount);
    // Chips without voltages leave the type undefined.
    uint32_t type = has_voltage_ ? LoadUnchecked<uint32_t>(record, layout::kType) : kFrequencyMhz;
    if (count > kMaxEntries || type >= kTypes) return false;
    bool good = true;
    for (uint32_t i = 0; i < count; ++i) {
      size_t at = kEntriesOffset + i * kEntrySize;
      std::optional<Stamp> stamp = EntryStamp(record, at, time);
      if (!stamp) {
        good = false;
        continue;
      }
      if (stamp->host_ns < time.channel_start_ns) {
        // A change from before the start only says what the value was at the start: the last one.
        std::optional<Stamp> next =
            i + 1 < count ? EntryStamp(record, at + kEntrySize, time) : std::nullopt;
        if (next && next->host_ns < time.channel_start_ns) continue;
        stamp->host_ns = time.channel_start_ns;
      }
      double seconds = 0;
      if (timers_[type].Next(*stamp, &seconds) == IntervalTimer::Step::kNotLater) {
        good = false;
        continue;
      }
      double value = LoadUnchecked<uint32_t>(record, at + layout::kEntryValue);
      out.Emit(ids_[type], stamp->host_ns, type == kFrequencyMhz ? value * 1e6 : value * 1e-3);
    }
    return good;
  }

  void Reset() override {
    for (IntervalTimer& timer : timers_) timer.Reset();
  }

 private:
  static std::optional<Stamp> EntryStamp(std::span<const std::byte> record, size_t at,
                                         const TimeBase& time) {
    return StampFromDeviceCount(LoadUnchecked<uint64_t>(record, at), time);
  }

  bool has_voltage_;
  SeriesSet series_;
  std::array<SeriesId, kTypes> ids_;
  std::array<IntervalTimer, kTypes> timers_;  // refuse repeated entries
};

Status Probe(const Host&, const DeviceInfo& device) {
  return NeedAnyChannel(device, {abi::kChannelLp});
}

std::vector<ChannelRequest> Plan(const DeviceInfo& device, const ChannelOptions&) {
  if (!HasChannel(device, abi::kChannelLp)) return {};
  ChannelRequest request = PeriodicRequest(abi::kChannelLp, kPeriodMs);
  request.effective_hz = 0;
  request.user_data = UserData(abi::LpmCfg{.period = kPeriodMs, .version = kLpmVersion});
  return {request};
}

std::unique_ptr<ChannelDecoder> MakeDecoder(const Host&, const DeviceInfo& device, uint32_t,
                                            SeriesRegistry& registry) {
  return std::make_unique<AicoreFreqDecoder>(device, registry);
}

}  // namespace

constinit const CollectorEntry kAicoreFreqCollector = {
    .spec = &kSpec,
    .probe_device = Probe,
    .probe_host = nullptr,
    .plan = Plan,
    .make_decoder = MakeDecoder,
    .make_poller = nullptr,
};

}  // namespace profd
