#include "analysis/checks/advise.h"

#include <algorithm>

#include "analysis/read/readers.h"
#include "analysis/views/views.h"

namespace profd::analysis {
namespace {

// What the rank with the worst links has least of.
double BandwidthOf(const Rank& rank) {
  Transport both = SumOf(rank, "SDMA");
  const Transport rdma = SumOf(rank, "RDMA");
  both.size_mb += rdma.size_mb;
  both.time_ms += rdma.time_ms;
  return SpeedOf(both);
}

double PartOf(const Rank& rank, const char* part) {
  const Json overall = OverallView(rank);
  return overall.is_object() ? overall[part].get<double>() : 0;
}

bool Differ(const std::vector<double>& values) {
  constexpr double kDiffers = 0.05;
  double mean = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  const auto [least, most] = std::ranges::minmax_element(values);
  return mean > 0 && (*most - *least) / mean >= kDiffers;
}

// The rank that stands out most by `value`; the first where none does (1.1).
const Rank& Outstanding(const Run& run, const std::vector<double>& values, bool largest) {
  if (!Differ(values)) return *run.ranks.front();
  const auto [least, most] = std::ranges::minmax_element(values);
  return *run.ranks[static_cast<size_t>((largest ? most : least) - values.begin())];
}

// Of many ranks the one where a dimension's checks say most.
class RankChoice {
 public:
  explicit RankChoice(const Run& run) : run_(run) {
    for (const auto& rank : run.ranks) {
      free_.push_back(PartOf(*rank, "free_ms"));
      computing_.push_back(PartOf(*rank, "computing_ms"));
      bandwidth_.push_back(BandwidthOf(*rank));
    }
  }
  const Rank& For(Dimension dimension) const {
    switch (dimension) {
      case Dimension::kSchedule:
      case Dimension::kMemory:
      case Dimension::kDataloader:
        return Outstanding(run_, free_, true);
      case Dimension::kComputation:
        return Outstanding(run_, computing_, true);
      case Dimension::kCommunication:
        return Outstanding(run_, bandwidth_, false);
      case Dimension::kOverall:
      case Dimension::kComparison:
        break;
    }
    return *run_.ranks.front();
  }

  // What comparisons are of: runs, else the rank that is slow on the device (for framework operators: on the host) and the
  // one that is fast.
  void Compare(const Run* baseline_or_null, bool of_host, CheckInput* input) const {
    if (baseline_or_null != nullptr) {
      for (const auto& rank : run_.ranks) input->compared.push_back(rank.get());
      for (const auto& rank : baseline_or_null->ranks) input->compared_with.push_back(rank.get());
      input->compared_name = run_.name;
      input->compared_with_name = baseline_or_null->name;
      return;
    }
    const std::vector<double>& values = of_host ? free_ : computing_;
    if (run_.ranks.size() < 2 || !Differ(values)) return;
    const Rank& slow = Outstanding(run_, values, true);
    const Rank& fast = Outstanding(run_, values, false);
    input->compared = {&slow};
    input->compared_with = {&fast};
    input->compared_name = NameOf(slow);
    input->compared_with_name = NameOf(fast);
  }

 private:
  const Run& run_;
  std::vector<double> free_;
  std::vector<double> computing_;
  std::vector<double> bandwidth_;
};

Json ToJson(const Check& check, const Rank& rank, const Finding& finding) {
  Json json = {{"check", check.id},
               {"dimension", DimensionWord(check.dimension)},
               {"priority", PriorityWord(finding.priority)},
               {"rank", check.of_run ? Json() : OrNull(rank.rank)},
               {"step", OrNull(finding.step)},
               {"cost_ms", OrNull(finding.cost_ms)},
               {"title", finding.title},
               {"evidence", finding.evidence},
               {"advice", finding.advice},
               // More than a number of JavaScript holds.
               {"at_ns", finding.at_ns ? Json(std::to_string(*finding.at_ns)) : Json()}};
  json["table"] = {{"columns", finding.columns}, {"rows", finding.rows}};
  return json;
}

}  // namespace

Json Advise(const Run& run, const Run* baseline_or_null, const Limits& limits) {
  const RankChoice choice(run);
  std::vector<std::pair<Priority, Json>> found;
  for (const Check& check : Checks()) {
    // One rank beside another run is compared, not summed up.
    const bool summary = check.dimension == Dimension::kOverall && !check.of_run && check.find == CheckOverall;
    if (summary && (run.ranks.size() > 1 || baseline_or_null != nullptr)) continue;
    const Rank& rank = choice.For(check.dimension);
    CheckInput input{run, rank, limits};
    if (check.dimension == Dimension::kComparison) choice.Compare(baseline_or_null, check.find == CheckApiCompare, &input);
    if (const auto finding = check.find(input)) {
      found.emplace_back(finding->priority, ToJson(check, rank, *finding));
    }
  }
  std::ranges::stable_sort(found, {}, &std::pair<Priority, Json>::first);
  Json findings = Json::array();
  for (auto& [priority, finding] : found) findings.push_back(std::move(finding));
  return findings;
}

Status ReadLimits(const std::string& path, Limits* limits) {
  constexpr uint64_t kMostBytes = 1 << 20;
  const Result<std::string> text = ReadWhole(path, kMostBytes);
  return text.ok() ? limits->Parse(*text, path) : text.status();
}

}  // namespace profd::analysis
