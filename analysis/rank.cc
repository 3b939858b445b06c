#include "analysis/rank.h"

#include <algorithm>
#include <numeric>
#include <type_traits>
#include <utility>

#include "analysis/rules/host_work.h"
#include "export/operators/step_shares.h"

namespace profd::analysis {

Shares SharesOf(const exporting::operators::StepShare& share) {
  Shares shares{share.Of(OverlapKind::kComputing) / 1000, share.Of(OverlapKind::kCommunication) / 1000,
                share.Of(OverlapKind::kNotOverlapped) / 1000, share.Of(OverlapKind::kFree) / 1000};
  shares.stage = (share.whole_us - share.receive_us) / 1000;
  shares.bubble = share.receive_us / 1000;
  shares.without_receive = shares.uncovered - *shares.bubble;
  shares.preparing = share.before_us / 1000;
  shares.begun = {shares.computing, shares.communication, shares.uncovered, shares.free};
  return shares;
}

void Shares::Add(const Shares& other) {
  computing += other.computing;
  communication += other.communication;
  uncovered += other.uncovered;
  free += other.free;
}

Shares Shares::MeanOf(double count) const { return {computing / count, communication / count, uncovered / count, free / count}; }

void Collective::Parts::Add(const Parts& other) {
  transit_ms += other.transit_ms;
  wait_ms += other.wait_ms;
  synchronization_ms += other.synchronization_ms;
  idle_ms += other.idle_ms;
}

void Operator::AddTypes(TextId inputs, TextId outputs) {
  constexpr size_t kMost = 64;
  const std::pair types(inputs, outputs);
  const bool known = types == std::pair(input_types, output_types) || std::ranges::find(other_types, types) != other_types.end();
  if (!known && other_types.size() < kMost) other_types.push_back(types);
}

void Operator::AddRatio(size_t number, double ratio, double ns) {
  Rank::AddTo(&ratio_ns, number, ratio * ns);
  Rank::AddTo(&ratio_sums, number, ratio);
}

void Operator::EndRatios(double ns) {
  counted_ns += ns;
  ++counted;
}

void ExecutionTimes::Add(int64_t ns) {
  ++count;
  total_ns += ns;
  min_ns = std::min(min_ns, ns);
  max_ns = std::max(max_ns, ns);
}

void ExecutionTimes::Add(const ExecutionTimes& other) {
  count += other.count;
  total_ns += other.total_ns;
  min_ns = std::min(min_ns, other.min_ns);
  max_ns = std::max(max_ns, other.max_ns);
}

double ExecutionTimes::MeanMs() const { return count == 0 ? 0 : Ms(total_ns) / static_cast<double>(count); }

std::vector<ExecutionTimes> TimesOf(const Rank& rank) {
  if (rank.sums) return rank.sums->operators;
  std::vector<ExecutionTimes> times(rank.operators.size());
  for (const Execution& each : rank.executions) times[static_cast<size_t>(each.op)].Add(each.end_ns - each.start_ns);
  return times;
}

void Series::Add(int64_t t_ns, double value) {
  if (count == 0) min = max = value;
  ++count;
  sum += value;
  min = std::min(min, value);
  max = std::max(max, value);
  if (points.empty() || in_last_ == per_point_) {
    if (points.size() >= kMaxPoints && points.size() == MostPoints()) Thin();
    points.push_back({t_ns, value});
    in_last_ = 1;
    return;
  }
  Point& last = points.back();
  ++in_last_;
  last.value = IsCoreClock() ? std::max(last.value, value) : last.value + (value - last.value) / static_cast<double>(in_last_);
}

void Series::Thin() {
  const bool highest = IsCoreClock();
  for (size_t i = 0; i + 1 < points.size(); i += 2) {
    const double a = points[i].value;
    const double b = points[i + 1].value;
    points[i / 2] = {points[i].t_ns, highest ? std::max(a, b) : (a + b) / 2};
  }
  points.resize(points.size() / 2);
  per_point_ *= 2;
  in_last_ = per_point_;
}

void Series::Sort() {
  std::ranges::stable_sort(points, {}, &Point::t_ns);
}

std::optional<double> Series::Mean(const Interval& span) const {
  const auto begin = std::ranges::lower_bound(points, span.start_ns, {}, &Point::t_ns);
  const auto end = std::lower_bound(begin, points.end(), span.end_ns,
                                    [](const Point& point, int64_t t_ns) { return point.t_ns < t_ns; });
  if (begin == end) return std::nullopt;
  const double total =
      std::accumulate(begin, end, 0.0, [](double all, const Point& point) { return all + point.value; });
  return total / static_cast<double>(end - begin);
}

bool Series::IsCoreClock() const {
  const std::string_view text = name;
  const bool of_dump = text.starts_with("frequency_hertz domain=") || text.starts_with("die_frequency_hertz die=");
  return text.starts_with("AI Core Freq") || (of_dump && text.ends_with(" domain=aicore"));
}

std::optional<double> Series::MeanByTime(const Interval& span) const {
  auto next = std::ranges::upper_bound(points, span.start_ns, {}, &Point::t_ns);
  if (next != points.begin()) --next;
  double total = 0;
  double known_ns = 0;
  for (; next != points.end() && next->t_ns < span.end_ns; ++next) {
    const auto after = std::next(next);
    const int64_t end_ns = after == points.end() ? span.end_ns : std::min(after->t_ns, span.end_ns);
    const auto ns = static_cast<double>(end_ns - std::max(next->t_ns, span.start_ns));
    total += next->value * ns;
    known_ns += ns;
  }
  return known_ns > 0 ? std::optional(total / known_ns) : std::nullopt;
}

std::optional<double> Pipeline::Operator::Mean() const {
  if (queue_sizes.empty()) return std::nullopt;
  return std::accumulate(queue_sizes.begin(), queue_sizes.end(), 0.0) / static_cast<double>(queue_sizes.size());
}

std::optional<double> Pipeline::Operator::Use() const {
  const std::optional<double> mean = Mean();
  if (!mean || !queue_length || *queue_length <= 0) return std::nullopt;
  return *mean / static_cast<double>(*queue_length);
}

void Rank::DropDetails(std::map<int64_t, Shares> step_shares, const std::optional<Overall>& all) {
  details_left_out = true;
  shares_of_intervals = shares_of_intervals || shares.empty();
  shares = std::move(step_shares);
  overall = all;
  const auto drop = [](auto* values) { std::remove_pointer_t<decltype(values)>().swap(*values); };
  drop(&operators);
  if (sums) drop(&sums->operators);
  drop(&executions);
  drop(&communication_at);
  drop(&slices);
  drop(&flows);
  drop(&stacks);
  drop(&transfers);
  drop(&memory);
  drop(&blocks);
  drop(&hardware);
  for (Intervals& intervals : overlap) drop(&intervals);
}

void Rank::AddMark(const Mark& mark) {
  marks.push_back(mark);
  if (!mark.is_instant && HostWorkOf(TextOf(mark.name)) == HostWork::kGc) garbage.push_back({mark.start_ns, mark.end_ns});
}

TextId Rank::Text(std::string_view text) { return static_cast<TextId>(texts.Intern(text)); }

int32_t Rank::LaneOf(std::string_view group, std::string_view name) {
  const std::pair<std::string, std::string> key(group, name);
  const auto [it, is_new] = lane_ids_.try_emplace(key, static_cast<int32_t>(lanes.size()));
  if (is_new) lanes.push_back({key.first, key.second});
  return it->second;
}

int32_t Rank::OperatorOf(TextId name, TextId type, TextId core, TextId input_shapes) {
  const auto pair = [](TextId a, TextId b) { return (static_cast<uint64_t>(static_cast<uint32_t>(a)) << 32) | static_cast<uint32_t>(b); };
  const auto [it, is_new] = operator_ids_.try_emplace({pair(name, type), pair(core, input_shapes)}, static_cast<int32_t>(operators.size()));
  if (is_new) {
    Operator& made = operators.emplace_back();
    made.name = name;
    made.type = type;
    made.core = core;
    made.input_shapes = input_shapes;
  }
  return it->second;
}

size_t Rank::NumberIn(std::vector<std::string>* names, std::string_view name) {
  const auto known = std::ranges::find(*names, name);
  const auto number = static_cast<size_t>(known - names->begin());
  if (known == names->end()) names->emplace_back(name);
  return number;
}

void Rank::AddWaits(std::vector<PlaneTask> tasks, bool idle_planes) {
  std::ranges::stable_sort(tasks, {}, &PlaneTask::start_ns);
  std::map<int32_t, bool> sent;  // by plane: RDMA was last
  for (const PlaneTask& task : tasks) {
    const auto [plane, is_new] = sent.try_emplace(task.plane, false);
    const bool behind_rdma = std::exchange(plane->second, task.name == "RDMASend");
    if (idle_planes && is_new) waits.push_back({task.start_ns, task.start_ns, task.plane, false});
    if (task.name == "Notify_Wait") waits.push_back({task.start_ns, task.end_ns, task.plane, behind_rdma});
  }
}

void Rank::AddTo(std::vector<double>* values, size_t number, double value) {
  values->resize(std::max(values->size(), number + 1));
  (*values)[number] += value;
}

}  // namespace profd::analysis
