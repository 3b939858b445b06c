// Operators of the framework and its task queue, out of what torch_npu's recorder and MindSpore's leave in `FRAMEWORK`
// (in-application 7.2 and 7.6). Everything in the files is untrusted; a record that makes no sense costs itself only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "export/strings.h"

namespace profd::exporting::operators {

// Texts are numbers of the Strings they were read into; -1: the record has none. Times as recorded: the counter, or
// CLOCK_MONOTONIC_RAW in ns.
struct FrameworkOperator {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t sequence = -1;  // ties backward to forward operators; -1: none
  uint64_t thread = 0;
  uint64_t forward_thread = 0;  // of a backward operator
  int64_t name = -1;
  int64_t types = -1;
  int64_t shapes = -1;
  int64_t stack = -1;    // frames joined by `;`
  int64_t modules = -1;
};

struct QueueMark {
  enum class Kind : uint8_t { kEnqueueBegin, kEnqueueEnd, kDequeueBegin, kDequeueEnd };
  int64_t time = 0;
  uint64_t correlation = 0;  // the same in all four of a task
  uint64_t thread = 0;
  int64_t name = -1;
  Kind kind = Kind::kEnqueueBegin;
};

class FrameworkData {
 public:
  explicit FrameworkData(Strings& strings) : strings_(&strings) {}

  static bool IsFile(std::string_view base);
  // One whole file; false: none that is read here.
  bool Read(std::string_view base, std::span<const std::byte> bytes);

  std::vector<FrameworkOperator> operators;
  std::vector<QueueMark> marks;
  uint64_t records = 0;
  uint64_t bad_records = 0;
  uint64_t bad_bytes = 0;  // of those, and of a record that goes beyond the end of its file

 private:
  Strings* strings_;
};

}  // namespace profd::exporting::operators
