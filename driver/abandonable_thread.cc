#include "driver/abandonable_thread.h"

#include <pthread.h>

#include <chrono>
#include <system_error>
#include <utility>

#include "base/mutex.h"

namespace profd {

struct AbandonableThread::End {
  Mutex mutex;
  CondVar changed;
  bool reached GUARDED_BY(mutex) = false;
};

AbandonableThread::AbandonableThread() = default;

AbandonableThread::~AbandonableThread() { Abandon(); }

bool AbandonableThread::Start(const std::string& name, std::function<void()> body) {
  auto end = std::make_shared<End>();
  try {
    thread_ = std::thread([end, name = name.substr(0, 15), body = std::move(body)]() mutable {
      ::pthread_setname_np(::pthread_self(), name.c_str());
      body();
      body = nullptr;  // what it holds goes before the end is known
      MutexLock lock(end->mutex);
      end->reached = true;
      end->changed.NotifyAll();
    });
  } catch (const std::system_error&) {
    return false;
  }
  end_ = std::move(end);
  return true;
}

bool AbandonableThread::JoinWithin(int64_t patience_ns) {
  if (!thread_.joinable()) return true;
  bool reached = false;
  if (thread_.get_id() != std::this_thread::get_id()) {
    MutexLock lock(end_->mutex);
    reached = end_->changed.WaitFor(lock, std::chrono::nanoseconds(patience_ns),
                                    [this]() REQUIRES(end_->mutex) { return end_->reached; });
  }
  if (reached) {
    thread_.join();
  } else {
    thread_.detach();
  }
  return reached;
}

void AbandonableThread::Abandon() {
  if (thread_.joinable()) thread_.detach();
}

}  // namespace profd
