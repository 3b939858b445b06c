#include "daemon/session/launching_threads.h"

#include <algorithm>
#include <utility>

namespace profd {

void LaunchingThreads::Take(const ActivityBatch& batch, int64_t now_ns) {
  Process* process = nullptr;
  for (const ActivityFrame& frame : batch.frames) {
    if (frame.type != attach::ActivityType::kApi) continue;
    // One call stands for all of its frame: there are many frames.
    const auto calls = frame.As<attach::ApiRecord>();
    if (calls.empty()) continue;
    const attach::ApiRecord& call = calls.back();
    const auto level = static_cast<attach::ApiLevel>(call.level);
    if (call.thread == 0 || (level != attach::ApiLevel::kNode && level != attach::ApiLevel::kRuntime)) continue;
    process = &(*processes_)[batch.pid];
    if (process->calls.size() >= kMaxThreads && !process->calls.contains(call.thread)) continue;
    process->calls[call.thread] += calls.size();
  }
  if (process == nullptr || now_ns < process->next_look_ns) return;
  process->next_look_ns = now_ns + std::exchange(process->pause_ns, std::min(2 * process->pause_ns, kLongestNs));
  look_(batch.attach_id, [known = std::weak_ptr(processes_), pid = batch.pid](const Result<ProcessThreads>& found) {
    const auto processes = known.lock();
    if (processes == nullptr || !found.ok()) return;
    Process& looked_at = (*processes)[pid];
    const auto launcher = std::ranges::find(found->threads, static_cast<pid_t>(LauncherOf(looked_at)), &ThreadFacts::inner);
    if (launcher != found->threads.end()) looked_at.cpus = launcher->cpus;
  });
}

uint32_t LaunchingThreads::LauncherOf(const Process& process) {
  const auto most = std::ranges::max_element(process.calls, {}, [](const auto& thread) { return thread.second; });
  return most == process.calls.end() ? 0 : most->first;
}

std::string LaunchingThreads::CpusOf(pid_t pid) const {
  const auto found = processes_->find(pid);
  return found == processes_->end() ? std::string() : found->second.cpus;
}

}  // namespace profd
