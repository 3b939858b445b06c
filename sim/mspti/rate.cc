#include "sim/mspti/rate.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>

#include "base/clock.h"
#include "sim/mspti/buffers.h"
#include "sim/mspti/join.h"
#include "sim/mspti/real_time.h"

namespace profd::sim::mspti {

void MakeKernels(int64_t per_second, int64_t thread, const std::atomic<bool>& stop) {
  std::array<std::string, 64> names;
  for (size_t i = 0; i < names.size(); ++i) names[i] = "rate/Kernel" + std::to_string(i);
  const SystemClock clock;
  const int64_t begin = clock.SteadyNs();
  uint64_t made = 0;
  while (!stop) {
    const int64_t elapsed_us = (clock.SteadyNs() - begin) / 1'000;
    const auto due = static_cast<uint64_t>(elapsed_us * per_second / 1'000'000);
    const uint64_t now = RealTime::The().Now();
    for (; made < due && !stop; ++made) {
      if (!Join::The().enabled(kKernel)) continue;
      KernelRecord record{};
      record.kind = kKernel;
      record.start = now - 2'000;
      record.end = now - 1'000;
      record.stream = static_cast<uint32_t>(thread);
      record.correlation = made + 1;
      Buffers::The().Put(record, {{offsetof(KernelRecord, type), "KERNEL_AICORE"},
                                  {offsetof(KernelRecord, name), names[made % names.size()]}});
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace profd::sim::mspti
