// What ranks of a cluster cost each other: who is slow, who waits for whom, which links are slow, who has more work
// than others.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/cluster/cluster.h"

namespace profd::analysis {

// A mean step of a rank, ms; none: its steps are not known.
std::optional<Shares> MeanStepOf(const Rank& rank);
// All of it; 0: not known.
double MeanStepMsOf(const Rank& rank);

// What all ranks but one wait for in a collective: it arrived last. It is the one that spends the least time in the
// operation, for all leave it together; clocks of nodes need not agree. Of a message, who waits for the other side.
struct Wait {
  int64_t step = -1;
  size_t waiting = 0;
  size_t last = 0;
  double ms = 0;
  uint64_t operations = 0;
};
// By time, longest first.
std::vector<Wait> WaitsOf(const Cluster& cluster);

// How long others waited for a rank, and it for others, ms of a step on average: over the steps in which it met others; over
// all steps of its recording if the steps of its operations are not known.
struct RankWaits {
  double others_wait_ms = 0;  // mean of the other ranks of each operation
  double waits_ms = 0;
  uint64_t last = 0;        // operations that it was the last of
  uint64_t operations = 0;  // that it took part in
};
std::vector<RankWaits> WaitsByRank(const Cluster& cluster);

// Operations of which a rank's time was an outlier below the others': one vote against it for each (analysis 1.9).
struct Vote {
  uint64_t votes = 0;
  uint64_t operations = 0;  // that could vote: at least three ranks recorded them
};
std::vector<Vote> VotesByRank(const Cluster& cluster);

// An operation that took longer, or shorter, to transmit than others of its type, size and number of ranks.
struct SlowOp {
  const ClusterOp* op = nullptr;
  double size_mb = 0;
  double transit_ms = 0;  // the shortest of all ranks
  double mean_ms = 0;
  double score = 0;
  double offset_ratio = 0;  // of its kind: the largest distance from the mean, in deviations
};
inline constexpr double kOutlier = 3;  // standard deviations
inline constexpr size_t kMostSlow = 15;
// The kinds that differ most first.
std::vector<SlowOp> SlowOperations(const Cluster& cluster);

// Between two ranks, by transport.
struct Pair {
  int source = 0;  // numbers of ranks
  int destination = 0;
  std::string transport;
  double size_mb = 0;
  double time_ms = 0;
  double bandwidth = 0;  // GB/s
  double mean = 0;       // of all pairs of the transport
  double score = 0;
};
// Slowest beside their mean first. Not within one rank.
std::vector<Pair> PairsOf(const Cluster& cluster);

// Ranks that exchange what experts work on.
struct ExpertLoad {
  size_t group = 0;
  size_t rank = 0;
  double size_mb = 0;    // of a step
  double transit_ms = 0;
  double beside_mean = 0;  // of size: 0.5 = half more
};
// By group; within one the largest first.
std::vector<ExpertLoad> ExpertLoadsOf(const Cluster& cluster);

// MB that an operation moved on a rank; HCCS and PCIe are parts of SDMA.
double MovedMb(const Collective& op);

// The number that a rank has in all, of a link's end: links of a group are numbered within it.
class LinkEnds {
 public:
  explicit LinkEnds(const Cluster& cluster);
  // None: a rank that was not recorded, that is not one of the group, or of which nothing shows the number. Fast for one rank after
  // the other.
  std::optional<int> NumberOf(size_t rank, TextId group, TextId end);

 private:
  // What is known of a group by the ranks that were read. The links of a rank begin or end at itself, in most files all begin.
  struct Members {
    std::set<int> ranks;         // who took part in its operations, or has links of it
    std::set<int> linked;        // who has links
    int most = -1;               // the largest number of an end
    bool numbered_in_all = true;  // each link begins at its rank's number in all
  };
  void AddMember(const Rank& rank, int number);
  std::optional<int> Find(const Rank& rank, TextId group, TextId end) const;
  std::optional<int> MemberOf(const Members& members, int number) const;

  const Cluster& cluster_;
  int first_missing_ = 0;  // ranks below it were read
  std::map<std::string, Members, std::less<>> members_;  // by group
  std::map<std::string, std::map<std::string, int, std::less<>>, std::less<>> numbers_;  // by group, number within it
  size_t cached_rank_ = SIZE_MAX;
  std::map<std::pair<TextId, TextId>, std::optional<int>> cache_;
};

}  // namespace profd::analysis
