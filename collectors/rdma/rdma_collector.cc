// Counters and states of the host's own RDMA ports (/sys/class/infiniband), InfiniBand and RoCE.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "collectors/collector_list.h"
#include "collectors/metric_table.h"
#include "collectors/proc/device_table.h"
#include "collectors/proc/proc_text.h"
#include "collectors/proc/text_file.h"

namespace profd {
namespace {

constexpr CollectorSpec kRdmaSpec = {
    .name = "rdma",
    .source = CollectorSource::kHost,
    .summary = "traffic, errors and states of the host's RDMA ports",
    .default_hz = 1,
    .max_hz = 10,
    .always_on_hz = 0.1,
};

constexpr std::string_view kRoot = "class/infiniband";
constexpr size_t kMaxPorts = 64;
constexpr size_t kMaxHwCounters = 64;  // per port
constexpr size_t kMaxKeptFiles = 512;  // of all ports; the others are opened per poll
constexpr int64_t kPortListPeriodNs = 10 * kNsPerSecond;

struct Standard {
  std::string_view file;
  MetricId metric;
  std::string_view label;  // third one, behind device and port; empty: the metric has none
  double scale;
};

constexpr MetricId kData = MetricByName("atlas_host_rdma_port_data_bytes_total");
constexpr MetricId kPackets = MetricByName("atlas_host_rdma_port_packets_total");
constexpr MetricId kErrors = MetricByName("atlas_host_rdma_port_errors_total");

// The attributes of counters/ that mean the same for every driver. The data counters are words of
// four bytes, whatever their documentation calls octets.
constexpr auto kStandard = std::to_array<Standard>({
    {"port_rcv_data", kData, "rx", 4},
    {"port_xmit_data", kData, "tx", 4},
    {"port_rcv_packets", kPackets, "rx", 1},
    {"port_xmit_packets", kPackets, "tx", 1},
    {"VL15_dropped", kErrors, "vl15_dropped", 1},
    {"excessive_buffer_overrun_errors", kErrors, "excessive_buffer_overrun", 1},
    {"link_error_recovery", kErrors, "link_error_recovery", 1},
    {"local_link_integrity_errors", kErrors, "local_link_integrity", 1},
    {"port_rcv_constraint_errors", kErrors, "receive_constraint", 1},
    {"port_rcv_errors", kErrors, "receive", 1},
    {"port_rcv_remote_physical_errors", kErrors, "receive_remote_physical", 1},
    {"port_rcv_switch_relay_errors", kErrors, "receive_switch_relay", 1},
    {"port_xmit_constraint_errors", kErrors, "transmit_constraint", 1},
    {"port_xmit_discards", kErrors, "transmit_discards", 1},
    {"symbol_error", kErrors, "symbol", 1},
    {"link_downed", MetricByName("atlas_host_rdma_link_downed_total"), "", 1},
    {"port_xmit_wait", MetricByName("atlas_host_rdma_port_transmit_wait_total"), "", 1},
});

struct Counter {
  TextFile file;
  OwnedSeries series;
  double scale = 1;
};

struct Port {
  std::vector<Counter> counters;
};

// The number a text begins with: "4: ACTIVE", "100 Gb/sec (4X EDR)", "12.5 Gb/sec".
bool LeadingNumber(std::string_view text, double* out) {
  text = Trim(text);
  return std::from_chars(text.data(), text.data() + text.size(), *out).ec == std::errc() &&
         std::isfinite(*out);
}

class Rdma final : public PolledCollector {
 public:
  Rdma(const Host& host, SeriesRegistry& registry) : sys_(&host.sys), registry_(&registry) {}

  Status Poll(const Tick& tick, PollOutput& out) override {
    FirstError error;
    if (list_pace_.Due(tick.due_ns)) error.Note(ListPorts());
    size_t answered = 0;
    ports_.ForEach([&](Port& port) { answered += ReadPort(port, tick.now_ns, out.samples); });
    if (answered == 0 && ports_.size() > 0) {
      error.Note(Unavailable("no counter of any RDMA port could be read"));
    }
    return error.Take();
  }

 private:
  Status ListPorts() {
    Result<std::vector<std::string>> devices = sys_->List(kRoot);
    if (!devices.ok()) return devices.status();
    ports_.BeginPass();
    for (const std::string& device : *devices) {
      const std::string folder = fmt::format("{}/{}/ports", kRoot, device);
      Result<std::vector<std::string>> numbers = sys_->List(folder);
      if (!numbers.ok()) continue;  // unplugged this moment, or no RDMA device after all
      for (const std::string& number : *numbers) {
        const std::string path = fmt::format("{}/{}", folder, number);
        ports_.Find(path, [&](std::string_view) { return MakePort(device, number, path); });
      }
    }
    ports_.EndPass();
    return ports_.Refused("RDMA ports");
  }

  Port MakePort(std::string_view device, std::string_view number, const std::string& path) {
    const std::string name = CleanLabel(device, kMaxDeviceChars);
    const std::string port = CleanLabel(number, kMaxDeviceChars);
    Port result;
    auto add = [&](std::string file, OwnedSeries series, double scale) {
      result.counters.push_back({TextFile(*sys_, std::move(file)), std::move(series), scale});
    };
    auto gauge = [&](std::string_view file, MetricId metric, double scale) {
      add(fmt::format("{}/{}", path, file), OwnedSeries(*registry_, metric, {name, port}), scale);
    };
    gauge("state", MetricByName("atlas_host_rdma_state_id"), 1);
    gauge("phys_state", MetricByName("atlas_host_rdma_physical_state_id"), 1);
    gauge("rate", MetricByName("atlas_host_rdma_rate_bytes_per_second"), 1e9 / 8);
    for (const std::string& file : Names(path + "/counters")) {
      const auto* known = std::ranges::find(kStandard, file, &Standard::file);
      if (known == kStandard.end()) continue;
      add(fmt::format("{}/counters/{}", path, file),
          known->label.empty() ? OwnedSeries(*registry_, known->metric, {name, port})
                               : OwnedSeries(*registry_, known->metric, {name, port, known->label}),
          known->scale);
    }
    size_t hardware = 0;
    for (const std::string& file : Names(path + "/hw_counters")) {
      if (file == "lifespan") continue;  // how long the driver caches them
      if (++hardware > kMaxHwCounters) break;
      const std::string label = CleanLabel(file, kMaxDeviceChars);
      add(fmt::format("{}/hw_counters/{}", path, file),
          OwnedSeries(*registry_, MetricByName("atlas_host_rdma_hw_events_total"),
                      {name, port, label}),
          1);
    }
    return result;
  }

  std::vector<std::string> Names(const std::string& folder) const {
    return sys_->List(folder).value_or({});
  }

  // How many of the port's files gave a number.
  size_t ReadPort(Port& port, int64_t now_ns, SampleBatch& out) {
    const size_t keep = kMaxKeptFiles / std::max<size_t>(ports_.size(), 1);
    size_t answered = 0;
    size_t index = 0;
    for (Counter& counter : port.counters) {
      Result<std::string_view> text = counter.file.Read(buffer_);
      double value = 0;
      // "N/A (no PMA)" is how a driver reports that it does not count this.
      if (text.ok() && LeadingNumber(*text, &value) && value >= 0) {
        out.Emit(counter.series.id(), now_ns, value * counter.scale);
        ++answered;
      }
      if (++index > keep) counter.file.Close();
    }
    return answered;
  }

  const RootedFs* sys_;
  SeriesRegistry* registry_;
  TextBuffer buffer_{4096};
  DeviceTable<Port> ports_{kMaxPorts};
  SlowPace list_pace_{kPortListPeriodNs};
};

Status ProbeRdma(const Host& host) {
  Result<std::vector<std::string>> devices = host.sys.List(kRoot);
  if (!devices.ok() && devices.status().code() != StatusCode::kNotFound) {
    return devices.status().Annotate("/sys/class/infiniband");
  }
  if (!devices.ok() || devices->empty()) {
    return Unimplemented("no RDMA device in /sys/class/infiniband");
  }
  return {};
}

}  // namespace

const CollectorEntry kRdmaCollector = {
    .spec = &kRdmaSpec,
    .probe_host = ProbeRdma,
    .make_poller = MakePollerOf<Rdma>,
};

}  // namespace profd
