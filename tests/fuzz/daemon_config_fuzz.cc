// Input: a configuration file. A file without problems must also pass the check of values.
#include "daemon/config/daemon_config.h"
#include "tests/fuzz/fuzz_input.h"

void profd::fuzz::Run(Input input) {
  std::vector<std::string> problems;
  DaemonConfig config = ParseDaemonConfig(input.rest(), "profd.toml", &problems);
  for (const std::string& problem : problems) FUZZ_EXPECT(!problem.empty());
  if (!problems.empty()) return;
  ValidateDaemonConfig(config, &problems);
  FUZZ_EXPECT(problems.empty());
  std::vector<std::string> restart_needed;
  FUZZ_EXPECT(OnlyReloadableDiffers(config, config, &restart_needed));
}
