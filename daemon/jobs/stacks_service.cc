#include "daemon/jobs/stacks_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "daemon/jobs/ring_reader.h"
#include "profd/v1/profd.pb.h"

namespace profd {
namespace {

v1::ThreadStack::State StateOf(char state) {
  switch (state) {
    case 'R': return v1::ThreadStack::STATE_RUNNING;
    case 'S':
    case 'I': return v1::ThreadStack::STATE_SLEEPING;
    case 'D': return v1::ThreadStack::STATE_BLOCKED;
    case 'T':
    case 't': return v1::ThreadStack::STATE_STOPPED;
    case 'Z':
    case 'X': return v1::ThreadStack::STATE_ENDED;
    default: return v1::ThreadStack::STATE_UNSPECIFIED;
  }
}

void Fill(const ThreadFacts& facts, v1::ThreadStack* out) {
  if (facts.thread != 0) out->set_thread(facts.thread);
  out->set_name(facts.name);
  out->set_state(StateOf(facts.state));
  out->set_kernel_function(facts.kernel_function);
  out->set_system_call(facts.system_call);
  out->set_file(facts.file);
}

std::string Shown(std::string text) {
  MakePrintable(text);
  return text;
}

// The frames join the thread that the kernel knows by the number which the process has for it.
void FillFrames(const attach::StacksReport& report, const ProcessThreads* threads_or_null, v1::ProcessStacks* out) {
  std::map<pid_t, int> by_inner;
  for (int i = 0; threads_or_null != nullptr && i < out->threads_size(); ++i) {
    by_inner.emplace(threads_or_null->threads[static_cast<size_t>(i)].inner, i);
  }
  size_t frames = 0;
  out->set_frames_left_out(report.left_out);
  for (const attach::StacksReport::Thread& thread : report.threads) {
    const auto known = by_inner.find(thread.thread);
    v1::ThreadStack* stack = known == by_inner.end() ? out->add_threads() : out->mutable_threads(known->second);
    if (known != by_inner.end()) by_inner.erase(known);  // once
    stack->set_trains(thread.trains);
    if (!thread.name.empty()) stack->set_name(Shown(thread.name));
    for (const attach::StacksReport::Frame& frame : thread.frames) {
      if (++frames > StacksService::kMaxFrames) {
        out->set_frames_left_out(true);
        break;
      }
      v1::StackFrame& one = *stack->add_frames();
      one.set_file(Shown(frame.file));
      one.set_function(Shown(frame.function));
      one.set_line(static_cast<uint32_t>(frame.line));
    }
  }
}

bool IsWanted(const v1::GetStacksRequest& request, const TrainingProcess& process) {
  if (!request.job_id().empty() && process.job_id != request.job_id()) return false;
  const auto& ranks = request.ranks();
  if (!ranks.empty() && (!process.rank || std::ranges::find(ranks, static_cast<uint32_t>(*process.rank)) == ranks.end())) {
    return false;
  }
  const auto& pids = request.pids();
  return pids.empty() || std::ranges::find(pids, process.pid) != pids.end();
}

}  // namespace

Result<std::shared_ptr<StacksService::Look>> StacksService::Begin(const Peer& peer, const v1::GetStacksRequest& request) {
  const auto of_user = std::ranges::count_if(looks_, [&](const auto& look) { return look->uid == peer.uid; });
  if (looks_.size() >= kMaxLooks || static_cast<size_t>(of_user) >= kMaxLooksOfUser) {
    return ResourceExhausted(fmt::format("{} requests for stacks are under way here, {} of them of this user (at most {} and {}); try again",
                                         looks_.size(), of_user, kMaxLooks, kMaxLooksOfUser));
  }
  auto look = std::make_shared<Look>(deps_.control);
  look->uid = peer.uid;
  for (TrainingProcess& process : deps_.jobs.Processes()) {
    if (!peer.Owns(process.uid) || process.silent_since_ns != 0 || !IsWanted(request, process)) continue;
    look->processes.push_back({std::move(process), false, std::nullopt, std::nullopt});
  }
  if (look->processes.empty()) {
    return NotFound("no such training process of this user is known here; ListJobs has those that are");
  }
  std::ranges::stable_sort(look->processes, [](const LookedAt& a, const LookedAt& b) {
    return std::tuple(a.process.job_id, !a.process.rank, a.process.rank) < std::tuple(b.process.job_id, !b.process.rank, b.process.rank);
  });
  look->left_out = look->processes.size() - std::min(look->processes.size(), kMaxProcesses);
  look->processes.resize(look->processes.size() - look->left_out);
  return look;
}

void StacksService::Get(const Peer& peer, const v1::GetStacksRequest& request_untrusted, v1::GetStacksResponse* out,
                        std::function<void(const Status&)> finish) {
  DCHECK_ON(deps_.control);
  Result<std::shared_ptr<Look>> begun = Begin(peer, request_untrusted);
  if (!begun.ok()) return finish(begun.status());
  const std::shared_ptr<Look>& look = *begun;
  look->out = out;
  look->finish = std::move(finish);
  looks_.push_back(look);
  look->deadline.After(kDeadlineNs, [this, weak = std::weak_ptr(look)] {
    if (auto late = weak.lock()) Finish(late);
  });
  // All of them first: an answer may come at once.
  look->awaited = look->processes.size();
  for (LookedAt& one : look->processes) Ask(look, &one);
  for (LookedAt& one : look->processes) {
    deps_.threads.LookupThreads(one.process.pid, one.process.start_ticks,
                                [this, weak = std::weak_ptr(look), &one](Result<ProcessThreads> threads) {
                                  const auto waiting = weak.lock();
                                  if (waiting == nullptr || waiting->out == nullptr) return;
                                  one.threads = std::move(threads);
                                  Answered(waiting);
                                });
  }
}

void StacksService::Ask(const std::shared_ptr<Look>& look, LookedAt* process) {
  const uint64_t id = process->process.attach_id;
  if (id == 0) return;
  const auto open = questions_.find(id);
  if (open == questions_.end()) {
    const uint64_t seq = next_seq_++;
    if (!deps_.ask(id, seq)) return;
    questions_[id] = {seq, {look}};
  } else {
    std::erase_if(open->second.looks, [](const std::weak_ptr<Look>& before) { return before.expired(); });
    open->second.looks.emplace_back(look);
  }
  process->asked = true;
  ++look->awaited;
}

void StacksService::OnReport(uint64_t attach_id, const attach::StacksReport& report_untrusted) {
  DCHECK_ON(deps_.control);
  const auto found = questions_.find(attach_id);
  if (found != questions_.end() && found->second.seq == report_untrusted.seq) Settle(found, report_untrusted);
}

void StacksService::OnClosed(uint64_t attach_id) {
  if (const auto found = questions_.find(attach_id); found != questions_.end()) Settle(found, std::nullopt);
}

void StacksService::Settle(Questions::iterator found, const std::optional<attach::StacksReport>& report) {
  const auto [attach_id, question] = std::move(*found);
  questions_.erase(found);
  for (const std::weak_ptr<Look>& weak : question.looks) {
    const auto look = weak.lock();
    if (look == nullptr || look->out == nullptr) continue;
    for (LookedAt& one : look->processes) {
      if (one.process.attach_id == attach_id) one.report = report;
    }
    Answered(look);
  }
}

void StacksService::Answered(const std::shared_ptr<Look>& look) {
  if (--look->awaited == 0) Finish(look);
}

void StacksService::Finish(const std::shared_ptr<Look>& look) {
  v1::GetStacksResponse* out = std::exchange(look->out, nullptr);
  if (out == nullptr) return;
  looks_.remove(look);
  out->set_left_out(static_cast<uint32_t>(look->left_out));
  for (const LookedAt& one : look->processes) {
    v1::ProcessStacks& stacks = *out->add_processes();
    const TrainingProcess& process = one.process;
    stacks.set_pid(process.pid);
    stacks.set_uid(process.uid);
    stacks.set_job_id(process.job_id);
    if (process.rank) stacks.set_rank(*process.rank);
    stacks.set_command(process.command);
    if (process.step) stacks.set_step(*process.step);
    const bool known = one.threads && one.threads->ok();
    if (known) {
      for (const ThreadFacts& facts : one.threads->value().threads) Fill(facts, stacks.add_threads());
      stacks.set_threads_left_out(static_cast<uint32_t>(one.threads->value().left_out));
    } else {
      stacks.set_problem(one.threads ? one.threads->status().message() : "the kernel has not answered in time");
    }
    using Stacks = v1::ProcessStacks;
    stacks.set_python(!one.asked                  ? Stacks::PYTHON_NOT_ATTACHED
                      : !one.report               ? Stacks::PYTHON_SILENT
                      : one.report->has_python    ? Stacks::PYTHON_ANSWERED
                                                  : Stacks::PYTHON_NONE);
    if (one.report) FillFrames(*one.report, known ? &one.threads->value() : nullptr, &stacks);
  }
  look->finish(Status::Ok());
}

}  // namespace profd
