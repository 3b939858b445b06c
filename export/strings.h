// Texts that come with the data (process names, QoS streams, labels), each once, by number.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/mutex.h"

namespace profd::exporting {

// Thread-safe. Bounded: beyond kMax different texts all further ones are kOther.
class Strings {
 public:
  static constexpr size_t kMax = 1'000'000;
  static constexpr std::string_view kOther = "(other)";

  // Of what is not UTF-8 with replacement characters.
  int64_t Intern(std::string_view text);
  // Stays valid as long as this. Empty for an id that was never given.
  std::string_view Text(int64_t id) const;
  size_t size() const;

 private:
  mutable Mutex mutex_;
  std::deque<std::string> texts_ GUARDED_BY(mutex_);
  std::unordered_map<std::string_view, int64_t> ids_ GUARDED_BY(mutex_);
};

}  // namespace profd::exporting
