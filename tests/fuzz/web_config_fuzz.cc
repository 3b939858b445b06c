// Input: a web.yml. Whatever it contains, no file is opened for it; without problems it must hold together.
#include "daemon/web/credentials.h"
#include "daemon/web/web_config.h"
#include "tests/fuzz/fuzz_input.h"

void profd::fuzz::Run(Input input) {
  std::vector<std::string> problems;
  WebConfig config = ParseWebConfig(input.rest(), "/etc/profd/web.yml", &problems);
  for (const std::string& problem : problems) FUZZ_EXPECT(!problem.empty());
  if (!problems.empty()) return;
  FUZZ_EXPECT(config.tls == !config.files.certificate.empty());
  FUZZ_EXPECT(config.tls == !config.files.key.empty());
  FUZZ_EXPECT(!config.tls || config.files.key.front() == '/');
  FUZZ_EXPECT(config.min_version <= config.max_version);
  for (const auto& [user, hash] : config.users) {
    FUZZ_EXPECT(user.find(':') == std::string::npos);
    FUZZ_EXPECT(BcryptCost(hash).value_or(99) <= kMaxBcryptCost);
  }
  for (const auto& [name, value] : config.headers) {
    FUZZ_EXPECT(value.find('\n') == std::string::npos);
  }
}
