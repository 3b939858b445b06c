// Where libFuzzer, or what stands in for it, calls a fuzzer.
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  profd::fuzz::Run({data, size});
  return 0;
}
