// Bytes, requests and busy time of the host's disks, without partitions.
#include <algorithm>
#include <array>
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

constexpr CollectorSpec kHostDiskSpec = {
    .name = "host_disk",
    .source = CollectorSource::kHost,
    .summary = "bytes, requests and busy time of the host's disks",
    .default_hz = 1,
    .max_hz = 10,
    .always_on_hz = 1,
};

constexpr size_t kMaxDisks = 256;
constexpr int64_t kDiskListPeriodNs = 10 * kNsPerSecond;
// Whatever the disk's own block size: /proc/diskstats always counts in these.
constexpr double kSectorBytes = 512;
// Figures after the name that every kernel since 2.6 prints, and where ours are among them.
constexpr size_t kFigures = 11;
constexpr size_t kReads = 0;
constexpr size_t kSectorsRead = 2;
constexpr size_t kWrites = 4;
constexpr size_t kSectorsWritten = 6;
constexpr size_t kIoMillis = 9;

struct Disk {
  OwnedSeries bytes_read;
  OwnedSeries bytes_written;
  OwnedSeries reads;
  OwnedSeries writes;
  OwnedSeries io_time;
};

// Loop devices, RAM disks and floppies: files or memory, not disks.
bool IsPseudo(std::string_view name) {
  for (std::string_view prefix : {"loop", "ram", "fd"}) {
    if (name.starts_with(prefix) && IsDigits(name.substr(prefix.size()))) return true;
  }
  return false;
}

class HostDisk final : public PolledCollector {
 public:
  HostDisk(const Host& host, SeriesRegistry& registry)
      : sys_(&host.sys),
        registry_(&registry),
        file_(host.proc, "diskstats", TextFile::Kind::kRecords) {}

  Status Poll(const Tick& tick, PollOutput& out) override {
    if (list_pace_.Due(tick.due_ns)) RETURN_IF_ERROR(ListWholeDisks());
    Result<std::string_view> text = file_.Read(buffer_);
    if (!text.ok()) return text.status();
    disks_.BeginPass();
    std::string_view line;
    for (std::string_view rest = *text; NextLine(&rest, &line);) {
      ReadDisk(line, tick.now_ns, out.samples);
    }
    disks_.EndPass();
    return disks_.Refused("disks");
  }

 private:
  // Partitions are not listed in /sys/block; a name with '/' ("cciss/c0d0") has '!' there.
  Status ListWholeDisks() {
    Result<std::vector<std::string>> names = sys_->List("block");
    if (!names.ok()) return names.status();
    whole_ = std::move(names).value();
    for (std::string& name : whole_) std::ranges::replace(name, '!', '/');
    std::ranges::sort(whole_);
    return {};
  }

  Disk MakeDisk(std::string_view name) {
    const std::string label = CleanLabel(name, kMaxDeviceChars);
    const MetricId bytes = MetricByName("atlas_host_disk_bytes_total");
    const MetricId ios = MetricByName("atlas_host_disk_ios_total");
    return {
        OwnedSeries(*registry_, bytes, {label, "read"}),
        OwnedSeries(*registry_, bytes, {label, "write"}),
        OwnedSeries(*registry_, ios, {label, "read"}),
        OwnedSeries(*registry_, ios, {label, "write"}),
        OwnedSeries(*registry_, MetricByName("atlas_host_disk_io_time_seconds_total"), {label}),
    };
  }

  void ReadDisk(std::string_view line, int64_t now_ns, SampleBatch& out) {
    NextToken(&line);  // major
    NextToken(&line);  // minor
    const std::string_view name = NextToken(&line);
    if (name.empty() || IsPseudo(name)) return;
    if (!std::ranges::binary_search(whole_, name)) return;
    std::array<uint64_t, kFigures> figures;
    for (uint64_t& figure : figures) {
      if (!ParseNumber(NextToken(&line), &figure)) return;
    }
    Disk* disk = disks_.Find(name, [this](std::string_view n) { return MakeDisk(n); });
    if (disk == nullptr) return;
    auto value = [&](size_t index) { return static_cast<double>(figures[index]); };
    out.Emit(disk->bytes_read.id(), now_ns, value(kSectorsRead) * kSectorBytes);
    out.Emit(disk->bytes_written.id(), now_ns, value(kSectorsWritten) * kSectorBytes);
    out.Emit(disk->reads.id(), now_ns, value(kReads));
    out.Emit(disk->writes.id(), now_ns, value(kWrites));
    out.Emit(disk->io_time.id(), now_ns, value(kIoMillis) / 1e3);
  }

  const RootedFs* sys_;
  SeriesRegistry* registry_;
  TextFile file_;
  TextBuffer buffer_;
  std::vector<std::string> whole_;
  DeviceTable<Disk> disks_{kMaxDisks};
  SlowPace list_pace_{kDiskListPeriodNs};
};

Status ProbeHostDisk(const Host& host) {
  RETURN_IF_ERROR(ProbeFile(host.proc, "diskstats", "/proc/diskstats"));
  if (!host.sys.Exists("block")) return Unimplemented("/sys/block is missing");
  return {};
}

}  // namespace

const CollectorEntry kHostDiskCollector = {
    .spec = &kHostDiskSpec,
    .probe_host = ProbeHostDisk,
    .make_poller = MakePollerOf<HostDisk>,
};

}  // namespace profd
