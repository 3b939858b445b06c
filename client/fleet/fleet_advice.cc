// `profctl advise --live --nodes`: the advice of all nodes, and the ranks of a job beside each other, whatever node they
// are on: which one the others wait for.
#include "client/fleet/fleet_advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "analysis/rules/limits.h"
#include "analysis/rules/slowest_rank.h"
#include "client/fleet/fleet_answers.h"

namespace profd::client {
namespace {

struct PlacedRank {
  const std::string* node = nullptr;
  const v1::RankStep* rank = nullptr;
};
using Jobs = std::map<std::pair<std::string, uint32_t>, std::vector<PlacedRank>>;

Jobs JobsOf(const std::vector<NodeAdvice>& nodes) {
  Jobs jobs;
  for (const NodeAdvice& node : nodes) {
    for (const v1::RankStep& rank : node.answer.ranks()) {
      if (!rank.job_id().empty()) jobs[{rank.job_id(), rank.uid()}].push_back({&node.node, &rank});
    }
  }
  for (auto& [job, ranks] : jobs) {
    std::ranges::stable_sort(ranks, [](const PlacedRank& a, const PlacedRank& b) {
      return std::tuple(!a.rank->has_rank(), a.rank->rank()) < std::tuple(!b.rank->has_rank(), b.rank->rank());
    });
  }
  return jobs;
}

double Ms(uint64_t ns) { return static_cast<double>(ns) / 1e6; }

WaitedFor Named(const PlacedRank& placed, std::string job_id) {
  WaitedFor found;
  found.job_id = std::move(job_id);
  found.node = *placed.node;
  if (placed.rank->has_rank()) found.rank = placed.rank->rank();
  found.pid = placed.rank->pid();
  return found;
}

Json JsonOf(const WaitedFor& one) {
  return {{"job_id", one.job_id}, {"node", one.node}, {"rank", one.rank ? Json(*one.rank) : Json()}, {"pid", one.pid},
          {"cost_ms", one.behind_ms}, {"share", one.share}, {"steps_behind", one.steps_behind}};
}

std::string TextOf(const WaitedFor& one) {
  const std::string who = fmt::format("{} on {}", one.rank ? fmt::format("rank {}", *one.rank) : fmt::format("process {}", one.pid), one.node);
  if (one.steps_behind > 0) return fmt::format("job {}: {} is {} behind the others", one.job_id, who, CountText(static_cast<uint64_t>(one.steps_behind), "step"));
  return fmt::format("job {}: the others wait for {}: {:.1f} ms per step ({:.0f} %)", one.job_id, who, one.behind_ms, one.share * 100);
}

void PrintRanks(const Io& io, const Jobs& jobs) {
  Table table({"JOB", ">RANK", "NODE", ">STEP", ">STEP MS", ">COMPUTATION", ">FREE", ">WAIT"});
  for (const auto& [job, ranks] : jobs) {
    for (const PlacedRank& placed : ranks) {
      const v1::RankStep& rank = *placed.rank;
      const auto part = [&](uint64_t ns) { return rank.has_shares() ? fmt::format("{:.1f}", Ms(ns)) : std::string("-"); };
      table.AddRow({job.first, rank.has_rank() ? std::to_string(rank.rank()) : "-", *placed.node,
                    rank.has_step() ? std::to_string(rank.step()) : "-", rank.has_step_ns() ? fmt::format("{:.1f}", Ms(rank.step_ns())) : "-",
                    part(rank.shares().computation_ns()), part(rank.shares().free_ns()), part(rank.shares().wait_ns())});
    }
  }
  if (table.empty()) return;
  io.out << '\n';
  table.Print(io.out, io.out_color());
}

// A daemon answers with what it saw when it looked last, which it does each second.
constexpr double kLookMs = 1000;

// How many steps may lie between both only because one node's answer is older.
double StepsBetweenAnswers(const PlacedRank& first, const PlacedRank& last, double apart_ms) {
  if (first.node == last.node) return 0;
  double step_ms = 0;
  for (const PlacedRank* each : {&first, &last}) {
    const double ms = Ms(each->rank->step_ns());
    if (ms > 0 && (step_ms <= 0 || ms < step_ms)) step_ms = ms;
  }
  return step_ms > 0 ? std::ceil(apart_ms / step_ms) : 0;
}

}  // namespace

std::vector<WaitedFor> CompareRanks(const std::vector<NodeAdvice>& nodes, const analysis::Limits& limits, double apart_ms) {
  std::vector<WaitedFor> all;
  for (const auto& [job, ranks] : JobsOf(nodes)) {
    std::vector<analysis::RankShare> shares;
    std::vector<const PlacedRank*> with_shares;
    const PlacedRank* last = nullptr;
    const PlacedRank* first = nullptr;
    for (const PlacedRank& placed : ranks) {
      if (placed.rank->has_step()) {
        if (last == nullptr || placed.rank->step() < last->rank->step()) last = &placed;
        if (first == nullptr || placed.rank->step() > first->rank->step()) first = &placed;
      }
      if (!placed.rank->has_shares()) continue;
      const v1::StepShares& of = placed.rank->shares();
      with_shares.push_back(&placed);
      shares.push_back({Ms(of.computation_ns()) + Ms(of.free_ns()), Ms(of.wait_ns())});
    }
    const auto slowest = analysis::FindSlowestRank(shares);
    const auto behind = last == nullptr ? 0 : static_cast<double>(first->rank->step()) - static_cast<double>(last->rank->step());
    if (slowest && slowest->share > limits.At("slow_rank", "difference")) {
      WaitedFor found = Named(*with_shares[slowest->index], job.first);
      found.behind_ms = slowest->behind_ms;
      found.share = slowest->share;
      all.push_back(std::move(found));
    } else if (last != nullptr && behind >= limits.At("slow_rank", "steps_behind") + StepsBetweenAnswers(*first, *last, apart_ms)) {
      WaitedFor found = Named(*last, job.first);
      found.steps_behind = static_cast<int64_t>(behind);
      all.push_back(std::move(found));
    }
  }
  return all;
}

int AdviseOnAll(Fleet* fleet, const std::string& job_id, bool json) {
  const int64_t began_ns = fleet->clock().SteadyNs();
  const auto all = AskEach<NodeAdvice>(fleet, "advise", job_id, [&](ProfdApi& api) { return AskAdvice(api, job_id); });
  const std::vector<WaitedFor> waited = CompareRanks(all.nodes, analysis::Limits(), kLookMs + static_cast<double>(fleet->clock().SteadyNs() - began_ns) / 1e6);
  Io& io = fleet->io();
  if (json) {
    Json made = AnswersToJson(all);
    made["waited_for"] = Json::array();
    for (const WaitedFor& one : waited) made["waited_for"].push_back(JsonOf(one));
    io.out << JsonText(made, /*indent=*/true) << std::endl;
  } else {
    for (const WaitedFor& one : waited) io.out << Printable(TextOf(one)) << "\n";
    if (!waited.empty()) io.out << '\n';
    PrintAdvice(io, all.nodes);
    PrintRanks(io, JobsOf(all.nodes));
    io.out.flush();
  }
  return PrintFailures(io, all, job_id.empty() ? "job" : "job " + Printable(job_id));
}

}  // namespace profd::client
