// Threads that read dumps for clients, so that nothing else waits for a disk or for a user's directory
// of a hundred thousand files. Tasks are short steps: users take turns, and no user has more than one
// step under way, so that a second one is read for while the first one's step takes its time.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace profd::rpc {

class ReadQueue {
 public:
  static constexpr size_t kThreads = 2;

  ReadQueue() = default;
  // Ends after the steps under way; others are dropped.
  ~ReadQueue();
  ReadQueue(const ReadQueue&) = delete;
  ReadQueue& operator=(const ReadQueue&) = delete;

  // Any thread. The threads begin with the first step there is.
  void Post(uint32_t uid, std::function<void()> step);

 private:
  struct User {
    std::deque<std::function<void()>> steps;
    bool running = false;
  };
  std::map<uint32_t, User>::iterator Next() REQUIRES(mutex_);
  void Run();

  Mutex mutex_;
  CondVar wake_;
  std::map<uint32_t, User> users_ GUARDED_BY(mutex_);  // those with steps, waiting or running
  uint32_t last_ GUARDED_BY(mutex_) = 0;               // whose step was begun last
  bool stop_ GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace profd::rpc
