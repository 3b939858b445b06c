// The client's buffers: one is current, full ones are queued and handed over by a thread each, the
// rest waits for FlushAll. The locks are held where the vendor's library holds them, so that a
// client that waits for a recording thread in its callback waits for ever here, too.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <initializer_list>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_set>
#include <vector>

#include "base/mutex.h"
#include "sim/mspti/mspti.h"

namespace profd::sim::mspti {

// A pointer to a text in a record that is being made.
struct TextField {
  size_t offset;
  std::string_view text;
};

class Buffers {
 public:
  static Buffers& The();

  int Register(Request request, Complete complete);
  // Copies the record into the current buffer, or loses it.
  template <class Record>
  void Put(const Record& record, std::initializer_list<TextField> texts) {
    PutBytes({reinterpret_cast<const uint8_t*>(&record), sizeof record}, texts);
  }
  int FlushAll();
  int FlushPeriod(uint32_t milliseconds);
  // A buffer that arrives although no client is subscribed any more.
  void CompleteLate();
  // At the exit of the process: what is current is lost.
  void JoinAll();
  void AddTo(Counts* counts) const;

  // On this thread, inside the client's.
  static bool InRequest();
  // Before any lock: with one, a client's mistake would be a silent deadlock.
  static void RefuseInCallback();

 private:
  struct Buffer {
    uint8_t* memory = nullptr;
    size_t size = 0;
    size_t used = 0;
    std::list<std::string> texts;  // of versions that free them with the buffer
  };

  void PutBytes(std::span<const uint8_t> record, std::initializer_list<TextField> texts);
  // Nothing: the queue is empty.
  std::optional<Buffer> TakeQueued();
  const char* Keep(std::string_view text) REQUIRES(buffer_mutex_);
  bool HaveSpace() REQUIRES(buffer_mutex_);
  void AskForBuffer() REQUIRES(buffer_mutex_);
  void QueueCurrent() REQUIRES(buffer_mutex_);
  void HandOver();
  void Deliver(Buffer buffer);
  void InThread(Buffer buffer);

  // Where the vendor's library has its two: the first is held during the request callback and while
  // FlushAll hands the current buffer over, the second while FlushAll joins.
  Mutex buffer_mutex_;
  Buffer current_ GUARDED_BY(buffer_mutex_);
  std::unordered_set<std::string> texts_ GUARDED_BY(buffer_mutex_);  // addresses stay
  Mutex queue_mutex_;
  CondVar queued_;
  std::deque<Buffer> queue_ GUARDED_BY(queue_mutex_);
  std::vector<std::thread> threads_ GUARDED_BY(queue_mutex_);
  std::thread hand_over_ GUARDED_BY(queue_mutex_);
  bool running_ GUARDED_BY(queue_mutex_) = false;
  int64_t period_ms_ GUARDED_BY(queue_mutex_) = 60'000;

  std::atomic<Request> request_{nullptr};
  std::atomic<Complete> complete_{nullptr};
  std::array<std::atomic<uint64_t>, kKinds> recorded_{};
  std::atomic<uint64_t> declined_{0};
  std::atomic<uint64_t> did_not_fit_{0};
  std::atomic<uint64_t> made_threads_{0};
  std::atomic<uint64_t> longest_request_ns_{0};
};

}  // namespace profd::sim::mspti
