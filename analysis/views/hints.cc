// What a person should look at first; each with the figures that say so.
#include <fmt/format.h>

#include "analysis/views/views.h"

namespace profd::analysis {
namespace {

// Limits: of the time end to end.
constexpr double kMuchFree = 0.1;        // analysis 1.3, overall summary
constexpr double kMuchUncovered = 0.1;
constexpr double kLongIntervalMs = 0.5;  // analysis 4.3, step interval
constexpr double kSlowLink = 0.8;        // of the reference bandwidth (analysis 1.3, bandwidth contention)
constexpr double kRanksApart = 0.05;     // analysis 1.1: (max - min) / mean

double NumberOf(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

std::string NameOf(const Json& rank) {
  return rank["rank"].is_null() ? "device " + rank["device"].dump() : "rank " + rank["rank"].dump();
}

void Add(std::string_view area, std::string text, std::string evidence, Json* hints) {
  hints->push_back({{"area", area}, {"text", std::move(text)}, {"evidence", std::move(evidence)}});
}

void AddOfTime(const Json& rank, Json* hints) {
  const Json& overall = rank["overall"];
  if (overall.is_object() && NumberOf(overall, "e2e_ms") > 0) {
    const double whole = NumberOf(overall, "e2e_ms");
    const double free = NumberOf(overall, "free_ms");
    const double uncovered = NumberOf(overall, "uncovered_communication_ms");
    if (free / whole > kMuchFree) {
      Add("steps", "The device often waits: look at what the host does then, and at the data pipeline.",
          fmt::format("{}: free {:.3f} ms of {:.3f} ms ({:.1f} %)", NameOf(rank), free, whole, free / whole * 100), hints);
    }
    if (uncovered / whole > kMuchUncovered) {
      Add("communication", "Much communication is not overlapped by computing.",
          fmt::format("{}: {:.3f} ms of {:.3f} ms ({:.1f} %)", NameOf(rank), uncovered, whole, uncovered / whole * 100), hints);
    }
  }
  const Json& average = rank["step_average"];
  if (average.is_object() && NumberOf(average, "iteration_interval_ms") > kLongIntervalMs) {
    Add("data_pipeline", "The interval between steps is long: data processing, its transfer or get_next is slow.",
        fmt::format("{}: {:.3f} ms on average", NameOf(rank), NumberOf(average, "iteration_interval_ms")), hints);
  }
}

void AddOfPipeline(const Json& rank, Json* hints) {
  const Json& pipeline = rank["data_pipeline"];
  if (!pipeline.is_object()) return;
  if (pipeline["bottleneck"].is_string()) {
    Add("data_pipeline", fmt::format("The training waits for its input. Bottleneck: {}.", pipeline["bottleneck_name"].get<std::string>()),
        NameOf(rank), hints);
  }
  for (const Json& advice : pipeline["suggestions"]) Add("data_pipeline", advice.get<std::string>(), NameOf(rank), hints);
}

void AddOfLinks(const Json& rank, Json* hints) {
  for (const Json& link : rank["links"]) {
    const double speed = NumberOf(link, "bandwidth_gb_s");
    const double reference = NumberOf(link, "reference_gb_s");
    if (speed <= 0 || reference <= 0 || speed >= kSlowLink * reference) continue;
    Add("communication", fmt::format("The link {} to {} ({}) is slow.", link["src"].get<std::string>(), link["dst"].get<std::string>(),
                                     link["transport"].get<std::string>()),
        fmt::format("{}: {:.2f} GB/s, reference {:.1f} GB/s", NameOf(rank), speed, reference), hints);
  }
}

void AddOfRanks(const Json& ranks, Json* hints) {
  for (const auto& [field, what] : {std::pair("computing_ms", "computing"), std::pair("uncovered_communication_ms", "communication"),
                                    std::pair("free_ms", "free time")}) {
    double least = 0;
    double most = 0;
    double whole = 0;
    size_t count = 0;
    const Json* slowest = nullptr;
    for (const Json& rank : ranks) {
      if (!rank["overall"].is_object()) continue;
      const double value = NumberOf(rank["overall"], field);
      whole += NumberOf(rank["overall"], "computing_ms") + NumberOf(rank["overall"], "uncovered_communication_ms") +
               NumberOf(rank["overall"], "free_ms");
      if (count++ == 0) least = most = value;
      least = std::min(least, value);
      if (value >= most) slowest = &rank;
      most = std::max(most, value);
    }
    if (count < 2 || whole <= 0 || (most - least) / (whole / static_cast<double>(count)) <= kRanksApart) continue;
    Add("steps", fmt::format("The ranks differ in {}: {} has most.", what, NameOf(*slowest)),
        fmt::format("{:.3f} ms to {:.3f} ms", least, most), hints);
  }
}

}  // namespace

Json Hints(const Json& run) {
  Json hints = Json::array();
  AddOfRanks(run["ranks"], &hints);
  for (const Json& rank : run["ranks"]) {
    AddOfTime(rank, &hints);
    AddOfPipeline(rank, &hints);
    AddOfLinks(rank, &hints);
  }
  return hints;
}

}  // namespace profd::analysis
