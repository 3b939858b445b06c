#include "daemon/data/stream_hub.h"

#include <algorithm>
#include <utility>

namespace profd {

StreamSubscriber::StreamSubscriber(std::bitset<kMaxCollectors> collectors, size_t capacity)
    : collectors_(collectors), ring_(std::max<size_t>(capacity, 1)) {}

void StreamSubscriber::Offer(CollectorIndex collector, std::span<const Sample> samples) {
  if (collectors_.any() && (collector >= kMaxCollectors || !collectors_.test(collector))) return;
  std::lock_guard lock(mutex_);
  for (const Sample& sample : samples) {
    if (count_ == ring_.size()) {
      dropped_.fetch_add(1, std::memory_order_relaxed);
      continue;
    }
    ring_[(head_ + count_) % ring_.size()] = {sample, collector};
    ++count_;
  }
}

void StreamSubscriber::Take(size_t max, std::vector<StreamedSample>* out) {
  std::lock_guard lock(mutex_);
  size_t take = std::min(max, count_);
  for (size_t i = 0; i < take; ++i) out->push_back(ring_[(head_ + i) % ring_.size()]);
  head_ = (head_ + take) % ring_.size();
  count_ -= take;
}

std::shared_ptr<StreamSubscriber> StreamHub::Subscribe(std::bitset<kMaxCollectors> collectors,
                                                       size_t capacity) {
  auto subscriber = std::make_shared<StreamSubscriber>(collectors, capacity);
  std::lock_guard lock(mutex_);
  List next = *list_;
  next.push_back(subscriber);
  live_.store(next.size(), std::memory_order_relaxed);
  list_ = std::make_shared<const List>(std::move(next));
  return subscriber;
}

void StreamHub::Unsubscribe(const std::shared_ptr<StreamSubscriber>& subscriber) {
  std::lock_guard lock(mutex_);
  List next = *list_;
  auto found = std::find(next.begin(), next.end(), subscriber);
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
    std::lock_guard lock(mutex_);
    list = list_;
  }
  for (const auto& subscriber : *list) subscriber->Offer(collector, samples);
}

uint64_t StreamHub::dropped() const {
  std::lock_guard lock(mutex_);
  uint64_t total = dropped_before_;
  for (const auto& subscriber : *list_) total += subscriber->dropped();
  return total;
}

}  // namespace profd
