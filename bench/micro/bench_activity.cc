// The activity ring: what a kernel record costs in the process beyond the vendor's library (walked,
// interned, written), and in the daemon (read, checked; accounted live); and what a request callback holds the
// application.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "bench/micro/bench_support.h"
#include "client/libprofd/mspti/buffer_pool.h"
#include "client/libprofd/mspti/mspti_abi.h"
#include "client/libprofd/mspti/translator.h"
#include "daemon/jobs/activity_reader.h"
#include "daemon/jobs/activity_window.h"

namespace profd::bench {
namespace {

namespace mspti = lib::mspti;

constexpr size_t kKernels = 20'000;
constexpr size_t kNames = 300;
constexpr size_t kMaxHeld = 1 << 20;

// Kernels as a training step has them: a few hundred names of some length, out of order by a little.
class VendorBuffer {
 public:
  VendorBuffer() {
    for (size_t i = 0; i < kNames; ++i) {
      names_.push_back("te_matmul_v2_high_performance_" + std::to_string(i * 7919) + "_kernel0");
    }
    for (size_t i = 0; i < kKernels; ++i) {
      const uint64_t start = kBegin + i * 25'000 + i % 7 * 1000;
      records_.push_back({mspti::kKernel, start, start + 20'000, 0, static_cast<uint32_t>(i % 4), i,
                          i % 3 == 0 ? "KERNEL_AIVEC" : "KERNEL_AICORE", names_[i * 31 % kNames].c_str()});
    }
  }
  const uint8_t* data() const { return reinterpret_cast<const uint8_t*>(records_.data()); }
  size_t size() const { return records_.size() * sizeof(mspti::KernelRecord); }
  static constexpr mspti::ClockPair kClock{int64_t{1'700'000'001} * 1'000'000'000, 1'000'000'000};

 private:
  static constexpr uint64_t kBegin = uint64_t{1'700'000'000} * 1'000'000'000;
  std::vector<mspti::KernelRecord> records_;
  std::vector<std::string> names_;
};

class Ring {
 public:
  Ring() : fd_(::memfd_create("bench", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    if (::ftruncate(fd_.get(), static_cast<off_t>(kBytes)) != 0) std::abort();
    ::fcntl(fd_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
    memory_ = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd_.get(), 0);
    if (memory_ == MAP_FAILED) std::abort();
    writer_ = std::make_unique<attach::ActivityWriter>(memory_, attach::kDefaultActivityBytes, 0, 0);
  }
  ~Ring() { ::munmap(memory_, kBytes); }
  attach::ActivityWriter& writer() { return *writer_; }
  attach::ActivityRing& header() { return *static_cast<attach::ActivityRing*>(memory_); }
  UniqueFd fd() const { return UniqueFd(::dup(fd_.get())); }

 private:
  static constexpr size_t kBytes = attach::ActivityRingBytes(attach::kDefaultActivityBytes);
  UniqueFd fd_;
  void* memory_ = nullptr;
  std::unique_ptr<attach::ActivityWriter> writer_;
};

double CopyOfTheBufferNs(const VendorBuffer& buffer) {
  std::vector<uint8_t> to(buffer.size());
  const double ns = FloorNs([&] {
    std::memcpy(to.data(), buffer.data(), buffer.size());
    benchmark::DoNotOptimize(to.data());
  });
  return ns / kKernels;
}

void ActivityWrite(benchmark::State& state) {
  const VendorBuffer buffer;
  Ring ring;
  mspti::Translator translator(ring.writer(), {});
  for (auto _ : state) {
    translator.Walk(buffer.data(), buffer.size(), VendorBuffer::kClock, 0);
    ring.writer().Flush();
    ring.header().tail.store(ring.header().head.load());  // a daemon that keeps up
  }
  if (ring.writer().dropped() > 0) state.SkipWithError("the ring was full");
  Report(state, kKernels, CopyOfTheBufferNs(buffer), "memcpy of the vendor's records");
}
BENCHMARK(ActivityWrite);

void ActivityRead(benchmark::State& state) {
  const VendorBuffer buffer;
  Ring ring;
  mspti::Translator translator(ring.writer(), {});
  auto reader = ActivityReader::Map(ring.fd());
  if (!reader.ok()) return state.SkipWithError(reader.status().message().c_str());
  ActivityScratch scratch;
  const SystemClock clock;
  for (auto _ : state) {
    state.PauseTiming();
    translator.Walk(buffer.data(), buffer.size(), VendorBuffer::kClock, 0);
    ring.writer().Flush();
    state.ResumeTiming();
    while ((*reader)->Waiting() > 0) {
      auto round = (*reader)->Take(ActivityScratch::kBytes, clock.MonotonicRawNs(), &scratch);
      if (!round.ok()) return state.SkipWithError(round.status().message().c_str());
      benchmark::DoNotOptimize(scratch.frames().data());
    }
  }
  Report(state, kKernels, CopyOfTheBufferNs(buffer), "memcpy of the vendor's records");
}
BENCHMARK(ActivityRead);

// The vendor's library asks for a buffer on a thread of the application, which waits for the answer.
void ActivityLend(benchmark::State& state) {
  static mspti::BufferPool pool;
  if (state.thread_index() == 0 && !pool.Open()) std::abort();
  std::vector<int64_t> held;
  held.reserve(kMaxHeld);
  for (auto _ : state) {
    uint8_t* buffer = nullptr;
    size_t size = 0;
    const int64_t begin = mspti::ReadClock(CLOCK_MONOTONIC);
    pool.Lend(&buffer, &size);
    const int64_t ns = mspti::ReadClock(CLOCK_MONOTONIC) - begin;
    if (held.size() < kMaxHeld) held.push_back(ns);
    const int index = pool.Claim(buffer, 0);
    if (index >= 0) pool.Free(index);
  }
  std::sort(held.begin(), held.end());
  const auto p999 = static_cast<double>(held[held.size() - 1 - held.size() / 1000]);
  state.counters["p999_ns"] = benchmark::Counter(p999, benchmark::Counter::kAvgThreads);
  state.counters["max_ns"] =
      benchmark::Counter(static_cast<double>(held.back()), benchmark::Counter::kAvgThreads);
  const double clock_ns = FloorNs([] { benchmark::DoNotOptimize(mspti::ReadClock(CLOCK_MONOTONIC)); });
  if (state.thread_index() == 0) Report(state, 1, clock_ns, "reading the clock");
}
BENCHMARK(ActivityLend)->Threads(1)->Threads(4);

// What the live account of a process costs per record: taken in, and its seconds closed.
void ActivityAccounting(benchmark::State& state) {
  const VendorBuffer buffer;
  Ring ring;
  mspti::Translator translator(ring.writer(), {});
  auto reader = ActivityReader::Map(ring.fd());
  if (!reader.ok()) return state.SkipWithError(reader.status().message().c_str());
  translator.Walk(buffer.data(), buffer.size(), VendorBuffer::kClock, 0);
  ring.writer().Flush();
  ActivityScratch scratch;
  int64_t now_ns = 2 * kNsPerSecond;
  auto round = (*reader)->Take(ActivityScratch::kBytes, now_ns, &scratch);
  if (!round.ok() || round->records != kKernels) return state.SkipWithError("records are missing");
  // The half second of the buffer again and again.
  std::vector<ActivityFrame> frames(scratch.frames().begin(), scratch.frames().end());
  ActivityWindow window(now_ns);
  for (auto _ : state) {
    for (ActivityFrame& frame : frames) frame.base_ns += kNsPerSecond / 2;
    now_ns += kNsPerSecond / 2;
    window.Advance(now_ns);
    window.Take(frames, 0);
    benchmark::DoNotOptimize(window.Last());
  }
  Report(state, kKernels, CopyOfTheBufferNs(buffer), "memcpy of the vendor's records");
}
BENCHMARK(ActivityAccounting);

}  // namespace
}  // namespace profd::bench
