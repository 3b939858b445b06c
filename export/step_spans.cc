#include "export/step_spans.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "base/text.h"

namespace profd::exporting {

std::optional<std::pair<StepSource, StepSpan>> StepOf(const Event& event) {
  constexpr std::string_view kFrameworkStep = "ProfilerStep#";
  StepSpan span{event.value, event.t_ns, event.t_ns, event.device, event.rank.value_or(-1)};
  if (__builtin_add_overflow(event.t_ns, event.dur_ns, &span.end_ns)) span.end_ns = event.t_ns;
  switch (event.kind) {
    case EventKind::kStep: return std::pair(StepSource::kMarked, span);
    case EventKind::kDeviceStep: return std::pair(StepSource::kOfDevices, span);
    case EventKind::kIteration: return std::pair(StepSource::kIterations, span);
    default: break;
  }
  const std::string_view name = event.name;
  if (event.kind != EventKind::kRange || !name.starts_with(kFrameworkStep)) return std::nullopt;
  if (!ParseNumber(name.substr(kFrameworkStep.size()), &span.number)) return std::nullopt;
  return std::pair(StepSource::kFramework, span);
}

void StepSpans::Add(const Event& event) {
  if (event.partial) return;
  if (const auto step = StepOf(event)) Add(step->first, step->second);
}

void StepSpans::Add(StepSource source, const StepSpan& span) {
  std::vector<StepSpan>& spans = spans_[static_cast<size_t>(source)];
  if (spans.size() < kMaxSteps) spans.push_back(span);
}

void StepSpans::Merge(StepSpans other) {
  for (size_t i = 0; i < kStepSources; ++i) {
    const size_t space = kMaxSteps - std::min(kMaxSteps, spans_[i].size());
    const auto end = other.spans_[i].begin() + static_cast<std::ptrdiff_t>(std::min(space, other.spans_[i].size()));
    spans_[i].insert(spans_[i].end(), other.spans_[i].begin(), end);
  }
}

std::vector<StepSpan> StepSpans::For(int device, int rank) const {
  std::vector<StepSpan> found;
  const auto has_any = [](const std::vector<StepSpan>& spans) { return !spans.empty(); };
  const auto source = std::ranges::find_if(spans_, has_any);
  if (source == spans_.end()) return found;
  std::ranges::copy_if(*source, std::back_inserter(found),
                       [device, rank](const StepSpan& span) {
                         if (span.device >= 0) return span.device == device;
                         return span.rank < 0 || rank < 0 || span.rank == rank;
                       });
  std::ranges::stable_sort(found, {}, &StepSpan::start_ns);
  return found;
}

}  // namespace profd::exporting
