// What Library has to do with stacks: waiting until a session wants samples or the daemon requests stacks, and the answer.
#include <utility>

#include "client/libprofd/library.h"

namespace profd::lib {

void Library::OnStacksCall(const attach::StacksCall& call) {
  const MutexLock lock(mutex_);
  if (!answers_stacks_) {
    attach::StacksReport none;
    none.seq = call.seq;
    Queue(none);
    return;
  }
  stacks_asked_ = call.seq;
  stacks_news_ = true;
  changed_.NotifyAll();
}

int Library::WaitStacks(int known, Deadline deadline) {
  MutexLock lock(mutex_);
  changed_.WaitUntil(lock, deadline, [&]() REQUIRES(mutex_) {
    return watch_.wants_stacks() != known || phase_ == Phase::kStopped || stacks_news_;
  });
  stacks_news_ = false;
  return phase_ == Phase::kStopped ? PROFD_DISABLED : watch_.wants_stacks();
}

bool Library::StacksAsked() {
  const MutexLock lock(mutex_);
  answers_stacks_ = true;
  return stacks_asked_ != 0;
}

Answer Library::AnswerStacks(const char* threads_json, bool left_out) {
  if (threads_json == nullptr) return {PROFD_INVALID, "threads_json is NULL"};
  auto threads = attach::ParseStackThreads(threads_json);
  if (!threads.ok()) return {PROFD_INVALID, threads.status().message()};
  const MutexLock lock(mutex_);
  if (stacks_asked_ == 0) return {PROFD_REFUSED, "the daemon has not requested stacks, or no longer does"};
  attach::StacksReport report;
  report.seq = std::exchange(stacks_asked_, 0);
  report.has_python = true;
  report.left_out = left_out;
  report.threads = std::move(threads).value();
  if (!Queue(report)) return {PROFD_INVALID, "it is too long, or the daemon takes nothing"};
  return {};
}

}  // namespace profd::lib
