// Names of host/profd/activity_names.tsv (dump/activity_files.h) by their numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/status.h"

namespace profd::exporting {

// Bounded: the file is untrusted.
class ActivityNames {
 public:
  static constexpr size_t kMaxNames = 262'144;
  static constexpr size_t kMaxBytes = size_t{32} << 20;

  // From the descriptor's position to its end. An error has how many lines were left out, and why; the
  // others are there.
  Status Load(int fd);
  // Valid UTF-8 without control bytes; "name 123" if there is none; empty for 0.
  std::string Text(uint32_t id) const;
  size_t size() const { return names_.size(); }

 private:
  enum class Line : uint8_t { kTaken, kBad, kTooMany };
  Line Add(std::string_view line);

  std::string text_;
  std::unordered_map<uint32_t, std::pair<uint32_t, uint32_t>> names_;  // offset and size
};

}  // namespace profd::exporting
