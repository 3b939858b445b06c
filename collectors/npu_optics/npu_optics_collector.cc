// Link, speed and optics of the NPUs' network ports, which only the vendor's hccn_tool reports. The
// tool runs on a thread of the reader's own once a minute; a poll takes over what has come in
// since.
#include <array>
#include <memory>
#include <utility>

#include "collectors/collector_list.h"
#include "collectors/metric_table.h"
#include "driver/hccn_reader.h"

namespace profd {
namespace {

constexpr CollectorSpec kNpuOpticsSpec = {
    .name = "npu_optics",
    .source = CollectorSource::kHost,
    .summary = "link, speed and optics of the NPUs' network ports, from hccn_tool, once a minute",
    .default_hz = 1,
    .max_hz = 1,
    .always_on_hz = 1,
};

constexpr std::array<std::string_view, 8> kLanes = {"0", "1", "2", "3", "4", "5", "6", "7"};

// Puts one poll of an NPU into series; they live until its next poll.
class Emitter {
 public:
  Emitter(const HccnValues& values, SeriesSet& series, SampleBatch& out)
      : values_(values), series_(series), out_(out) {}

  void EmitAll() {
    Put(MetricByName("atlas_npu_network_link_up_transitions_total"), {},
        values_.link_ups ? std::optional(static_cast<double>(*values_.link_ups)) : std::nullopt);
    for (const HccnPortValues& port : values_.ports) EmitPort(port);
  }

 private:
  void EmitPort(const HccnPortValues& port) {
    const OpticalValues& optical = port.optical;
    Put(MetricByName("atlas_npu_network_link_up"), {port.port}, Flag(port.link_up));
    Put(MetricByName("atlas_npu_network_speed_bytes_per_second"), {port.port},
        port.bytes_per_second);
    Put(MetricByName("atlas_npu_optical_present"), {port.port}, Flag(optical.present));
    Put(MetricByName("atlas_npu_optical_temperature_celsius"), {port.port},
        optical.temperature_celsius);
    Put(MetricByName("atlas_npu_optical_supply_volts"), {port.port}, optical.supply_volts);
    constexpr MetricId kWatts = MetricByName("atlas_npu_optical_power_watts");
    for (size_t lane = 0; lane < kLanes.size(); ++lane) {
      Put(kWatts, {port.port, "tx", kLanes[lane]}, optical.tx_power_watts[lane]);
      Put(kWatts, {port.port, "rx", kLanes[lane]}, optical.rx_power_watts[lane]);
    }
  }

  static std::optional<double> Flag(const std::optional<bool>& flag) {
    return flag ? std::optional(*flag ? 1.0 : 0.0) : std::nullopt;
  }
  void Put(MetricId metric, std::initializer_list<std::string_view> labels,
           const std::optional<double>& value) {
    if (value) out_.Emit(series_.Add(metric, values_.device, labels), values_.time_ns, *value);
  }

  const HccnValues& values_;
  SeriesSet& series_;
  SampleBatch& out_;
};

class NpuOptics final : public PolledCollector {
 public:
  NpuOptics(HccnReader& reader, SeriesRegistry& registry)
      : reader_(reader), registry_(registry), self_(registry), npus_(reader.devices()) {
    for (size_t i = 0; i < kHccnCommands; ++i) {
      const std::string_view name = NameOf(static_cast<HccnCommand>(i));
      counts_[i].runs = self_.Add(MetricByName("profd_hccn_tool_runs_total"), kHostDevice, {name});
      counts_[i].failures =
          self_.Add(MetricByName("profd_hccn_tool_failures_total"), kHostDevice, {name});
      counts_[i].seconds =
          self_.Add(MetricByName("profd_hccn_tool_duration_seconds"), kHostDevice, {name});
    }
    reader_.Attach();
  }
  ~NpuOptics() override { reader_.Detach(); }

  Status Poll(const Tick& tick, PollOutput& out) override {
    reader_.Refresh(&known_);
    size_t read = 0;
    size_t failed = 0;
    for (size_t i = 0; i < known_.size(); ++i) {
      TakeOver(known_[i], npus_[i], out.samples);
      read += known_[i].version > 0 ? 1 : 0;
      failed += known_[i].status.ok() ? 0 : 1;
    }
    EmitCounts(tick.now_ns, out.samples);
    // One NPU that does not answer is in the failures' count; the collector works.
    return read > 0 && failed == read ? known_.front().status : Status::Ok();
  }

 private:
  struct Npu {
    uint64_t version = 0;
    std::unique_ptr<SeriesSet> series;
  };
  struct CountSeries {
    SeriesId runs = kNoSeries;
    SeriesId failures = kNoSeries;
    SeriesId seconds = kNoSeries;
  };

  void TakeOver(const HccnValues& values, Npu& npu, SampleBatch& out) {
    if (npu.version == values.version) return;
    npu.version = values.version;
    // The new ones first: a series that continues keeps its id.
    auto series = std::make_unique<SeriesSet>(registry_);
    Emitter(values, *series, out).EmitAll();
    npu.series = std::move(series);
  }

  void EmitCounts(int64_t now_ns, SampleBatch& out) {
    const HccnCounts counts = reader_.Counts();
    for (size_t i = 0; i < counts.size(); ++i) {
      out.Emit(counts_[i].runs, now_ns, static_cast<double>(counts[i].runs));
      out.Emit(counts_[i].failures, now_ns, static_cast<double>(counts[i].failures));
      if (counts[i].runs > 0) out.Emit(counts_[i].seconds, now_ns, counts[i].last_seconds);
    }
  }

  HccnReader& reader_;
  SeriesRegistry& registry_;
  SeriesSet self_;
  std::array<CountSeries, kHccnCommands> counts_;
  std::vector<HccnValues> known_;
  std::vector<Npu> npus_;
};

Status ProbeHost(const Host& host) {
  if (host.hccn_or_null == nullptr) return Unimplemented("hccn_tool is not set up");
  return host.hccn_or_null->Usable();
}

Result<std::unique_ptr<PolledCollector>> MakePoller(const Host& host, const PollOptions&,
                                                    SeriesRegistry& registry) {
  RETURN_IF_ERROR(ProbeHost(host));
  return std::unique_ptr<PolledCollector>(
      std::make_unique<NpuOptics>(*host.hccn_or_null, registry));
}

}  // namespace

const CollectorEntry kNpuOpticsCollector = {
    .spec = &kNpuOpticsSpec,
    .probe_host = ProbeHost,
    .make_poller = MakePoller,
};

}  // namespace profd
