// The columns of step_trace_time.csv, of a rank and of a cluster (analysis 2.2, 2.4).
#pragma once

#include <algorithm>
#include <array>
#include <optional>

#include "analysis/rank.h"
#include "analysis/read/csv_file.h"
#include "analysis/times.h"

namespace profd::analysis {

class StepColumns {
 public:
  explicit StepColumns(const CsvFile& file)
      : needed_{file.Column({"Computing"}), file.Column({"Communication"}), file.Column({"Communication(Not Overlapped)"}), file.Column({"Free"})},
        overlapped_(file.Column({"Overlapped"})),
        stage_(file.Column({"Stage"})),
        bubble_(file.Column({"Bubble"})),
        without_receive_(file.Column({"Communication(Not Overlapped and Exclude Receive)"})),
        preparing_(file.Column({"Preparing"})) {}

  // None: one that every file has is not a number, and does not follow from the others.
  std::optional<Shares> Get(const CsvFile& record) const {
    // None: no number, or one that no time is. What is a little below 0 was rounded.
    const auto more = [&record](int column) {
      const auto us = record.Number(column);
      return us && *us >= -kRounded * 1000 && *us * 1000 <= static_cast<double>(kLatestNs) ? std::optional(std::max(*us, 0.0) / 1000) : std::nullopt;
    };
    std::array<std::optional<double>, 4> ms;
    for (size_t i = 0; i < ms.size(); ++i) ms[i] = more(needed_[i]);
    auto& [computing, communication, uncovered, free] = ms;
    const auto overlapped = more(overlapped_);
    if (!communication && uncovered && overlapped) communication = *uncovered + *overlapped;
    if (!uncovered && communication && overlapped) uncovered = Rest(*communication, *overlapped);
    // Stage and bubble are the complete step, as are computing, uncovered communication and free.
    const auto stage = more(stage_);
    const auto bubble = more(bubble_);
    if (uncovered && stage && bubble) {
      if (!computing && free) computing = Rest(*stage + *bubble, *uncovered + *free);
      if (!free && computing) free = Rest(*stage + *bubble, *uncovered + *computing);
    }
    if (!computing || !communication || !uncovered || !free) return std::nullopt;
    Shares shares{*computing, *communication, *uncovered, *free};
    shares.stage = stage;
    shares.bubble = bubble;
    shares.without_receive = more(without_receive_);
    shares.preparing = more(preparing_);
    return shares;
  }

 private:
  static constexpr double kRounded = 1e-6;  // 1 ns
  // None: the parts are more than all.
  static std::optional<double> Rest(double all, double parts) {
    return all - parts < -kRounded ? std::nullopt : std::optional(all > parts ? all - parts : 0);
  }

  std::array<int, 4> needed_;
  int overlapped_;
  int stage_;
  int bubble_;
  int without_receive_;
  int preparing_;
};

}  // namespace profd::analysis
