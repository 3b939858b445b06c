// What the ranks of a run are to each other: groups that communicate, operations on all their ranks, stages of a
// pipeline (analysis 1.9, 2.4). Made once of a run, which it points into.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/run.h"

namespace profd::analysis {

// Ranks are indexes of Run::ranks here.
struct ClusterGroup {
  std::string name;  // that operations have
  GroupFacts facts;  // empty where the framework recorded none
  bool p2p = false;
  std::vector<size_t> ranks;  // those that recorded an operation of it

  // "tp", or its name where it has no other.
  std::string_view label() const { return facts.label.empty() ? std::string_view(name) : std::string_view(facts.label); }
};

struct OnRank {
  size_t rank = 0;
  const Collective* op = nullptr;
};

// One operation on all ranks that recorded it.
struct ClusterOp {
  size_t group = 0;
  std::string_view name;
  std::string_view type;
  int64_t step = -1;
  size_t repeat = 0;  // which of those of the same name in the step
  std::vector<OnRank> ranks;
};

class Cluster {
 public:
  explicit Cluster(const Run& run);

  const Run& run() const { return run_; }
  const std::vector<ClusterGroup>& groups() const { return groups_; }
  // By group, step and the first time each was seen.
  const std::vector<ClusterOp>& operations() const { return operations_; }
  // Ranks that send to each other; those of more than one rank.
  const std::vector<std::vector<size_t>>& pipelines() const { return pipelines_; }
  // Ranks that do the same part of a pipeline: they share collectives, and none sends to another. By their first rank.
  const std::vector<std::vector<size_t>>& stages() const { return stages_; }
  std::optional<size_t> StageOf(size_t rank) const { return stage_of_[rank]; }
  // Of data, pipeline and tensor parallelism.
  std::optional<std::array<int64_t, 3>> IndexesOf(size_t rank) const;
  // The number of a rank; of one without, of its device.
  int NumberOf(size_t rank) const;
  const Rank& At(size_t rank) const { return *run_.ranks[rank]; }

 private:
  void AddOperations();
  void FindPipelines();
  void FindStages();

  const Run& run_;
  std::vector<ClusterGroup> groups_;
  std::vector<ClusterOp> operations_;
  std::vector<std::vector<size_t>> pipelines_;
  std::vector<std::vector<size_t>> stages_;
  std::vector<std::optional<size_t>> stage_of_;
};

// "hcom_allReduce__241" of "hcom_allReduce__241_19_1": without the operation's number, which counts from where the rank's
// recording began, and how often it has run.
std::string_view WithoutNumbers(std::string_view name);

// "rank 3 on node7"
std::string RankName(const Rank& rank);

}  // namespace profd::analysis
