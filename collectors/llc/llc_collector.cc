// Last level cache hit ratio and throughput (channel 8).
#include <string>

#include "collectors/channel_decoder.h"
#include "collectors/channel_plan.h"
#include "collectors/collector_list.h"
#include "collectors/metric_table.h"
#include "driver/abi/hal_abi.h"
#include "driver/records/llc.h"

namespace profd {
namespace {

std::string LlcBusy(double write) { return write > 0 ? "measures LLC writes" : "measures LLC reads"; }

constexpr size_t kWrites = 1;  // place of llc_profiling

constexpr CollectorSpec kLlcSpec = {
    .name = "llc",
    .source = CollectorSource::kChannel,
    .summary = "last level cache hit ratio and throughput, reads or writes",
    .options = {{{.key = "sys_hardware_mem_freq"},
                 {.key = "llc_profiling",
                  .use = OptionUse::kChoice,
                  .item = "write",
                  .busy = LlcBusy}}},
    .default_hz = 50,
    .max_hz = 100,
};

using records::LlcRecord;

constexpr double kLineBytes = 64;
constexpr size_t kEvents = records::kLlcEvents;
constexpr uint8_t kAllEvents = 0xFF;
// Of e0..e7, these are the same whatever the channel was started with.
constexpr size_t kCommonEvents = 2;
constexpr std::array<std::string_view, 2> kOps = {"read", "write"};
constexpr size_t kUnknownOp = kOps.size();

struct Event {
  size_t index = kEvents;  // kEvents: no such event
  size_t op = kUnknownOp;  // kUnknownOp: common to both
};

constexpr Event FindEvent(uint32_t code) {
  for (size_t op = 0; op < kOps.size(); ++op) {
    for (size_t i = 0; i < kEvents; ++i) {
      if (records::kLlcEventCodes[op][i] == code) return {i, i < kCommonEvents ? kUnknownOp : op};
    }
  }
  return {};
}
static_assert(FindEvent(0x01).op == kUnknownOp && FindEvent(0x37).op == 1);
static_assert(FindEvent(0x22).index == 5 && FindEvent(0x04).index == kEvents);

using Counts = std::array<double, kEvents>;
constexpr double Hits(const Counts& e) { return e[2] + e[3] + e[5] + e[7]; }
constexpr double Lookups(const Counts& e) { return e[4] + e[6]; }
constexpr double Bytes(const Counts& e) { return (e[0] + e[1]) * kLineBytes; }

struct SliceSeries {
  bool known = false;
  SeriesId hit_ratio = kNoSeries;
  SeriesId throughput = kNoSeries;
};

struct Slice {
  uint32_t id = 0;
  IntervalTimer timer{};
  int64_t now_ns = 0;  // source clock, of the instant being gathered
  double seconds = 0;  // since the instant before; 0 = unknown
  uint8_t seen = 0;    // events of this instant
  size_t op = kUnknownOp;
  Counts counts{};
  std::array<SliceSeries, 2> series{};
};

// Gathers the eight events of an instant per slice, then the slices of the instant for the device.
class LlcDecoder final : public BinaryDecoder<LlcDecoder, LlcRecord> {
 public:
  LlcDecoder(int device, SeriesRegistry& registry) : device_(device), series_(registry) {
    constexpr MetricId kHitRatio = MetricByName("atlas_npu_llc_hit_ratio");
    for (size_t op = 0; op < kOps.size(); ++op) {
      hit_ratio_[op] = series_.Add(kHitRatio, device, {kOps[op]});
    }
    throughput_ = series_.Add(MetricByName("atlas_npu_llc_throughput_bytes_per_second"), device);
    bytes_total_ = series_.Add(MetricByName("atlas_npu_llc_bytes_total"), device);
    bytes_ = series_.LastTotal(bytes_total_);
  }

  bool DecodeRecord(const LlcRecord& record, const TimeBase& time, SampleBatch& out) {
    std::optional<Timestamp> timestamp = TimestampFromMicros(record.timestamp, time);
    Event event = FindEvent(record.event);
    if (!timestamp || !record.IsPlausible()) return false;
    const uint32_t id = record.slice;
    Slice* slice = slices_.FindOrAdd(id, [id] { return Slice{.id = id}; });
    if (slice == nullptr || !OpenInstant(*slice, *timestamp)) return false;
    auto bit = static_cast<uint8_t>(1u << event.index);
    if ((slice->seen & bit) != 0) return false;  // twice in one instant
    slice->seen |= bit;
    slice->counts[event.index] = static_cast<double>(record.count);
    if (event.op != kUnknownOp) slice->op = event.op;
    if (slice->seen == kAllEvents) CloseSlice(*slice, *timestamp, out);
    return true;
  }

  void Reset() override {
    for (Slice& slice : slices_.states()) {
      slice.timer.Reset();
      slice.seen = 0;
    }
    instant_.Reset();
  }

 private:
  // An instant that ended without all its events is given up: parts of it would be wrong ratios.
  static bool OpenInstant(Slice& slice, const Timestamp& timestamp) {
    if (slice.seen != 0 && slice.now_ns == timestamp.source_ns) return true;
    double seconds = 0;
    if (slice.timer.Next(timestamp, &seconds) == IntervalTimer::Step::kNotLater) return false;
    slice.now_ns = timestamp.source_ns;
    slice.seconds = seconds;
    slice.seen = 0;
    return true;
  }

  void CloseSlice(Slice& slice, const Timestamp& timestamp, SampleBatch& out) {
    if (instant_.Begin(timestamp.source_ns)) CloseInstant(out);
    if (instant_.parts() == 0) total_ = {.host_ns = timestamp.host_ns, .op = slice.op};
    SliceSeries& series = SeriesOf(slice);
    const Counts& e = slice.counts;
    if (Lookups(e) > 0) out.Emit(series.hit_ratio, timestamp.host_ns, Hits(e) / Lookups(e));
    total_.hits += Hits(e);
    total_.lookups += Lookups(e);
    if (slice.seconds > 0) {
      out.Emit(series.throughput, timestamp.host_ns, Bytes(e) / slice.seconds);
      total_.bytes_per_second += Bytes(e) / slice.seconds;
      if (Bytes(e) / slice.seconds < kMaxPlausibleBytesPerSecond) bytes_ += Bytes(e);
      total_.has_throughput = true;
    }
    if (instant_.Add()) CloseInstant(out);
  }

  void CloseInstant(SampleBatch& out) {
    if (total_.lookups > 0) {
      out.Emit(hit_ratio_[total_.op], total_.host_ns, total_.hits / total_.lookups);
    }
    if (!total_.has_throughput) return;
    out.Emit(throughput_, total_.host_ns, total_.bytes_per_second);
    out.Emit(bytes_total_, total_.host_ns, bytes_);
  }

  SliceSeries& SeriesOf(Slice& slice) {
    constexpr MetricId kHitRatio = MetricByName("atlas_npu_llc_slice_hit_ratio");
    constexpr MetricId kThroughput =
        MetricByName("atlas_npu_llc_slice_throughput_bytes_per_second");
    SliceSeries& series = slice.series[slice.op];
    if (!series.known) {
      const std::string label = std::to_string(slice.id);
      series.known = true;
      series.hit_ratio = series_.Add(kHitRatio, device_, {kOps[slice.op], label});
      series.throughput = series_.Add(kThroughput, device_, {kOps[slice.op], label});
    }
    return series;
  }

  struct Total {
    int64_t host_ns = 0;
    size_t op = 0;
    double hits = 0;
    double lookups = 0;
    double bytes_per_second = 0;
    bool has_throughput = false;
  };

  int device_;
  SeriesSet series_;
  IdTable<Slice> slices_;
  InstantGroup instant_;
  Total total_;
  std::array<SeriesId, 2> hit_ratio_;
  SeriesId throughput_;
  SeriesId bytes_total_;
  double bytes_ = 0;  // continues where an earlier run of the channel ended
};

Status ProbeLlc(const Host&, const DeviceInfo& device) {
  // The chip's LLC is read with perf on the device's own OS instead (driver-abi 3.2).
  if (device.chip_id == abi::kChip310) {
    return Unimplemented("its last level cache has no sampling channel");
  }
  return NeedAnyChannel(device, {abi::kChannelLlc});
}

std::vector<ChannelRequest> PlanLlc(const DeviceInfo& device, const ChannelOptions& options) {
  if (!HasChannel(device, abi::kChannelLlc) || device.chip_id == abi::kChip310) return {};
  ChannelRequest request =
      PeriodicRequest(abi::kChannelLlc, PeriodMs(options.hz, kMinMemoryPeriodMs));
  request.user_data = UserData(abi::LlcCfg{
      .period = request.sample_period_ms,
      .sample_type = options.values[kWrites] > 0 ? abi::kLlcSampleWrite : abi::kLlcSampleRead});
  return {request};
}

SampleFields LlcSampleJson(const ChannelOptions& options, std::span<const DeviceInfo* const>) {
  return {{"llc_profiling", options.values[kWrites] > 0 ? "write" : "read"}};
}

}  // namespace

constinit const CollectorEntry kLlcCollector = {
    .spec = &kLlcSpec,
    .probe_device = ProbeLlc,
    .plan = PlanLlc,
    .make_decoder = MakeDecoderOf<LlcDecoder>,
    .sample = LlcSampleJson,
};

}  // namespace profd
