// What is wrong with a request, as data. It travels to the client as it is (docs/api.md, "Errors"); a
// sentence is made of it where a person reads it, in the words of what that person typed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace profd {

struct Problem {
  enum class Kind : uint8_t {
    kInvalid,      // unknown, of the wrong type, out of range
    kConflict,     // excludes or needs another field
    kUnsupported,  // known, but this node's chips cannot
    kDenied,       // not for this caller
    kNeedsProcess, // no process is attached that could
    kBusy,         // `holder` has it
    kFailed,       // broken
  };
  Kind kind = Kind::kInvalid;
  // Of the request: "start_at_ns", "aic_metrics"; empty = of no single field.
  std::string field = {};
  std::string value = {};  // as it was sent; empty = not about a value
  // What is wrong with it and what is allowed. "{no_dump}" stands for the field of this name.
  std::string text = {};
  std::string holder = {};  // id of the session that has what was requested
  size_t left_out = 0;      // not 0: it stands for so many that are not listed, and is none itself
};

// How the caller wrote a field: "--at" and "2020-01-01T00:00:00Z". No value = not written by the caller
// (a default).
struct WrittenField {
  std::string name;
  std::optional<std::string> value;
};
// Nothing = the field's own name.
using FieldNames = std::function<std::optional<WrittenField>(std::string_view field)>;

// "start_at_ns = 12: 2d 03h ago by this node's clock"; with names "--at 2020-01-01T00:00:00Z: 2d 03h ago ...".
std::string Describe(const Problem& problem, const FieldNames& names = nullptr);
// One per line.
std::string Describe(std::span<const Problem> problems, const FieldNames& names = nullptr);

// The problems of one request. However long the request, the list stays short enough for the trailer of a
// gRPC call (8 KiB, which hold it as text and as data): what is beyond is counted in the last one's text.
class ProblemList {
 public:
  static constexpr size_t kMaxProblems = 32;
  static constexpr size_t kMaxTextBytes = 360;  // of one
  static constexpr size_t kMaxBytes = 2600;     // of all

  bool empty() const { return problems_.empty() && left_out_ == 0; }
  void Add(Problem problem);
  void Append(std::span<const Problem> problems);
  void Append(const ProblemList& other);
  std::vector<Problem> Take() &&;

 private:
  std::vector<Problem> problems_;
  size_t bytes_ = 0;
  size_t left_out_ = 0;
};

}  // namespace profd
