// Memory of the host, of its NUMA nodes, and of the processes of a session.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>

#include "base/text.h"
#include "collectors/collector_list.h"
#include "collectors/metric_table.h"
#include "collectors/proc/device_table.h"
#include "collectors/proc/proc_text.h"
#include "collectors/proc/process_tracker.h"
#include "collectors/proc/raw_block.h"
#include "collectors/proc/text_file.h"

namespace profd {
namespace {

constexpr CollectorSpec kHostMemSpec = {
    .name = "host_mem",
    .source = CollectorSource::kHost,
    .summary = "memory of the host, of its NUMA nodes and of the job's processes",
    .options = {{{.key = "host_sys", .item = "mem"}, {.key = "host_sys_usage", .item = "mem"}}},
    .default_hz = 50,
    .max_hz = 50,
    .always_on_hz = 1,
    .vendor_files = true,
};

constexpr std::string_view kNodeFolder = "devices/system/node";
constexpr size_t kMaxNodes = 256;
constexpr int64_t kNodePeriodNs = 10 * kNsPerSecond;
// The vendor's analyser takes a page of host_mem.data for 4 KiB everywhere (dump-format 2.15).
constexpr uint64_t kVendorPageBytes = 4096;

struct MemoryField {
  std::string_view key;
  MetricId metric;
};
constexpr std::array<MemoryField, 4> kFields = {{
    {"MemTotal", MetricByName("atlas_host_memory_total_bytes")},
    {"MemAvailable", MetricByName("atlas_host_memory_available_bytes")},
    {"MemFree", MetricByName("atlas_host_memory_free_bytes")},
    {"Cached", MetricByName("atlas_host_memory_cached_bytes")},
}};

// "MemFree:   123 kB" -> "MemFree" and bytes; the unit is optional.
bool ParseMemoryLine(std::string_view line, std::string_view* key, double* bytes) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return false;
  *key = Trim(line.substr(0, colon));
  std::string_view rest = line.substr(colon + 1);
  uint64_t number = 0;
  if (!ParseNumber(NextToken(&rest), &number)) return false;
  *bytes = static_cast<double>(number) * (NextToken(&rest) == "kB" ? 1024 : 1);
  return true;
}

struct MemoryAttachment final : ProcessAttachment {
  OwnedSeries resident;
  OwnedSeries size;
  uint64_t index = 0;  // of the next block
  std::string comm;
  std::string file;
  std::string name_line;
};

struct NumaNode {
  OwnedSeries free;
  double free_bytes = -1;  // as last read; negative: not known
};

class HostMem final : public PolledCollector {
 public:
  HostMem(const Host& host, const PollOptions& options, SeriesRegistry& registry)
      : sys_(&host.sys),
        registry_(&registry),
        system_(options.system),
        all_(options.processes.all),
        job_(HasJob(options.processes)),
        meminfo_(host.proc, "meminfo"),
        tracker_(host.proc, options.processes, {.file = "statm"}) {
    const long page = sysconf(_SC_PAGESIZE);
    page_bytes_ = page > 0 ? static_cast<uint64_t>(page) : kVendorPageBytes;
    if (!system_) return;
    for (size_t i = 0; i < kFields.size(); ++i) {
      fields_[i] = OwnedSeries(registry, kFields[i].metric);
    }
  }

  Status Poll(const Tick& tick, PollOutput& out) override {
    FirstError error;
    texts_ = out.raw.Wanted();
    if (texts_) block_.SetTime(tick.now_ns);
    if (system_) {
      error.Note(PollSystem(tick, out));
      PollNodes(tick, out.samples);
    }
    error.Note(tracker_.Refresh(tick.due_ns));
    job_pages_ = {};
    job_processes_ = 0;
    for (TrackedProcess* process : tracker_.processes()) {
      error.Note(PollProcess(*process, tick, out));
    }
    if (job_ && texts_ && job_processes_ > 0) WriteJob(tick.now_ns, out.raw);
    return error.Take();
  }

 private:
  Status PollSystem(const Tick& tick, PollOutput& out) {
    Result<std::string_view> text = meminfo_.Read(buffer_);
    if (!text.ok()) return text.status();
    body_.clear();
    size_t found = 0;
    std::string_view line;
    for (std::string_view rest = *text; NextLine(&rest, &line);) {
      std::string_view key;
      double bytes = 0;
      if (!ParseMemoryLine(line, &key, &bytes)) continue;
      if (texts_) AppendPrintableLine(line, &body_);
      for (size_t i = 0; i < kFields.size(); ++i) {
        if (key != kFields[i].key) continue;
        out.samples.Emit(fields_[i].id(), tick.now_ns, bytes);
        ++found;
      }
      if (!texts_ && found == kFields.size()) break;  // the rest is for the text only
    }
    if (found == 0) return Internal("/proc/meminfo: nothing in it is known");
    if (texts_) block_.Write(out.raw, "host_sys_mem.data", system_index_++, {body_});
    return {};
  }

  // Summing a node's memory costs the kernel a walk over all its zones and CPUs, so it is read
  // slowly, and the value repeated in between. A host without /sys/.../node has no such series.
  void PollNodes(const Tick& tick, SampleBatch& out) {
    if (node_pace_.Due(tick.due_ns)) ReadNodes();
    nodes_.ForEach([&](const NumaNode& node) {
      if (node.free_bytes >= 0) out.Emit(node.free.id(), tick.now_ns, node.free_bytes);
    });
  }

  void ReadNodes() {
    nodes_.BeginPass();
    for (const std::string& name : sys_->List(kNodeFolder).value_or({})) {
      uint32_t number = 0;
      if (!name.starts_with("node") || !ParseNumber(std::string_view(name).substr(4), &number)) {
        continue;
      }
      NumaNode* node = nodes_.Find(name, [&](std::string_view n) {
        return NumaNode{OwnedSeries(*registry_, MetricByName("atlas_host_numa_memory_free_bytes"),
                                    {n.substr(4)})};
      });
      if (node != nullptr) node->free_bytes = FreeOfNode(name);
    }
    nodes_.EndPass();
  }

  // Lines are "Node 0 MemFree:   123 kB".
  double FreeOfNode(const std::string& name) {
    TextFile file(*sys_, fmt::format("{}/{}/meminfo", kNodeFolder, name));
    Result<std::string_view> text = file.Read(buffer_);
    if (!text.ok()) return -1;
    std::string_view line;
    for (std::string_view rest = *text; NextLine(&rest, &line);) {
      std::string_view key;
      double bytes = 0;
      if (ParseMemoryLine(line, &key, &bytes) && key.ends_with(" MemFree")) return bytes;
    }
    return -1;
  }

  Status PollProcess(TrackedProcess& process, const Tick& tick, PollOutput& out) {
    if (process.gone || process.kernel_thread) return {};  // these have no memory of their own
    Result<std::string_view> text = tracker_.Read(process);
    if (!text.ok()) return process.gone ? Status() : text.status();
    Statm statm;
    if (!ParseStatm(*text, &statm)) {
      return Internal(fmt::format("/proc/{}/statm: not seven numbers", process.pid));
    }
    MemoryAttachment& own = Attachment(process);
    auto bytes = [&](size_t i) {
      return static_cast<double>(statm.pages[i]) * static_cast<double>(page_bytes_);
    };
    out.samples.Emit(own.resident.id(), tick.now_ns, bytes(Statm::kResident));
    out.samples.Emit(own.size.id(), tick.now_ns, bytes(Statm::kSize));
    if (process.in_job) {
      ++job_processes_;
      for (size_t i = 0; i < job_pages_.size(); ++i) job_pages_[i] += statm.pages[i];
    }
    if (all_ && texts_) WriteProcess(own, statm, out.raw);
    return {};
  }

  void WriteProcess(MemoryAttachment& own, const Statm& statm, RawSink& raw) {
    std::string_view line = statm.line;
    if (line.empty()) {
      raw_.clear();
      fmt::format_to(std::back_inserter(raw_), "{}", fmt::join(statm.pages, " "));
      line = raw_;
    }
    block_.Write(raw, own.file, own.index++, {line, "\n", own.name_line});
  }

  void WriteJob(int64_t now_ns, RawSink& raw) {
    for (uint64_t& pages : job_pages_) pages = pages * page_bytes_ / kVendorPageBytes;
    raw_.clear();
    fmt::format_to(std::back_inserter(raw_), "{} {}\n", now_ns, fmt::join(job_pages_, " "));
    raw.WriteHostFile("host_mem.data", raw_);
  }

  MemoryAttachment& Attachment(TrackedProcess& process) {
    auto* own = static_cast<MemoryAttachment*>(process.attachment.get());
    if (own != nullptr && own->comm == process.comm) return *own;
    if (own == nullptr) {
      auto made = std::make_unique<MemoryAttachment>();
      own = made.get();
      own->file = fmt::format("{}-Memory.data", process.pid);
      process.attachment = std::move(made);
    }
    own->comm = process.comm;
    own->name_line = ProcessNameLine(process.comm);
    const std::string pid = fmt::format("{}", process.pid);
    const std::string comm = CleanLabel(process.comm, kMaxCommChars);
    own->resident =
        OwnedSeries(*registry_, MetricByName("atlas_host_process_resident_bytes"), {pid, comm});
    own->size =
        OwnedSeries(*registry_, MetricByName("atlas_host_process_virtual_bytes"), {pid, comm});
    return *own;
  }

  const RootedFs* sys_;
  SeriesRegistry* registry_;
  const bool system_;
  const bool all_;
  const bool job_;
  bool texts_ = true;  // of this poll: a subscriber keeps them
  uint64_t page_bytes_ = kVendorPageBytes;
  TextFile meminfo_;
  ProcessTracker tracker_;
  std::array<OwnedSeries, kFields.size()> fields_;
  DeviceTable<NumaNode> nodes_{kMaxNodes};
  SlowPace node_pace_{kNodePeriodNs};
  TextBuffer buffer_;
  RawBlockWriter block_;
  std::string raw_;
  std::string body_;
  uint64_t system_index_ = 0;
  std::array<uint64_t, 7> job_pages_ = {};  // summed over its processes
  size_t job_processes_ = 0;
};

Status ProbeHostMem(const Host& host) { return ProbeFile(host.proc, "meminfo", "/proc/meminfo"); }

}  // namespace

const CollectorEntry kHostMemCollector = {
    .spec = &kHostMemSpec,
    .probe_host = ProbeHostMem,
    .make_poller = MakePollerOf<HostMem>,
};

}  // namespace profd
