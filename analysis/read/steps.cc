// Steps of dumps, and of databases that were made of dumps.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "analysis/read/readers.h"
#include "analysis/read/sqlite_file.h"
#include "export/step_spans.h"

namespace profd::analysis {
namespace {

using exporting::Event;
using exporting::EventKind;
using exporting::StepSpan;
using exporting::StepSpans;

void TakeParts(const Event& event, Rank* rank, Step* step) {
  const Event::Arg* reduce = nullptr;  // where the one that is open began
  for (const Event::Arg& arg : event.args) {
    if (!(std::abs(arg.value) < 9e15)) continue;
    const int64_t t_ns = event.t_ns + std::llround(arg.value);
    if (arg.name == "FP Start") step->fp_ns = t_ns;
    if (arg.name == "BP End") step->bp_ns = t_ns;
    if (arg.name == "Reduce Start") reduce = &arg;
    if (arg.name != "Reduce End" || reduce == nullptr) continue;
    step->reduces.push_back({rank->Text(fmt::format("reduce_{}", step->reduces.size())), event.t_ns + std::llround(reduce->value), t_ns});
    reduce = nullptr;
  }
}

class StepsOfDatabase {
 public:
  StepsOfDatabase(const Database& database, const std::string& where, int device, const ReadContext& context, Rank* rank)
      : database_(database), where_(where), device_(device), context_(context), rank_(*rank) {}

  void Read() {
    if (database_.Has("PROFD_STEP_ROWS")) ReadEvents();
    ReadFramework();
    AddSteps(spans_.For(device_, rank_.rank.value_or(-1)), parts_, device_, &rank_);
  }

 private:
  template <class Take>
  void Run(const std::string& sql, const Take& take) {
    context_.AddProblem(where_, database_.Each(sql, take));
  }

  void ReadEvents() {
    std::map<std::pair<int64_t, int64_t>, std::vector<Event::Arg>> args;  // by start and step, in their order
    if (database_.Has("PROFD_STEP_ARGS")) {
      Run(fmt::format("SELECT startNs, step, (SELECT value FROM STRING_IDS WHERE id = name), value FROM PROFD_STEP_ARGS WHERE deviceId = {}", device_),
          [&args](const Row& row) { args[{row.Int(0), row.Int(1)}].push_back({std::string(row.Text(2)), row.Real(3)}); });
    }
    Run(fmt::format("SELECT startNs, endNs, deviceId, (SELECT value FROM STRING_IDS WHERE id = kind), step, {} FROM PROFD_STEP_ROWS t "
                    "WHERE NOT partial AND {} ORDER BY startNs", RankOfProcess(database_, "PROFD_STEP_ROWS", "t.pid"), IsTimed()),
        [&](const Row& row) {
          Event event = EventOf(row, row.Text(3) == "step"        ? EventKind::kStep
                                     : row.Text(3) == "iteration" ? EventKind::kIteration
                                                                  : EventKind::kDeviceStep);
          event.device = static_cast<int>(row.Int(2));
          event.value = row.Int(4);
          if (!row.IsNull(5)) event.rank = static_cast<int>(row.Int(5));
          spans_.Add(event);
          if (event.kind == EventKind::kStep || event.device != device_) return;
          // The export found parts of steps among the operators; where they are there, FindPoints names the operators, too.
          const bool found = event.kind == EventKind::kDeviceStep && !rank_.executions.empty();
          const auto of_step = args.find({row.Int(0), event.value});
          if (!found && of_step != args.end()) event.args = of_step->second;
          parts_.push_back(std::move(event));
        });
  }

  void ReadFramework() {
    if (database_.Has("STEP_TIME")) {
      Run(fmt::format("SELECT startNs, endNs, id FROM STEP_TIME WHERE {}", IsTimed()), [this](const Row& row) {
        spans_.Add(exporting::StepSource::kFramework, {row.Int(2), row.Time(0), row.Time(1)});
      });
      return;
    }
    if (!database_.Has("MSTX_EVENTS")) return;
    Run(fmt::format("SELECT t.startNs, t.endNs, s.value, {} FROM MSTX_EVENTS t JOIN STRING_IDS s ON s.id = t.message "
                    "WHERE s.value LIKE 'ProfilerStep#%' AND {}", RankOfProcess(database_, "MSTX_EVENTS", "t.globalTid >> 32"), IsTimed("t.")),
        [this](const Row& row) {
          Event event = EventOf(row, EventKind::kRange);
          event.name = row.Text(2);
          if (!row.IsNull(3)) event.rank = static_cast<int>(row.Int(3));
          if (event.dur_ns > 0) spans_.Add(event);
        });
  }

  static Event EventOf(const Row& row, EventKind kind) {
    Event event;
    event.kind = kind;
    event.t_ns = row.Time(0);
    event.dur_ns = row.Time(1) - event.t_ns;
    return event;
  }

  const Database& database_;
  const std::string& where_;
  const int device_;
  const ReadContext& context_;
  Rank& rank_;
  StepSpans spans_;
  std::vector<Event> parts_;
};

}  // namespace

void AddSteps(const std::vector<StepSpan>& spans, const std::vector<Event>& events, int device, Rank* rank) {
  std::set<int64_t> known;  // from another dump or device
  for (const Step& step : rank->steps) known.insert(step.number);
  std::map<int64_t, std::vector<const Event*>> parts;  // by number; models have iterations of the same
  for (const Event& event : events) {
    if (event.device == device) parts[event.value].push_back(&event);
  }
  for (const StepSpan& span : spans) {
    if (known.contains(span.number)) continue;
    Step& step = rank->steps.emplace_back();
    step.number = span.number;
    step.start_ns = span.start_ns;
    step.end_ns = span.end_ns;
    for (const Event* event : parts[span.number]) {
      const bool of_step = event->t_ns < span.end_ns && event->t_ns + event->dur_ns > span.start_ns;
      if (of_step && !step.fp_ns) TakeParts(*event, rank, &step);
    }
  }
  std::ranges::stable_sort(rank->steps, {}, &Step::start_ns);
}

void ReadDatabaseSteps(const Database& database, const std::string& where, int device, const ReadContext& context, Rank* rank) {
  StepsOfDatabase(database, where, device, context, rank).Read();
}

}  // namespace profd::analysis
