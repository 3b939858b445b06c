// The steps of `profctl show DUMP`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "client/commands/show_dump.h"
#include "client/render.h"
#include "client/sparkline.h"

namespace profd::client {
namespace {

using exporting::StepTimeline;
using exporting::StepTimes;
using exporting::StepView;
using exporting::operators::Interval;
using exporting::operators::Intervals;
using exporting::operators::OverlapKind;

constexpr size_t kStepsShown = 10;
constexpr size_t kRunName = 28;
constexpr size_t kLeastStrip = 20;
// How computing, communication and nothing are drawn.
constexpr std::array<std::string_view, 3> kShades = {"█", "▒", "·"};
constexpr std::array<std::string_view, 3> kAsciiShades = {"#", "+", "."};

std::string Time(double us) { return FormatQuantity(us / 1e6, "seconds"); }

std::string Known(int number) { return number < 0 ? "-" : std::to_string(number); }

std::string Share(double us, double all_us) { return all_us > 0 ? fmt::format("{:.1f} %", us / all_us * 100) : "-"; }

// One bar of the three parts, each rounded where it ends.
std::string Parts(const StepTimes& step, size_t columns, const std::array<std::string_view, 3>& shades) {
  const std::array<double, 3> parts = {step.computing_us, step.communication_us, step.free_us};
  std::string bar;
  double sum = 0;
  size_t drawn = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    sum += parts[i];
    const auto end = static_cast<size_t>(std::lround(sum / step.all_us() * static_cast<double>(columns)));
    for (; drawn < end; ++drawn) bar += shades[i];
  }
  return bar;
}

// All steps of each device as one, in front of these.
std::vector<StepTimes> DeviceSums(const std::vector<StepTimes>& steps) {
  std::map<int, StepTimes> sums;
  for (const StepTimes& step : steps) {
    StepTimes& sum = sums[step.device];
    sum.rank = step.rank;
    sum.device = step.device;
    sum.computing_us += step.computing_us;
    sum.communication_us += step.communication_us;
    sum.free_us += step.free_us;
    sum.hidden_us += step.hidden_us;
  }
  std::vector<StepTimes> made;
  made.reserve(sums.size());
  for (const auto& [device, sum] : sums) made.push_back(sum);
  return made;
}

std::vector<StepTimes> LongestSteps(std::vector<StepTimes> steps, size_t count) {
  if (steps.size() <= count) return steps;
  std::ranges::stable_sort(steps, std::greater<>(), [](const StepTimes& step) { return step.all_us(); });
  steps.resize(count);
  std::ranges::stable_sort(steps, [](const StepTimes& a, const StepTimes& b) {
    return std::tie(a.device, a.start_ns) < std::tie(b.device, b.start_ns);
  });
  return steps;
}

// How much of each column is covered, nothing where nothing is.
std::vector<double> Covered(const Intervals& intervals, const StepTimes& step, size_t columns) {
  std::vector<double> covered(columns, 0);
  const double width = static_cast<double>(step.end_ns - step.start_ns) / static_cast<double>(columns);
  for (const Interval& interval : intervals) {
    const double begin = static_cast<double>(interval.start_ns - step.start_ns) / width;
    const double end = std::min(static_cast<double>(interval.end_ns - step.start_ns) / width, static_cast<double>(columns));
    for (auto column = static_cast<size_t>(begin); column < columns && static_cast<double>(column) < end; ++column) {
      const auto left = static_cast<double>(column);
      covered[column] += std::min(end, left + 1) - std::max(begin, left);
    }
  }
  for (double& part : covered) {
    if (part <= 0) part = std::numeric_limits<double>::quiet_NaN();
  }
  return covered;
}

void PrintTimeline(std::ostream& out, const StepTimeline& timeline, bool of_several, const PictureStyle& style) {
  const StepTimes& step = timeline.step;
  if (step.end_ns <= step.start_ns) return;
  std::string what = step.number ? fmt::format("step {}", *step.number) : "all of it";
  if (step.number && of_several) what += ", the longest";
  what += fmt::format(" on npu{}", step.device);
  if (step.rank >= 0) what += fmt::format(" (rank {})", step.rank);
  const double us = static_cast<double>(step.end_ns - step.start_ns) / 1e3;
  out << '\n' << Paint(fmt::format("{}: {}", what, Time(us)), Tone::kFaint, style.color) << '\n';
  constexpr size_t kTime = 9;
  const size_t fixed = 2 + kRunName + 2 + 2 + kTime;
  const size_t columns = std::max(style.width, fixed + kLeastStrip) - fixed;
  const auto line = [&](const std::string& name, const Intervals& intervals, double length_us) {
    const std::string padding(kRunName - std::min(kRunName, DisplayWidth(name)), ' ');
    out << "  " << name << padding << "  "
        << Paint(Sparkline(Covered(intervals, step, columns), {0, 1}, style.ascii), Tone::kGood, style.color)
        << fmt::format("  {:>{}}", Time(length_us), kTime) << '\n';
  };
  for (const OverlapKind kind : {OverlapKind::kComputing, OverlapKind::kCommunication, OverlapKind::kFree}) {
    const Intervals& intervals = timeline.intervals[static_cast<size_t>(kind)];
    double sum = 0;
    for (const Interval& interval : intervals) sum += static_cast<double>(interval.end_ns - interval.start_ns) / 1e3;
    line(std::string(exporting::operators::OverlapName(kind)), intervals, sum);
  }
  for (const StepTimeline::Run& run : timeline.longest) {
    line(ShortName(run.name, kRunName), {{run.start_ns, std::min(run.end_ns, step.end_ns)}},
         static_cast<double>(run.end_ns - run.start_ns) / 1e3);
  }
}

}  // namespace

void PrintSteps(std::ostream& out, const StepView& view, const PictureStyle& style) {
  if (view.steps.empty()) return;
  const auto& shades = style.ascii ? kAsciiShades : kShades;
  const auto headed = [&](std::string_view name, size_t shade) { return fmt::format(">{} {}", name, shades[shade]); };
  // What the columns before it take.
  constexpr size_t kNumbers = 6 + 5 + 8 + 10 + 13 + 17 + 10 + 10;
  const size_t bar = style.width >= kNumbers + 10 ? std::min<size_t>(style.width - kNumbers, 40) : 0;
  Table table({"RANK", "NPU", ">STEP", ">TIME", headed("COMPUTING", 0), headed("COMMUNICATION", 1), headed("FREE", 2),
               ">HIDDEN", ""});
  const auto add = [&](const StepTimes& step, const std::string& number) {
    const double all_us = step.all_us();
    table.AddRow({Known(step.rank), Known(step.device), number, Time(all_us), Share(step.computing_us, all_us),
                  Share(step.communication_us, all_us), Share(step.free_us, all_us), Share(step.hidden_us, all_us),
                  Cell(Parts(step, bar, shades), Tone::kGood)});
  };
  const bool has_steps = view.steps.front().number.has_value();
  for (const StepTimes& sum : DeviceSums(view.steps)) add(sum, has_steps ? "all" : "-");
  const std::vector<StepTimes> shown = LongestSteps(view.steps, style.all ? view.steps.size() : kStepsShown);
  for (const StepTimes& step : shown) {
    if (step.number) add(step, std::to_string(*step.number));
  }
  out << '\n';
  table.Print(out, style.color);
  if (has_steps && shown.size() < view.steps.size() + view.left_out) {
    out << fmt::format("the {} longest of {} steps (--all, --json, profctl export)\n", shown.size(),
                       view.steps.size() + view.left_out);
  }
  if (view.left_out_runs > 0) {
    out << fmt::format("{} kernels and collectives are too many to keep: the steps are without them\n", view.left_out_runs);
  }
  if (view.timeline) PrintTimeline(out, *view.timeline, view.steps.size() > 1, style);
}

Json StepsJson(const StepView& view) {
  Json list = Json::array();
  for (const StepTimes& step : view.steps) {
    list.push_back({{"rank", step.rank < 0 ? Json(nullptr) : Json(step.rank)},
                    {"device", step.device},
                    {"step", step.number ? Json(*step.number) : Json(nullptr)},
                    {"start_ns", step.start_ns},
                    {"end_ns", step.end_ns},
                    {"computing_us", step.computing_us},
                    {"communication_not_overlapped_us", step.communication_us},
                    {"communication_overlapped_us", step.hidden_us},
                    {"free_us", step.free_us}});
  }
  return list;
}

}  // namespace profd::client
