#include <sys/ioctl.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <iostream>
#include <system_error>

#include "base/clock.h"
#include "client/cli.h"
#include "client/connection.h"
#include "client/environment_variable.h"
#include "client/grpc_api.h"
#include "client/tls_files.h"

static size_t ColumnsOfOutput() {
  winsize size{};
  return isatty(STDOUT_FILENO) != 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file size limit is a write error: what is unfinished is removed
  const auto variable = [](const char* name) { return std::string(profd::EnvironmentVariable(name)); };
  // https://no-color.org: set and not empty.
  profd::client::Io io{std::cout, std::cerr, isatty(STDOUT_FILENO) != 0, isatty(STDERR_FILENO) != 0,
                       variable("NO_COLOR").empty() && variable("TERM") != "dumb", ColumnsOfOutput()};
  profd::SystemClock clock;
  std::error_code no_directory;
  std::filesystem::path working_directory = std::filesystem::current_path(no_directory);
  profd::client::Environment environment{io,
                                         clock,
                                         profd::client::MakeGrpcApi,
                                         variable("PROFD_SOCKET"),
                                         variable("PATH"),
                                         variable("PROFD_ADDRESS"),
                                         variable("PROFD_TLS_DIR"),
                                         variable("HOME"),
                                         variable("PROFILING_OPTIONS"),
                                         variable("ASCEND_WORK_PATH"),
                                         working_directory.string(),
                                         variable,
                                         [](const profd::client::TlsFiles& files) {
                                           return profd::client::LoadClientTls(files).status();
                                         },
                                         profd::client::Diagnose};
  const int code = profd::client::RunProfctl({argv + 1, argv + argc}, environment);
  if (std::cout.flush()) return code;
  std::cerr << "profctl: standard output could not be written in full: its disk may be full, or its reader be gone" << std::endl;
  return code == profd::client::kExitOk ? profd::client::kExitPartial : code;
}
