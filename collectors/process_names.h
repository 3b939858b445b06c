// What the processes of the node are called: which job and container a pid belongs to, as labels. Filled
// by who attributes work, read by collectors. Thread-safe.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace profd {

struct ProcessName {
  std::string job;        // empty = none that is known
  std::string container;  // its name, or its id where nobody told the name; empty = in none
  bool operator==(const ProcessName&) const = default;
};

class ProcessNames {
 public:
  void Replace(std::map<int, ProcessName> names) {
    std::lock_guard lock(mutex_);
    names_ = std::move(names);
  }
  // Empty for a pid nobody knows.
  ProcessName Of(int pid) const {
    std::lock_guard lock(mutex_);
    auto found = names_.find(pid);
    return found == names_.end() ? ProcessName{} : found->second;
  }

 private:
  mutable std::mutex mutex_;
  std::map<int, ProcessName> names_;
};

}  // namespace profd
