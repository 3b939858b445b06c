#include "export/step_parts.h"

#include <algorithm>

#include "base/text.h"

namespace profd::exporting {
namespace {

void Least(int64_t value, int64_t* least) {
  if (*least == 0 || value < *least) *least = value;
}

}  // namespace

uint8_t StepPartFinder::ClassOf(std::string_view name) const {
  std::string plain;
  for (const char c : name) {
    if (c != '_') plain.push_back(ToLower(c));
  }
  unsigned result = kPlain;
  if (plain.find("getnext") != std::string::npos) result |= kGetNext;
  if (plain.find("allreduce") != std::string::npos) result |= kAllReduce;
  if (!points_.fp.empty() && name == points_.fp) result |= kFpPoint;
  if (!points_.bp.empty() && name == points_.bp) result |= kBpPoint;
  return static_cast<uint8_t>(result);
}

void StepPartFinder::AddStep(int device, int64_t begin_ns, int64_t end_ns) {
  if (count_ >= kMaxSteps || end_ns <= begin_ns) return;
  ++count_;
  Step& step = steps_[device].emplace_back();
  step.parts.begin_ns = begin_ns;
  step.parts.end_ns = end_ns;
}

void StepPartFinder::StepsDone() {
  for (auto& [device, steps] : steps_) {
    std::ranges::stable_sort(steps, {}, [](const Step& step) { return step.parts.begin_ns; });
  }
}

StepPartFinder::Step* StepPartFinder::StepAt(int device, int64_t time_ns) {
  const auto found = steps_.find(device);
  if (found == steps_.end()) return nullptr;
  const auto after = std::ranges::upper_bound(found->second, time_ns, {},
                                              [](const Step& step) { return step.parts.begin_ns; });
  if (after == found->second.begin()) return nullptr;
  Step& step = *(after - 1);
  return time_ns < step.parts.end_ns ? &step : nullptr;
}

std::optional<int64_t> StepPartFinder::StepBegin(int device, int64_t time_ns) {
  const Step* const step = StepAt(device, time_ns);
  return step == nullptr ? std::nullopt : std::optional(step->parts.begin_ns);
}

void StepPartFinder::AddCommunication(int device, uint8_t name, int64_t begin_ns, int64_t end_ns) {
  Step* const step = StepAt(device, begin_ns);
  if (step == nullptr) return;
  step->communication_begin_ns = std::max(step->communication_begin_ns, begin_ns);
  if ((name & kAllReduce) == 0) return;
  step->reduce_begin_ns = std::max(step->reduce_begin_ns, begin_ns);
  if (step->parts.reduces.size() < kMaxPairs) step->parts.reduces.emplace_back(begin_ns, end_ns);
}

void StepPartFinder::AddKernel(int device, uint8_t name, int64_t begin_ns, int64_t end_ns) {
  Step* const step = StepAt(device, begin_ns);
  if (step == nullptr) return;
  if ((name & kGetNext) != 0) {
    if (step->batch_begin_ns == 0 || begin_ns < step->batch_begin_ns) {
      step->batch_begin_ns = begin_ns;
      step->batch_end_ns = end_ns;
    }
    if (step->parts.get_nexts.size() < kMaxPairs) step->parts.get_nexts.emplace_back(begin_ns, end_ns);
  }
  bool may_end = (name & kGetNext) == 0;
  if (!points_.bp.empty()) {
    may_end = (name & kBpPoint) != 0;
  } else if (step->communication_begin_ns != 0) {
    // A step without an all-reduce ends its backward before its last communication, whatever that is.
    const bool reduces = step->reduce_begin_ns != 0;
    may_end &= begin_ns < (reduces ? step->reduce_begin_ns : step->communication_begin_ns);
  }
  if (!may_end || begin_ns < step->last_ns) return;
  step->last_ns = begin_ns;
  // It may still run when the step has ended: the tail is then none.
  step->parts.bp_end_ns = std::min(end_ns, step->parts.end_ns);
}

void StepPartFinder::AddKernelAgain(int device, uint8_t name, int64_t begin_ns) {
  Step* const step = StepAt(device, begin_ns);
  if (step == nullptr) return;
  const bool may_start = points_.fp.empty() ? (name & kGetNext) == 0 && begin_ns >= step->batch_end_ns
                                            : (name & kFpPoint) != 0;
  if (may_start) Least(begin_ns, &step->parts.fp_start_ns);
}

void StepPartFinder::Finish() {
  for (auto& [device, steps] : steps_) {
    std::vector<int64_t> ends;
    for (const Step& step : steps) ends.push_back(step.parts.end_ns);
    std::ranges::sort(ends);
    for (Step& step : steps) {
      StepParts& parts = step.parts;
      std::ranges::sort(parts.reduces);
      std::ranges::sort(parts.get_nexts);
      if (parts.fp_start_ns == 0) continue;
      const auto after = std::ranges::upper_bound(ends, parts.fp_start_ns);
      if (after != ends.begin()) parts.data_aug_ns = parts.fp_start_ns - *(after - 1);
    }
  }
}

const StepParts* StepPartFinder::Find(int device, int64_t begin_ns) const {
  const auto found = steps_.find(device);
  if (found == steps_.end()) return nullptr;
  const auto at = std::ranges::lower_bound(found->second, begin_ns, {},
                                           [](const Step& step) { return step.parts.begin_ns; });
  return at == found->second.end() || at->parts.begin_ns != begin_ns ? nullptr : &at->parts;
}

}  // namespace profd::exporting
