// What profd_mark costs the training thread, call by call: percentiles, not averages, since it is
// the slow one that a step waits for. Plays the daemon itself. Prints JSON; scripts/bench reads it.
// usage: profd_bench_marks [samples per thread]
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "client/libprofd/profd.h"
#include "proto/attach/attach_protocol.h"
#include "proto/attach/mark_ring_writer.h"

namespace profd::bench {
namespace {

using attach::MarkRing;
using attach::MarkSlot;

[[noreturn]] void Die(const char* what) {
  std::perror(what);
  std::exit(1);
}

int64_t ReadClock(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

class Daemon {
 public:
  Daemon() {
    char folder[] = "/tmp/profd-bench-XXXXXX";
    if (::mkdtemp(folder) == nullptr) Die("mkdtemp");
    folder_ = folder;
    path_ = folder_ + "/a";
    ::setenv("PROFD_ATTACH_SOCKET", path_.c_str(), 1);
    listener_.Reset(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.data(), path_.size());
    if (::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listener_.get(), 1) != 0) {
      Die("listen");
    }
  }
  ~Daemon() {
    ::unlink(path_.c_str());
    ::rmdir(folder_.c_str());
  }

  void Accept() {
    process_.Reset(::accept(listener_.get(), nullptr, nullptr));
    std::string packet(attach::kMaxPacket, '\0');
    iovec part{packet.data(), packet.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    if (::recvmsg(process_.get(), &message, 0) <= 0 || CMSG_FIRSTHDR(&message) == nullptr) {
      Die("hello");
    }
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    const UniqueFd ring(fd);
    const size_t bytes = attach::RingBytes(attach::kMaxRingSlots);
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (memory == MAP_FAILED) Die("mmap");
    ring_ = static_cast<MarkRing*>(memory);
    slots_ =
        reinterpret_cast<MarkSlot*>(static_cast<std::byte*>(memory) + attach::kRingHeaderBytes);
    attach::Welcome welcome;
    welcome.attach_id = 1;
    Send(welcome);
  }
  void Send(const attach::ToProcess& message) {
    const std::string packet = attach::Encode(message);
    if (::send(process_.get(), packet.data(), packet.size(), 0) < 0) Die("send");
  }
  void Drain() {
    for (;; ++position_) {
      MarkSlot& slot = slots_[position_ & (ring_->slots - 1)];
      if (slot.sequence.load(std::memory_order_acquire) != position_ + 1) return;
      slot.sequence.store(position_ + ring_->slots, std::memory_order_release);
    }
  }

 private:
  std::string folder_, path_;
  UniqueFd listener_, process_;
  MarkRing* ring_ = nullptr;
  MarkSlot* slots_ = nullptr;
  uint64_t position_ = 0;
};

// Nanoseconds of `batch` calls of body, `samples` times in each of `threads` threads at once.
template <class Body>
std::vector<int64_t> Sample(int threads, size_t samples, int batch, Body body) {
  std::vector<std::vector<int64_t>> all(static_cast<size_t>(threads));
  std::atomic<int> ready = 0;
  const auto run = [&](size_t thread) {
    std::vector<int64_t>& mine = all[thread];
    mine.assign(samples, 0);
    for (int i = 0; i < 100; ++i) body();  // the thread's own first times
    ++ready;
    while (ready < threads) std::this_thread::yield();
    for (int64_t& sample : mine) {
      const int64_t begin = ReadClock(CLOCK_MONOTONIC);
      for (int i = 0; i < batch; ++i) body();
      sample = ReadClock(CLOCK_MONOTONIC) - begin;
    }
  };
  std::vector<std::thread> running;
  for (size_t i = 1; i < all.size(); ++i) running.emplace_back(run, i);
  run(0);
  for (std::thread& thread : running) thread.join();
  std::vector<int64_t> joined;
  for (const auto& mine : all) joined.insert(joined.end(), mine.begin(), mine.end());
  return joined;
}

bool g_first = true;
// Per call and without the timer's own cost; returns the median of a whole sample.
int64_t Print(const char* name, std::vector<int64_t> samples, int batch, int64_t timer_ns) {
  std::sort(samples.begin(), samples.end());
  const auto at = [&](double share) {
    const size_t index = static_cast<size_t>(share * static_cast<double>(samples.size() - 1));
    return static_cast<double>(std::max<int64_t>(0, samples[index] - timer_ns)) / batch;
  };
  std::printf(
      "%s \"%s\": {\"p50\": %.2f, \"p99\": %.2f, \"p999\": %.2f, \"max\": %.2f, "
      "\"samples\": %zu}",
      g_first ? "{" : ",\n", name, at(0.5), at(0.99), at(0.999), at(1.0), samples.size());
  g_first = false;
  return samples[samples.size() / 2];
}

void Until(bool (*condition)()) {
  while (!condition()) std::this_thread::yield();
}

std::string Threads(int count) { return ", " + std::to_string(count) + (count > 1 ? " threads" : " thread"); }

int Run(size_t samples) {
  constexpr int kBatch = 32;
  Daemon daemon;
  profd_config config = PROFD_CONFIG_INIT;
  config.ring_slots = attach::kMaxRingSlots;
  if (profd_init(&config) != PROFD_OK) Die("profd_init");
  daemon.Accept();
  Until([] { return profd_connected() == 1; });

  const int64_t timer = Print("timer", Sample(1, samples, 1, [] {}), 1, 0);
  std::vector<std::atomic<int64_t>> stored(1024);
  size_t next = 0;
  const auto floor = [&] {
    stored[next++ & 1023].store(ReadClock(CLOCK_MONOTONIC_RAW), std::memory_order_release);
  };
  Print("floor: clock_gettime and a store", Sample(1, samples, 1, floor), 1, timer);
  const auto mark = [] { profd_mark("gradients ready"); };
  for (const int threads : {1, 8}) {
    const std::string suffix = Threads(threads);
    Print(("no session" + suffix).c_str(), Sample(threads, samples, 1, mark), 1, timer);
    Print(("no session, per call of 32" + suffix).c_str(), Sample(threads, samples, kBatch, mark),
          kBatch, timer);
  }
  daemon.Send(attach::SessionNotice{"s", "running", {}, 0, {}});
  Until([] { return profd_active() == 1; });
  for (const int threads : {1, 8}) {
    const std::string suffix = Threads(threads);
    // No more at once than the ring holds: nothing is dropped.
    const size_t at_once = std::min(samples, size_t{attach::kMaxRingSlots} / 8 - 200);
    std::vector<int64_t> all;
    while (all.size() < samples) {
      daemon.Drain();
      const auto some = Sample(threads, at_once, 1, mark);
      all.insert(all.end(), some.begin(), some.end());
    }
    Print(("session" + suffix).c_str(), std::move(all), 1, timer);
  }
  profd_counters counters;
  profd_get_counters(&counters);
  const uint64_t dropped_before = counters.dropped;
  for (uint32_t i = 0; i < attach::kMaxRingSlots; ++i) mark();
  for (const int threads : {1, 8}) {
    const std::string suffix = Threads(threads);
    Print(("full ring" + suffix).c_str(), Sample(threads, samples, 1, mark), 1, timer);
  }
  std::printf(",\n \"dropped while there was space\": %llu}\n",
              static_cast<unsigned long long>(dropped_before));
  profd_shutdown();
  return 0;
}

}  // namespace
}  // namespace profd::bench

int main(int argc, char** argv) {
  const long long samples = argc > 1 ? std::atoll(argv[1]) : 100'000;
  return profd::bench::Run(static_cast<size_t>(std::clamp<long long>(samples, 10, 1'000'000)));
}
