// Input: profd_manifest.json. What is understood must survive being written and read again.
#include "dump/manifest.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  profd::fuzz::Input input(data, size);
  profd::Result<profd::Manifest> first = profd::ParseManifest(input.rest());
  if (!first.ok()) {
    FUZZ_EXPECT(!first.status().message().empty());
    return 0;
  }
  const std::string text = profd::Serialize(*first);
  profd::Result<profd::Manifest> second = profd::ParseManifest(text);
  FUZZ_EXPECT(second.ok());
  FUZZ_EXPECT(profd::Serialize(*second) == text);
  return 0;
}
