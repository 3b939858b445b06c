#include "daemon/rpc/read_queue.h"

#include <pthread.h>

#include <utility>

namespace profd::rpc {

ReadQueue::~ReadQueue() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
  }
  wake_.NotifyAll();
  for (std::thread& thread : threads_) thread.join();
}

void ReadQueue::Post(uint32_t uid, std::function<void()> step) {
  {
    MutexLock lock(mutex_);
    users_[uid].steps.push_back(std::move(step));
    while (threads_.size() < kThreads) threads_.emplace_back([this] { Run(); });
  }
  wake_.NotifyOne();
}

// The next user, in the order of uids and around, who has no step under way.
std::map<uint32_t, ReadQueue::User>::iterator ReadQueue::Next() {
  auto next = users_.upper_bound(last_);
  for (size_t i = 0; i < users_.size(); ++i, ++next) {
    if (next == users_.end()) next = users_.begin();
    if (!next->second.running) return next;
  }
  return users_.end();
}

void ReadQueue::Run() {
  ::pthread_setname_np(::pthread_self(), "profd-read");
  MutexLock lock(mutex_);
  while (!stop_) {
    const auto next = Next();
    if (next == users_.end()) {
      wake_.Wait(lock);
      continue;
    }
    const uint32_t uid = last_ = next->first;
    User& user = next->second;
    user.running = true;
    std::function<void()> step = std::move(user.steps.front());
    user.steps.pop_front();
    lock.Unlock();
    step();
    step = nullptr;
    lock.Lock();
    user.running = false;
    if (user.steps.empty()) users_.erase(uid);
  }
}

}  // namespace profd::rpc
