#include "client/commands/stacks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "client/commands/start_parse.h"
#include "client/parse.h"
#include "client/render.h"

namespace profd::client {
namespace {

struct Placed {
  const std::string* node;
  const v1::ProcessStacks* process;
};

// "blocked in the kernel, system call ioctl on /dev/davinci0 (devdrv_wait)", as far as it is known.
std::string StateText(const v1::ThreadStack& thread) {
  std::string text;
  switch (thread.state()) {
    case v1::ThreadStack::STATE_RUNNING: text = "runs"; break;
    case v1::ThreadStack::STATE_SLEEPING: text = "sleeps"; break;
    case v1::ThreadStack::STATE_BLOCKED: text = "blocked in the kernel"; break;
    case v1::ThreadStack::STATE_STOPPED: text = "stopped"; break;
    case v1::ThreadStack::STATE_ENDED: text = "ended"; break;
    default: return "state unknown";
  }
  if (!thread.system_call().empty()) text += ", system call " + thread.system_call();
  if (!thread.file().empty()) text += " on " + thread.file();
  if (!thread.kernel_function().empty()) text += " (" + thread.kernel_function() + ")";
  return text;
}

bool IsMain(const v1::ProcessStacks& process, const v1::ThreadStack& thread) { return thread.thread() == process.pid(); }

bool IsShown(const v1::ProcessStacks& process, const v1::ThreadStack& thread) {
  return IsMain(process, thread) || thread.trains() || thread.state() == v1::ThreadStack::STATE_BLOCKED;
}

std::string NameText(const v1::ProcessStacks& process, const v1::ThreadStack& thread, bool with_number) {
  std::string text = IsMain(process, thread) ? "main thread" : "thread";
  if (with_number) text += thread.has_thread() ? fmt::format(" {}", thread.thread()) : std::string(" of unknown number");
  if (!IsMain(process, thread) && !thread.name().empty()) text += fmt::format(" ({})", thread.name());
  if (thread.trains()) text += ", trains";
  return text;
}

void AddThread(const v1::ProcessStacks& process, const v1::ThreadStack& thread, bool with_number, std::string* text) {
  *text += fmt::format("  {}: {}\n", Printable(NameText(process, thread, with_number)), Printable(StateText(thread)));
  for (const v1::StackFrame& frame : thread.frames()) {
    *text += fmt::format("      {} ({}:{})\n", Printable(frame.function()), Printable(frame.file()), frame.line());
  }
}

bool IsStopped(const v1::ProcessStacks& process) {
  return std::ranges::any_of(process.threads(), [&process](const v1::ThreadStack& thread) {
    return IsMain(process, thread) && thread.state() == v1::ThreadStack::STATE_STOPPED;
  });
}

// Why there are no frames; empty: there are.
std::string_view PythonText(const v1::ProcessStacks& process) {
  switch (process.python()) {
    case v1::ProcessStacks::PYTHON_ANSWERED: return "";
    case v1::ProcessStacks::PYTHON_NONE: return "no Python that has loaded the package profd: only the kernel's state";
    case v1::ProcessStacks::PYTHON_SILENT:
      // Only the process itself can report whether it has a Python.
      if (IsStopped(process)) return "the process is stopped and cannot answer: only the kernel's state";
      return "its Python has not answered in two seconds: a thread holds the interpreter's lock in native code";
    default: return "not attached: only the kernel's state";
  }
}

// What a process shows of itself, without its own numbers: equal texts are one group.
std::string Body(const v1::ProcessStacks& process, bool all) {
  std::string text;
  if (!process.problem().empty()) text += fmt::format("  {}\n", Printable(process.problem()));
  if (!PythonText(process).empty()) text += fmt::format("  {}\n", PythonText(process));
  bool others = false;
  for (const v1::ThreadStack& thread : process.threads()) {
    if (all || IsShown(process, thread)) {
      AddThread(process, thread, all, &text);
    } else {
      others = true;
    }
  }
  if (process.threads_left_out() > 0 && all) text += fmt::format("  {} not shown\n", CountText(process.threads_left_out(), "more thread is", "more threads are"));
  if (others) text += "  other threads: --all\n";
  if (process.frames_left_out()) text += "  frames beyond the limits are not shown\n";
  return text;
}

std::string StepText(const std::vector<Placed>& group) {
  std::optional<int64_t> least, most;
  for (const Placed& one : group) {
    if (!one.process->has_step()) continue;
    least = std::min(least.value_or(one.process->step()), one.process->step());
    most = std::max(most.value_or(one.process->step()), one.process->step());
  }
  if (!least) return "";
  return *least == *most ? fmt::format(", step {}", *least) : fmt::format(", steps {} to {}", *least, *most);
}

// "rank 3 on n07 (process 4711, train.py), step 118", "7 ranks: 0-2,4-7, step 118"
std::string GroupText(const std::vector<Placed>& group) {
  const v1::ProcessStacks& first = *group.front().process;
  std::string text;
  if (group.size() == 1) {
    text = first.has_rank() ? fmt::format("rank {}", first.rank()) : fmt::format("process {}", first.pid());
    if (!group.front().node->empty()) text += " on " + *group.front().node;
    if (first.has_rank()) text += fmt::format(" (process {}{}{})", first.pid(), first.command().empty() ? "" : ", ", first.command());
  } else {
    std::vector<int32_t> ranks;
    std::vector<std::string> pids;
    for (const Placed& one : group) {
      if (one.process->has_rank()) {
        ranks.push_back(one.process->rank());
      } else {
        pids.push_back(one.node->empty() ? std::to_string(one.process->pid()) : fmt::format("{} on {}", one.process->pid(), *one.node));
      }
    }
    if (!ranks.empty()) text = fmt::format("{}: {}", CountText(ranks.size(), "rank"), FormatDevices(ranks));
    if (!pids.empty()) text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", CountText(pids.size(), "process"), fmt::join(pids, ", "));
  }
  if (!first.job_id().empty()) text += " of job " + first.job_id();
  return text + StepText(group);
}

// "process 4711 of job j42": what was requested.
std::string WantedText(const StacksOptions& options) {
  std::string text = "training process";
  if (!options.pids.empty()) text = fmt::format("process {}", fmt::join(options.pids, ", "));
  if (options.ranks) text += " of rank " + *options.ranks;
  if (!options.job.empty()) text += " of job " + options.job;
  return text;
}

}  // namespace

v1::GetStacksRequest BuildStacksRequest(const StacksOptions& options, std::vector<std::string>* problems) {
  v1::GetStacksRequest request;
  request.set_job_id(options.job);
  if (const auto ranks = ReadFlag("--rank", options.ranks, ParseRanks, problems)) {
    request.mutable_ranks()->Assign(ranks->begin(), ranks->end());
  }
  for (const std::string& text : options.pids) {
    if (const auto pid = ReadFlag("--pid", ParsePid(text), problems)) request.add_pids(*pid);
  }
  return request;
}

void PrintStacks(const Io& io, const std::vector<NodeStacks>& nodes, bool all) {
  // By job and user, then what the processes show.
  std::map<std::tuple<std::string, uint32_t, std::string>, std::vector<Placed>> by_text;
  uint32_t left_out = 0;
  size_t count = 0;
  for (const NodeStacks& node : nodes) {
    left_out += node.answer.left_out();
    for (const v1::ProcessStacks& process : node.answer.processes()) {
      // With all threads their numbers are in it, and each process is a group.
      by_text[{process.job_id(), process.uid(), Body(process, all)}].push_back({&node.node, &process});
      ++count;
    }
  }
  struct Group {
    const std::string* body;
    std::vector<Placed> processes;
  };
  std::vector<Group> groups;
  groups.reserve(by_text.size());
  for (auto& [key, processes] : by_text) groups.push_back({&std::get<2>(key), std::move(processes)});
  const auto order = [](const Group& group) {
    const v1::ProcessStacks& first = *group.processes.front().process;
    return std::tuple(first.job_id(), group.processes.size(), !first.has_rank(), first.rank(), first.pid());
  };
  std::ranges::stable_sort(groups, [&](const Group& a, const Group& b) { return order(a) < order(b); });
  bool first = true;
  for (const Group& group : groups) {
    io.out << (first ? "" : "\n") << Printable(GroupText(group.processes)) << '\n' << *group.body;
    first = false;
  }
  if (left_out > 0) io.out << fmt::format("\n{} of {} processes are not shown; name some with --rank or --pid\n", left_out, count + left_out);
}

int RunStacks(const Context& context, const StacksOptions& options) {
  std::vector<std::string> problems;
  const v1::GetStacksRequest request = BuildStacksRequest(options, &problems);
  if (!problems.empty()) return UsageError(context.io, "stacks", problems);
  auto answer = WithProgress(context, "asking profd and the processes", [&] { return context.api.GetStacks(request); });
  if (!answer.ok()) {
    if (answer.status().code() != StatusCode::kNotFound) return Fail(context, answer.status());
    return Fail(context, NotFound(WantedText(options) + " not found, or not owned by you; see `profctl jobs`"));
  }
  if (context.json) {
    PrintJson(context, ToJson(*answer));
  } else {
    PrintStacks(context.io, {{"", *answer}}, options.all);
  }
  return kExitOk;
}

}  // namespace profd::client
