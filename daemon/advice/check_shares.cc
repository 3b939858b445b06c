// By what makes a step: computation, communication, free time.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/rules/slowest_rank.h"
#include "daemon/advice/checks.h"

namespace profd {
namespace {

// Of the kernels with most time of two ranks, how many times as long those of one take; 0: none is the same.
double KernelRatio(const RankFacts& rank, const RankFacts& other) {
  double mine = 0;
  double others = 0;
  for (const KernelTime& kernel : rank.kernels) {
    const auto same = std::ranges::find(other.kernels, kernel.name, &KernelTime::name);
    if (same == other.kernels.end() || same->mean_us <= 0) continue;
    mine += kernel.mean_us * static_cast<double>(kernel.count);
    others += same->mean_us * static_cast<double>(kernel.count);
  }
  return others > 0 ? mine / others : 0;
}

// Of one rank, how many times as long as in the past.
double KernelGrowth(const RankFacts& rank, std::string* most) {
  double now = 0;
  double before = 0;
  double largest_us = 0;
  for (const KernelTime& kernel : rank.kernels) {
    if (kernel.before_us <= 0) continue;
    const auto count = static_cast<double>(kernel.count);
    now += kernel.mean_us * count;
    before += kernel.before_us * count;
    const double grown_us = (kernel.mean_us - kernel.before_us) * count;
    if (grown_us <= largest_us) continue;
    largest_us = grown_us;
    *most = fmt::format("most in {}: {:.1f} us, before {:.1f} us", kernel.name, kernel.mean_us, kernel.before_us);
  }
  return before > 0 ? now / before - 1 : 0;
}

// Ranks of which some do fewer steps than others: without activity all that is known.
LiveFindings FindRankBehind(const LiveInput& input) {
  const RankFacts* last = nullptr;
  const RankFacts* first = nullptr;
  for (const RankFacts& rank : input.job.ranks) {
    if (!rank.step) continue;
    if (last == nullptr || *rank.step < *last->step) last = &rank;
    if (first == nullptr || *rank.step > *first->step) first = &rank;
  }
  if (last == nullptr || *last->step == *first->step) return {};
  const auto behind = static_cast<double>(*first->step) - static_cast<double>(*last->step);
  LiveFinding finding{.rank = last, .device = DeviceOf(*last),
                      .strength = behind / input.limits.At("slow_rank", "steps_behind"),
                      .what = fmt::format("{} is {:.0f} steps behind {}", NameOf(*last), behind, NameOf(*first)),
                      .evidence = ClockEvidence(input, *last), .confidence = Confidence::kLow, .step = last->step};
  finding.advice.emplace_back("Collect activity to see why (option task_time = l1).");
  return {finding};
}

}  // namespace

LiveFindings FindSlowRank(const LiveInput& input) {
  std::vector<const RankFacts*> ranks;
  std::vector<analysis::RankShare> shares;
  // Of a job whose communication is not collected, waiting for others is in the free time.
  const bool communicates = std::ranges::any_of(input.job.ranks, [](const RankFacts& rank) { return rank.now && rank.now->communication_ms > 0; });
  for (const RankFacts& rank : input.job.ranks) {
    if (!rank.now) continue;
    ranks.push_back(&rank);
    const StepShares& now = *rank.now;
    shares.push_back(communicates ? analysis::RankShare{now.computation_ms + now.free_ms, now.wait_ms}
                                  : analysis::RankShare{now.computation_ms, now.free_ms});
  }
  if (ranks.size() < 2) return FindRankBehind(input);
  const std::optional<analysis::SlowestRank> slowest = analysis::FindSlowestRank(shares);
  if (!slowest) return {};
  const RankFacts& rank = *ranks[slowest->index];
  const RankFacts& other = *ranks[slowest->index == 0 ? 1 : 0];
  LiveFinding finding{.rank = &rank, .device = DeviceOf(rank),
                      .strength = slowest->share / input.limits.At("slow_rank", "difference"),
                      .cost_ms = slowest->behind_ms};
  finding.what = communicates ? fmt::format("the others wait for {}: {:.1f} ms per step", NameOf(rank), slowest->behind_ms)
                              : fmt::format("{} computes {:.1f} ms per step longer than the others", NameOf(rank), slowest->behind_ms);
  finding.evidence.push_back(fmt::format("computation {:.1f} ms, free {:.1f} ms, waits {:.1f} ms; {}: {:.1f}, {:.1f}, {:.1f} ms",
                                         rank.now->computation_ms, rank.now->free_ms, rank.now->wait_ms, NameOf(other),
                                         other.now->computation_ms, other.now->free_ms, other.now->wait_ms));
  const double kernels = KernelRatio(rank, other);
  if (kernels > 0) finding.evidence.push_back(fmt::format("the same kernels take {:.2f} times as long as on {}", kernels, NameOf(other)));
  for (std::string& text : ClockEvidence(input, rank)) finding.evidence.push_back(std::move(text));
  const bool free = rank.now->free_ms - other.now->free_ms > rank.now->computation_ms - other.now->computation_ms;
  finding.confidence = communicates ? Confidence::kHigh : Confidence::kMedium;
  if (!communicates) finding.advice.emplace_back("Collect communication, too, to see whether the others wait for it (option task_time = l1).");
  if (free) {
    finding.advice.emplace_back("Look at the host of this rank: data loader, CPU, garbage collection.");
  } else if (kernels > 1 + input.limits.At("slow_rank", "difference")) {
    finding.advice.emplace_back("Compare the clock and temperature of its NPU with the others'; move the rank to another device.");
  } else {
    finding.advice.emplace_back("It has more to compute: look at the stage or the batch that it was given.");
  }
  return {finding};
}

LiveFindings FindSlowerComputation(const LiveInput& input) {
  LiveFindings findings;
  for (const RankFacts& rank : input.job.ranks) {
    if (!rank.now) continue;
    std::string most;
    const double growth = KernelGrowth(rank, &most);
    if (growth <= 0) continue;
    LiveFinding finding{.rank = &rank, .device = DeviceOf(rank),
                        .strength = growth / input.limits.At("computation_slower", "ratio"),
                        .cost_ms = rank.now->computation_ms * growth / (1 + growth)};
    if (*finding.cost_ms < input.limits.At("live", "step_share") * rank.now->step_ms()) continue;
    finding.what = fmt::format("the same kernels take {:.0f} % longer than before", growth * 100);
    if (!most.empty()) finding.evidence.push_back(std::move(most));
    const std::vector<std::string> clock = ClockEvidence(input, rank);
    finding.evidence.insert(finding.evidence.end(), clock.begin(), clock.end());
    finding.confidence = clock.empty() ? Confidence::kMedium : Confidence::kHigh;
    finding.advice.emplace_back(clock.empty() ? "See whether another process uses the NPU, and its memory bandwidth."
                                              : "Look at power and temperature of the NPU: cooling, power limit, neighbours in the chassis.");
    findings.push_back(std::move(finding));
  }
  return findings;
}

LiveFindings FindSlowerCommunication(const LiveInput& input) {
  const JobFacts& job = input.job;
  const RankFacts* least = nullptr;
  double step_ms = 0;
  for (const RankFacts& rank : job.ranks) {
    if (!rank.now) continue;
    step_ms = std::max(step_ms, rank.now->step_ms());
    if (least == nullptr || rank.now->wait_ms < least->now->wait_ms) least = &rank;
  }
  if (least == nullptr || step_ms <= 0 || job.transfer_ms <= 0) return {};
  const double growth = job.transfer_before_ms > 0 ? job.transfer_ms / job.transfer_before_ms - 1 : 0;
  const std::vector<std::string> links = LinkEvidence(input);
  const double wait_share = least->now->wait_ms / step_ms;
  const double step_share = input.limits.At("live", "step_share");
  LiveFinding finding;
  const double by_growth = growth / input.limits.At("communication_slower", "ratio");
  finding.strength = by_growth;
  // Counters of links that repeat data are enough where communication is waited for.
  if (!links.empty()) finding.strength = std::max(finding.strength, wait_share / step_share);
  const double grown_ms = job.transfer_ms - job.transfer_before_ms;
  if (finding.strength <= 0 || (links.empty() && grown_ms < step_share * step_ms)) return {};
  // What is within the limit is chance; with links that repeat data it is not what was found.
  const bool grown = links.empty() || by_growth >= 1;
  finding.cost_ms = grown && least->before ? std::max(0.0, least->now->wait_ms - least->before->wait_ms) : least->now->wait_ms;
  finding.what = grown ? fmt::format("communication takes {:.1f} ms per step, {:.0f} % longer than before", job.transfer_ms, growth * 100)
                       : fmt::format("links repeat data, and {:.1f} ms per step are spent waiting for communication", least->now->wait_ms);
  finding.evidence = links;
  const bool all = job.world_size == 0 || job.ranks.size() >= static_cast<size_t>(job.world_size);
  if (!all) finding.evidence.push_back(fmt::format("{} of {} ranks are on this node: it may be a wait for others", job.ranks.size(), job.world_size));
  finding.confidence = !links.empty() ? Confidence::kHigh : all ? Confidence::kMedium : Confidence::kLow;
  if (!links.empty()) finding.advice.emplace_back("Have the named links, cables and optics checked; move the job to another node until then.");
  if (!all) finding.advice.emplace_back("See whether a rank on another node of the job is waited for.");
  if (finding.advice.empty()) finding.advice.emplace_back("See whether another job uses the same links or switches, and the state of the links.");
  return {finding};
}

LiveFindings FindFreeTime(const LiveInput& input) {
  LiveFindings findings;
  const HostFacts& host = input.job.host;
  for (const RankFacts& rank : input.job.ranks) {
    if (!rank.now || rank.now->step_ms() <= 0) continue;
    // A job of several ranks without any communication: only kernels are recorded, what is between them is not known.
    if (rank.now->communication_ms <= 0 && std::max<size_t>(input.job.ranks.size(), static_cast<size_t>(input.job.world_size)) > 1) continue;
    const double share = rank.now->free_ms / rank.now->step_ms();
    const double grown_ms = rank.before ? rank.now->free_ms - rank.before->free_ms : 0;
    const double by_growth = grown_ms / rank.now->step_ms() / input.limits.At("free_time", "grown");
    const double by_share = share / input.limits.At("free_time", "share");
    LiveFinding finding{.rank = &rank, .device = DeviceOf(rank), .strength = std::max(by_growth, by_share)};
    const bool grown = by_growth >= by_share;
    finding.cost_ms = grown ? grown_ms : rank.now->free_ms;
    finding.what = fmt::format("{:.1f} ms of a step ({:.0f} %) the device has nothing to do{}", rank.now->free_ms, share * 100,
                               grown ? fmt::format(", {:.1f} ms more than before", grown_ms) : "");
    const auto add = [&](const std::optional<double>& waiting, std::string_view check, std::string_view what, std::string_view advice) {
      if (!waiting || *waiting < input.limits.At(check, "waiting")) return;
      finding.evidence.push_back(fmt::format("in {:.0f} % of the time a process of the host waited for {}", *waiting * 100, what));
      finding.advice.emplace_back(advice);
    };
    add(host.cpu_waiting, "host_cpu", "a CPU", "Look at what else runs on the node, and at the number of data loader workers and threads (OMP_NUM_THREADS); bind processes to CPUs.");
    add(host.io_waiting, "host_storage", "storage", "See whether checkpoints or reads of data fall into the gaps; cache the data, write checkpoints in a separate thread.");
    add(host.memory_waiting, "host_memory", "memory", "Give the job more memory of the host, or use fewer data loader workers.");
    finding.confidence = finding.evidence.empty() ? Confidence::kLow : Confidence::kMedium;
    if (finding.advice.empty()) {
      finding.advice.emplace_back("See what the host does in the gaps: collect activity (options task_time = l1, msproftx = on) and analyse the dump.");
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace profd
