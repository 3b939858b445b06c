// Sums over operators, collectives and API calls: op_statistic, communication_statistic, api_statistic.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "export/csv/csv_row.h"
#include "export/csv/operator_parts.h"
#include "export/operators/numbers.h"

namespace profd::exporting::csv {
namespace {

using operators::HostTask;
using operators::kNotKnown;
using operators::Model;

struct Total {
  uint64_t count = 0;
  int64_t sum_ns = 0;
  int64_t min_ns = INT64_MAX;
  int64_t max_ns = 0;
};

// By device, type and (of computation) core type; those that take longest first.
class Statistic {
 public:
  // Texts outlive it.
  void Add(int device, std::string_view type, std::string_view core_type, int64_t ns) {
    Total& total = TotalOf({device, type, core_type});
    ++total.count;
    total.sum_ns += ns;
    total.min_ns = std::min(total.min_ns, ns);
    total.max_ns = std::max(total.max_ns, ns);
    of_device_[device] += ns;
  }

  std::vector<std::string> Lines(bool with_core_type) const {
    std::vector<std::string> lines;
    std::vector<std::pair<Key, Total>> sorted(totals_.begin(), totals_.end());
    std::ranges::stable_sort(sorted, [](const auto& a, const auto& b) { return a.second.sum_ns > b.second.sum_ns; });
    const auto micros = [](double ns) { return ShortDecimal(ns / 1000); };
    for (const auto& [key, total] : sorted) {
      const auto& [device, type, core_type] = key;
      const auto sum = static_cast<double>(total.sum_ns);
      const int64_t all = of_device_.at(device);
      CsvRow row(lines.emplace_back(), device);
      row.Text(type);
      if (with_core_type) row.Text(core_type);
      row.Int(static_cast<int64_t>(total.count)).Text(micros(sum)).Text(micros(static_cast<double>(total.min_ns)));
      row.Text(micros(sum / static_cast<double>(total.count))).Text(micros(static_cast<double>(total.max_ns)));
      row.Text(ShortDecimal(all > 0 ? sum / static_cast<double>(all) * 100 : 0)).End();
    }
    return lines;
  }

 private:
  using Key = std::tuple<int, std::string_view, std::string_view>;

  // Most texts are the same ones again, which need no comparison.
  Total& TotalOf(const Key& key) {
    const auto& [device, type, core_type] = key;
    Total*& known = known_[{device, type.data(), type.size(), core_type.data(), core_type.size()}];
    if (known == nullptr) known = &totals_[key];
    return *known;
  }

  std::map<Key, Total> totals_;
  std::map<std::tuple<int, const char*, size_t, const char*, size_t>, Total*> known_;
  std::map<int, int64_t> of_device_;
};

}  // namespace

std::string ShortDecimal(double value) {
  std::string text = fmt::format("{:.3f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

OperatorCsv OperatorStatistic(const Model& model, std::span<const OperatorRow> rows, int64_t begin_ns) {
  Statistic statistic;
  for (const OperatorRow& row : rows) {
    if (row.task == nullptr || row.start_ns() <= begin_ns) continue;
    const HostTask& host = *model.HostOf(*row.task);
    const std::string_view type = model.OperatorType(host);
    const std::string_view core_type = model.CoreType(host);
    if (type == kNotKnown || core_type == kNotKnown) continue;
    if (core_type == operators::kCommunicationOnCpu || core_type == "COMMUNICATION") continue;
    statistic.Add(row.device(), type, core_type, row.duration());
  }
  return OfLines("op_statistic", "OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)",
                 statistic.Lines(true));
}

OperatorCsv CommunicationStatistic(const Model& model, std::span<const OperatorRow> rows) {
  Statistic statistic;
  std::set<std::string> types;
  for (const OperatorRow& row : rows) {
    if (row.communication == nullptr || !model.detailed) continue;
    const std::string& type = *types.insert(model.TypeOf(*row.communication)).first;
    statistic.Add(row.device(), type, {}, row.duration());
  }
  return OfLines("communication_statistic",
                 "OP Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)", statistic.Lines(false));
}

namespace {

// What the last of the `longest` APIs took (those that took as long are shown too); of all: 0.
template <class Totals>
uint64_t ShortestShown(const Totals& totals, size_t longest) {
  if (longest == 0 || totals.size() <= longest) return 0;
  std::vector<uint64_t> times;
  times.reserve(totals.size());
  for (const auto& [key, total] : totals) times.push_back(total.sum_ns);
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(longest - 1), std::greater<>());
  return times[longest - 1];
}

}  // namespace

OperatorCsv ApiStatistic(const Model& model) {
  std::vector<std::string> lines;
  const auto totals = model.host.ApiTotals();
  const uint64_t shortest = ShortestShown(totals, model.longest);
  for (const auto& [key, total] : totals) {
    const auto& [name, level] = key;
    if (total.sum_ns < shortest) continue;
    const auto count = static_cast<double>(total.count);
    const double mean = static_cast<double>(total.sum_ns) / count;
    const auto micros = [](double ns) { return ShortDecimal(ns / 1000); };
    CsvRow row(lines.emplace_back(), Place{});
    row.Text(level).Text(name).Text(micros(static_cast<double>(total.sum_ns)));
    row.Int(static_cast<int64_t>(total.count)).Text(micros(mean)).Text(micros(static_cast<double>(total.min_ns)));
    row.Text(micros(static_cast<double>(total.max_ns))).Text(ShortDecimal(total.Variance() / 1e6)).End();
  }
  return OfLines("api_statistic", "Level,API Name,Time(us),Count,Avg(us),Min(us),Max(us),Variance", std::move(lines));
}

}  // namespace profd::exporting::csv
