// Input: a configuration file. A file without problems must also pass the check of values.
#include "daemon/config/daemon_config.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  profd::fuzz::Input input(data, size);
  std::vector<std::string> problems;
  profd::DaemonConfig config = profd::ParseDaemonConfig(input.rest(), "profd.toml", &problems);
  for (const std::string& problem : problems) FUZZ_EXPECT(!problem.empty());
  if (!problems.empty()) return 0;
  profd::ValidateDaemonConfig(config, &problems);
  FUZZ_EXPECT(problems.empty());
  std::vector<std::string> restart_needed;
  FUZZ_EXPECT(profd::OnlyReloadableDiffers(config, config, &restart_needed));
  return 0;
}
