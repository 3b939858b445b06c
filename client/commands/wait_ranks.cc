#include "client/commands/start.h"

#include <fmt/format.h>

#include <chrono>
#include <set>
#include <thread>

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

}  // namespace

Status WaitForRanks(const Context& context, const v1::SessionSpec& request,
                    const std::string& duration) {
  Result<uint64_t> wait_ms = ParseDurationMs(duration);
  if (!wait_ms.ok()) return InvalidArgument("--wait-ranks " + wait_ms.status().message());
  if (request.target().job_id().empty()) return InvalidArgument("--wait-ranks needs --job");
  const std::set<uint32_t> wanted(request.target().ranks().begin(), request.target().ranks().end());
  const int64_t end_ns = context.clock.SteadyNs() + static_cast<int64_t>(*wait_ms) * kNsPerMs;
  v1::ListJobsRequest list;
  list.set_job_id(request.target().job_id());
  Progress progress(context, "waiting for the ranks of " + request.target().job_id());
  for (;;) {
    Result<v1::ListJobsResponse> jobs = context.api.ListJobs(list);
    if (!jobs.ok() && jobs.status().code() != StatusCode::kNotFound) return jobs.status();
    Ranks ranks;
    if (jobs.ok() && !jobs->jobs().empty()) ranks = Count(jobs->jobs(0), wanted);
    if (ranks.complete() || context.clock.SteadyNs() >= end_ns) return Status::Ok();
    progress.SetDetail(fmt::format("{} of {} attached", ranks.attached,
                                   ranks.expected == 0 ? "?" : std::to_string(ranks.expected)));
    std::this_thread::sleep_for(kLookAgain);
  }
}

}  // namespace profd::client
