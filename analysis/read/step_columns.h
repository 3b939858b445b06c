// The columns of step_trace_time.csv, of a rank and of a cluster (analysis 2.2, 2.4).
#pragma once

#include <array>
#include <optional>

#include "analysis/rank.h"
#include "analysis/read/csv_file.h"

namespace profd::analysis {

class StepColumns {
 public:
  explicit StepColumns(const CsvFile& file)
      : needed_{file.Column({"Computing"}), file.Column({"Communication"}), file.Column({"Communication(Not Overlapped)"}), file.Column({"Free"})},
        stage_(file.Column({"Stage"})),
        bubble_(file.Column({"Bubble"})),
        without_receive_(file.Column({"Communication(Not Overlapped and Exclude Receive)"})),
        preparing_(file.Column({"Preparing"})) {}

  // None: one that every file has is not a number.
  std::optional<Shares> Get(const CsvFile& record) const {
    std::array<double, 4> ms{};
    for (size_t i = 0; i < ms.size(); ++i) {
      const auto us = record.Number(needed_[i]);
      if (!us) return std::nullopt;
      ms[i] = *us / 1000;
    }
    Shares shares{ms[0], ms[1], ms[2], ms[3]};
    const auto more = [&record](int column) {
      const auto us = record.Number(column);
      return us ? std::optional(*us / 1000) : std::nullopt;
    };
    shares.stage = more(stage_);
    shares.bubble = more(bubble_);
    shares.without_receive = more(without_receive_);
    shares.preparing = more(preparing_);
    return shares;
  }

 private:
  std::array<int, 4> needed_;
  int stage_;
  int bubble_;
  int without_receive_;
  int preparing_;
};

}  // namespace profd::analysis
