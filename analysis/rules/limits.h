// From where on a check reports: one table for the checks of recorded runs (analysis/checks) and the live ones of the
// daemon (daemon/advice), each of it open to change by the user.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace profd::analysis {

struct Limit {
  std::string_view check;  // its id, or "priority"
  std::string_view name;
  double value;
  std::string_view unit;
  std::string_view what;
};
std::span<const Limit> DefaultLimits();

class Limits {
 public:
  Limits();

  // The value of a limit that is in the table.
  double At(std::string_view check, std::string_view name) const;
  // A TOML text with a section for each check: [packet] sdma_mb = 8. An error names every key that is none; `name` is
  // that of the text in it.
  Status Parse(std::string_view text, const std::string& name);
  // One: "packet.sdma_mb=8".
  Status Set(std::string_view text);

 private:
  // What is wrong with it; empty: it is set.
  std::string Change(std::string_view check, std::string_view name, const std::optional<double>& number);

  std::map<std::pair<std::string, std::string>, double, std::less<>> values_;
};

}  // namespace profd::analysis
