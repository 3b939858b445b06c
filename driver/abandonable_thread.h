// A thread for calls that may never return, which nothing can cancel: it is joined if it ends in
// time, and left behind otherwise. What its body uses is the body's own or shared with it
// (shared_ptr), so that a call that returns late finds it in place.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

namespace profd {

class AbandonableThread {
 public:
  AbandonableThread();
  // Leaves a thread behind that was not joined.
  ~AbandonableThread();
  AbandonableThread(const AbandonableThread&) = delete;
  AbandonableThread& operator=(const AbandonableThread&) = delete;

  // `name` as the kernel shows it (15 characters). False: the system has no thread to give, and
  // `body` is not called. Not while there is a thread.
  [[nodiscard]] bool Start(const std::string& name, std::function<void()> body);
  // There is a thread: it was started, and neither joined nor left behind.
  bool joinable() const { return thread_.joinable(); }
  // True: the body has returned, and the thread was joined (or there was none). False: it has not
  // returned within the time, or this is called by it; it is left behind.
  bool JoinWithin(int64_t patience_ns);
  void Abandon();

 private:
  struct End;
  std::shared_ptr<End> end_;
  std::thread thread_;
};

}  // namespace profd
