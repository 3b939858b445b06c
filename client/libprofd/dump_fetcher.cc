#include "client/libprofd/dump_fetcher.h"

#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

#include "base/exec.h"
#include "client/environment_variable.h"

namespace profd::lib {
namespace {

constexpr int kWaitMs = 2000;
constexpr int kLookMs = 5;

// This process's own, without what makes the vendor's libraries start in the other one, too, and with the daemon's
// socket: it lies beside the one that processes attach to.
std::vector<std::string> EnvironmentOf() {
  std::vector<std::string> environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!text.starts_with("LD_PRELOAD=")) environment.push_back(text);
  }
  const std::string attach(EnvironmentVariable("PROFD_ATTACH_SOCKET"));
  if (EnvironmentVariable("PROFD_SOCKET").empty() && !attach.empty()) {
    environment.push_back("PROFD_SOCKET=" + attach.substr(0, attach.rfind('/') + 1) + "profd.sock");
  }
  return environment;
}

// Nothing of this process's handling of signals.
class SpawnAttributes {
 public:
  SpawnAttributes() {
    ::posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigset_t all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnAttributes() { ::posix_spawnattr_destroy(&attributes_); }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_{};
};

}  // namespace

std::string OutputFolder(std::string_view options_json) {
  if (EnvironmentVariable("PROFD_FETCH") == "0") return {};
  const auto options = nlohmann::json::parse(options_json, nullptr, /*allow_exceptions=*/false);
  std::string folder;
  if (options.is_object() && options.contains("output") && options["output"].is_string()) {
    folder = options["output"].get<std::string>();
  }
  if (folder.empty()) {
    const std::string work(EnvironmentVariable("ASCEND_WORK_PATH"));
    if (work.empty()) return {};
    folder = work + "/profiling_data";
  }
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(folder, error);
  return error ? std::string() : absolute.string();
}

Status LeaveDumpFetcher(const std::string& session_id, const std::string& folder) {
  const std::vector<std::string> arguments = {"profctl", "fetch", session_id, "--background", "--out", folder};
  const std::vector<std::string> environment = EnvironmentOf();
  const SpawnAttributes attributes;
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, "profctl", nullptr, attributes.get(), ExecPointers(arguments).data(),
                                    ExecPointers(environment).data());
  if (failed != 0) return Status::FromErrno(failed, "profctl");
  // It goes to the background and ends; the training program shall not find a child that it does not know.
  for (int waited = 0; waited < kWaitMs; waited += kLookMs) {
    int state = 0;
    const pid_t gone = ::waitpid(child, &state, WNOHANG);
    if (gone == child) return WIFEXITED(state) && WEXITSTATUS(state) == 0 ? Status() : Internal("profctl fetch failed");
    if (gone < 0 && errno != EINTR) return {};  // the program itself has waited for it
    ::poll(nullptr, 0, kLookMs);
  }
  return DeadlineExceeded("profctl has not gone to the background");
}

}  // namespace profd::lib
