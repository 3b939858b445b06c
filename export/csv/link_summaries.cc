// hccs and pcie.
#include <algorithm>
#include <array>
#include <limits>

#include "export/csv/summaries.h"

namespace profd::exporting::csv {
namespace {

struct Extremes {
  double min = std::numeric_limits<double>::max();
  double max = std::numeric_limits<double>::lowest();
  double sum = 0;  // in the order of the rows, as SQL adds

  void Add(double value) {
    min = std::min(min, value);
    max = std::max(max, value);
    sum += value;
  }
  void Merge(const Extremes& later) {
    min = std::min(min, later.min);
    max = std::max(max, later.max);
    sum += later.sum;
  }
};

class HccsSummary : public Summary {
 public:
  using Summary::Summary;

  void Take(const Batch& batch) override {
    for (double value : batch.Reals(0)) tx_.Add(value);
    for (double value : batch.Reals(1)) rx_.Add(value);
    count_ += batch.rows();
  }
  void Merge(Summary& later) override {
    auto& other = static_cast<HccsSummary&>(later);
    tx_.Merge(other.tx_);
    rx_.Merge(other.rx_);
    count_ += other.count_;
  }
  Status Write(std::string_view, CsvText* out) override {
    if (count_ == 0) return Status::Ok();
    WriteRow("Tx (MB/s)", tx_, out);
    WriteRow("Rx (MB/s)", rx_, out);
    return Status::Ok();
  }

 private:
  void WriteRow(std::string_view mode, const Extremes& values, CsvText* out) {
    CsvRow row = NextRow(out);
    row.Text(mode).Repr(SqlRound(values.max, 3)).Repr(SqlRound(values.min, 3));
    row.Repr(SqlRound(values.sum / static_cast<double>(count_), 3)).End();
  }

  Extremes tx_;
  Extremes rx_;
  uint64_t count_ = 0;
};

class PcieSummary : public Summary {
 public:
  // Atlas A2/A3: the last row; all others: the average (dump-format 2.2).
  explicit PcieSummary(const PartContext& context)
      : Summary(context), last_only_(context.place->chip == 5) {}

  void Take(const Batch& batch) override {
    if (batch.rows() == 0) return;
    if (last_only_) {
      TakeLast(batch);
      return;
    }
    // Where the largest is below the smallest value the driver had no value.
    auto mins = batch.Ints(0);
    auto maxes = batch.Ints(1);
    for (size_t i = 0; i < kValues; ++i) {
      auto values = batch.Ints(i);
      for (size_t row = 0; row < values.size(); ++row) {
        if (maxes[row] >= mins[row]) sums_[i] += static_cast<double>(values[row]);
      }
    }
    for (size_t row = 0; row < mins.size(); ++row) count_ += maxes[row] >= mins[row] ? 1 : 0;
  }
  void Merge(Summary& later) override {
    auto& other = static_cast<PcieSummary&>(later);
    if (!last_only_) {
      count_ += other.count_;
      for (size_t i = 0; i < kValues; ++i) sums_[i] += other.sums_[i];
    } else if (count_ == 0 || (other.count_ > 0 && other.last_ns_ > last_ns_)) {
      count_ = other.count_;
      last_ns_ = other.last_ns_;
      sums_ = other.sums_;
    }
  }
  Status Write(std::string_view, CsvText* out) override {
    if (count_ == 0) return Status::Ok();
    for (size_t group = 0; group < kModes.size(); ++group) {
      CsvRow row = NextRow(out);
      row.Text(kModes[group]);
      for (size_t i = 0; i < 3; ++i) row.Fixed3(Value(group, i));
      row.End();
    }
    return Status::Ok();
  }

 private:
  static constexpr std::array<std::string_view, 7> kModes = {
      "Tx_p_avg(MB/s)", "Tx_np_avg(MB/s)", "Tx_cpl_avg(MB/s)", "Tx_latency_avg(us)",
      "Rx_p_avg(MB/s)", "Rx_np_avg(MB/s)", "Rx_cpl_avg(MB/s)"};
  static constexpr size_t kLatency = 3;
  static constexpr size_t kValues = 21;  // min, max, avg of each
  static constexpr double kNoMinimum = 0xFFFFF;
  static constexpr double kMegaPerByteUs = 1e9 / 1000 / 1024 / 1024;

  void TakeLast(const Batch& batch) {
    auto last = std::ranges::max_element(batch.t_ns);  // the first of several
    if (count_ > 0 && *last <= last_ns_) return;
    count_ = 1;
    last_ns_ = *last;
    auto row = static_cast<size_t>(last - batch.t_ns.begin());
    for (size_t i = 0; i < kValues; ++i) sums_[i] = static_cast<double>(batch.Ints(i)[row]);
  }

  double Value(size_t group, size_t i) const {
    double value = sums_[group * 3 + i];
    if (!last_only_) value = SqlRound(value / static_cast<double>(count_), 6);
    if (i == 0 && value == kNoMinimum) value = 0;
    return group == kLatency ? value / 1000 : value * kMegaPerByteUs;
  }

  bool last_only_;
  uint64_t count_ = 0;
  int64_t last_ns_ = 0;
  std::array<double, kValues> sums_ = {};
};

}  // namespace

std::span<const SummaryKind> LinkSummaries() {
  static constexpr auto kKinds = std::to_array<SummaryKind>({
      {"hccs", TableId::kHccs, "Mode,Max,Min,Average", MakeSummary<HccsSummary>},
      {"pcie", TableId::kPcie, "Mode,Min,Max,Avg", MakeSummary<PcieSummary>},
  });
  return kKinds;
}

}  // namespace profd::exporting::csv
