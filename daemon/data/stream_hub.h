// Live streams: hands decoded samples to subscribers. A subscriber owns a ring that grows with what
// waits in it, up to a bound and as far as its memory accounting allows; when the subscriber does not
// read fast enough the newest samples are dropped and counted (policy: drop newest), so a slow client
// costs the samplers nothing.
#pragma once

#include <atomic>
#include <bitset>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "collectors/series.h"

namespace profd {

// Position of a collector in Collectors().
using CollectorIndex = uint16_t;
inline constexpr size_t kMaxCollectors = 64;

struct StreamedSample {
  Sample sample;
  CollectorIndex collector;
};

class StreamSubscriber {
 public:
  // Asked before the ring grows by so many bytes (false: it stays as it is), and notified when it has become
  // smaller (negative; the answer means nothing). On a sampler's thread or the reader's.
  using Memory = std::function<bool(int64_t bytes)>;

  // `collectors`: wanted ones; all if none is set. Ring of at most `capacity` samples.
  StreamSubscriber(std::bitset<kMaxCollectors> collectors, size_t capacity, Memory memory);

  // Any thread. Takes up to `max` samples, oldest first.
  void Take(size_t max, std::vector<StreamedSample>* out);
  size_t waiting() const;
  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  friend class StreamHub;
  void Offer(CollectorIndex collector, std::span<const Sample> samples);
  bool Grow() REQUIRES(mutex_);
  void ShrinkIfIdle() REQUIRES(mutex_);
  void Resize(size_t size) REQUIRES(mutex_);

  const std::bitset<kMaxCollectors> collectors_;
  const size_t capacity_;
  const Memory memory_;
  mutable Mutex mutex_;  // held for a memcpy by one sampler or the one reader
  std::vector<StreamedSample> ring_ GUARDED_BY(mutex_);
  size_t head_ GUARDED_BY(mutex_) = 0;
  size_t count_ GUARDED_BY(mutex_) = 0;
  size_t most_ GUARDED_BY(mutex_) = 0;       // that waited since the ring was last judged
  uint32_t emptied_ GUARDED_BY(mutex_) = 0;  // times since then
  bool refused_ GUARDED_BY(mutex_) = false;  // more memory, since the last Take
  std::atomic<uint64_t> dropped_{0};
};

class StreamHub {
 public:
  std::shared_ptr<StreamSubscriber> Subscribe(std::bitset<kMaxCollectors> collectors,
                                              size_t capacity,
                                              StreamSubscriber::Memory memory = nullptr);
  void Unsubscribe(const std::shared_ptr<StreamSubscriber>& subscriber);

  // Any thread. Without subscribers: one atomic load.
  void Publish(CollectorIndex collector, std::span<const Sample> samples);

  size_t subscribers() const { return live_.load(std::memory_order_relaxed); }
  // Of all streams, also of those that have ended.
  uint64_t dropped() const;

 private:
  using List = std::vector<std::shared_ptr<StreamSubscriber>>;
  mutable Mutex mutex_;  // publishers copy the pointer only
  std::shared_ptr<const List> list_ GUARDED_BY(mutex_) = std::make_shared<const List>();
  std::atomic<size_t> live_{0};
  uint64_t dropped_before_ GUARDED_BY(mutex_) = 0;
};

}  // namespace profd
