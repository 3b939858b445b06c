// Input: profd_manifest.json. What is understood must survive being written and read again.
#include "dump/manifest.h"
#include "tests/fuzz/fuzz_input.h"

void profd::fuzz::Run(Input input) {
  Result<Manifest> first = ParseManifest(input.rest());
  if (!first.ok()) {
    FUZZ_EXPECT(!first.status().message().empty());
    return;
  }
  const std::string text = Serialize(*first);
  Result<Manifest> second = ParseManifest(text);
  FUZZ_EXPECT(second.ok());
  FUZZ_EXPECT(Serialize(*second) == text);
}
