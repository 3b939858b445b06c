// Every other poll that has something claims one pair more than it was asked for.
#include <atomic>

#include "tests/faults/libs/forward.h"

namespace abi = profd::abi;

FAULT_EXPORT int prof_channel_poll(abi::ProfPollInfo* out, int num, int timeout) {
  static std::atomic<unsigned> calls{0};
  int got = fault::Real<abi::ProfChannelPollFn>("prof_channel_poll")(out, num, timeout);
  return got > 0 && calls.fetch_add(1) % 2 == 0 ? num + 1 : got;
}
