#include "daemon/advice/checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "daemon/advice/check_ids.h"

namespace profd {
namespace {

constexpr auto kChecks = std::to_array<LiveCheck>({
    {"hang", "no step ends, while the process is there", "steps", FindHang, true, true},
    {"slow_rank", "a rank of this node that the others wait for", "activity of two ranks, or steps", FindSlowRank},
    {"steps_slower", "steps longer than the job's own past, and from which one on", "steps", FindSlowerSteps},
    {"computation_slower", "the same kernels take longer than in the past; what clock, power and temperature say",
     "steps, activity", FindSlowerComputation},
    {"communication_slower", "communication takes longer than in the past, or links repeat data; what their counters say",
     "steps, activity", FindSlowerCommunication},
    {"dataloader", "the step waits for the data loader", "steps, marks", FindDataloader},
    {"gc", "garbage collection stops the host in its steps", "steps, marks", FindGc},
    {"operator_dispatch", "operators are compiled in the loop", "steps, activity with API calls, or marks", FindCompilation},
    {"aicpu", "operators run on the AI CPU", "steps, activity", FindAicpu},
    {"free_time", "the device has nothing to do for long, or for longer than in the past; what the host waits for",
     "steps, activity", FindFreeTime},
    {"device_memory", "the device's memory is nearly full", "hardware values", FindFullMemory},
});

static_assert([] {
  for (size_t i = 0; i < kChecks.size(); ++i) {
    if (kChecks[i].id != kLiveChecks[i]) return false;
  }
  return kChecks.size() == kLiveChecks.size();
}(), "check_ids.h has the ids in the same order");

// Rated clock less this is noise of the measurement.
constexpr double kClockTolerance = 0.02;

double SumOf(std::span<const StepTime> steps, double level_ms) {
  double sum = 0;
  for (const StepTime& step : steps) sum += std::abs(static_cast<double>(step.duration_ns) / 1e6 - level_ms);
  return sum;
}

}  // namespace

std::span<const LiveCheck> LiveChecks() { return kChecks; }

std::string NameOf(const RankFacts& rank) {
  return rank.rank ? fmt::format("rank {}", *rank.rank) : fmt::format("process {}", rank.pid);
}

int64_t TimeLimitNs(const analysis::Limits& limits, std::string_view name) {
  constexpr double kMostSeconds = 3.2e9;
  return static_cast<int64_t>(std::min(limits.At("live", name), kMostSeconds) * 1e9);
}

std::optional<int> DeviceOf(const RankFacts& rank) {
  return rank.devices.size() == 1 ? std::optional(rank.devices.front()) : std::nullopt;
}

std::vector<std::string> ClockEvidence(const LiveInput& input, const RankFacts& rank) {
  std::vector<std::string> evidence;
  const double decrease = std::max(kClockTolerance, input.limits.At("ai_core_frequency", "decrease"));
  for (int id : rank.devices) {
    const auto found = input.job.devices.find(id);
    if (found == input.job.devices.end()) continue;
    const NpuFacts& device = found->second;
    std::vector<std::string> parts;
    if (device.clock_hz && device.rated_hz && *device.clock_hz < *device.rated_hz * (1 - decrease)) {
      parts.push_back(fmt::format("its AI Cores run at {:.0f} of {:.0f} MHz", *device.clock_hz / 1e6, *device.rated_hz / 1e6));
    }
    if (!device.throttle_reasons.empty()) {
      parts.push_back(fmt::format("it is throttled ({})", fmt::join(device.throttle_reasons, ", ")));
    }
    if (device.memory_errors > 0) parts.push_back(fmt::format("its memory reports {:.2f} errors/s", device.memory_errors));
    if (parts.empty()) continue;
    if (device.temperature_c) parts.push_back(fmt::format("{:.0f} degrees", *device.temperature_c));
    if (device.power_w) parts.push_back(fmt::format("{:.0f} W", *device.power_w));
    evidence.push_back(fmt::format("NPU {}: {}", device.npu, fmt::join(parts, ", ")));
  }
  return evidence;
}

std::vector<std::string> LinkEvidence(const LiveInput& input) {
  std::vector<std::string> evidence;
  const auto limit = [&](std::string_view check, std::string_view name) { return input.limits.At(check, name); };
  std::vector<std::string> parts;
  const auto add = [&](double rate, double most, std::string_view what) {
    if (rate > most) parts.push_back(fmt::format("{:.1f} {}/s", rate, what));
  };
  const auto end = [&](const std::string& where) {
    if (!parts.empty()) evidence.push_back(fmt::format("{}: {}", where, fmt::join(std::exchange(parts, {}), ", ")));
  };
  for (const auto& [id, device] : input.job.devices) {
    for (const auto& [name, link] : device.links) {
      add(link.retries, limit("hardware_hccs", "retries_per_s"), "retries");
      add(link.crc_errors, limit("hardware_hccs", "crc_errors_per_s"), "checksum errors");
      end(fmt::format("NPU {}, {}", device.npu, name));
    }
    add(device.roce_retransmits, limit("hardware_roce", "retransmits_per_s"), "RoCE retransmissions");
    add(device.pfc_frames, limit("hardware_roce", "pfc_frames_per_s"), "pause frames");
    add(device.port_errors, limit("hardware_roce", "errors_per_s"), "errors of the port");
    end(fmt::format("NPU {}", device.npu));
  }
  return evidence;
}

const StepTime* FirstSlowerStep(std::span<const StepTime> steps, double before_ms, double now_ms) {
  // The cut that leaves least distance to the two levels.
  double left = 0;
  double right = SumOf(steps, now_ms);
  double best = right;
  size_t cut = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    const double ms = static_cast<double>(steps[i].duration_ns) / 1e6;
    left += std::abs(ms - before_ms);
    right -= std::abs(ms - now_ms);
    if (left + right >= best) continue;
    best = left + right;
    cut = i + 1;
  }
  return cut < steps.size() ? &steps[cut] : nullptr;
}

}  // namespace profd
