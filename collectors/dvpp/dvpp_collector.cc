// Utilisation of the image and video engines (channels 6 and 135-141).
#include <string>

#include "collectors/channel_decoder.h"
#include "collectors/channel_plan.h"
#include "collectors/collector_list.h"
#include "collectors/metric_table.h"
#include "driver/abi/hal_abi.h"
#include "driver/chips.h"

namespace profd {
namespace {

constexpr CollectorSpec kDvppSpec = {
    .name = "dvpp",
    .source = CollectorSource::kChannel,
    .summary = "utilisation of the image and video engines",
    .options = {{{.key = "dvpp_freq"}}},
    .default_hz = 50,
    .max_hz = 100,
};

// All engines in one channel, and on newer chips one channel per engine; where a chip has both,
// both run, as with the vendor's collector (driver-abi 3.2).
constexpr std::array<uint32_t, 8> kChannels = {
    abi::kChannelDvpp,      abi::kChannelDvppVenc, abi::kChannelDvppJpege, abi::kChannelDvppVdec,
    abi::kChannelDvppJpegd, abi::kChannelDvppVpc,  abi::kChannelDvppPng,   abi::kChannelDvppScd,
};

// By engine_type (dump-format 2.4).
constexpr std::array<std::string_view, 7> kEngines = {"vdec", "jpegd", "pngd", "jpege",
                                                      "vpc",  "venc",  "scd"};

// Columns: timestamp [dvpp_id] engine_type engine_id all_time all_frame all_utilization(%) proc_time
// proc_frame proc_utilization(%) last_time last_frame.
constexpr size_t kTokens = 11;
constexpr size_t kTokensWithId = 12;
constexpr uint64_t kMaxId = 0xFFFF;

struct Instance {
  SeriesId utilization = kNoSeries;
  SeriesId busy = kNoSeries;
  SeriesId frames = kNoSeries;
  IntervalTimer timer;  // refuses repeated timestamps
};

class DvppDecoder final : public TextDecoder<DvppDecoder> {
 public:
  DvppDecoder(int device, SeriesRegistry& registry)
      : TextDecoder("engine_type"), device_(device), series_(registry) {
    mean_series_.fill(kNoSeries);
  }

  bool DecodeLine(const LineTokens& tokens, const TimeBase& time, SampleBatch& out) {
    if (tokens.size() != kTokens && tokens.size() != kTokensWithId) return false;
    size_t column = 1;
    uint64_t dvpp = 0;
    if (tokens.size() == kTokensWithId && !tokens.Get(column++, &dvpp)) return false;
    uint64_t engine = 0;
    uint64_t id = 0;
    double busy_us = 0;
    double frames = 0;
    double percent = 0;
    if (!tokens.Get(column, &engine) || !tokens.Get(column + 1, &id) ||
        !tokens.Get(column + 2, &busy_us) || !tokens.Get(column + 3, &frames) ||
        !tokens.GetPercent(column + 4, &percent)) {
      return false;
    }
    std::optional<Timestamp> timestamp = tokens.GetTimestamp(0, time);
    if (!timestamp || engine >= kEngines.size() || dvpp > kMaxId || id > kMaxId) return false;
    Instance* instance = instances_.FindOrAdd(dvpp << 32 | engine << 16 | id,
                                              [&] { return MakeInstance(engine, dvpp, id); });
    double seconds = 0;
    if (instance == nullptr ||
        instance->timer.Next(*timestamp, &seconds) == IntervalTimer::Step::kNotLater) {
      return false;
    }
    if (instant_.Begin(timestamp->source_ns)) EmitMeans(out);
    if (instant_.parts() == 0) means_ = {};
    instant_host_ns_ = timestamp->host_ns;
    out.Emit(instance->utilization, timestamp->host_ns, percent / 100);
    out.Emit(instance->busy, timestamp->host_ns, busy_us * 1e-6);
    out.Emit(instance->frames, timestamp->host_ns, frames);
    means_[engine].sum += percent / 100;
    means_[engine].instances += 1;
    if (instant_.Add()) EmitMeans(out);
    return true;
  }

  void Reset() override {
    for (Instance& instance : instances_.states()) instance.timer.Reset();
    instant_.Reset();
  }

 private:
  struct Mean {
    double sum = 0;
    double instances = 0;
  };

  Instance MakeInstance(uint64_t engine, uint64_t dvpp, uint64_t id) {
    constexpr MetricId kUtilization = MetricByName("atlas_npu_dvpp_engine_utilization_ratio");
    constexpr MetricId kBusy = MetricByName("atlas_npu_dvpp_engine_busy_seconds");
    constexpr MetricId kFrames = MetricByName("atlas_npu_dvpp_engine_frames");
    constexpr MetricId kMean = MetricByName("atlas_npu_dvpp_utilization_ratio");
    std::string_view name = kEngines[engine];
    if (mean_series_[engine] == kNoSeries) {
      mean_series_[engine] = series_.Add(kMean, device_, {name});
    }
    const std::string dvpp_label = std::to_string(dvpp);
    const std::string id_label = std::to_string(id);
    Instance instance;
    instance.utilization = series_.Add(kUtilization, device_, {name, dvpp_label, id_label});
    instance.busy = series_.Add(kBusy, device_, {name, dvpp_label, id_label});
    instance.frames = series_.Add(kFrames, device_, {name, dvpp_label, id_label});
    return instance;
  }

  // What DCMI calls the engine's utilisation: all instances of a kind together.
  void EmitMeans(SampleBatch& out) {
    for (size_t engine = 0; engine < kEngines.size(); ++engine) {
      if (means_[engine].instances == 0) continue;
      out.Emit(mean_series_[engine], instant_host_ns_,
               means_[engine].sum / means_[engine].instances);
    }
  }

  int device_;
  SeriesSet series_;
  IdTable<Instance> instances_;
  InstantGroup instant_;
  int64_t instant_host_ns_ = 0;
  std::array<Mean, kEngines.size()> means_;
  std::array<SeriesId, kEngines.size()> mean_series_;
};

// Some chips list the channels of single engines and do not have them (driver-abi 2.3, 2.4). Of an unknown chip the list decides.
bool Has(const DeviceInfo& device, uint32_t channel) {
  const ChipFacts* chip = FindChip(static_cast<uint32_t>(device.chip_id));
  return HasChannel(device, channel) &&
         (channel == abi::kChannelDvpp || chip == nullptr || chip->Has(kChipDvppEx));
}

Status ProbeDvpp(const Host&, const DeviceInfo& device) {
  for (uint32_t channel : kChannels) {
    if (Has(device, channel)) return Status::Ok();
  }
  return NeedAnyChannel(device, {abi::kChannelDvpp});
}

std::vector<ChannelRequest> PlanDvpp(const DeviceInfo& device, const ChannelOptions& options) {
  std::vector<ChannelRequest> requests;
  for (uint32_t channel : kChannels) {
    if (!Has(device, channel)) continue;
    requests.push_back(PeriodicRequest(channel, PeriodMs(options.hz)));
  }
  return requests;
}

}  // namespace

constinit const CollectorEntry kDvppCollector = {
    .spec = &kDvppSpec,
    .probe_device = ProbeDvpp,
    .plan = PlanDvpp,
    .make_decoder = MakeDecoderOf<DvppDecoder>,
};

}  // namespace profd
