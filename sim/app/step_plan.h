// What one rank does in one step, in the order in which its main thread does it. A pure function of
// job, rank and step: all ranks of a group come to their common operations in the same order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/app/job.h"

namespace profd::sim::app {

// Where a rank stands; ranks count through tensor, then data, then pipeline.
struct RankPosition {
  uint32_t tensor = 0, data = 0, stage = 0;
};
RankPosition PositionOf(const Job& job, uint32_t rank);

// Ranks that communicate, and which of them this one is. Named by what they have in common.
struct GroupOf {
  std::string name;
  uint32_t members = 1;
  uint32_t rank = 0;
};
GroupOf DataGroup(const Job& job, uint32_t rank);    // gradients
GroupOf ExpertGroup(const Job& job, uint32_t rank);  // the same ranks, in the computation
GroupOf TensorGroup(const Job& job, uint32_t rank);
// Between this stage and the next (or the one before); for each direction one.
GroupOf LinkGroup(const Job& job, uint32_t rank, bool to_next, bool forward);

enum Stream : uint32_t { kCompute, kCommunicate, kLink, kStreams };

struct Action {
  enum Kind {
    kLaunch,
    kCommunication,
    kWait,         // `stream` waits for what `other` has so far
    kSynchronize,  // the host for `stream`
    kPause,        // the host does something else: `name`
    kCopy,         // of a batch to the device
    kTrace,        // of a graph: where the device is in the iteration, `tag`
    kAllocate,     // and release
    kPush,         // a range: `name`
    kPop,
  };
  Kind kind;
  std::string name;
  std::string type;
  std::string function;
  Stream stream = kCompute;
  Stream other = kCompute;
  uint32_t task_type = 0;
  uint32_t block_dim = 1;
  int64_t duration_ns = 0;
  uint64_t bytes = 0;
  uint16_t tag = 0;
  GroupOf group;
  uint32_t rows = 0;  // of all its tensors in this step; 0: as they are
  const std::vector<acl::Tensor>* tensors = nullptr;  // the job's
};

std::vector<Action> PlanStep(const Job& job, uint32_t rank, int64_t step);

}  // namespace profd::sim::app
