// The columns of step_trace_time.csv, of a rank and of a cluster, and of their tables in databases (analysis 2.2, 2.4, 2.5).
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "analysis/rank.h"
#include "analysis/read/csv_file.h"
#include "analysis/read/sqlite_file.h"
#include "analysis/times.h"
#include "base/count_text.h"

namespace profd::analysis {

// In us; none: no number.
struct StepCells {
  std::optional<double> computing, communication, uncovered, free, overlapped, stage, bubble, without_receive, preparing;
};

// None: one that every file has is not a number, and does not follow from the others.
inline std::optional<Shares> SharesOf(const StepCells& us) {
  constexpr double kRounded = 1e-6;  // 1 ns
  // None: no number, or one that no time is. What is a little below 0 was rounded.
  const auto ms = [](std::optional<double> cell) {
    return cell && *cell >= -kRounded * 1000 && *cell * 1000 <= static_cast<double>(kLatestNs) ? std::optional(std::max(*cell, 0.0) / 1000) : std::nullopt;
  };
  // None: the parts are more than all.
  const auto rest = [](double all, double parts) { return all - parts < -kRounded ? std::nullopt : std::optional(all > parts ? all - parts : 0); };
  std::optional<double> computing = ms(us.computing);
  std::optional<double> communication = ms(us.communication);
  std::optional<double> uncovered = ms(us.uncovered);
  std::optional<double> free = ms(us.free);
  const auto overlapped = ms(us.overlapped);
  if (!communication && uncovered && overlapped) communication = *uncovered + *overlapped;
  if (!uncovered && communication && overlapped) uncovered = rest(*communication, *overlapped);
  // Stage and bubble are the complete step, as are computing, uncovered communication and free.
  const auto stage = ms(us.stage);
  const auto bubble = ms(us.bubble);
  if (uncovered && stage && bubble) {
    if (!computing && free) computing = rest(*stage + *bubble, *uncovered + *free);
    if (!free && computing) free = rest(*stage + *bubble, *uncovered + *computing);
  }
  if (!computing || !communication || !uncovered || !free) return std::nullopt;
  Shares shares{*computing, *communication, *uncovered, *free};
  shares.stage = stage;
  shares.bubble = bubble;
  shares.without_receive = ms(us.without_receive);
  shares.preparing = ms(us.preparing);
  return shares;
}

class StepColumns {
 public:
  explicit StepColumns(const CsvFile& file)
      : columns_{file.Column({"Computing"}), file.Column({"Communication"}), file.Column({"Communication(Not Overlapped)"}), file.Column({"Free"}), file.Column({"Overlapped"}),
                 file.Column({"Stage"}), file.Column({"Bubble"}), file.Column({"Communication(Not Overlapped and Exclude Receive)"}), file.Column({"Preparing"})} {}

  std::optional<Shares> Get(const CsvFile& record) const {
    const auto cell = [&](size_t i) { return record.Number(columns_[i]); };
    return SharesOf({cell(0), cell(1), cell(2), cell(3), cell(4), cell(5), cell(6), cell(7), cell(8)});
  }

 private:
  std::array<int, 9> columns_;
};

// Of a row of a table, `first` and what follows being in the order of StepCells.
inline std::optional<Shares> SharesOf(const Row& row, int first) {
  const auto cell = [&](int i) { return row.Number(first + i); };
  return SharesOf({cell(0), cell(1), cell(2), cell(3), cell(4), cell(5), cell(6), cell(7), cell(8)});
}
inline std::string RowsWithoutShares(std::string_view table, uint64_t rows) {
  return fmt::format("{}: {}: left out", table, CountText(rows, "row makes no sense", "rows make no sense"));
}

}  // namespace profd::analysis
