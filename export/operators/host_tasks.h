// The tasks that a process put on streams, each with the launch that put it there (operator-data b.1, b.2): the API
// intervals of a thread are a tree, a task belongs to the innermost that contains its time, and what describes an
// operator to the node-level API around it.
#pragma once

#include <cstdint>
#include <vector>

#include "export/operators/communication.h"
#include "export/operators/host_data.h"

namespace profd::exporting::operators {

// What is known of a node-level API; those that do not differ in it are one.
struct Launch {
  uint64_t item = 0;        // hash of the API's item
  uint64_t first_name = 0;  // of the first record that describes it; 0: none
  uint64_t attributes = 0;  // hash of their text, of the last record; 0: none
  int32_t node = -1;        // index of HostTasks::nodes: the last one; -1: none
  int32_t tensors = -1;     // of HostData::tensors; -1: none
  bool operator==(const Launch&) const = default;
};

// One per task of a process: its size is what an export's memory is made of.
struct HostTask {
  uint64_t kernel = 0;
  uint64_t model = kNoModel;
  int32_t connection = -1;     // index of HostData::apis: the launch, else the innermost around it; -1: none
  int32_t communication = -1;  // of the same: the communication API around it; -1: none
  int32_t launch = -1;         // index of HostTasks::launches
  int32_t copy = -1;           // of CommunicationRecords::copies; -1: none
  int32_t contexts = -1;       // of HostTasks::communication: it stands for all contexts of that; -1: for `context` alone
  uint32_t type = 0;           // of the runtime
  uint32_t request = 0xFFFFFFFF;
  uint32_t context = kNoContext;
  uint32_t mix_blocks = 0;
  uint16_t blocks = 0;
  uint16_t device = 0;
  uint16_t stream = 0;
  uint16_t task = 0;
  uint16_t batch = 0;
  bool has_blocks = false;
  bool compute = false;  // has a row among the operators
  bool operator==(const HostTask&) const = default;
};

// Tasks are made in pieces of so many calls of a thread or more, the next ones' records beside.
inline constexpr size_t kCallsPerPiece = 1 << 16;

struct HostTasks {
  std::vector<Launch> launches;   // each once
  std::vector<NodeRecord> nodes;  // the same, whatever their times are
  Large<HostTask> tasks;
  std::vector<CommunicationLaunch> communication_launches;
  std::vector<CommunicationHostTask> communication;
};

// `detailed`: level 1 and more (sample.json prof_level): operators are described by node records. Where they are not
// (level 0), they have the name of the launch, or of the first record that is there, only.
// Takes what is of no use behind it out of `data`: tasks, nodes, tensor records, contexts, attributes.
HostTasks BuildHostTasks(HostData* data, bool detailed, size_t calls_per_piece = kCallsPerPiece);

}  // namespace profd::exporting::operators
