// What a training process did in some seconds, by the records of its activity ring.
#pragma once

#include <cstdint>

namespace profd {

// Of the process's devices together: shares are means over them. Computation and communication are what
// they are in the vendor's overlap analysis: the union of the kernels, of the communication operators over
// all streams of a device. Computation, communication without computation and free time make 1.
struct ActivityAccount {
  int64_t begin_ns = 0;  // CLOCK_MONOTONIC_RAW; full seconds
  int64_t end_ns = 0;    // as begin_ns: nothing is known yet
  uint32_t devices = 0;
  double computation = 0;
  double communication = 0;
  double not_overlapped = 0;  // communication without computation
  double free = 1;
  // What ended in that time.
  uint64_t kernels = 0;
  uint64_t steps = 0;
  uint64_t longest_ns = 0;  // the longest kernel
  uint32_t longest_name = 0;
  uint64_t lost = 0;  // records, by when it was noticed

  bool empty() const { return begin_ns == end_ns; }
  double PerSecond(uint64_t count) const {
    return empty() ? 0 : static_cast<double>(count) * 1e9 / static_cast<double>(end_ns - begin_ns);
  }
};

}  // namespace profd
