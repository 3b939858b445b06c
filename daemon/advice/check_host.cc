// By what the host does in a step, operators where they do not belong, and memory.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/rules/host_work.h"
#include "daemon/advice/checks.h"

namespace profd {
namespace {

// From the limit down to where it is clear again, of the memory.
constexpr double kMemorySpan = 0.03;

// What the host does while the device works costs nothing: where it is known, no more than the free time.
double Exposed(const RankFacts& rank, double ms) { return rank.now ? std::min(ms, rank.now->free_ms) : ms; }

// Of each rank, what takes so much of a step.
template <class Cost, class Describe>
LiveFindings ByShare(const LiveInput& input, double most, const Cost& cost, const Describe& describe) {
  LiveFindings findings;
  for (const RankFacts& rank : input.job.ranks) {
    const double cost_ms = cost(rank);
    if (rank.step_ms <= 0 || cost_ms <= 0) continue;
    LiveFinding finding{.rank = &rank, .device = DeviceOf(rank), .strength = cost_ms / rank.step_ms / most,
                        .cost_ms = cost_ms};
    describe(rank, &finding);
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace

LiveFindings FindDataloader(const LiveInput& input) {
  const double least_ms = input.limits.At("dataloader", "least_us") / 1000;
  return ByShare(
      input, input.limits.At("live", "step_share"),
      [least_ms](const RankFacts& rank) { return rank.host.longest_dataloader_ms >= least_ms ? Exposed(rank, rank.host.dataloader_ms) : 0; },
      [](const RankFacts& rank, LiveFinding* finding) {
        finding->what = fmt::format("the step waits {:.1f} ms for the data loader", rank.host.dataloader_ms);
        finding->evidence.push_back(fmt::format("by its marks; the longest wait was {:.1f} ms", rank.host.longest_dataloader_ms));
        finding->confidence = Confidence::kHigh;
        finding->advice = {"Use more workers (num_workers), pin_memory, and a faster or cached store of the data; bind the workers to CPUs."};
      });
}

LiveFindings FindGc(const LiveInput& input) {
  const double least_ms = input.limits.At("gc", "least_us") / 1000;
  return ByShare(
      input, input.limits.At("live", "step_share"),
      [least_ms](const RankFacts& rank) { return rank.host.longest_gc_ms >= least_ms ? Exposed(rank, rank.host.gc_ms) : 0; },
      [](const RankFacts& rank, LiveFinding* finding) {
        finding->what = fmt::format("garbage collection takes {:.1f} ms per step", rank.host.gc_ms);
        finding->evidence.push_back(fmt::format("by its marks; the longest took {:.1f} ms", rank.host.longest_gc_ms));
        finding->confidence = Confidence::kHigh;
        finding->advice = {"Raise the threshold (gc.set_threshold), or gc.disable() and collect between steps; gc.freeze() behind the building of the model."};
      });
}

LiveFindings FindCompilation(const LiveInput& input) {
  const double most_calls = input.limits.At("operator_dispatch", "count");
  LiveFindings findings = ByShare(
      input, input.limits.At("live", "step_share"),
      [&](const RankFacts& rank) {
        if (rank.steps_done < static_cast<uint64_t>(analysis::kFirstSteps)) return 0.0;
        const bool many = static_cast<double>(rank.compilations) >= most_calls;
        return Exposed(rank, rank.host.compile_ms + (many ? rank.compile_api_ms : 0));
      },
      [](const RankFacts& rank, LiveFinding* finding) {
        finding->what = fmt::format("operators are compiled in the loop: {:.1f} ms per step", *finding->cost_ms);
        finding->evidence.push_back(rank.host.compile_ms > 0 ? fmt::format("by its marks, after {} steps", rank.steps_done)
                                                             : fmt::format("{} calls of aclopCompileAndExecute in the last seconds", rank.compilations));
        finding->confidence = Confidence::kHigh;
        finding->advice = {"Set torch_npu.npu.set_compile_mode(jit_compile=False) and torch_npu.npu.config.allow_internal_format = False; avoid shapes that change from step to step."};
      });
  return findings;
}

LiveFindings FindAicpu(const LiveInput& input) {
  return ByShare(
      input, input.limits.At("aicpu", "share"), [](const RankFacts& rank) { return rank.aicpu_ms; },
      [](const RankFacts& rank, LiveFinding* finding) {
        finding->what = fmt::format("operators on the AI CPU take {:.1f} ms per step", rank.aicpu_ms);
        finding->evidence.push_back(fmt::format("{} of them in the last seconds", rank.aicpu_kernels));
        finding->confidence = Confidence::kHigh;
        finding->advice = {"Replace them or their data types (a dump names them): float for double, int32 for int64."};
      });
}

LiveFindings FindFullMemory(const LiveInput& input) {
  LiveFindings findings;
  const double most = input.limits.At("device_memory", "used");
  for (const RankFacts& rank : input.job.ranks) {
    for (int id : rank.devices) {
      const auto found = input.job.devices.find(id);
      if (found == input.job.devices.end()) continue;
      const NpuFacts& device = found->second;
      if (!device.memory_bytes || !device.memory_used_bytes || *device.memory_bytes <= 0) continue;
      const double used = *device.memory_used_bytes / *device.memory_bytes;
      LiveFinding finding{.rank = &rank, .device = id, .strength = 1 + (used - most) / kMemorySpan};
      if (finding.strength <= 0) continue;
      finding.what = fmt::format("{:.1f} % of the memory of NPU {} are in use", used * 100, device.npu);
      finding.evidence.push_back(fmt::format("{:.1f} of {:.1f} GiB", *device.memory_used_bytes / (1 << 30), *device.memory_bytes / (1 << 30)));
      finding.confidence = Confidence::kHigh;
      finding.advice = {"Smaller batches, recomputation, expandable segments (PYTORCH_NPU_ALLOC_CONF=expandable_segments:True); see whether another process holds memory of the NPU."};
      findings.push_back(std::move(finding));
    }
  }
  return findings;
}

}  // namespace profd
