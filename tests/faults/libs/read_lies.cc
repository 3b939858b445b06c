// Device 0: every tenth read claims more bytes than its buffer holds, every seventh fails
// without touching the driver. Other devices read as they should.
#include <atomic>

#include "tests/faults/libs/forward.h"

namespace abi = profd::abi;

FAULT_EXPORT int prof_channel_read(unsigned device, unsigned channel, char* out, unsigned size) {
  static std::atomic<unsigned> calls{0};
  if (device == 0) {
    unsigned call = calls.fetch_add(1);
    if (call % 10 == 9) return static_cast<int>(size) + 1;
    if (call % 7 == 6) return abi::kProfError;
  }
  return fault::Real<abi::ProfChannelReadFn>("prof_channel_read")(device, channel, out, size);
}
