// What a person should look at first; each with the figures that say so.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "analysis/views/step_rows.h"
#include "analysis/views/views.h"
#include "base/count_text.h"

namespace profd::analysis {
namespace {

// Limits: of the time end to end.
constexpr double kMuchFree = 0.1;        // analysis 1.3, overall summary
constexpr double kMuchUncovered = 0.1;
constexpr double kLongIntervalMs = 0.5;  // analysis 4.3, step interval
constexpr double kSlowLink = 0.8;        // of the reference bandwidth (analysis 1.3, bandwidth contention)
constexpr double kRanksApart = 0.05 + 1e-9;  // analysis 1.1: (max - min) / mean, which is rounded

std::string NameOf(const Json& rank) {
  if (!rank["rank"].is_null()) return "rank " + rank["rank"].dump();
  return rank["device"].is_null() ? "unknown rank" : "device " + rank["device"].dump();
}

// One of each kind: many ranks may have the same one, and then the worst of them is its evidence.
class HintList {
 public:
  // `weight`: how bad it is, beside others with the same text.
  void Add(std::string_view area, std::string text, std::string evidence, double weight = 0) {
    const auto same = std::ranges::find(hints_, text, &Hint::text);
    if (same == hints_.end()) {
      hints_.push_back({std::string(area), std::move(text), std::move(evidence), weight, 0});
      return;
    }
    ++same->others;
    if (weight <= same->weight) return;
    same->evidence = std::move(evidence);
    same->weight = weight;
  }

  Json ToJson() const {
    Json list = Json::array();
    for (const Hint& hint : hints_) {
      std::string evidence = hint.evidence;
      if (hint.others > 0) evidence += "; and " + CountText(hint.others, "other rank");
      list.push_back({{"area", hint.area}, {"text", hint.text}, {"evidence", std::move(evidence)}});
    }
    return list;
  }

 private:
  struct Hint {
    std::string area;
    std::string text;
    std::string evidence;
    double weight;
    size_t others;
  };
  std::vector<Hint> hints_;
};

void AddOfOverall(const Json& rank, HintList* hints) {
  const Json& overall = rank["overall"];
  if (!overall.is_object() || NumberOf(overall, "e2e_ms") <= 0) return;
  const double total = NumberOf(overall, "e2e_ms");
  const double free = NumberOf(overall, "free_ms") / total;
  const double uncovered = NumberOf(overall, "uncovered_communication_ms") / total;
  const auto evidence = [&](const char* of, double share) {
    return fmt::format("{}: {}{:.3f} ms of {:.3f} ms ({:.1f} %)", NameOf(rank), of, share * total, total, share * 100);
  };
  if (free > kMuchFree) {
    hints->Add("steps", "The device often waits: look at what the host does then, and at the data pipeline.", evidence("free ", free), free);
  }
  if (uncovered > kMuchUncovered) {
    hints->Add("communication", "Much communication is not overlapped by computing.", evidence("", uncovered), uncovered);
  }
}

// MindInsight takes every long interval for slow input. A later stage of a pipeline receives its input from another rank.
void AddOfInterval(const Json& rank, double communication_ms, HintList* hints) {
  const Json& average = rank["step_average"];
  const double interval = average.is_object() ? NumberOf(average, "iteration_interval_ms") : 0;
  if (interval <= kLongIntervalMs) return;
  if (communication_ms > interval / 2) {
    hints->Add("communication", "The interval between steps is long, and is communication: the step begins with waiting for another rank.",
               fmt::format("{}: {:.3f} ms on average, of them {:.3f} ms communication", NameOf(rank), interval, communication_ms), interval);
  } else {
    hints->Add("data_pipeline", "The interval between steps is long: data processing, its transfer or get_next is slow.",
               fmt::format("{}: {:.3f} ms on average", NameOf(rank), interval), interval);
  }
}

void AddOfPipeline(const Json& rank, HintList* hints) {
  const Json& pipeline = rank["data_pipeline"];
  if (!pipeline.is_object()) return;
  if (pipeline["bottleneck"].is_string()) {
    hints->Add("data_pipeline", fmt::format("The training waits for its input. Bottleneck: {}.", pipeline["bottleneck_name"].get<std::string>()),
               NameOf(rank));
  }
  for (const Json& advice : pipeline["suggestions"]) hints->Add("data_pipeline", advice.get<std::string>(), NameOf(rank));
}

void AddOfLinks(const Json& ranks, HintList* hints) {
  struct SlowLink {
    std::string name;
    std::string evidence;
    double ratio;  // to the reference
  };
  std::vector<SlowLink> slow;
  for (const Json& rank : ranks) {
    for (const Json& link : rank["links"]) {
      const double speed = NumberOf(link, "bandwidth_gb_s");
      const double reference = NumberOf(link, "reference_gb_s");
      if (speed <= 0 || reference <= 0 || speed >= kSlowLink * reference) continue;
      slow.push_back({fmt::format("{} to {} ({})", link["src"].get<std::string>(), link["dst"].get<std::string>(),
                                  link["transport"].get<std::string>()),
                      fmt::format("{}: {:.2f} GB/s, reference {:.1f} GB/s", NameOf(rank), speed, reference), speed / reference});
    }
  }
  if (slow.empty()) return;
  SlowLink& worst = *std::ranges::min_element(slow, {}, &SlowLink::ratio);
  hints->Add("communication",
             slow.size() == 1 ? fmt::format("The link {} is slow.", worst.name)
                              : fmt::format("{} links are slow, {} most.", slow.size(), worst.name),
             std::move(worst.evidence));
}

// As the advice does, by a mean step: ranks need not have recorded as many.
void AddOfRanks(const Run& run, const Json& ranks, HintList* hints) {
  std::vector<StepRow> rows = StepRowsOf(run);
  KeepCompleteSteps(run, &rows);
  const std::vector<StepRow> means = MeanRowsOf(run, rows);
  double total = 0;
  for (const StepRow& mean : means) {
    for (const double ms : mean.ms) total += ms;
  }
  if (means.size() < 2 || total <= 0) return;
  const bool in_steps = std::ranges::all_of(rows, [](const StepRow& row) { return row.step >= 0; });
  for (const auto& [part, what] : {std::pair(StepPart::kComputing, "computing"), std::pair(StepPart::kCommunication, "communication"),
                                   std::pair(StepPart::kFree, "free time")}) {
    const auto [least, most] = std::ranges::minmax_element(means, {}, [part = part](const StepRow& mean) { return mean.At(part); });
    const double difference = most->At(part) - least->At(part);
    if (part == StepPart::kFree && !KnowsFreeTime(run)) continue;
    if (difference / (total / static_cast<double>(means.size())) <= kRanksApart) continue;
    const auto number = std::ranges::find(run.ranks, most->rank, [](const auto& rank) { return rank.get(); }) - run.ranks.begin();
    hints->Add("steps", fmt::format("The ranks differ in {}: {} has most.", what, NameOf(ranks[static_cast<size_t>(number)])),
               fmt::format("{:.3f} ms to {:.3f} ms{}", least->At(part), most->At(part), in_steps ? " of a step" : ""));
  }
}

}  // namespace

Json Hints(const Run& run, const Json& data) {
  HintList hints;
  const Json& ranks = data["ranks"];
  AddOfRanks(run, ranks, &hints);
  AddOfLinks(ranks, &hints);
  for (size_t i = 0; i < ranks.size(); ++i) {
    AddOfPipeline(ranks[i], &hints);
    AddOfInterval(ranks[i], CommunicationInIntervalMs(*run.ranks[i]), &hints);
    if (KnowsComputing(*run.ranks[i])) AddOfOverall(ranks[i], &hints);
  }
  return hints.ToJson();
}

}  // namespace profd::analysis
