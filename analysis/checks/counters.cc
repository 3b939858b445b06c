#include "analysis/checks/counters.h"

#include <algorithm>

namespace profd::analysis {
namespace {

// How much of a part lies before a time.
class Before {
 public:
  explicit Before(const Intervals& part) : part_(part), sums_(part.size() + 1) {
    for (size_t i = 0; i < part.size(); ++i) sums_[i + 1] = sums_[i] + (part[i].end_ns - part[i].start_ns);
  }
  int64_t At(int64_t t_ns) const {
    const auto next = std::ranges::upper_bound(part_, t_ns, {}, &Interval::start_ns);
    const auto count = static_cast<size_t>(next - part_.begin());
    if (count == 0) return 0;
    const Interval& last = part_[count - 1];
    return sums_[count - 1] + std::min(t_ns, last.end_ns) - last.start_ns;
  }

 private:
  const Intervals& part_;
  std::vector<int64_t> sums_;
};

}  // namespace

std::optional<double> MeanDuring(const Series& series, const Intervals& part) {
  const Before before(part);
  double sum = 0;
  double weight = 0;
  for (size_t i = 0; i < series.points.size(); ++i) {
    const Series::Point& point = series.points[i];
    // The first covers as much as the second.
    const int64_t from = i > 0                          ? series.points[i - 1].t_ns
                         : series.points.size() > 1 ? point.t_ns - (series.points[1].t_ns - point.t_ns)
                                                        : point.t_ns;
    const auto covered = static_cast<double>(before.At(point.t_ns) - before.At(from));
    sum += point.value * covered;
    weight += covered;
  }
  return weight > 0 ? std::optional(sum / weight) : std::nullopt;
}

std::vector<SeriesMean> SeriesOverLimit(const CheckInput& input, std::string_view check, std::span<const Watched> watched, const Intervals& part) {
  std::vector<SeriesMean> seen;
  for (const auto& series : input.rank.hardware) {
    for (const Watched& each : watched) {
      if (series->count == 0 || !series->name.starts_with(each.series) || series->name.find(each.label) == std::string::npos) continue;
      const auto mean = part.empty() ? std::optional(series->sum / static_cast<double>(series->count)) : MeanDuring(*series, part);
      if (mean && *mean >= input.limits.At(check, each.limit)) seen.push_back({series.get(), *mean});
    }
  }
  std::ranges::stable_sort(seen, std::ranges::greater(), &SeriesMean::mean);
  return seen;
}

void AddRows(const std::vector<SeriesMean>& seen, Finding* finding) {
  finding->columns = {"counter", "unit", "mean", "max"};
  for (const SeriesMean& each : seen) finding->rows.push_back({each.series->name, each.series->unit, each.mean, each.series->max});
}

}  // namespace profd::analysis
