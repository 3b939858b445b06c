// The timeline as a page draws it: lanes of slices and counters, in numbers that are small once packed.
#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "analysis/views/views.h"

namespace profd::analysis {
namespace {

struct Drawn {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  TextId name = kNoText;
  int32_t lane = -1;
  // Its source, for flows: an execution, or (kSlice) a slice.
  uint32_t index = 0;
  enum class Kind : uint8_t { kExecution, kSlice, kOther } kind = Kind::kOther;
};

constexpr std::string_view kStepsGroup = "Steps";

// Lanes in the order of layers, top to bottom.
int LayerOf(std::string_view group) {
  constexpr std::string_view kLayers[] = {kStepsGroup, "Python", "Framework", "CANN", "Ascend Hardware", "Communication", "Overlap Analysis"};
  const auto found = std::ranges::find(kLayers, group);
  return static_cast<int>(found - std::begin(kLayers));
}

class TimelineMaker {
 public:
  explicit TimelineMaker(const Rank& rank) : rank_(rank), lanes_(rank.lanes) {
    for (size_t i = 0; i < rank.executions.size(); ++i) {
      const Execution& each = rank.executions[i];
      drawn_.push_back({each.start_ns, each.end_ns, rank.operators[static_cast<size_t>(each.op)].name, each.lane,
                        static_cast<uint32_t>(i), Drawn::Kind::kExecution});
    }
    for (size_t i = 0; i < rank.slices.size(); ++i) {
      const Slice& each = rank.slices[i];
      drawn_.push_back({each.start_ns, each.end_ns, each.name, each.lane, static_cast<uint32_t>(i), Drawn::Kind::kSlice});
    }
    AddSteps();
    AddOverlap();
  }

  Json Make(size_t most) {
    const size_t left_out = KeepLongest(most);
    std::ranges::stable_sort(drawn_, [](const Drawn& a, const Drawn& b) {
      return std::tuple(a.lane, a.start_ns, -a.end_ns) < std::tuple(b.lane, b.start_ns, -b.end_ns);
    });
    int64_t begin = INT64_MAX;
    int64_t end = INT64_MIN;
    for (const Drawn& each : drawn_) {
      begin = std::min(begin, each.start_ns);
      end = std::max(end, each.end_ns);
    }
    for (const auto& series : rank_.hardware) {
      if (series->points.empty()) continue;
      begin = std::min(begin, series->points.front().t_ns);
      end = std::max(end, series->points.back().t_ns);
    }
    if (begin > end) return nullptr;
    Json json = {{"begin_ns", std::to_string(begin)}, {"span_ns", end - begin}, {"left_out", left_out}};
    AddLanes(begin, &json);
    AddCounters(begin, &json);
    AddFlows(&json);
    return json;
  }

 private:
  void AddSteps() {
    if (rank_.steps.empty()) return;
    const auto lane = static_cast<int32_t>(lanes_.size());
    lanes_.push_back({std::string(kStepsGroup), "Steps"});
    for (const Step& step : rank_.steps) {
      drawn_.push_back({step.start_ns, step.end_ns, Made("Step " + std::to_string(step.number)), lane, 0, Drawn::Kind::kOther});
    }
    if (std::ranges::all_of(rank_.steps, [](const Step& step) { return !step.fp_ns && step.reduces.empty(); })) return;
    const auto parts = static_cast<int32_t>(lanes_.size());
    lanes_.push_back({std::string(kStepsGroup), "Parts of steps"});
    for (const Step& step : rank_.steps) {
      if (step.fp_ns && step.bp_ns) {
        drawn_.push_back({*step.fp_ns, *step.bp_ns, Made("Forward and backward"), parts, 0, Drawn::Kind::kOther});
        drawn_.push_back({*step.bp_ns, step.end_ns, Made("Tail"), parts, 0, Drawn::Kind::kOther});
      }
      AddReduces(step);
    }
  }

  void AddReduces(const Step& step) {
    for (const Reduce& reduce : step.reduces) {
      const auto [it, is_new] = reduce_lanes_.try_emplace(reduce.name, static_cast<int32_t>(lanes_.size()));
      if (is_new) lanes_.push_back({std::string(kStepsGroup), std::string(rank_.TextOf(reduce.name))});
      drawn_.push_back({reduce.start_ns, reduce.end_ns, reduce.name, it->second, 0, Drawn::Kind::kOther});
    }
  }

  void AddOverlap() {
    for (size_t kind = 0; kind < rank_.overlap.size(); ++kind) {
      if (rank_.overlap[kind].empty()) continue;
      const std::string name(exporting::operators::OverlapName(static_cast<OverlapKind>(kind)));
      const auto lane = static_cast<int32_t>(lanes_.size());
      lanes_.push_back({"Overlap Analysis", name});
      for (const Interval& each : rank_.overlap[kind]) {
        drawn_.push_back({each.start_ns, each.end_ns, Made(name), lane, 0, Drawn::Kind::kOther});
      }
    }
  }

  // The number of a name that is not one of the rank's.
  TextId Made(const std::string& name) {
    const auto [it, is_new] = made_ids_.try_emplace(name, -2 - static_cast<TextId>(made_.size()));
    if (is_new) made_.push_back(name);
    return it->second;
  }
  std::string_view NameOf(TextId id) const {
    return id < kNoText ? std::string_view(made_[static_cast<size_t>(-2 - id)]) : rank_.TextOf(id);
  }

  size_t KeepLongest(size_t most) {
    if (drawn_.size() <= most) return 0;
    const size_t left_out = drawn_.size() - most;
    std::ranges::nth_element(drawn_, drawn_.begin() + static_cast<std::ptrdiff_t>(most), std::greater<>(),
                             [](const Drawn& each) { return each.end_ns - each.start_ns; });
    drawn_.resize(most);
    return left_out;
  }

  void AddLanes(int64_t begin, Json* json) {
    std::vector<size_t> first(lanes_.size() + 1, 0);
    for (const Drawn& each : drawn_) ++first[static_cast<size_t>(each.lane) + 1];
    std::partial_sum(first.begin(), first.end(), first.begin());
    std::vector<size_t> order;
    for (size_t lane = 0; lane < lanes_.size(); ++lane) {
      if (first[lane] < first[lane + 1]) order.push_back(lane);
    }
    std::ranges::stable_sort(order, [this](size_t a, size_t b) {
      return std::pair(LayerOf(lanes_[a].group), lanes_[a].group) < std::pair(LayerOf(lanes_[b].group), lanes_[b].group);
    });
    std::unordered_map<TextId, size_t> names;
    std::vector<TextId> name_order;
    Json lanes = Json::array();
    for (const size_t lane : order) {
      Json starts = Json::array();
      Json lengths = Json::array();
      Json ids = Json::array();
      int64_t before = begin;
      for (size_t i = first[lane]; i < first[lane + 1]; ++i) {
        const Drawn& each = drawn_[i];
        const auto [it, is_new] = names.try_emplace(each.name, name_order.size());
        if (is_new) name_order.push_back(each.name);
        starts.push_back(each.start_ns - std::exchange(before, each.start_ns));
        lengths.push_back(each.end_ns - each.start_ns);
        ids.push_back(it->second);
        if (each.kind == Drawn::Kind::kExecution) executions_[each.index] = {lanes.size(), i - first[lane]};
        if (each.kind == Drawn::Kind::kSlice) slices_[each.index] = {lanes.size(), i - first[lane]};
      }
      lanes.push_back({{"group", lanes_[lane].group}, {"name", lanes_[lane].name}, {"start", std::move(starts)},
                       {"duration", std::move(lengths)}, {"name_id", std::move(ids)}});
    }
    (*json)["names"] = Json::array();
    for (const TextId name : name_order) (*json)["names"].push_back(NameOf(name));
    (*json)["lanes"] = std::move(lanes);
  }

  void AddCounters(int64_t begin, Json* json) const {
    Json counters = Json::array();
    for (const auto& series : rank_.hardware) {
      Json times = Json::array();
      Json values = Json::array();
      int64_t before = begin;
      Series drawn;  // of some more is kept than can be drawn
      if (series->points.size() > Series::kMaxPoints) {
        for (const Series::Point& point : series->points) drawn.Add(point.t_ns, point.value);
      }
      for (const Series::Point& point : drawn.points.empty() ? series->points : drawn.points) {
        times.push_back(point.t_ns - std::exchange(before, point.t_ns));
        values.push_back(point.value);
      }
      counters.push_back({{"name", series->name}, {"unit", series->unit}, {"device", series->device},
                          {"holds", series->IsCoreClock()}, {"time", std::move(times)}, {"value", std::move(values)}});
    }
    (*json)["counters"] = std::move(counters);
  }

  void AddFlows(Json* json) const {
    std::vector<std::array<size_t, 4>> flows;
    for (const Flow& flow : rank_.flows) {
      const auto from = slices_.find(flow.slice);
      const auto to = executions_.find(flow.execution);
      if (from == slices_.end() || to == executions_.end()) continue;
      flows.push_back({from->second.first, from->second.second, to->second.first, to->second.second});
    }
    std::ranges::sort(flows);  // sources have them in any order
    (*json)["flows"] = std::move(flows);
  }

  using Place = std::pair<size_t, size_t>;  // lane and slice in it
  const Rank& rank_;
  std::vector<Lane> lanes_;
  std::vector<Drawn> drawn_;
  std::map<TextId, int32_t> reduce_lanes_;
  std::map<std::string, TextId> made_ids_;
  std::vector<std::string> made_;
  std::unordered_map<uint32_t, Place> executions_;
  std::unordered_map<uint32_t, Place> slices_;
};

}  // namespace

Json TimelineData(const Rank& rank, size_t most_slices) { return TimelineMaker(rank).Make(most_slices); }

}  // namespace profd::analysis
