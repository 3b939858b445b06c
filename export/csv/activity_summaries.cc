// op_statistic, api_statistic and communication_statistic (operator-data c.3).
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <map>
#include <tuple>
#include <vector>

#include "export/activity_stats.h"
#include "export/csv/csv_row.h"
#include "export/csv/summaries.h"

namespace profd::exporting::csv {
namespace {

// What is counted together: device, name, and what else distinguishes rows.
using Key = std::array<int64_t, 3>;
using Entry = std::pair<Key, ActivityTotal>;

class ActivitySummary : public Summary {
 public:
  // Columns of the table; -1 = none.
  ActivitySummary(const PartContext& context, int second, size_t duration)
      : Summary(context), second_(second), duration_(duration) {}

  void Take(const Batch& batch) override {
    auto names = batch.Ints(0);
    auto lengths = batch.Ints(duration_);
    for (size_t row = 0; row < batch.rows(); ++row) {
      const int64_t second = second_ < 0 ? 0 : batch.Ints(static_cast<size_t>(second_))[row];
      totals_.Add({batch.device, names[row], second}, lengths[row]);
    }
  }
  void Merge(Summary& later) override { totals_.Merge(static_cast<ActivitySummary&>(later).totals_); }

 protected:
  static constexpr Key kRest = {-1, -1, -1};

  std::string NameOf(const Key& key) const {
    if (key == kRest) return "(other)";
    const std::string_view name = context_.strings->Text(key[1]);
    return name.empty() ? "N/A" : std::string(name);
  }
  std::vector<Entry> Entries() const {
    std::vector<Entry> entries(totals_.totals().begin(), totals_.totals().end());
    if (totals_.rest().count > 0) entries.emplace_back(kRest, totals_.rest());
    return entries;
  }

 private:
  int second_;
  size_t duration_;
  ActivityTotals<Key> totals_;
};

// Of operators and of communication: the longest in all first, with their share of the device's time.
class TimeShares : public ActivitySummary {
 public:
  using ActivitySummary::ActivitySummary;

  Status Write(std::string_view name, CsvText* out) override {
    const bool types = name == "op_statistic";
    std::vector<Entry> entries = Entries();
    std::map<int64_t, double> devices;
    for (const auto& [key, total] : entries) devices[key[0]] += static_cast<double>(total.total_ns);
    std::ranges::stable_sort(entries, [](const Entry& a, const Entry& b) {
      return a.second.total_ns > b.second.total_ns;
    });
    for (const auto& [key, total] : entries) {
      CsvRow row(out->rows, key[0]);
      row.Text(NameOf(key));
      if (types) {
        const std::string_view type = key == kRest ? "" : context_.strings->Text(key[2]);
        row.Text(type.empty() ? "N/A" : type);
      }
      const double of = devices[key[0]];
      const double share = of > 0 ? static_cast<double>(total.total_ns) / of * 100 : 0;
      row.Int(static_cast<int64_t>(total.count)).Micros(total.total_ns).Micros(total.min_ns);
      row.Micros(std::llround(total.MeanNs())).Micros(total.max_ns).Text(fmt::format("{:.3f}", share)).End();
      ++out->row_count;
    }
    return Status::Ok();
  }
};

class ApiSummary : public ActivitySummary {
 public:
  using ActivitySummary::ActivitySummary;

  Status Write(std::string_view, CsvText* out) override {
    const Column& levels = TableOf(TableId::kApi).columns[1];
    std::vector<std::tuple<std::string, std::string, ActivityTotal>> rows;
    for (const auto& [key, total] : Entries()) {
      const std::string_view level = key == kRest ? "N/A" : KeyText(levels, key[2]);
      rows.emplace_back(NameOf(key), level.empty() ? std::to_string(key[2]) : std::string(level), total);
    }
    std::ranges::stable_sort(rows, [](const auto& a, const auto& b) {
      return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
    });
    for (const auto& [name, level, total] : rows) {
      CsvRow row(out->rows);
      row.Text("host").Text(level).Text(name).Micros(total.total_ns).Int(static_cast<int64_t>(total.count));
      row.Micros(std::llround(total.MeanNs())).Micros(total.min_ns).Micros(total.max_ns);
      row.Text(fmt::format("{:.3f}", total.VarianceUs())).End();
      ++out->row_count;
    }
    return Status::Ok();
  }
};

}  // namespace

std::span<const SummaryKind> ActivitySummaries() {
  static constexpr auto kKinds = std::to_array<SummaryKind>({
      {"op_statistic", TableId::kKernel,
       "OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)", MakeSummary<TimeShares, 1, 2u>},
      {"communication_statistic", TableId::kCommunication,
       "OP Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)", MakeSummary<TimeShares, -1, 3u>},
      {"api_statistic", TableId::kApi, "Level,API Name,Time(us),Count,Avg(us),Min(us),Max(us),Variance",
       MakeSummary<ApiSummary, 1, 2u>},
  });
  return kKinds;
}

}  // namespace profd::exporting::csv
