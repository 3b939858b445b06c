// From where on a check reports: one table, each of it open to change by the user's TOML file.
#pragma once

#include <map>
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
  // Of a file with a section for each check: [packet] sdma_mb = 8. An error names every key that is none.
  Status Read(const std::string& path);

 private:
  std::map<std::pair<std::string, std::string>, double, std::less<>> values_;
};

}  // namespace profd::analysis
