#include "analysis/checks/advise.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "analysis/checks/places.h"
#include "analysis/read/readers.h"
#include "analysis/views/step_rows.h"
#include "analysis/views/views.h"

namespace profd::analysis {
namespace {

bool Differ(const std::vector<double>& values) {
  constexpr double kDiffers = 0.05 - 1e-9;  // less what the mean is rounded by
  if (values.empty()) return false;
  double mean = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  const auto [least, most] = std::ranges::minmax_element(values);
  return mean > 0 && (*most - *least) / mean >= kDiffers;
}

// What each row has more than the same rank's of that step in the baseline; none where none has its like.
std::vector<StepRow> Differences(const std::vector<StepRow>& rows, const std::vector<StepRow>& baseline) {
  std::map<std::pair<int64_t, std::optional<int>>, const StepRow*> of_baseline;
  for (const StepRow& row : baseline) of_baseline.emplace(std::pair(row.step, row.rank->rank), &row);
  std::vector<StepRow> differences;
  for (StepRow row : rows) {
    const auto like = of_baseline.find({row.step, row.rank->rank});
    if (like == of_baseline.end()) continue;
    for (size_t part = 0; part < row.ms.size(); ++part) row.ms[part] -= like->second->ms[part];
    differences.push_back(row);
  }
  return differences;
}

// The rank to look at, and the step of it that made it stand out; none: it stands out by nothing, so all steps.
struct Choice {
  const Rank* rank = nullptr;
  std::optional<int64_t> step = std::nullopt;
};

// Of many ranks the one where a dimension's checks say most: the row that stands out, else the first rank (1.1).
class RankChoice {
 public:
  RankChoice(const Run& run, const Run* baseline_or_null, const Limits& limits) : run_(run), limits_(limits) {
    if (run.ranks.size() < 2) return;
    rows_ = StepRowsOf(run);
    links_ = LinkRowsOf(run);
    KeepCompleteSteps(run, &rows_);
    if (baseline_or_null == nullptr || baseline_or_null->ranks.size() < 2) return;
    std::vector<StepRow> baseline = StepRowsOf(*baseline_or_null);
    KeepCompleteSteps(*baseline_or_null, &baseline);
    if (std::vector<StepRow> differences = Differences(rows_, baseline); !differences.empty()) rows_ = std::move(differences);
  }
  Choice For(const Check& check) const {
    switch (check.dimension) {
      case Dimension::kSchedule:
      case Dimension::kMemory:
      case Dimension::kDataloader:
        return Outstanding(StepPart::kFree, true);
      case Dimension::kComputation:
        return Outstanding(StepPart::kComputing, true);
      case Dimension::kCommunication:
        return {SlowestLink(check.find == CheckPacket && Uses("RDMA") ? "RDMA" : "SDMA")};
      case Dimension::kOverall:
        if (check.find == CheckEnvironment) return {MostFound(check)};
        break;
      case Dimension::kComparison:
        break;
    }
    return {run_.ranks.front().get()};
  }

  // What comparisons are of: runs, else the rank that is slow on the device (for framework operators: on the host) and the
  // one that is fast.
  void Compare(const Run* baseline_or_null, bool of_host, CheckInput* input) const {
    if (baseline_or_null != nullptr) {
      const auto take = [](const Run& of, std::vector<const Rank*>* ranks) {
        for (const auto& rank : of.ranks) {
          if (!rank->details_left_out) ranks->push_back(rank.get());
        }
      };
      take(run_, &input->compared);
      take(*baseline_or_null, &input->compared_with);
      input->compared_name = run_.name;
      input->compared_with_name = baseline_or_null->name;
      return;
    }
    const StepPart part = of_host ? StepPart::kFree : StepPart::kComputing;
    const Rank* slow = Outstanding(part, true).rank;
    const Rank* fast = Outstanding(part, false).rank;
    // No rank stands out, or one does in two of its steps.
    if (slow == fast) return;
    input->compared = {slow};
    input->compared_with = {fast};
    input->compared_name = NameOf(*slow);
    input->compared_with_name = NameOf(*fast);
  }

 private:
  Choice Outstanding(StepPart part, bool largest) const {
    std::vector<double> values;
    for (const StepRow& row : rows_) values.push_back(row.At(part));
    if (!Differ(values)) return {run_.ranks.front().get()};
    const auto found = largest ? std::ranges::max_element(values) : std::ranges::min_element(values);
    const StepRow& row = rows_[static_cast<size_t>(found - values.begin())];
    return {row.rank, row.step < 0 ? std::nullopt : std::optional(row.step)};
  }

  // The first of those of which most is found: a variable that one node alone has is what makes its ranks slow.
  const Rank* MostFound(const Check& check) const {
    const Rank* most = run_.ranks.front().get();
    size_t rows = 0;
    for (const auto& rank : run_.ranks) {
      const std::optional<Finding> found = check.find({run_, *rank, limits_});
      if (!found || found->rows.size() <= rows) continue;
      rows = found->rows.size();
      most = rank.get();
    }
    return most;
  }

  static size_t NumberOf(std::string_view transport) {
    return static_cast<size_t>(std::ranges::find(kLinkTransports, transport) - kLinkTransports.begin());
  }
  bool Uses(std::string_view transport) const {
    return std::ranges::any_of(links_, [number = NumberOf(transport)](const LinkRow& row) { return row.sums[number].time_ms > 0; });
  }

  // Of those that used the transport; the first rank of them where none stands out.
  const Rank* SlowestLink(std::string_view transport) const {
    const size_t number = NumberOf(transport);
    std::vector<double> speeds;
    std::vector<const Rank*> ranks;
    for (const LinkRow& row : links_) {
      if (row.sums[number].time_ms <= 0) continue;
      speeds.push_back(SpeedOf(row.sums[number]));
      ranks.push_back(row.rank);
    }
    if (Differ(speeds)) return ranks[static_cast<size_t>(std::ranges::min_element(speeds) - speeds.begin())];
    const auto first = std::ranges::find_if(run_.ranks, [&ranks](const auto& rank) { return std::ranges::find(ranks, rank.get()) != ranks.end(); });
    return (first == run_.ranks.end() ? run_.ranks.front() : *first).get();
  }

  const Run& run_;
  const Limits& limits_;
  std::vector<StepRow> rows_;
  std::vector<LinkRow> links_;
};

// Its findings point at times of the host, where call stacks are.
bool HappensOnHost(Dimension dimension) {
  return dimension == Dimension::kSchedule || dimension == Dimension::kMemory || dimension == Dimension::kDataloader;
}

// A text of a table in one language.
Json RowIn(const Json& row, Language language) {
  Json made = Json::array();
  for (const Json& cell : row) made.push_back(cell.is_object() ? cell.at(std::string(LanguageWord(language))) : cell);
  return made;
}

Json TextsIn(const std::vector<TranslatedText>& texts, Language language) {
  Json made = Json::array();
  for (const TranslatedText& each : texts) made.push_back(each.In(language));
  return made;
}

Json ToJson(const Check& check, const Run& run, const Rank& rank, const Finding& finding, Language language) {
  std::vector<std::string> stacks = finding.stacks;
  if (stacks.empty() && finding.at_ns && HappensOnHost(check.dimension)) stacks.emplace_back(StackAt(rank, *finding.at_ns));
  Json json = {{"check", check.id},
               {"dimension", DimensionWord(check.dimension)},
               {"priority", PriorityWord(finding.priority)},
               {"rank", check.of_run ? Json() : OrNull(rank.rank)},
               {"step", OrNull(finding.step)},
               {"cost_ms", OrNull(finding.cost_ms)},
               {"cost_of", HasSteps(run) ? "step" : "run"},
               {"title", finding.title.In(language)},
               {"evidence", finding.evidence.In(language)},
               {"advice", TextsIn(finding.advice, language)},
               {"code", finding.code},
               {"places", PlacesOf(stacks)},
               {"merged", Json::array()},
               // More than a number of JavaScript holds.
               {"at_ns", finding.at_ns ? Json(std::to_string(*finding.at_ns)) : Json()}};
  json["table"] = {{"columns", finding.columns}, {"rows", Json::array()}};
  for (const Json& row : finding.rows) json["table"]["rows"].push_back(RowIn(row, language));
  return json;
}

// Findings of one cause are one: that of the cause, with the text of the other.
struct Shared {
  std::string_view cause;
  std::string_view effect;
};
constexpr auto kShared = std::to_array<Shared>({
    {"operator_dispatch", "dynamic_shape"},  // shapes change, so operators are compiled again
    {"dataloader", "host_storage"},
    {"retransmission", "hardware_roce"},
    // What the host waits for explains a gap without calls; then it is not garbage collection.
    {"host_cpu", "conjectured_gc"},
    {"host_memory", "conjectured_gc"},
    {"host_storage", "conjectured_gc"},
});

struct RankedFinding {
  Priority priority;
  Json finding;
};

void Merge(std::vector<RankedFinding>* all) {
  for (const Shared& shared : kShared) {
    const auto of = [all](std::string_view check) { return std::ranges::find_if(*all, [check](const RankedFinding& each) { return each.finding["check"] == check; }); };
    const auto cause = of(shared.cause);
    const auto effect = of(shared.effect);
    if (cause == all->end() || effect == all->end()) continue;
    Json& kept = cause->finding;
    const Json& other = effect->finding;
    cause->priority = std::min(cause->priority, effect->priority);
    kept["priority"] = PriorityWord(cause->priority);
    if (kept["cost_ms"].is_null()) kept["cost_ms"] = other["cost_ms"];
    for (const Json& each : other["merged"]) kept["merged"].push_back(each);
    kept["merged"].push_back({{"check", other["check"]}, {"title", other["title"]}, {"evidence", other["evidence"]}});
    for (const char* list : {"advice", "code"}) {
      for (const Json& each : other[list]) {
        if (std::ranges::find(kept[list], each) == kept[list].end()) kept[list].push_back(each);
      }
    }
    all->erase(effect);
  }
}

}  // namespace

Json Advise(const Run& run, const Run* baseline_or_null, const Limits& limits, Language language) {
  const RankChoice choice(run, baseline_or_null, limits);
  const Cluster cluster(run);
  std::vector<RankedFinding> found;
  for (const Check& check : Checks()) {
    // One rank beside another run is compared, not summed up.
    const bool summary = check.dimension == Dimension::kOverall && !check.of_run && check.find == CheckOverall;
    if (summary && (run.ranks.size() > 1 || baseline_or_null != nullptr)) continue;
    const Choice chosen = choice.For(check);
    const Rank& rank = *chosen.rank;
    CheckInput input{run, rank, limits};
    if (chosen.step) {
      const auto step = std::ranges::find(rank.steps, *chosen.step, &Step::number);
      if (step != rank.steps.end()) input.step = &*step;
    }
    input.cluster = &cluster;
    if (check.dimension == Dimension::kComparison) choice.Compare(baseline_or_null, check.find == CheckApiCompare, &input);
    if (const std::optional<Finding> finding = check.find(input)) found.push_back({finding->priority, ToJson(check, run, rank, *finding, language)});
  }
  Merge(&found);
  std::ranges::stable_sort(found, {}, &RankedFinding::priority);
  Json findings = Json::array();
  for (RankedFinding& each : found) findings.push_back(std::move(each.finding));
  return findings;
}

Status ReadLimits(const std::string& path, Limits* limits) {
  constexpr uint64_t kMostBytes = 1 << 20;
  const Result<std::string> text = ReadWhole(path, kMostBytes);
  return text.ok() ? limits->Parse(*text, path) : text.status().Annotate(path);
}

}  // namespace profd::analysis
