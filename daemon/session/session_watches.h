// Who waits for changes of sessions. Control strand.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/strand.h"

namespace profd {

class SessionWatches {
 public:
  explicit SessionWatches(const Strand& control) : control_(control) {}

  // `changed` runs at every change of the session's state until Remove.
  uint64_t Add(const std::string& id, std::function<void()> changed) {
    DCHECK_ON(control_);
    watches_.emplace(next_, Watch{id, std::move(changed)});
    return next_++;
  }
  void Remove(uint64_t watch) {
    DCHECK_ON(control_);
    watches_.erase(watch);
  }
  // Those it calls may add and remove watches.
  void Notify(const std::string& id) const {
    DCHECK_ON(control_);
    std::vector<std::function<void()>> calls;
    for (const auto& [key, watch] : watches_) {
      if (watch.id == id) calls.push_back(watch.changed);
    }
    for (const auto& call : calls) call();
  }

 private:
  struct Watch {
    std::string id;
    std::function<void()> changed;
  };
  const Strand& control_;
  std::map<uint64_t, Watch> watches_;
  uint64_t next_ = 1;
};

}  // namespace profd
