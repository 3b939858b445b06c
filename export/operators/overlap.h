// How computing and communication of a device overlap, and when it did neither (operator-data d.5).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "export/large.h"

namespace profd::exporting::operators {

class Model;

struct Interval {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  bool operator==(const Interval&) const = default;
};
// By start; those of a result neither touch nor are empty.
using Intervals = Large<Interval>;

// The number is the thread's on the timeline and the type's in the database.
enum class OverlapKind : uint8_t { kComputing, kCommunication, kNotOverlapped, kFree };
inline constexpr size_t kOverlapKinds = 4;
std::string_view OverlapName(OverlapKind kind);  // "Computing", ...

struct Overlap : std::array<Intervals, kOverlapKinds> {
  using array::operator[];
  Intervals& operator[](OverlapKind kind) { return (*this)[static_cast<size_t>(kind)]; }
  const Intervals& operator[](OverlapKind kind) const { return (*this)[static_cast<size_t>(kind)]; }
};

// `computing` and `communication`: in any order. `tasks`: from the first start to the last end of the tasks that are
// no kernels; they and both others bound what is free.
Overlap MakeOverlap(Intervals computing, Intervals communication, std::optional<Interval> tasks);
// Of two devices, or of two recordings: what either of them did. Nothing is free in the time between two recordings.
Overlap Merged(const Overlap& a, const Overlap& b);
// From the first start to the last end; none: it is empty.
std::optional<Interval> ExtentOf(const Overlap& overlap);

// By device; one without tasks has none. Made once, of what the model has then.
const std::map<int, Overlap>& OverlapsOf(const Model& model);

}  // namespace profd::exporting::operators
