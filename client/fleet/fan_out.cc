#include "client/fleet/fan_out.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace profd::client {
namespace {

constexpr std::chrono::milliseconds kTick{100};

// What the workers of one Run share.
struct Board {
  std::atomic<size_t> next{0};
  std::atomic<bool> cancelled{false};
  Mutex mutex;
  CondVar changed;
  size_t done GUARDED_BY(mutex) = 0;
};

void Work(const FanOut::Plan& plan, const Clock& clock, Board* board) {
  for (;;) {
    size_t node = board->next.fetch_add(1);
    if (node >= plan.nodes || board->cancelled.load()) return;
    int64_t deadline = plan.node_timeout_ns == 0 ? 0 : clock.SteadyNs() + plan.node_timeout_ns;
    {
      std::function<std::string()> diagnose;
      if (plan.diagnose) diagnose = [&plan, node] { return plan.diagnose(node); };
      NodeCall call(plan.make_api(node), clock, deadline, &board->cancelled, std::move(diagnose));
      plan.work(node, &call);
    }
    MutexLock lock(board->mutex);
    ++board->done;
    board->changed.NotifyOne();
  }
}

// As many as the system gives us: fewer do the same work later.
void StartWorkers(size_t count, const std::function<void()>& work,
                  std::vector<std::thread>* threads) {
  try {
    while (threads->size() < count) threads->emplace_back(work);
  } catch (const std::system_error&) {
  }
}

}  // namespace

NodeCall::NodeCall(std::unique_ptr<ProfdApi> api, const Clock& clock, int64_t deadline_ns,
                   const std::atomic<bool>* cancelled, std::function<std::string()> diagnose)
    : api_(std::move(api)),
      clock_(clock),
      begin_ns_(clock.SteadyNs()),
      deadline_ns_(deadline_ns),
      cancelled_(cancelled),
      diagnose_(std::move(diagnose)) {
  api_->SetWaitHook([this] { return !this->cancelled() && !expired(); });
}

bool NodeCall::expired() const { return deadline_ns_ != 0 && clock_.SteadyNs() >= deadline_ns_; }

Status NodeCall::Explain(const Status& status) const {
  if (status.ok() || cancelled()) return status;
  if (status.code() == StatusCode::kUnavailable && diagnose_) {
    std::string text = diagnose_();
    // Empty: it is reached now.
    return Unavailable(text.empty() ? "the call ended: " + status.message() + "; if profd was restarted there, try again" : std::move(text));
  }
  // gRPC's own timer and ours run beside each other: whichever was first, it means the same.
  bool gave_up = status.code() == StatusCode::kCancelled && expired();
  if (!gave_up && status.code() != StatusCode::kDeadlineExceeded) return status;
  return DeadlineExceeded("no answer in time (--node-timeout waits longer)");
}

bool FanOut::Run(const Plan& plan) {
  Board board;
  size_t workers = std::min(std::max(plan.at_once, size_t{1}), plan.nodes);
  std::vector<std::thread> threads;
  threads.reserve(workers);
  StartWorkers(workers, [&] { Work(plan, clock_, &board); }, &threads);
  if (threads.empty() && plan.nodes > 0) return false;
  {
    MutexLock lock(board.mutex);
    while (board.done < plan.nodes && !board.cancelled.load()) {
      board.changed.WaitFor(lock, kTick);
      size_t done = board.done;
      lock.Unlock();
      if (plan.go_on && !plan.go_on(done)) board.cancelled.store(true);
      lock.Lock();
    }
  }
  for (std::thread& thread : threads) thread.join();
  return !board.cancelled.load();
}

}  // namespace profd::client
