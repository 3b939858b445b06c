// What libdcmi reports about the NPUs: health, faults, utilization, clocks, power, memory, links,
// network, processes. Values that are not known are absent, never -1.
#include <fmt/format.h>

#include "collectors/collector_list.h"
#include "collectors/npu_state/core_readings.h"
#include "collectors/npu_state/link_readings.h"
#include "collectors/npu_state/node_readings.h"
#include "collectors/npu_state/npu_state.h"
#include "collectors/npu_state/row_readings.h"
#include "collectors/npu_state/state_readings.h"
#include "collectors/npu_state/ub_readings.h"

namespace profd {
namespace {

// Which groups are due; the first tick reads all of them.
struct Groups {
  bool medium = false;
  bool slow = false;
};

// Ticks lie on a grid but their timestamps jitter by the time between reading two clocks.
constexpr int64_t kJitterNs = 50 * kNsPerMs;

class Timetable {
 public:
  Groups Due(int64_t due_ns) {
    return {IsDue(due_ns, kMediumPeriodNs, &medium_ns_), IsDue(due_ns, kSlowPeriodNs, &slow_ns_)};
  }

 private:
  static bool IsDue(int64_t due_ns, int64_t period_ns, std::optional<int64_t>* next_ns) {
    if (next_ns->has_value() && due_ns + kJitterNs < **next_ns) return false;
    *next_ns = due_ns + period_ns;
    return true;
  }
  std::optional<int64_t> medium_ns_;
  std::optional<int64_t> slow_ns_;
};

// One NPU; reads nothing but its health, ever less often, while it is gone.
class NpuReader {
 public:
  NpuReader(const Host& host, const DcmiDevice& device, SeriesRegistry& registry)
      : dcmi_(*host.dcmi_or_null),
        device_(device),
        lasting_(registry, device.logical_id),
        owner_(registry, device.logical_id),
        core_(owner_),
        links_(owner_, device),
        ub_(owner_),
        state_(lasting_, owner_, device, host.sys, host.process_names_or_null) {}

  // False: our thread was given up.
  bool Read(int64_t due_ns, const NpuStateOptions& options, int64_t now_ns, SampleBatch& out) {
    if (!up_ && !Revive(now_ns)) {
      if (abandoned_) return false;
      EmitLasting(now_ns, out);
      return true;
    }
    const Groups due = timetable_.Due(due_ns);
    const size_t before = out.samples().size();
    DevicePass pass(dcmi_, device_, owner_, out, now_ns);
    rows_.BeginPass();
    rows_.Read(pass, ReadingPace::kFast);
    core_.Fast(pass, rows_);
    if (!pass.over() && due.medium) {
      const DcmiAnswer<unsigned> health = state_.Medium(pass);
      healthy_ = health.ok() ? std::optional(health.value == 0) : std::nullopt;
      rows_.Read(pass, ReadingPace::kMedium);
      core_.Medium(pass, options);
      links_.Medium(pass, rows_);
    }
    if (!pass.over() && due.slow) {
      rows_.Read(pass, ReadingPace::kSlow);
      state_.Slow(pass, dcmi_.devices());
      links_.Slow(pass, options);
      ub_.Slow(pass);
    }
    if (pass.abandoned()) return false;
    // What this pass read before the NPU fell silent is gone with the rest: its series are
    // released, and their ids may be another NPU's before the batch is taken. That it is down is
    // reported.
    if (pass.over()) {
      out.Cut(before);
      GoDown(now_ns);
    }
    EmitLasting(pass.over() ? now_ns + 1 : now_ns, out);
    return true;
  }

  bool up() const { return up_; }
  std::optional<bool> healthy() const { return up_ ? healthy_ : std::nullopt; }
  const DcmiDevice& device() const { return device_; }

 private:
  void GoDown(int64_t now_ns) {
    up_ = false;
    // All groups are due when it is back, and their periods begin then: a slow value read twice in a row would be
    // stale before it is read again.
    timetable_ = {};
    owner_.Clear();
    owner_.DeviceGone(now_ns);
    retry_after_ns_ = kNsPerSecond;
    next_try_ns_ = now_ns + retry_after_ns_;
  }

  bool Revive(int64_t now_ns) {
    if (now_ns + kJitterNs < next_try_ns_) return false;
    const int code = dcmi_.Health(device_).code;
    abandoned_ = code == kDcmiAbandoned;
    if (ClassifyDcmi(code) == DcmiErrorClass::kDeviceDown) {
      retry_after_ns_ = std::min(2 * retry_after_ns_, kMediumPeriodNs);
      next_try_ns_ = now_ns + retry_after_ns_;
      return false;
    }
    up_ = true;
    return true;
  }

  void EmitLasting(int64_t now_ns, SampleBatch& out) {
    out.Emit(lasting_.Use(up_slot_), now_ns, up_ ? 1 : 0);
    out.Emit(state_.info(), now_ns, 1);
  }

  DcmiService& dcmi_;
  const DcmiDevice& device_;
  SlotOwner lasting_;  // keeps its series while the NPU is gone
  SlotOwner owner_;
  RowReadings rows_;
  CoreReadings core_;
  LinkReadings links_;
  UbReadings ub_;
  StateReadings state_;
  SeriesSlot up_slot_{MetricByName("atlas_npu_up")};
  Timetable timetable_;
  bool up_ = true;
  bool abandoned_ = false;
  std::optional<bool> healthy_;
  int64_t retry_after_ns_ = 0;
  int64_t next_try_ns_ = 0;
};

// An NPU whose card has not answered DCMI since the beginning: it is down, that is all.
struct SilentNpu {
  SilentNpu(SeriesRegistry& registry, const DeviceInfo& info)
      : device(info), owner(registry, info.id) {}
  const DeviceInfo& device;
  SlotOwner owner;
  SeriesSlot up{MetricByName("atlas_npu_up")};
};

class NpuState final : public PolledCollector {
 public:
  NpuState(const Host& host, const NpuStateOptions& options, SeriesRegistry& registry)
      : host_(host),
        clock_(host.clock),
        options_(options),
        registry_(registry),
        node_(*host.dcmi_or_null, options, registry) {
    for (const DeviceInfo& device : host.devices) {
      if (IsSilent(device)) silent_.push_back(std::make_unique<SilentNpu>(registry, device));
    }
  }

  Status Poll(const Tick& tick, PollOutput& out) override {
    TakeFound();
    NpuCounts counts;
    counts.present = counts.unknown = silent_.size();
    size_t down = 0;
    for (const auto& npu : npus_) {
      // Each NPU's samples have the time of its own poll: a slow neighbour does not
      // make them look simultaneous.
      if (!npu->Read(tick.due_ns, options_, clock_.MonotonicRawNs(), out.samples)) {
        return Unavailable(
            fmt::format("gave up on NPU {}: a call did not return", npu->device().physical_id));
      }
      const std::optional<bool> healthy = npu->healthy();
      ++counts.present;
      ++(!healthy ? counts.unknown : *healthy ? counts.healthy : counts.unhealthy);
      down += npu->up() ? 0 : 1;
    }
    node_.Fast(out.samples, clock_.MonotonicRawNs(), counts);
    if (timetable_.Due(tick.due_ns).medium && !node_.Medium(out.samples, clock_.MonotonicRawNs())) {
      return Unavailable("gave up on the driver: a call did not return");
    }
    for (const auto& npu : silent_) {
      if (host_.dcmi_or_null->IsAwaited(npu->device.id)) continue;  // neither up nor down
      out.samples.Emit(npu->owner.Use(npu->up), clock_.MonotonicRawNs(), 0);
    }
    if (down == npus_.size() && down + silent_.size() > 0) return Unavailable("no NPU answers");
    return Status::Ok();
  }

 private:
  bool IsSilent(const DeviceInfo& device) const {
    return !host_.dcmi_or_null->SilenceOf(device.id, device.physical_id).empty();
  }
  // Those whose cards did not answer before come last.
  void TakeFound() {
    const std::span<const DcmiDevice> devices = host_.dcmi_or_null->devices();
    if (devices.size() == npus_.size() && silent_.empty()) return;
    std::erase_if(silent_, [&](const auto& npu) { return !IsSilent(npu->device); });
    while (npus_.size() < devices.size()) {
      npus_.push_back(std::make_unique<NpuReader>(host_, devices[npus_.size()], registry_));
    }
  }

  const Host& host_;
  const Clock& clock_;
  const NpuStateOptions options_;
  SeriesRegistry& registry_;
  Timetable timetable_;  // of the node's own values
  NodeReadings node_;
  std::vector<std::unique_ptr<NpuReader>> npus_;
  std::vector<std::unique_ptr<SilentNpu>> silent_;
};

constexpr CollectorSpec kSpec = {
    .name = "npu_state",
    .source = CollectorSource::kDcmi,
    .summary = "health, utilisation, clocks, power, memory, links and processes of the NPUs",
    .default_hz = 1,
    .max_hz = 10,
    .always_on_hz = 1,
    .overview = true,
    .settings = "npu_extra",
};

Status ProbeHost(const Host& host) {
  if (host.dcmi_or_null == nullptr) {
    return Unimplemented("libdcmi.so cannot be used on this node: " + host.dcmi_error);
  }
  const DcmiService& dcmi = *host.dcmi_or_null;
  if (dcmi.devices().empty() && !dcmi.HasSilentCards()) {
    return Unimplemented("libdcmi reports no NPU");
  }
  return Status::Ok();
}

Result<std::unique_ptr<PolledCollector>> MakePoller(const Host& host, const PollOptions&,
                                                    SeriesRegistry& registry) {
  RETURN_IF_ERROR(ProbeHost(host));
  const auto items = host.settings.find(kSpec.settings);
  return MakeNpuState(host,
                      items == host.settings.end() ? NpuStateOptions()
                                                   : ParseNpuStateOptions(items->second, nullptr),
                      registry);
}

std::vector<std::string> CheckSettings(std::span<const std::string> items) {
  std::vector<std::string> problems;
  ParseNpuStateOptions(items, &problems);
  return problems;
}

}  // namespace

std::unique_ptr<PolledCollector> MakeNpuState(const Host& host, const NpuStateOptions& options,
                                              SeriesRegistry& registry) {
  return std::make_unique<NpuState>(host, options, registry);
}

const CollectorEntry kNpuStateCollector = {
    .spec = &kSpec,
    .probe_host = ProbeHost,
    .make_poller = MakePoller,
    .check_settings = CheckSettings,
};

}  // namespace profd
