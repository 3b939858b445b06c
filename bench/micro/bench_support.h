// What the micro benchmarks share: real bytes of every channel, taken from the simulator, and
// floors measured in the same process.
#pragma once

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "collectors/collector.h"
#include "driver/abi/channels.h"
#include "driver/rooted_fs.h"

namespace profd::bench {

// Eight seconds of one channel of device 0 of the simulated node, at the fastest rate there is:
// complete records or lines, as the pump hands them on.
struct ChannelData {
  const abi::ChannelFormat* format = nullptr;
  std::vector<std::byte> bytes;
  uint64_t records = 0;
};
const ChannelData& DataOf(uint32_t channel);

// The host and device the decoders and pollers are made for.
struct Bench {
  Bench();
  SystemClock clock;
  RootedFs proc;
  RootedFs sys;
  std::vector<DeviceInfo> devices;
  std::unique_ptr<Host> host;
};
Bench& TheBench();

// A folder that goes away again.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  UniqueFd fd_;
};

// Nanoseconds of one call of `body`, the best of several short runs.
template <class Body>
double FloorNs(Body body) {
  using Clock = std::chrono::steady_clock;
  double best = std::numeric_limits<double>::max();
  for (int run = 0; run < 5; ++run) {
    const auto begin = Clock::now();
    const auto enough = begin + std::chrono::milliseconds(4);
    uint64_t calls = 0;
    auto now = begin;
    for (; now < enough; now = Clock::now()) {
      for (int i = 0; i < 16; ++i, ++calls) body();
    }
    const double ns = std::chrono::duration<double, std::nano>(now - begin).count();
    best = std::min(best, ns / static_cast<double>(calls));
  }
  return best;
}

// Books `items` per iteration and the floor's cost per item, under the floor's name.
inline void Report(benchmark::State& state, uint64_t items, double floor_ns_per_item,
                   std::string_view floor) {
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(items));
  state.counters["floor_ns"] = floor_ns_per_item;
  state.SetLabel(std::string(floor));
}

// Copying `bytes` once.
double CopyNs(std::span<const std::byte> bytes);

}  // namespace profd::bench
