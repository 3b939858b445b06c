// HCCS bytes and bandwidth of the device (channel 9).
#include "collectors/channel_decoder.h"
#include "collectors/channel_plan.h"
#include "collectors/collector_list.h"
#include "collectors/metric_table.h"
#include "driver/abi/hal_abi.h"

namespace profd {
namespace {

constexpr CollectorSpec kHccsSpec = {
    .name = "hccs",
    .source = CollectorSource::kChannel,
    .summary = "HCCS bytes and bandwidth of the device",
    .options = {{{.key = "sys_interconnection_freq"}}},
    .default_hz = 50,
    .max_hz = 50,
    .overview = true,
};

// One direction's cumulative bytes.
struct Direction {
  SeriesId total = kNoSeries;
  SeriesId bandwidth = kNoSeries;
  uint64_t last = 0;
};

// "sec:ns <tx bytes> <rx bytes>", cumulative (dump-format 2.1).
class HccsDecoder final : public TextDecoder<HccsDecoder> {
 public:
  HccsDecoder(int device, SeriesRegistry& registry) : TextDecoder("time_stamp"), series_(registry) {
    constexpr MetricId kTotal = MetricByName("atlas_npu_hccs_bytes_total");
    constexpr MetricId kBandwidth = MetricByName("atlas_npu_hccs_bandwidth_bytes_per_second");
    for (size_t i = 0; i < 2; ++i) {
      std::string_view name = i == 0 ? "tx" : "rx";
      directions_[i].total = series_.Add(kTotal, device, {name});
      directions_[i].bandwidth = series_.Add(kBandwidth, device, {"all", name});
    }
  }

  bool DecodeLine(const LineTokens& tokens, const TimeBase& time, SampleBatch& out) {
    std::array<uint64_t, 2> bytes{};
    if (tokens.size() != 3 || !tokens.Get(1, &bytes[0]) || !tokens.Get(2, &bytes[1])) return false;
    std::optional<Timestamp> timestamp = tokens.GetTimestamp(0, time);
    if (!timestamp) return false;
    double seconds = 0;
    IntervalTimer::Step step = timer_.Next(*timestamp, &seconds);
    if (step == IntervalTimer::Step::kNotLater) return false;
    // A counter that went down was wrapped or restarted: this interval has no bandwidth, and since
    // both directions are one sample, neither of them.
    bool wrapped = step == IntervalTimer::Step::kForward &&
                   (bytes[0] < directions_[0].last || bytes[1] < directions_[1].last);
    for (size_t i = 0; i < 2; ++i) {
      Direction& direction = directions_[i];
      out.Emit(direction.total, timestamp->host_ns, static_cast<double>(bytes[i]));
      if (step == IntervalTimer::Step::kForward && !wrapped) {
        out.Emit(direction.bandwidth, timestamp->host_ns,
                 static_cast<double>(bytes[i] - direction.last) / seconds);
      }
      direction.last = bytes[i];
    }
    return !wrapped;
  }

  void Reset() override { timer_.Reset(); }

 private:
  SeriesSet series_;
  IntervalTimer timer_;
  std::array<Direction, 2> directions_;
};

}  // namespace

constinit const CollectorEntry kHccsCollector = {
    .spec = &kHccsSpec,
    .probe_device = ProbeChannel<abi::kChannelHccs>,
    .plan = PlanPeriodic<abi::kChannelHccs>,
    .make_decoder = MakeDecoderOf<HccsDecoder>,
};

}  // namespace profd
