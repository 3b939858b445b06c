// The vendor's hccn_tool (dcmi-and-metrics 1.8): the only source for optics, link state, speed and link
// history of the NPUs' network ports on A2 and A3. A program, not a library: it is run with a fixed
// environment and no shell, its output is bounded, and it is killed with its process group when its
// time is over. Its words are untrusted.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace profd {

struct OpticalReading {
  std::optional<bool> present;
  std::optional<double> temperature_celsius;
  std::optional<double> supply_volts;
  std::array<std::optional<double>, 8> tx_power_watts;
  std::array<std::optional<double>, 8> rx_power_watts;
};

// Parsers of one answer each; nullopt / empty where the line is missing or says Unknown.
std::optional<bool> ParseHccnLink(std::string_view text);
std::optional<double> ParseHccnSpeed(std::string_view text);      // bytes per second
std::optional<uint64_t> ParseHccnLinkUps(std::string_view text);  // times the link came up
OpticalReading ParseHccnOptical(std::string_view text);

struct HccnToolOptions {
  std::string path;                        // of the program
  int64_t timeout_ns = 5'000'000'000;      // per run
  size_t max_output = 1 << 20;
  bool require_safe = true;                // program and folders must be root's alone
};

// Runs `path -i <phy id> -<what> -g` and returns its standard output. Waits up to the timeout: not for
// the control strand. Errors: NotFound (no program), PermissionDenied, DeadlineExceeded, Unavailable
// (exit code, first line it wrote).
Result<std::string> RunHccnTool(const HccnToolOptions& options, int physical_id,
                                std::string_view what);

}  // namespace profd
