#include "daemon/data/stream_hub.h"

#include <algorithm>
#include <utility>

namespace profd {

namespace {

constexpr size_t kFirstRing = 256;
// A ring that was never more than a quarter full while its reader emptied it so often becomes smaller.
constexpr uint32_t kJudgeEvery = 32;

}  // namespace

StreamSubscriber::StreamSubscriber(std::bitset<kMaxCollectors> collectors, size_t capacity,
                                   Memory memory)
    : collectors_(collectors), capacity_(std::max<size_t>(capacity, 1)), memory_(std::move(memory)) {}

void StreamSubscriber::Offer(CollectorIndex collector, std::span<const Sample> samples) {
  if (collectors_.any() && (collector >= kMaxCollectors || !collectors_.test(collector))) return;
  MutexLock lock(mutex_);
  for (const Sample& sample : samples) {
    if (count_ == ring_.size() && !Grow()) {
      dropped_.fetch_add(1, std::memory_order_relaxed);
      continue;
    }
    ring_[(head_ + count_) % ring_.size()] = {sample, collector};
    ++count_;
  }
  most_ = std::max(most_, count_);
}

void StreamSubscriber::Take(size_t max, std::vector<StreamedSample>* out) {
  MutexLock lock(mutex_);
  size_t take = std::min(max, count_);
  for (size_t i = 0; i < take; ++i) out->push_back(ring_[(head_ + i) % ring_.size()]);
  if (take > 0) head_ = (head_ + take) % ring_.size();
  count_ -= take;
  refused_ = false;
  if (count_ == 0) ShrinkIfIdle();
}

size_t StreamSubscriber::waiting() const {
  MutexLock lock(mutex_);
  return count_;
}

bool StreamSubscriber::Grow() {
  const size_t size = std::min(capacity_, std::max(kFirstRing, 2 * ring_.size()));
  if (size <= ring_.size() || refused_) return false;
  refused_ = memory_ && !memory_(static_cast<int64_t>((size - ring_.size()) * sizeof(StreamedSample)));
  if (!refused_) Resize(size);
  return !refused_;
}

void StreamSubscriber::ShrinkIfIdle() {
  if (++emptied_ < kJudgeEvery) return;
  const size_t size = ring_.size() / 2;
  if (size >= kFirstRing && most_ <= ring_.size() / 4) {
    Resize(size);
    if (memory_) memory_(-static_cast<int64_t>(size * sizeof(StreamedSample)));
  }
  emptied_ = 0;
  most_ = 0;
}

// `size` is enough for what waits.
void StreamSubscriber::Resize(size_t size) {
  std::vector<StreamedSample> ring(size);
  for (size_t i = 0; i < count_; ++i) ring[i] = ring_[(head_ + i) % ring_.size()];
  ring_ = std::move(ring);
  head_ = 0;
}

std::shared_ptr<StreamSubscriber> StreamHub::Subscribe(std::bitset<kMaxCollectors> collectors,
                                                       size_t capacity,
                                                       StreamSubscriber::Memory memory) {
  auto subscriber = std::make_shared<StreamSubscriber>(collectors, capacity, std::move(memory));
  MutexLock lock(mutex_);
  List next = *list_;
  next.push_back(subscriber);
  live_.store(next.size(), std::memory_order_relaxed);
  list_ = std::make_shared<const List>(std::move(next));
  return subscriber;
}

void StreamHub::Unsubscribe(const std::shared_ptr<StreamSubscriber>& subscriber) {
  MutexLock lock(mutex_);
  List next = *list_;
  auto found = std::ranges::find(next, subscriber);
  if (found == next.end()) return;
  dropped_before_ += subscriber->dropped();
  next.erase(found);
  live_.store(next.size(), std::memory_order_relaxed);
  list_ = std::make_shared<const List>(std::move(next));
}

void StreamHub::Publish(CollectorIndex collector, std::span<const Sample> samples) {
  if (samples.empty() || live_.load(std::memory_order_relaxed) == 0) return;
  std::shared_ptr<const List> list;
  {
    MutexLock lock(mutex_);
    list = list_;
  }
  for (const auto& subscriber : *list) subscriber->Offer(collector, samples);
}

uint64_t StreamHub::dropped() const {
  MutexLock lock(mutex_);
  uint64_t total = dropped_before_;
  for (const auto& subscriber : *list_) total += subscriber->dropped();
  return total;
}

}  // namespace profd
