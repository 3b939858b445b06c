#include "analysis/find_points.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/times.h"
#include "export/step_parts.h"

namespace profd::analysis {
namespace {

using exporting::StepPartFinder;

constexpr int kDevice = 0;  // a rank has one

bool HasPoints(const Step& step) { return step.fp_ns || step.bp_ns; }

// Classes of names, each looked at once.
class Classes {
 public:
  Classes(const Rank& rank, const StepPartFinder& finder) : rank_(rank), finder_(finder) {}
  uint8_t Of(TextId name) {
    const auto [known, is_new] = classes_.try_emplace(name, uint8_t{0});
    if (is_new) known->second = finder_.ClassOf(rank_.TextOf(name));
    return known->second;
  }

 private:
  const Rank& rank_;
  const StepPartFinder& finder_;
  std::map<TextId, uint8_t> classes_;
};

TextId NameOf(const Rank& rank, const Execution& execution) {
  return rank.operators[static_cast<size_t>(execution.op)].name;
}

// What most of the steps have there.
TextId MostOften(const std::map<TextId, size_t>& names) {
  const auto most = std::ranges::max_element(names, {}, [](const auto& each) { return each.second; });
  return most == names.end() ? kNoText : most->first;
}

void AddParts(const exporting::StepParts& parts, Rank* rank, Step* step) {
  if (parts.fp_start_ns != 0) step->fp_ns = parts.fp_start_ns;
  if (parts.bp_end_ns != 0) step->bp_ns = parts.bp_end_ns;
  // Forward cannot start behind the end of backward.
  if (step->fp_ns && step->bp_ns && *step->bp_ns < *step->fp_ns) step->fp_ns = step->bp_ns = std::nullopt;
  if (!step->reduces.empty()) return;
  for (const auto& [begin_ns, end_ns] : parts.reduces) {
    step->reduces.push_back({rank->Text(fmt::format("reduce_{}", step->reduces.size())), begin_ns, end_ns});
  }
}

// There was communication, but not which operations: where backward ends before them is not known then.
bool HidesCommunication(const Rank& rank) {
  if (!rank.collectives.empty() || rank.bp_point != kNoText) return false;
  return rank.longest_communication_ns > 0 || !rank.overlap[OverlapKind::kCommunication].empty() ||
         std::ranges::any_of(rank.shares, [](const auto& each) { return each.second.communication > 0; });
}

void NamePoints(Rank* rank) {
  std::map<int64_t, TextId> starts;
  std::map<int64_t, TextId> ends;
  for (const Execution& each : rank->executions) {
    starts.emplace(each.start_ns, NameOf(*rank, each));
    ends.emplace(each.end_ns, NameOf(*rank, each));
  }
  std::map<TextId, size_t> forward;
  std::map<TextId, size_t> backward;
  for (const Step& step : rank->steps) {
    if (step.fp_ns && starts.contains(*step.fp_ns)) ++forward[starts.at(*step.fp_ns)];
    if (step.bp_ns && ends.contains(*step.bp_ns)) ++backward[ends.at(*step.bp_ns)];
  }
  rank->fp_point = MostOften(forward);
  rank->bp_point = MostOften(backward);
}

}  // namespace

void FindPoints(Rank* rank) {
  if (rank->executions.empty() || std::ranges::any_of(rank->steps, HasPoints)) return;
  StepPartFinder finder({std::string(rank->TextOf(rank->fp_point)), std::string(rank->TextOf(rank->bp_point))});
  for (const Step& step : rank->steps) finder.AddStep(kDevice, step.start_ns, step.end_ns);
  if (finder.empty()) return;
  finder.StepsDone();
  Classes classes(*rank, finder);
  for (const Collective& each : rank->collectives) {
    finder.AddCommunication(kDevice, classes.Of(each.name), each.start_ns,
                            EndOf(each.start_ns, each.elapse_ms));
  }
  for (const Execution& each : rank->executions) {
    finder.AddKernel(kDevice, classes.Of(NameOf(*rank, each)), each.start_ns, each.end_ns);
  }
  for (const Execution& each : rank->executions) {
    finder.AddKernelAgain(kDevice, classes.Of(NameOf(*rank, each)), each.start_ns);
  }
  finder.Finish();
  const bool hides = HidesCommunication(*rank);
  for (Step& step : rank->steps) {
    if (const exporting::StepParts* parts = finder.Find(kDevice, step.start_ns)) AddParts(*parts, rank, &step);
    if (hides) step.bp_ns.reset();
  }
  if (rank->fp_point == kNoText && rank->bp_point == kNoText) NamePoints(rank);
}

}  // namespace profd::analysis
