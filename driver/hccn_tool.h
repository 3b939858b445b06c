// The vendor's hccn_tool (dcmi-and-metrics 1.8): the only source for optics, link state, speed and
// link history of the NPUs' network ports on A2, A3 and A5. A program, not a library: it is run
// with a fixed environment and no shell, its output is bounded, and it is killed with its process
// group when its time is over. Its words are untrusted.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/status.h"

namespace profd {

struct OpticalValues {
  std::optional<bool> present;
  std::optional<double> temperature_celsius;
  std::optional<double> supply_volts;
  std::array<std::optional<double>, 8> tx_power_watts;
  std::array<std::optional<double>, 8> rx_power_watts;
};

// One port of an A5 NPU, as its table of ports names it.
struct HccnPort {
  int die = 0;
  int port = 0;
  bool operator==(const HccnPort&) const = default;
};
// More than any board has; a longer table is cut.
inline constexpr size_t kMaxHccnPorts = 32;

// Parsers of one answer each; nullopt / empty where the line is missing or has the value Unknown.
std::optional<bool> ParseHccnLink(std::string_view text);
std::optional<double> ParseHccnSpeed(std::string_view text);      // bytes per second
std::optional<uint64_t> ParseHccnLinkUps(std::string_view text);  // times the link went up
OpticalValues ParseHccnOptical(std::string_view text);
// "| UdieID | PortID | ..." of -dev_info: each port once, in the order of the table.
std::vector<HccnPort> ParseHccnPorts(std::string_view text);

inline constexpr std::string_view kHccnToolPath = "/usr/local/Ascend/driver/tools/hccn_tool";

struct HccnToolOptions {
  std::string path = {};                    // of the program
  int64_t timeout_ns = 5'000'000'000;  // per run
  size_t max_output = 1 << 20;
  bool require_safe = true;                   // program and folders must be root's alone
  std::vector<std::string> environment = {};  // "NAME=value" beside the fixed ones
};

// Can the program be run? Ok, NotFound, or PermissionDenied with what is not safe about it.
Status CheckHccnTool(const HccnToolOptions& options);

// What follows the program's name on A2 and A3: one port per NPU, by physical id.
std::vector<std::string> HccnArguments(int physical_id, std::string_view what);
// On A5: NPUs by logical id, ports by die and number.
std::vector<std::string> HccnPortArguments(int logical_id, std::string_view what, HccnPort port);
std::vector<std::string> HccnPortTableArguments(int logical_id);

// Runs the tool, one at a time. Not for the control strand: a run waits up to the timeout.
class HccnTool {
 public:
  explicit HccnTool(HccnToolOptions options);
  ~HccnTool();
  HccnTool(const HccnTool&) = delete;
  HccnTool& operator=(const HccnTool&) = delete;

  // What the program wrote, on both its outputs. Errors: NotFound (no program), PermissionDenied,
  // DeadlineExceeded, Cancelled, ResourceExhausted (an earlier run cannot be killed), Unavailable
  // (exit code, first line it wrote; too much output).
  Result<std::string> Run(std::span<const std::string> arguments);
  // Any thread: the run that is under way ends soon, and so does every later one.
  void Cancel();
  const HccnToolOptions& options() const { return options_; }

 private:
  Result<std::string> Wait(pid_t pid, UniqueFd pipe);
  // Kills the group and takes the exit status; one that does not die is kept for later.
  void KillAndReap(pid_t pid);
  void ReapLeftovers();

  HccnToolOptions options_;
  UniqueFd cancel_;  // eventfd; readable once cancelled
  std::vector<pid_t> leftovers_;
};

}  // namespace profd
