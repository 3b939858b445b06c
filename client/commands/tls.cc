#include "client/commands/tls.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "client/render.h"

namespace profd::client {

int RunTlsInit(const Io& io, std::vector<std::string> arguments, bool json) {
  std::error_code unknown;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", unknown);
  const std::string program = self.parent_path() / "profctl-tls-init";
  if (json) arguments.emplace_back("--json");
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  ::execv(program.c_str(), argv.data());
  io.err << "profctl: cannot run " << Printable(program) << ": " << std::generic_category().message(errno)
         << "; it is installed beside profctl (package profctl)" << std::endl;
  return kExitInternal;
}

}  // namespace profd::client
