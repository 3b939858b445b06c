// `cluster_analysis_output`: what the vendor's cluster analysis makes of many ranks, for tools that read it (analysis 2.4).
#pragma once

#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analysis/cluster/cluster.h"
#include "base/status.h"

namespace profd::analysis {

inline constexpr std::string_view kClusterOutput = "cluster_analysis_output";

// Writes all its files into DIRECTORY/cluster_analysis_output, each of them complete or not at all. An error where one of
// them is there and is not to be replaced. Returns the directory.
Result<std::string> WriteClusterOutput(const Cluster& cluster, const std::string& directory, bool replace);

// Parts of the files and of the database.

// One operation, or one link, of all ranks, in the order of the files.
struct OutputOp {
  size_t set = 0;  // of OutputSets: the key in the files
  size_t group = 0;
  int64_t step = -1;
  std::string name;
  std::vector<std::pair<int, const Collective*>> ranks;  // by number
};
struct OutputLink {
  std::string transport;
  std::string op;
  double size_mb = 0;
  double time_ms = 0;
};
struct OutputLinks {
  size_t set = 0;
  size_t group = 0;
  int64_t step = -1;
  std::string name;
  bool part = false;
  std::map<std::pair<int, int>, OutputLink> pairs;
};

// The output's view of a cluster.
class OutputModel {
 public:
  explicit OutputModel(const Cluster& cluster);

  const Cluster& cluster() const { return cluster_; }
  // "p2p", "(0, 1)"
  const std::vector<std::string>& sets() const { return sets_; }
  // Those of a set, step and group are together, their total behind them; it is Total Op Info.
  template <class Take>
  Status EachOp(const Take& take) const {
    for (size_t begin = 0; begin < order_.size();) {
      const ClusterOp& first = cluster_.operations()[order_[begin]];
      std::map<int, Collective> totals;
      for (; begin < order_.size(); ++begin) {
        const ClusterOp& op = cluster_.operations()[order_[begin]];
        if (op.group != first.group || op.step != first.step) break;
        if (Status taken = take(Made(op)); !taken.ok()) return taken;
        AddTo(op, &totals);
      }
      OutputOp total{set_of_[first.group], first.group, first.step, std::string(kTotalOp), {}};
      for (const auto& [rank, sum] : totals) total.ranks.emplace_back(rank, &sum);
      if (Status taken = take(total); !taken.ok()) return taken;
    }
    return Status::Ok();
  }
  // With a total for each set, step and group.
  std::vector<OutputLinks> Links() const;

  // A rank's line of its steps, or a stage's; us, as the columns from Computing to Preparing. None: not recorded.
  struct StepRow {
    int64_t step = -1;
    bool stage = false;
    std::string index;  // "3", "(0, 1)"
    std::array<std::optional<double>, 9> us;
    std::optional<std::array<int64_t, 3>> parallel;
  };
  std::vector<StepRow> Steps() const;

  static constexpr std::string_view kTotalOp = "Total Op Info";

 private:
  OutputOp Made(const ClusterOp& op) const;
  void AddTo(const ClusterOp& op, std::map<int, Collective>* totals) const;

  const Cluster& cluster_;
  std::vector<std::string> sets_;
  std::vector<size_t> set_of_;  // by group
  std::vector<size_t> order_;   // of operations
};

// Numbers of the ranks of a group: as the framework made it, else those that recorded it.
std::vector<int> RanksOf(const Cluster& cluster, const ClusterGroup& group);
// "step7"; "step" where there is none.
inline std::string StepKey(int64_t step) { return step < 0 ? "step" : "step" + std::to_string(step); }
// "(0, 1)", with what parts them.
std::string RankSet(const std::vector<int>& ranks, std::string_view comma);
// GB/s with four decimals; 0 where nothing was moved.
double OutputSpeed(double mb, double ms);
// Of wait or synchronization beside transit, four decimals.
double OutputRatio(double part_ms, double transit_ms);

// cluster_analysis.db, at `path`.
Status WriteClusterTables(const OutputModel& model, const std::string& path);

}  // namespace profd::analysis
