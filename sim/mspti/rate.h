// Kernels without a device, for measurements of what they cost a client.
#pragma once

#include <atomic>
#include <cstdint>

namespace profd::sim::mspti {

// Until it is stopped; `thread` is the stream.
void MakeKernels(int64_t per_second, int64_t thread, const std::atomic<bool>& stop);

}  // namespace profd::sim::mspti
