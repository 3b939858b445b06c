// What the processes of the node are called: which job and container a pid belongs to, as labels. Filled
// by who attributes work, read by collectors. Thread-safe.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "base/mutex.h"

namespace profd {

struct ProcessName {
  std::string job;        // empty = none that is known
  std::string container;  // its name, or its id where the name is unknown; empty = in none
  bool operator==(const ProcessName&) const = default;
};

class ProcessNames {
 public:
  void Replace(std::map<int, ProcessName> names) {
    MutexLock lock(mutex_);
    names_ = std::move(names);
  }
  // Empty for an unknown pid.
  ProcessName Of(int pid) const {
    MutexLock lock(mutex_);
    auto found = names_.find(pid);
    return found == names_.end() ? ProcessName{} : found->second;
  }

 private:
  mutable Mutex mutex_;
  std::map<int, ProcessName> names_ GUARDED_BY(mutex_);
};

}  // namespace profd
