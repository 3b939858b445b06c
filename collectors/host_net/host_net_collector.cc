// Counters, speed and carrier of the host's network devices.
#include <fmt/format.h>

#include <array>
#include <iterator>
#include <string>
#include <string_view>

#include "base/text.h"
#include "collectors/collector_list.h"
#include "collectors/metric_table.h"
#include "collectors/proc/device_table.h"
#include "collectors/proc/proc_text.h"
#include "collectors/proc/text_file.h"

namespace profd {
namespace {

constexpr CollectorSpec kHostNetSpec = {
    .name = "host_net",
    .source = CollectorSource::kHost,
    .summary = "bytes, packets, errors and drops of the host's network devices",
    .default_hz = 1,
    .max_hz = 10,
    .always_on_hz = 1,
    .vendor_files = true,
};

constexpr size_t kMaxDevices = 256;
constexpr int64_t kLinkPeriodNs = 10 * kNsPerSecond;

// Columns of /proc/net/dev that are shown, as receive and transmit index after the colon.
struct Column {
  MetricId metric;
  size_t rx;
  size_t tx;
};
constexpr std::array<Column, 4> kColumns = {{
    {MetricByName("atlas_host_network_bytes_total"), 0, 8},
    {MetricByName("atlas_host_network_packets_total"), 1, 9},
    {MetricByName("atlas_host_network_errors_total"), 2, 10},
    {MetricByName("atlas_host_network_drops_total"), 3, 11},
}};
constexpr size_t kFields = 16;

struct Device {
  std::array<OwnedSeries, kColumns.size()> rx;
  std::array<OwnedSeries, kColumns.size()> tx;
  OwnedSeries speed;
  OwnedSeries link_up;
  // As last read; negative: not known.
  double speed_bytes_per_second = -1;
  double up = -1;
};

class HostNet final : public PolledCollector {
 public:
  HostNet(const Host& host, SeriesRegistry& registry)
      : sys_(&host.sys),
        registry_(&registry),
        file_(host.proc, "net/dev", TextFile::Kind::kRecords) {}

  Status Poll(const Tick& tick, PollOutput& out) override {
    Result<std::string_view> text = file_.Read(buffer_);
    if (!text.ok()) return text.status();
    const bool read_links = link_pace_.Due(tick.due_ns);
    const bool texts = out.raw.Wanted();
    raw_.clear();
    if (texts) fmt::format_to(std::back_inserter(raw_), "time {}\n", tick.now_ns);
    devices_.BeginPass();
    size_t lines = 0;
    std::string_view line;
    for (std::string_view rest = *text; NextLine(&rest, &line);) {
      if (line.find(':') == std::string_view::npos) continue;
      ++lines;
      if (texts) AppendPrintableLine(line, &raw_);
      ReadDevice(line, read_links, tick.now_ns, out.samples);
    }
    devices_.EndPass();
    if (lines == 0) return Internal("/proc/net/dev: no line with a colon");
    // Vendor's layout (dump-format 2.15): the timestamp, then the lines of the devices.
    if (texts) out.raw.WriteHostFile("host_network.data", raw_);
    return devices_.Refused("network devices");
  }

 private:
  Device MakeDevice(std::string_view name) {
    const std::string label = CleanLabel(name, kMaxDeviceChars);
    Device device;
    for (size_t i = 0; i < kColumns.size(); ++i) {
      device.rx[i] = OwnedSeries(*registry_, kColumns[i].metric, {label, "rx"});
      device.tx[i] = OwnedSeries(*registry_, kColumns[i].metric, {label, "tx"});
    }
    return device;
  }

  void ReadDevice(std::string_view line, bool read_links, int64_t now_ns, SampleBatch& out) {
    const size_t colon = line.find(':');
    const std::string_view name = Trim(line.substr(0, colon));
    std::string_view rest = line.substr(colon + 1);
    std::array<uint64_t, kFields> fields;
    for (uint64_t& field : fields) {
      if (!ParseNumber(NextToken(&rest), &field)) return;
    }
    if (name.empty()) return;
    bool is_new = false;
    Device* device = devices_.Find(name, [&](std::string_view n) {
      is_new = true;
      return MakeDevice(n);
    });
    if (device == nullptr) return;
    for (size_t i = 0; i < kColumns.size(); ++i) {
      out.Emit(device->rx[i].id(), now_ns, static_cast<double>(fields[kColumns[i].rx]));
      out.Emit(device->tx[i].id(), now_ns, static_cast<double>(fields[kColumns[i].tx]));
    }
    if (read_links || is_new) ReadLink(name, *device);
    if (device->speed_bytes_per_second >= 0) {
      out.Emit(device->speed.id(), now_ns, device->speed_bytes_per_second);
    }
    if (device->up >= 0) out.Emit(device->link_up.id(), now_ns, device->up);
  }

  // A number that may be absent: the kernel refuses both files while the device is down.
  double ReadAttribute(std::string_view name, std::string_view attribute) {
    if (name.find('/') != std::string_view::npos) return -1;
    path_.clear();
    fmt::format_to(std::back_inserter(path_), "class/net/{}/{}", name, attribute);
    std::array<char, 64> text;
    Result<size_t> size = sys_->ReadInto(path_, text);
    int64_t value = -1;
    if (!size.ok() || !ParseNumber(Trim({text.data(), *size}), &value)) return -1;
    return static_cast<double>(value);
  }

  void ReadLink(std::string_view name, Device& device) {
    const double mbits = ReadAttribute(name, "speed");
    device.speed_bytes_per_second = mbits > 0 ? mbits * 1e6 / 8 : -1;
    const double carrier = ReadAttribute(name, "carrier");
    device.up = carrier == 0 || carrier == 1 ? carrier : -1;
    const std::string label = CleanLabel(name, kMaxDeviceChars);
    Own(device.speed, device.speed_bytes_per_second >= 0,
        MetricByName("atlas_host_network_speed_bytes_per_second"), label);
    Own(device.link_up, device.up >= 0, MetricByName("atlas_host_network_link_up"), label);
  }

  // A value that is not known has no series either, so that nothing stale is shown for it.
  void Own(OwnedSeries& series, bool wanted, MetricId metric, std::string_view label) {
    if (wanted == (series.id() != kNoSeries)) return;
    series = wanted ? OwnedSeries(*registry_, metric, {label}) : OwnedSeries();
  }

  const RootedFs* sys_;
  SeriesRegistry* registry_;
  TextFile file_;
  TextBuffer buffer_;
  DeviceTable<Device> devices_{kMaxDevices};
  SlowPace link_pace_{kLinkPeriodNs};
  std::string raw_;
  std::string path_;
};

Status ProbeHostNet(const Host& host) { return ProbeFile(host.proc, "net/dev", "/proc/net/dev"); }

SampleFields HostNetSampleJson(const ChannelOptions&, std::span<const DeviceInfo* const>) {
  return {{"host_network_profiling", "on"}};
}

}  // namespace

const CollectorEntry kHostNetCollector = {
    .spec = &kHostNetSpec,
    .probe_host = ProbeHostNet,
    .make_poller = MakePollerOf<HostNet>,
    .sample = HostNetSampleJson,
};

}  // namespace profd
