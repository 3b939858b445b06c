#include "sim/mspti/buffers.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>

#include "base/clock.h"
#include "sim/mspti/config.h"
#include "sim/noise.h"

namespace profd::sim::mspti {
namespace {

thread_local bool t_in_request = false;
thread_local bool t_in_complete = false;

}  // namespace

Buffers& Buffers::The() {
  static Buffers* const the = new Buffers;
  return *the;
}

bool Buffers::InRequest() { return t_in_request; }

void Buffers::RefuseInCallback() {
  if (t_in_request) Misuse("a record was made in the request callback: a deadlock");
  if (t_in_complete) Misuse("a record was made in the complete callback: a deadlock");
}

int Buffers::Register(Request request, Complete complete) {
  if (request == nullptr || complete == nullptr) return kInvalidParameter;
  request_ = request;
  complete_ = complete;
  MutexLock lock(queue_mutex_);
  if (running_) return kOk;
  running_ = true;
  // The vendor's thread starts before the flag that lets it run: now and then it ends at once.
  if (!Config::The().dead_hand_over) hand_over_ = std::thread([this] { HandOver(); });
  return kOk;
}

const char* Buffers::Keep(std::string_view text) {
  if (Config::The().frees_strings()) return current_.texts.emplace_back(text).c_str();
  return texts_.emplace(text).first->c_str();
}

void Buffers::AskForBuffer() {
  const Request request = request_;
  if (request == nullptr) return;
  uint8_t* memory = nullptr;
  size_t size = 0, max_records = 0;
  const SystemClock clock;
  const int64_t before = clock.SteadyNs();
  t_in_request = true;
  request(&memory, &size, &max_records);
  t_in_request = false;
  const auto took = static_cast<uint64_t>(clock.SteadyNs() - before);
  longest_request_ns_ = std::max(longest_request_ns_.load(), took);
  const int64_t limit = Config::The().request_limit_ms;
  if (limit > 0 && took > static_cast<uint64_t>(limit * kNsPerMs)) {
    Misuse("the request callback took too long");
  }
  if (memory == nullptr || size == 0) {
    InThread({});
    ++declined_;
    return;
  }
  current_ = {memory, size, 0, {}};
}

void Buffers::QueueCurrent() {
  MutexLock lock(queue_mutex_);
  queue_.push_back(std::move(current_));
  current_ = {};
  queued_.NotifyOne();
}

bool Buffers::HaveSpace() {
  if (current_.memory != nullptr && current_.used * 10 >= current_.size * 8) QueueCurrent();
  if (current_.memory == nullptr) AskForBuffer();
  return current_.memory != nullptr;
}

void Buffers::PutBytes(std::span<const uint8_t> record, std::initializer_list<TextField> texts) {
  RefuseInCallback();
  Config::HangInChild();
  if (Config::The().silent) return;
  MutexLock lock(buffer_mutex_);
  if (!HaveSpace()) return;
  if (current_.used + record.size() > current_.size) {
    ++did_not_fit_;
    return;
  }
  uint8_t* const to = current_.memory + current_.used;
  std::memcpy(to, record.data(), record.size());
  for (const TextField& field : texts) {
    const char* const text = Keep(field.text);
    std::memcpy(to + field.offset, &text, sizeof text);
  }
  current_.used += record.size();
  uint32_t kind = 0;
  std::memcpy(&kind, record.data(), sizeof kind);
  ++recorded_[kind];
}

void Buffers::Deliver(Buffer buffer) {
  const Complete complete = complete_;
  if (complete == nullptr) return;
  t_in_complete = true;
  complete(buffer.memory, buffer.size, buffer.used);
  t_in_complete = false;
  // Who reads a text later finds this instead.
  for (std::string& text : buffer.texts) std::ranges::fill(text, '#');
  static auto* const freed = new std::list<std::string>;
  static auto* const freed_mutex = new Mutex;
  MutexLock lock(*freed_mutex);
  freed->splice(freed->end(), buffer.texts);
  while (freed->size() > 1'000'000) freed->pop_front();
}

void Buffers::InThread(Buffer buffer) {
  const int64_t most = Config::The().hand_over_delay_ms;
  const auto delay = std::chrono::milliseconds(
      most == 0 ? 0 : static_cast<int64_t>(Hash(1, made_threads_) % static_cast<uint64_t>(most)));
  auto moved = std::make_shared<Buffer>(std::move(buffer));
  MutexLock lock(queue_mutex_);
  std::thread thread([this, delay, moved] {
    std::this_thread::sleep_for(delay);
    Deliver(std::move(*moved));
  });
  threads_.push_back(std::move(thread));
  ++made_threads_;
}

std::optional<Buffers::Buffer> Buffers::TakeQueued() {
  MutexLock lock(queue_mutex_);
  if (queue_.empty()) return std::nullopt;
  Buffer buffer = std::move(queue_.front());
  queue_.pop_front();
  return buffer;
}

void Buffers::HandOver() {
  for (;;) {
    {
      MutexLock lock(queue_mutex_);
      queued_.WaitFor(lock, std::chrono::milliseconds(period_ms_),
                      [this]() REQUIRES(queue_mutex_) { return !running_ || !queue_.empty(); });
      if (!running_) return;
    }
    while (std::optional<Buffer> buffer = TakeQueued()) InThread(std::move(*buffer));
  }
}

int Buffers::FlushAll() {
  if (t_in_complete) Misuse("FlushAll in the complete callback: a thread would join itself");
  while (std::optional<Buffer> buffer = TakeQueued()) Deliver(std::move(*buffer));
  {
    MutexLock lock(queue_mutex_);
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  MutexLock lock(buffer_mutex_);
  if (current_.memory == nullptr || current_.used == 0) return kOk;
  Buffer buffer = std::move(current_);
  current_ = {};
  Deliver(std::move(buffer));
  return kOk;
}

int Buffers::FlushPeriod(uint32_t milliseconds) {
  MutexLock lock(queue_mutex_);
  period_ms_ = milliseconds == 0 ? 60'000 : milliseconds;
  queued_.NotifyOne();
  return kOk;
}

void Buffers::CompleteLate() {
  MutexLock lock(buffer_mutex_);
  if (current_.memory == nullptr) AskForBuffer();
  if (current_.memory == nullptr) return;
  auto late = std::make_shared<Buffer>(std::move(current_));
  current_ = {};
  std::thread([this, late] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    Deliver(std::move(*late));
  }).detach();
}

void Buffers::JoinAll() {
  std::thread hand_over;
  std::vector<std::thread> threads;
  {
    MutexLock lock(queue_mutex_);
    running_ = false;
    queued_.NotifyAll();
    hand_over = std::move(hand_over_);
  }
  if (hand_over.joinable()) hand_over.join();
  {
    MutexLock lock(queue_mutex_);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

void Buffers::AddTo(Counts* counts) const {
  for (size_t kind = 0; kind < kKinds; ++kind) counts->recorded[kind] = recorded_[kind];
  counts->declined = declined_;
  counts->did_not_fit = did_not_fit_;
  counts->threads = made_threads_;
  counts->longest_request_ns = longest_request_ns_;
}

}  // namespace profd::sim::mspti
