#include "daemon/command_line.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/log.h"
#include "collectors/collector.h"
#include "collectors/collector_hint.h"
#include "daemon/app.h"
#include "daemon/config/daemon_config.h"
#include "daemon/push/push_config.h"
#include "daemon/rpc/acceptor.h"
#include "daemon/rpc/call_limits.h"
#include "daemon/rpc/tls_files.h"
#include "daemon/web/web_server.h"
#include "dump/dump_io.h"

namespace profd {
namespace {

constexpr std::string_view kDefaultConfig = "/etc/profd/profd.toml";
constexpr std::string_view kCompat = "npu-exporter";
constexpr std::string_view kCompatInstead = "npu-exporter=instead";
constexpr off_t kMaxConfigBytes = 1 << 20;

struct Flags {
  std::string config;
  std::optional<std::string> socket;
  std::optional<std::string> dump_root;
  std::optional<std::string> metrics_listen;
  std::optional<std::string> hal_library;
  std::optional<std::string> dcmi_library;
  std::optional<std::string> log_level;
  std::string compat;
  bool simulate = false;
  std::string scenario;
  bool check_config = false;
  bool print_config = false;
  bool print_reference = false;
};

Result<std::string> ReadConfig(const std::string& path) {
  // O_NONBLOCK: the open of a FIFO would wait for its writer.
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0) return Status::FromErrno(errno, path);
  if (!S_ISREG(info.st_mode)) return InvalidArgument(path + ": is not a regular file");
  if (info.st_size > kMaxConfigBytes) return InvalidArgument(path + ": is larger than 1 MiB");
  Result<std::string> text = ReadWhole(fd.get(), kMaxConfigBytes);
  return text.ok() ? text : text.status().Annotate(path);
}

// Where the simulator's libraries stand relative to this binary: build tree, then installed.
Result<std::string> SimulatorFolder() {
  std::array<char, PATH_MAX> self{};
  ssize_t length = ::readlink("/proc/self/exe", self.data(), self.size() - 1);
  if (length <= 0) return Status::FromErrno(errno, "/proc/self/exe");
  std::string bin(self.data(), static_cast<size_t>(length));
  bin.resize(bin.rfind('/'));
  std::vector<std::string> tried = {bin + "/../sim", bin + "/../lib/profd/sim"};
  for (const std::string& folder : tried) {
    if (::access((folder + "/libascend_hal.so").c_str(), R_OK) == 0) {
      std::array<char, PATH_MAX> real{};
      if (::realpath(folder.c_str(), real.data()) != nullptr) return std::string(real.data());
    }
  }
  return NotFound(fmt::format("the simulator is not installed; looked in {}",
                              fmt::join(tried, ", ")));
}

Status ApplySimulator(const Flags& flags, DaemonConfig* config) {
  if (!flags.simulate) return Status::Ok();
  if (!flags.scenario.empty() && ::access(flags.scenario.c_str(), R_OK) != 0) {
    return Status::FromErrno(errno, "--simulate " + flags.scenario);
  }
  if (!flags.hal_library || !flags.dcmi_library) {
    Result<std::string> folder = SimulatorFolder();
    if (!folder.ok()) return folder.status();
    if (!flags.hal_library) config->hal_library = *folder + "/libascend_hal.so";
    if (!flags.dcmi_library) config->dcmi_library = *folder + "/libdcmi.so";
    if (config->metrics_hccn_tool == "auto") config->metrics_hccn_tool = *folder + "/hccn_tool";
  }
  // Never the vendor's own: it would speak of other NPUs.
  if (config->metrics_hccn_tool == "auto") config->metrics_hccn_tool = "off";
  config->simulator_scenario = flags.scenario;
  // The simulator is the operator's own choice and lives where they built it.
  config->require_safe_library = false;
  return Status::Ok();
}

void ApplyCompat(const Flags& flags, DaemonConfig* config) {
  std::vector<std::string>& names = config->metrics_names;
  if (flags.compat == kCompatInstead) names.clear();
  if (flags.compat.empty() || std::ranges::find(names, kCompat) != names.end()) return;
  names.emplace_back(kCompat);
}

// `*warnings`: of what profd can serve with, all the same.
Result<DaemonConfig> LoadConfig(const Flags& flags, std::vector<std::string>* warnings) {
  std::vector<std::string> problems;
  DaemonConfig config;
  ConfigPlaces places;
  bool is_default = flags.config.empty();
  std::string path = is_default ? std::string(kDefaultConfig) : flags.config;
  Result<std::string> text = ReadConfig(path);
  if (text.ok()) {
    config = ParseDaemonConfig(*text, path, &problems, &places);
  } else if (!is_default || text.status().code() != StatusCode::kNotFound) {
    problems.push_back(text.status().message());
  }
  auto apply = [&places](std::string_view key, const std::optional<std::string>& flag, std::string* value) {
    if (!flag) return;
    *value = *flag;
    if (auto place = places.find(key); place != places.end()) places.erase(place);
  };
  apply("daemon.socket", flags.socket, &config.socket);
  apply("dump.root", flags.dump_root, &config.dump_root);
  apply("metrics.listen", flags.metrics_listen, &config.metrics_listen);
  apply("driver.hal_library", flags.hal_library, &config.hal_library);
  apply("driver.dcmi_library", flags.dcmi_library, &config.dcmi_library);
  apply("daemon.log_level", flags.log_level, &config.log_level);
  ApplyCompat(flags, &config);
  if (Status status = ApplySimulator(flags, &config); !status.ok()) {
    problems.push_back(status.message());
  }
  std::vector<std::string> of_values;
  ValidateDaemonConfig(config, &of_values);
  for (const std::string& name : config.metrics_disable) {
    if (FindCollector(name) == nullptr) {
      of_values.push_back(fmt::format("metrics.disable: unknown collector \"{}\"{}", name, CollectorHint(name)));
    }
  }
  CheckTls(config, &of_values);
  (void)MakePushConfig(config, &of_values);
  if (config.metrics_enabled) CheckWebConfig(config.metrics_web_config, &of_values);
  AddPlaces(places, &of_values);
  for (std::string& problem : of_values) {
    if (std::ranges::find(problems, problem) == problems.end()) {
      problems.push_back(std::move(problem));
    }
  }
  if (!problems.empty()) return InvalidArgument(fmt::format("{}", fmt::join(problems, "\n")));
  *warnings = UnknownAccounts(config);
  AddPlaces(places, warnings);
  return config;
}

log::Level LevelOf(const std::string& name) {
  if (name == "debug") return log::Level::kDebug;
  if (name == "warning") return log::Level::kWarning;
  if (name == "error") return log::Level::kError;
  return log::Level::kInfo;
}

// What a service starts inherits the variable, also a terminal: it is for the stream it names.
bool LogsToJournal() {
  const char* stream = ::getenv("JOURNAL_STREAM");
  struct stat info {};
  return stream != nullptr && ::fstat(STDERR_FILENO, &info) == 0 && fmt::format("{}:{}", info.st_dev, info.st_ino) == stream;
}

void BlockSignals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR2}) ::sigaddset(&signals, number);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);  // a file size limit is a write error, not our end
}

void AddFlags(CLI::App& app, Flags& flags) {
  auto add = [&app](const char* name, auto& value, const char* text, const char* type) {
    app.add_option(name, value, text)->type_name(type);
  };
  add("--config", flags.config, "Configuration file (default /etc/profd/profd.toml)", "FILE");
  add("--socket", flags.socket, "Unix socket clients connect to", "PATH");
  add("--dump-root", flags.dump_root, "Directory below which dumps are written", "DIR");
  add("--metrics-listen", flags.metrics_listen, "Address and port of /metrics", "ADDRESS:PORT");
  add("--hal-library", flags.hal_library, "Path of libascend_hal.so", "FILE");
  add("--dcmi-library", flags.dcmi_library, "Path of libdcmi.so", "FILE");
  add("--log-level", flags.log_level, "debug, info, warning or error", "LEVEL");
  app.add_option("--simulate", flags.scenario,
                 "Run on the simulated node instead of a driver, with this scenario file if given")
      ->expected(0, 1)
      ->type_name("[SCENARIO]")
      ->each([&flags](const std::string&) { flags.simulate = true; });
  app.add_option("--compat", flags.compat,
                 "npu-exporter: its metric names in addition to ours; npu-exporter=instead: only its names")
      // Without a description of the check, which --help would print in place of a name.
      ->check(CLI::IsMember({std::string(kCompat), std::string(kCompatInstead)}).description(""))
      ->type_name("NAMES");
  app.add_flag("--check-config", flags.check_config,
               "Validate the configuration, list every problem, and exit");
  app.add_flag("--print-default-config", flags.print_config,
               "Print a commented configuration file with all defaults, and exit");
  app.add_flag("--print-config-reference", flags.print_reference,
               "Print the reference of the configuration as Markdown, and exit");
  app.set_version_flag("--version", std::string("profd ") + PROFD_VERSION + " (" PROFD_ARCH ")");
  app.footer(
      "Examples:\n"
      "  $ profd --check-config\n"
      "  $ profd --simulate --socket /tmp/p.sock --dump-root /tmp/dumps  # without an NPU, as any user");
}

// What the program prints about itself; nothing = it is to serve.
std::optional<std::string> Printed(const Flags& flags) {
  if (flags.print_config) return DefaultConfigText();
  if (flags.print_reference) return ConfigReference() + rpc::LimitsDocument();
  return std::nullopt;
}

void LogWarnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) log::Warning("configuration", {{"problem", warning}});
}

int Serve(const Flags& flags, const DaemonConfig& config, const std::vector<std::string>& warnings) {
  log::Setup(LevelOf(config.log_level), LogsToJournal());
  LogWarnings(warnings);
  if (flags.simulate) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): no thread runs yet
    ::setenv("PROFD_SIM_SCENARIO", flags.scenario.c_str(), 1);
    log::Warning("simulation: all values are synthetic",
                 {{"scenario", flags.scenario.empty() ? "built-in" : flags.scenario}});
  }
  AppOptions options;
  options.config = config;
  options.simulated = flags.simulate;
  options.simulator_only = flags.simulate && !flags.hal_library && !flags.dcmi_library;
  options.reload = [flags]() -> Result<DaemonConfig> {
    std::vector<std::string> warnings_now;
    Result<DaemonConfig> fresh = LoadConfig(flags, &warnings_now);
    if (fresh.ok()) log::Setup(LevelOf(fresh->log_level), false);
    LogWarnings(warnings_now);
    return fresh;
  };
  return App(std::move(options)).Run().ok() ? 0 : 1;
}

}  // namespace

int RunDaemon(int argc, char** argv) {
  BlockSignals();
  CLI::App app("profd: profiles the Ascend NPUs and the host of this node", "profd");
  Flags flags;
  AddFlags(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  flags.simulate = flags.simulate || app.count("--simulate") > 0;
  if (std::optional<std::string> text = Printed(flags)) {
    fmt::print("{}", *text);
    return 0;
  }
  std::vector<std::string> warnings;
  Result<DaemonConfig> config = LoadConfig(flags, &warnings);
  if (!config.ok()) {
    fmt::print(stderr, "{}\n", config.status().message());
    return 2;
  }
  if (flags.check_config) {
    for (const std::string& warning : warnings) fmt::print(stderr, "warning: {}\n", warning);
    fmt::print("configuration ok\n");
    return 0;
  }
  return Serve(flags, *config, warnings);
}

}  // namespace profd
