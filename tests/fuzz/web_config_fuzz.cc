// Input: a web.yml. Whatever it contains, no file is opened for it; without problems it must hold together.
#include "daemon/web/credentials.h"
#include "daemon/web/web_config.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  profd::fuzz::Input input(data, size);
  std::vector<std::string> problems;
  profd::WebConfig config = profd::ParseWebConfig(input.rest(), "/etc/profd/web.yml", &problems);
  for (const std::string& problem : problems) FUZZ_EXPECT(!problem.empty());
  if (!problems.empty()) return 0;
  FUZZ_EXPECT(config.tls == !config.files.certificate.empty());
  FUZZ_EXPECT(config.tls == !config.files.key.empty());
  FUZZ_EXPECT(!config.tls || config.files.key.front() == '/');
  FUZZ_EXPECT(config.min_version <= config.max_version);
  for (const auto& [user, hash] : config.users) {
    FUZZ_EXPECT(user.find(':') == std::string::npos);
    FUZZ_EXPECT(profd::BcryptCost(hash).value_or(99) <= profd::kMaxBcryptCost);
  }
  for (const auto& [name, value] : config.headers) {
    FUZZ_EXPECT(value.find('\n') == std::string::npos);
  }
  return 0;
}
