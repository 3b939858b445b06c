#include "client/commands/start.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <set>
#include <thread>
#include <vector>

#include "client/parse.h"

namespace profd::client {
namespace {

constexpr std::chrono::milliseconds kLookAgain{100};

struct Ranks {
  size_t attached = 0;
  size_t expected = 0;  // 0 = not known yet

  bool complete() const { return expected != 0 && attached >= expected; }
};

Ranks Count(const v1::Job& job, const std::set<uint32_t>& wanted) {
  std::set<uint32_t> attached;
  bool any = false;
  for (const v1::JobProcess& process : job.processes()) {
    if (!process.attached()) continue;
    any = true;
    const auto rank = static_cast<uint32_t>(process.rank());
    if (process.has_rank() && (wanted.empty() || wanted.contains(rank))) attached.insert(rank);
  }
  // A job without a size is complete with its first process.
  if (wanted.empty() && job.world_size() == 0) return {any ? size_t{1} : 0, 1};
  return {attached.size(), wanted.empty() ? job.world_size() : wanted.size()};
}

std::set<uint32_t> RanksOf(const v1::Job& job) {
  std::set<uint32_t> ranks;
  for (const v1::JobProcess& process : job.processes()) {
    if (process.has_rank()) ranks.insert(static_cast<uint32_t>(process.rank()));
  }
  return ranks;
}

// The daemon refuses ranks that are not there.
void LeaveOutMissing(const Context& context, const std::set<uint32_t>& there, v1::SessionSpec* request) {
  std::vector<uint32_t> here;
  std::vector<uint32_t> missing;
  for (const uint32_t rank : request->target().ranks()) (there.contains(rank) ? here : missing).push_back(rank);
  // Without any the daemon reports it.
  if (missing.empty() || here.empty()) return;
  request->mutable_target()->mutable_ranks()->Assign(here.begin(), here.end());
  Warn(context, fmt::format("ranks that have not come, the session starts without them: {}", fmt::join(missing, ", ")));
}

}  // namespace

Status WaitForRanks(const Context& context, const std::string& duration, v1::SessionSpec* request) {
  Result<uint64_t> wait_ms = ParseDurationMs(duration);
  if (!wait_ms.ok()) return InvalidArgument("--wait-ranks " + wait_ms.status().message());
  const v1::SessionSpec::Target& target = request->target();
  if (target.job_id().empty()) return InvalidArgument("--wait-ranks needs --job");
  const std::set<uint32_t> wanted(target.ranks().begin(), target.ranks().end());
  const int64_t end_ns = context.clock.SteadyNs() + static_cast<int64_t>(*wait_ms) * kNsPerMs;
  v1::ListJobsRequest list;
  list.set_job_id(target.job_id());
  std::set<uint32_t> there;
  {
    Progress progress(context, "waiting for the ranks of " + target.job_id());
    for (;;) {
      Result<v1::ListJobsResponse> jobs = context.api.ListJobs(list);
      if (!jobs.ok() && jobs.status().code() != StatusCode::kNotFound) return jobs.status();
      const bool known = jobs.ok() && !jobs->jobs().empty();
      const Ranks ranks = known ? Count(jobs->jobs(0), wanted) : Ranks{};
      there = known ? RanksOf(jobs->jobs(0)) : std::set<uint32_t>{};
      if (ranks.complete() || context.clock.SteadyNs() >= end_ns) break;
      progress.SetDetail(fmt::format("{} of {} attached", ranks.attached,
                                     ranks.expected == 0 ? "?" : std::to_string(ranks.expected)));
      std::this_thread::sleep_for(kLookAgain);
    }
  }
  LeaveOutMissing(context, there, request);
  return Status::Ok();
}

}  // namespace profd::client
