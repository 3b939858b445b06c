// So that no user can fill the log: a few lines a minute of each, the rest is counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "base/clock.h"

namespace profd {

// One thread.
class LogLimit {
 public:
  static constexpr uint64_t kLinesPerMinute = 6;
  static constexpr size_t kMaxKeys = 1024;

  // May a line about `key` (a uid) be written now? Then `*left_out` is how many about it were not written since the last
  // that was.
  bool Allow(uint64_t key, int64_t now_ns, uint64_t* left_out) {
    // Who has been silent for a minute has nothing to be remembered but what was left out.
    if (keys_.size() >= kMaxKeys && !keys_.contains(key)) {
      std::erase_if(keys_, [now_ns](const auto& one) { return now_ns - one.second.since_ns >= kMinuteNs; });
      if (keys_.size() >= kMaxKeys) return false;
    }
    Key& one = keys_.try_emplace(key, Key{now_ns}).first->second;
    if (now_ns - one.since_ns >= kMinuteNs) {
      one.since_ns = now_ns;
      one.lines = 0;
    }
    if (one.lines >= kLinesPerMinute) {
      ++one.left_out;
      return false;
    }
    ++one.lines;
    *left_out = std::exchange(one.left_out, 0);
    return true;
  }

 private:
  static constexpr int64_t kMinuteNs = 60 * kNsPerSecond;
  struct Key {
    int64_t since_ns = 0;
    uint64_t lines = 0;
    uint64_t left_out = 0;
  };
  std::map<uint64_t, Key> keys_;
};

}  // namespace profd
