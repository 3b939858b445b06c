// Pressure stall information of the kernel: how long tasks waited for CPU, memory and I/O.
#include <array>
#include <string>
#include <string_view>

#include "base/text.h"
#include "collectors/collector_list.h"
#include "collectors/metric_table.h"
#include "collectors/proc/device_table.h"
#include "collectors/proc/text_file.h"

namespace profd {
namespace {

constexpr CollectorSpec kHostPressureSpec = {
    .name = "host_pressure",
    .source = CollectorSource::kHost,
    .summary = "time tasks of the host waited for CPU, memory and I/O (PSI)",
    .default_hz = 1,
    .max_hz = 10,
    .always_on_hz = 1,
};

constexpr std::array<std::string_view, 3> kResources = {"cpu", "memory", "io"};

// "total=<us>" of a line such as "some avg10=0.00 avg60=0.00 avg300=0.00 total=81".
bool ParseTotal(std::string_view line, double* seconds) {
  while (true) {
    std::string_view token = NextToken(&line);
    if (token.empty()) return false;
    if (!token.starts_with("total=")) continue;
    uint64_t us = 0;
    if (!ParseNumber(token.substr(6), &us)) return false;
    *seconds = static_cast<double>(us) / 1e6;
    return true;
  }
}

class HostPressure final : public PolledCollector {
 public:
  HostPressure(const Host& host, SeriesRegistry& registry) {
    resources_.reserve(kResources.size());
    for (std::string_view name : kResources) {
      resources_.push_back(
          {TextFile(host.proc, "pressure/" + std::string(name)),
           OwnedSeries(registry, MetricByName("atlas_host_pressure_waiting_seconds_total"), {name}),
           {}});
      // All CPUs cannot stall at once for want of a CPU: the kernel prints that line as zeros.
      if (name == "cpu") continue;
      resources_.back().stalled =
          OwnedSeries(registry, MetricByName("atlas_host_pressure_stalled_seconds_total"), {name});
    }
  }

  Status Poll(const Tick& tick, PollOutput& out) override {
    FirstError error;
    for (Resource& resource : resources_) {
      Result<std::string_view> text = resource.file.Read(buffer_);
      if (text.ok()) {
        error.Note(Emit(resource, *text, tick.now_ns, out.samples));
      } else {
        error.Note(text.status());
      }
    }
    return error.Take();
  }

 private:
  struct Resource {
    TextFile file;
    OwnedSeries waiting;
    OwnedSeries stalled;
  };

  static Status Emit(const Resource& resource, std::string_view text, int64_t now_ns,
                     SampleBatch& out) {
    bool some = false;
    std::string_view line;
    while (NextLine(&text, &line)) {
      const std::string_view kind = NextToken(&line);
      double seconds = 0;
      if (!ParseTotal(line, &seconds)) continue;
      if (kind == "some") {
        out.Emit(resource.waiting.id(), now_ns, seconds);
        some = true;
      } else if (kind == "full") {
        out.Emit(resource.stalled.id(), now_ns, seconds);
      }
    }
    return some ? Status() : Internal(resource.file.path() + ": no line of the expected form");
  }

  std::vector<Resource> resources_;
  TextBuffer buffer_{1024};
};

Status ProbeHostPressure(const Host& host) {
  if (!host.proc.Exists("pressure/cpu")) {
    return Unimplemented(
        "/proc/pressure/cpu is missing: a kernel without PSI, or booted without psi=1");
  }
  Status status = ProbeFile(host.proc, "pressure/cpu", "/proc/pressure/cpu");
  // Switched off at boot, the files may still be there but refuse to be read (EOPNOTSUPP).
  if (status.code() == StatusCode::kUnimplemented) {
    return FailedPrecondition("pressure stall information is off: boot with psi=1");
  }
  return status;
}

}  // namespace

const CollectorEntry kHostPressureCollector = {
    .spec = &kHostPressureSpec,
    .probe_host = ProbeHostPressure,
    .make_poller = MakePollerOf<HostPressure>,
};

}  // namespace profd
