// CPU time of the host, and of the processes of a session.
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
#include "collectors/proc/process_clock.h"
#include "collectors/proc/process_tracker.h"
#include "collectors/proc/raw_block.h"
#include "collectors/proc/text_file.h"

namespace profd {
namespace {

constexpr CollectorSpec kHostCpuSpec = {
    .name = "host_cpu",
    .source = CollectorSource::kHost,
    .summary = "CPU time of the host, of each CPU and of the job's processes",
    .options = {{{.key = "host_sys", .item = "cpu"}, {.key = "host_sys_usage", .item = "cpu"}}},
    .default_hz = 50,
    .max_hz = 50,
    .always_on_hz = 1,
    .vendor_files = true,
};

constexpr size_t kMaxCpus = 1024;

// Columns of a cpu line of /proc/stat (proc(5)). Guest time, which follows, is in user and nice.
constexpr std::array<std::string_view, 8> kModes = {"user",   "nice", "system",  "idle",
                                                    "iowait", "irq",  "softirq", "steal"};
constexpr size_t kIdle = 3;
constexpr size_t kIoWait = 4;
// The kernel's idle and iowait times go back a little now and then (proc(5)), and Prometheus takes a
// fall for a restart. The counter stands still instead, up to node_exporter's limit.
constexpr double kMostFallSeconds = 3;
using CpuTimes = std::array<uint64_t, kModes.size()>;

bool ParseCpuTimes(std::string_view fields, CpuTimes* times) {
  for (uint64_t& time : *times) {
    if (!ParseNumber(NextToken(&fields), &time)) return false;
  }
  return true;
}

// The cpu lines, which /proc/stat begins with, ending in a newline.
std::string_view CpuLines(std::string_view text) {
  size_t end = 0;
  while (text.substr(end).starts_with("cpu")) {
    const size_t newline = text.find('\n', end);
    if (newline == std::string_view::npos) break;  // cut off: not a complete line
    end = newline + 1;
  }
  return text.substr(0, end);
}

struct CpuAttachment final : ProcessAttachment {
  OwnedSeries seconds;
  double value = 0;      // of `seconds`
  int64_t ran_ns = -1;   // its clock just before `value` was read; -1: not known
  uint64_t index = 0;    // of the next block
  std::string comm;
  std::string file;
  std::string stat_head;  // "<pid> (<comm>)"
  std::string name_line;
};

class HostCpu final : public PolledCollector {
 public:
  HostCpu(const Host& host, const PollOptions& options, SeriesRegistry& registry)
      : registry_(&registry),
        system_(options.system),
        all_(options.processes.all),
        job_(HasJob(options.processes)),
        stat_(host.proc, "stat"),
        loadavg_(host.proc, "loadavg"),
        uptime_(host.proc, "uptime"),
        clock_(host.proc),
        tracker_(host.proc, options.processes, TrackerOptions(job_)) {
    const long ticks = sysconf(_SC_CLK_TCK);
    seconds_per_tick_ = 1.0 / static_cast<double>(ticks > 0 ? ticks : 100);
    if (!system_) return;
    for (size_t i = 0; i < kModes.size(); ++i) {
      modes_[i] = OwnedSeries(registry, MetricByName("atlas_host_cpu_seconds_total"), {kModes[i]});
    }
    cpus_ = OwnedSeries(registry, MetricByName("atlas_host_cpus"));
    load1_ = OwnedSeries(registry, MetricByName("atlas_host_load1"));
  }

  Status Poll(const Tick& tick, PollOutput& out) override {
    FirstError error;
    texts_ = out.raw.Wanted();
    if (texts_) block_.SetTime(tick.now_ns);
    std::string_view cpu_lines;
    if (system_ || (all_ && texts_)) {
      Result<std::string_view> text = stat_.Read(stat_buffer_);
      if (text.ok()) cpu_lines = CpuLines(*text);
      error.Note(text.ok() && cpu_lines.empty() ? Internal("/proc/stat: no cpu line")
                                                : text.status());
    }
    if (system_) {
      PollSystem(cpu_lines, tick, out);
      error.Note(PollLoad(tick, out));
    }
    error.Note(tracker_.Refresh(tick.due_ns));
    const std::string_view total = cpu_lines.substr(0, cpu_lines.find('\n'));
    for (TrackedProcess* process : tracker_.processes()) {
      error.Note(PollProcess(*process, total, tick, out));
    }
    if (job_ && texts_) error.Note(PollThreads(tick, out));
    return error.Take();
  }

 private:
  struct Cpu {
    OwnedSeries busy;
  };

  static ProcessTracker::Options TrackerOptions(bool job) {
    ProcessTracker::Options options;
    options.threads = job;
    return options;
  }

  void PollSystem(std::string_view lines, const Tick& tick, PollOutput& out) {
    if (lines.empty()) return;
    size_t count = 0;
    cores_.BeginPass();
    std::string_view line;
    for (std::string_view rest = lines; NextLine(&rest, &line);) {
      std::string_view fields = line;
      const std::string_view name = NextToken(&fields);
      CpuTimes times;
      if (!ParseCpuTimes(fields, &times)) continue;
      if (name == "cpu") {
        for (size_t i = 0; i < kModes.size(); ++i) {
          out.samples.Emit(modes_[i].id(), tick.now_ns, WithoutFall(modes_[i].id(), times[i]));
        }
        continue;
      }
      uint32_t number = 0;
      if (!ParseNumber(name.substr(3), &number)) continue;
      ++count;
      EmitCore(name, times, tick.now_ns, out.samples);
    }
    cores_.EndPass();
    if (count > 0) out.samples.Emit(cpus_.id(), tick.now_ns, static_cast<double>(count));
    if (texts_) block_.Write(out.raw, "host_sys_cpu.data", system_index_++, {lines});
  }

  void EmitCore(std::string_view name, const CpuTimes& times, int64_t now_ns, SampleBatch& out) {
    const Cpu* cpu = cores_.Find(name, [this](std::string_view n) {
      return Cpu{OwnedSeries(*registry_, MetricByName("atlas_host_cpu_core_busy_seconds_total"),
                             {n.substr(3)})};
    });
    if (cpu == nullptr) return;
    uint64_t busy = 0;
    for (size_t i = 0; i < times.size(); ++i) {
      if (i != kIdle && i != kIoWait) busy += times[i];
    }
    out.Emit(cpu->busy.id(), now_ns, Seconds(busy));
  }

  Status PollLoad(const Tick& tick, PollOutput& out) {
    Result<std::string_view> text = loadavg_.Read(small_buffer_);
    if (!text.ok()) return text.status();
    std::string_view rest = *text;
    double load = 0;
    if (!ParseNumber(NextToken(&rest), &load)) return Internal("/proc/loadavg: no number");
    out.samples.Emit(load1_.id(), tick.now_ns, load);
    return {};
  }

  Status PollProcess(TrackedProcess& process, std::string_view total, const Tick& tick,
                     PollOutput& out) {
    if (process.gone) return {};
    // Without a dump the times are all that is wanted of the file, which is dear to read: it need not
    // be read again while they stand still. A successor's clock shows something else.
    const int64_t ran_ns = !texts_ && clock_.usable() ? ProcessClock::Read(process.pid) : -1;
    if (const auto* known = static_cast<CpuAttachment*>(process.attachment.get());
        known != nullptr && ran_ns >= 0 && known->ran_ns == ran_ns) {
      out.samples.Emit(known->seconds.id(), tick.now_ns, known->value);
      return {};
    }
    Result<std::string_view> text = tracker_.Read(process);
    if (!text.ok()) return process.gone ? Status() : text.status();
    PidStat stat;
    if (!ParsePidStat(*text, &stat) || stat.pid != process.pid) {
      return Internal(fmt::format("/proc/{}/stat: not a stat line", process.pid));
    }
    if (stat.start_ticks != process.start_ticks) {  // the pid belongs to another process now
      tracker_.MarkGone(process);
      return {};
    }
    CpuAttachment& own = Attachment(process, stat.comm);
    own.ran_ns = ran_ns;
    own.value = Seconds(stat.utime_ticks + stat.stime_ticks);
    out.samples.Emit(own.seconds.id(), tick.now_ns, own.value);
    if (all_ && texts_) WriteProcess(own, stat, total, out.raw);
    return {};
  }

  void WriteProcess(CpuAttachment& own, const PidStat& stat, std::string_view total, RawSink& raw) {
    std::string_view tail = stat.tail;
    if (!stat.tail_printable) {
      raw_.clear();
      AppendPrintableLine(tail, &raw_);
      tail = std::string_view(raw_).substr(0, tail.size());
    }
    block_.Write(raw, own.file, own.index++, {own.stat_head, tail, "\n", own.name_line, total});
  }

  // Made when a process is first read; its series is renamed when the process changes its name.
  CpuAttachment& Attachment(TrackedProcess& process, std::string_view comm) {
    auto* own = static_cast<CpuAttachment*>(process.attachment.get());
    if (own != nullptr && own->comm == comm) return *own;
    if (own == nullptr) {
      auto made = std::make_unique<CpuAttachment>();
      own = made.get();
      own->file = fmt::format("{}-CpuUsage.data", process.pid);
      process.attachment = std::move(made);
    }
    own->comm = comm;
    own->stat_head = fmt::format("{} (", process.pid);
    AppendWord(comm, kMaxDeviceChars, &own->stat_head);
    own->stat_head.push_back(')');
    own->name_line = ProcessNameLine(comm);
    own->seconds = OwnedSeries(*registry_, MetricByName("atlas_host_process_cpu_seconds_total"),
                               {fmt::format("{}", process.pid), CleanLabel(comm, kMaxCommChars)});
    return *own;
  }

  // Vendor's layout (dump-format 2.15): the timestamp, the uptime line, a stat line per thread.
  Status PollThreads(const Tick& tick, PollOutput& out) {
    FirstError error;
    Result<std::string_view> uptime = uptime_.Read(small_buffer_);
    if (!uptime.ok()) return uptime.status();
    raw_.clear();
    fmt::format_to(std::back_inserter(raw_), "time {}\n", tick.now_ns);
    AppendPrintableLine(Trim(*uptime), &raw_);
    size_t threads = 0;
    for (TrackedProcess* process : tracker_.processes()) {
      if (process->gone || !process->in_job) continue;
      for (TrackedThread& thread : process->threads) {
        if (thread.gone) continue;
        Result<std::string_view> text = tracker_.Read(*process, thread);
        PidStat stat;
        if (text.ok() && ParsePidStat(*text, &stat)) {
          AppendStatLine(stat, &raw_);
          ++threads;
        } else if (!thread.gone) {
          error.Note(text.ok() ? Internal("a thread's stat file holds no stat line")
                               : text.status());
        }
      }
    }
    if (threads > 0) out.raw.WriteHostFile("host_cpu.data", raw_);
    return error.Take();
  }

  double WithoutFall(SeriesId series, uint64_t ticks) const {
    const double now = Seconds(ticks);
    const double shown = registry_->LastTotal(series);
    return now < shown && shown - now < kMostFallSeconds ? shown : now;
  }
  double Seconds(uint64_t ticks) const { return static_cast<double>(ticks) * seconds_per_tick_; }

  SeriesRegistry* registry_;
  const bool system_;
  const bool all_;
  const bool job_;
  bool texts_ = true;  // of this poll: a subscriber keeps them
  double seconds_per_tick_ = 0.01;
  TextFile stat_;
  TextFile loadavg_;
  TextFile uptime_;
  const ProcessClock clock_;
  ProcessTracker tracker_;
  std::array<OwnedSeries, kModes.size()> modes_;
  OwnedSeries cpus_;
  OwnedSeries load1_;
  DeviceTable<Cpu> cores_{kMaxCpus};
  TextBuffer stat_buffer_{65536};
  TextBuffer small_buffer_{256};
  RawBlockWriter block_;
  std::string raw_;
  uint64_t system_index_ = 0;
};

Status ProbeHostCpu(const Host& host) { return ProbeFile(host.proc, "stat", "/proc/stat"); }

}  // namespace

const CollectorEntry kHostCpuCollector = {
    .spec = &kHostCpuSpec,
    .probe_host = ProbeHostCpu,
    .make_poller = MakePollerOf<HostCpu>,
};

}  // namespace profd
