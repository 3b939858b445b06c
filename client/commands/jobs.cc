#include "client/commands/node.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "client/render.h"
#include "client/user_names.h"

namespace profd::client {
namespace {

using Processes = google::protobuf::RepeatedPtrField<v1::JobProcess>;

std::string Joined(const std::set<std::string>& words) {
  return words.empty() ? "-" : fmt::format("{}", fmt::join(words, ","));
}

std::string Ranges(const std::set<int32_t>& numbers) { return OrDash(FormatDevices({numbers.begin(), numbers.end()})); }

std::string StepText(uint64_t step_ns) {
  if (step_ns == 0) return "-";
  const double seconds = static_cast<double>(step_ns) / 1e9;
  return seconds < 1 ? fmt::format("{:.1f} ms", seconds * 1e3) : fmt::format("{:.2f} s", seconds);
}

Cell Liveness(const v1::JobProcess& process) {
  if (process.attached()) return Cell("attached", Tone::kGood);
  if (process.has_silent_ns()) {
    return Cell("silent for " + FormatSpan(static_cast<int64_t>(process.silent_ns())), Tone::kWarning);
  }
  return Cell("not attached", Tone::kFaint);
}

// "8 attached", "7 attached, 1 silent", "2 not attached"
Cell Liveness(const Processes& processes) {
  int attached = 0;
  int silent = 0;
  for (const v1::JobProcess& process : processes) {
    attached += process.attached() ? 1 : 0;
    silent += !process.attached() && process.has_silent_ns() ? 1 : 0;
  }
  std::vector<std::string> parts;
  int others = processes.size() - attached - silent;
  if (attached > 0) parts.push_back(fmt::format("{} attached", attached));
  if (silent > 0) parts.push_back(fmt::format("{} silent", silent));
  if (others > 0) parts.push_back(fmt::format("{} not attached", others));
  Tone tone = silent > 0 ? Tone::kWarning : attached > 0 ? Tone::kGood : Tone::kFaint;
  return {fmt::format("{}", fmt::join(parts, ", ")), tone};
}

void AddJob(const v1::Job& job, Table* table) {
  std::set<int32_t> ranks;
  std::set<int32_t> pids;
  std::set<int32_t> devices;
  std::set<int64_t> steps;
  std::set<std::string> frameworks;
  uint64_t slowest = 0;
  for (const v1::JobProcess& process : job.processes()) {
    pids.insert(process.pid());
    if (process.has_rank()) ranks.insert(process.rank());
    devices.insert(process.devices().begin(), process.devices().end());
    if (process.has_step()) steps.insert(process.step());
    if (!process.framework().empty()) frameworks.insert(process.framework());
    slowest = std::max(slowest, process.step_ns());
  }
  std::string rank_text = Ranges(ranks);
  if (job.world_size() > 0) rank_text += fmt::format(" of {}", job.world_size());
  // Ranks are seldom on the same step to the instant: the span shows how far apart they are.
  std::string step_text = steps.empty()       ? "-"
                          : steps.size() == 1 ? std::to_string(*steps.begin())
                                              : fmt::format("{}..{}", *steps.begin(), *steps.rbegin());
  std::set<std::string> sessions(job.sessions().begin(), job.sessions().end());
  table->AddRow({OrDash(job.job_id()), UserText(job.uid()), rank_text,
                 Ranges(pids), Ranges(devices), Joined(frameworks), Liveness(job.processes()),
                 step_text, StepText(slowest), Joined(sessions)});
}

void PrintProcesses(const Context& context, const v1::Job& job) {
  std::set<std::string> sessions(job.sessions().begin(), job.sessions().end());
  context.io.out << "job " << (job.job_id().empty() ? "-" : Printable(job.job_id())) << " of user "
                 << Printable(UserText(job.uid()));
  if (job.world_size() > 0) context.io.out << ", world size " << job.world_size();
  context.io.out << ", sessions " << Printable(Joined(sessions)) << "\n";
  Table table({">RANK", ">LOCAL", ">PID", "DEVICES", "FRAMEWORK", "COMMAND", "LIVENESS", ">STEP",
               ">STEP TIME", ">MARKS", ">LOST", "POD"});
  for (const v1::JobProcess& p : job.processes()) {
    std::set<int32_t> devices(p.devices().begin(), p.devices().end());
    table.AddRow({p.has_rank() ? std::to_string(p.rank()) : "-",
                  p.has_local_rank() ? std::to_string(p.local_rank()) : "-",
                  std::to_string(p.pid()), Ranges(devices),
                  OrDash(p.framework()),
                  OrDash(p.command()), Liveness(p),
                  p.has_step() ? std::to_string(p.step()) : "-", StepText(p.step_ns()),
                  std::to_string(p.marks()), std::to_string(p.dropped_marks()), p.pod_uid()});
  }
  table.Print(context.io.out, context.io.out_color(), "  ");
}

}  // namespace

int RunJobs(const Context& context, const JobsOptions& options) {
  v1::ListJobsRequest request;
  request.set_job_id(options.job);
  request.set_attached_only(options.attached);
  auto list = WithProgress(context, "asking profd", [&] { return context.api.ListJobs(request); });
  if (!list.ok()) return Fail(context, list.status());
  if (!options.job.empty() && list->jobs().empty()) {
    return Fail(context, NotFound("no process of job " + options.job + " is known here"));
  }
  if (context.json) {
    PrintJson(context, ToJson(*list));
    return kExitOk;
  }
  if (list->jobs().empty()) {
    context.io.out << "no process is attached or uses a device\n";
    return kExitOk;
  }
  if (!options.job.empty()) {
    for (const v1::Job& job : list->jobs()) PrintProcesses(context, job);
    return kExitOk;
  }
  Table table({"JOB", "USER", "RANKS", "PIDS", "DEVICES", "FRAMEWORK", "LIVENESS", ">STEP",
               ">STEP TIME", "SESSIONS"});
  for (const v1::Job& job : list->jobs()) AddJob(job, &table);
  table.Print(context.io.out, context.io.out_color());
  return kExitOk;
}

}  // namespace profd::client
