// Where forward starts and backward ends in the steps of a device, and the all-reduces between: out of what ran there in
// the time of each. The vendor's rules: forward starts with the first operator after the one that gets the batch,
// backward ends with the last operator before the last all-reduce; or with operators of given names. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace profd::exporting {

struct StepParts {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  int64_t fp_start_ns = 0;  // 0: not found, as are those below
  int64_t bp_end_ns = 0;
  int64_t data_aug_ns = 0;  // from the end of the step before to the start of forward
  std::vector<std::pair<int64_t, int64_t>> reduces;    // begin and end, by begin
  std::vector<std::pair<int64_t, int64_t>> get_nexts;
};

// Names of operators; empty: found by the rules.
struct StepPoints {
  std::string fp, bp;
};

class StepPartFinder {
 public:
  static constexpr size_t kMaxSteps = 1'000'000;
  static constexpr size_t kMaxPairs = 4096;  // of one step

  // What of an operator's name matters, so that each name is looked at once.
  enum NameClass : uint8_t { kPlain = 0, kGetNext = 1, kFpPoint = 2, kBpPoint = 4, kAllReduce = 8 };
  uint8_t ClassOf(std::string_view name) const;

  explicit StepPartFinder(StepPoints points) : points_(std::move(points)) {}

  // Steps, then all communication, then all kernels twice; in any order within. What begins in no step is left out.
  void AddStep(int device, int64_t begin_ns, int64_t end_ns);
  void StepsDone();
  void AddCommunication(int device, uint8_t name, int64_t begin_ns, int64_t end_ns);
  void AddKernel(int device, uint8_t name, int64_t begin_ns, int64_t end_ns);
  void AddKernelAgain(int device, uint8_t name, int64_t begin_ns);
  void Finish();

  bool empty() const { return steps_.empty(); }
  // Of the step of that time; none: it is in no step.
  std::optional<int64_t> StepBegin(int device, int64_t time_ns);
  // Null: no such step.
  const StepParts* Find(int device, int64_t begin_ns) const;

 private:
  struct Step {
    StepParts parts;
    int64_t reduce_begin_ns = 0;         // of the last all-reduce; 0: none
    int64_t communication_begin_ns = 0;  // of the last one of any kind
    int64_t batch_begin_ns = 0;          // of the first operator that gets the batch
    int64_t batch_end_ns = 0;
    int64_t last_ns = 0;  // when the operator began with which backward ends by now
  };

  Step* StepAt(int device, int64_t time_ns);

  const StepPoints points_;
  std::map<int, std::vector<Step>> steps_;  // by begin
  size_t count_ = 0;
};

}  // namespace profd::exporting
