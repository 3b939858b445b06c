#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "base/clock.h"
#include "client/cli.h"
#include "client/grpc_api.h"

int main(int argc, char** argv) {
  auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value != nullptr ? value : "");
  };
  // https://no-color.org: set and not empty.
  profd::client::Io io{std::cout, std::cerr, isatty(STDOUT_FILENO) != 0, isatty(STDERR_FILENO) != 0,
                       variable("NO_COLOR").empty() && variable("TERM") != "dumb"};
  profd::SystemClock clock;
  profd::client::Environment environment{io, clock, profd::client::MakeGrpcApi,
                                         variable("PROFD_SOCKET"), variable("PATH"),
                                         variable("PROFD_ADDRESS"), variable("PROFD_TLS_DIR"),
                                         variable("HOME")};
  return profd::client::RunProfctl({argv + 1, argv + argc}, environment);
}
