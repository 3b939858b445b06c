// Communication of one dump (operator-data b.5): what the host launched, the tasks of it that ran, and the operations
// they make.
#pragma once

#include <cstdint>
#include <vector>

#include "export/operators/communication_records.h"
#include "export/operators/records.h"

namespace profd::exporting::operators {

// A node-level API next around tasks of communication.
struct CommunicationLaunch {
  int32_t api = -1;      // index of HostData::apis: its connection id
  int32_t node = -1;     // index of HostTasks::nodes: the first of the launch; -1: none
  int32_t op_info = -1;  // of CommunicationRecords::op_infos, the same
  bool operator==(const CommunicationLaunch&) const = default;
};

// A task of the runtime below a communication API; it stands for one task of communication or many.
struct CommunicationHostTask {
  uint64_t model = kNoModel;
  int32_t api = -1;           // index of HostData::apis: the communication API
  int32_t launch = -1;        // index of HostTasks::communication_launches
  uint32_t infos_begin = 0;   // of CommunicationRecords::infos: those of the API
  uint32_t infos_end = 0;
  // Contexts in it; first > last: as the infos have them, without infos none.
  uint32_t first_context = 1;
  uint32_t last_context = 0;
  uint16_t device = 0;
  uint16_t stream = 0;
  uint16_t task = 0;
  uint16_t batch = 0;
  bool operator==(const CommunicationHostTask&) const = default;

  // Of its infos the last one with that context, an index; -1: none.
  int32_t InfoOf(const std::vector<CommunicationInfo>& infos, uint32_t context) const;
  // Whether the host put that on a stream: a context, or (kNoContext) what is around them or stands alone.
  bool Has(const std::vector<CommunicationInfo>& infos, uint32_t context) const;
  bool HasRange() const { return first_context <= last_context; }
  bool InRange(uint32_t context) const { return context >= first_context && context <= last_context; }
};

// A task as it ran.
struct CommunicationTask {
  int64_t start_ns = 0;  // wall clock
  int64_t end_ns = 0;
  double gbps = 0;       // GB/s (10^9); 0: nothing is known of its size
  int32_t op = -1;       // index of Communication::ops
  int32_t host = -1;     // of HostTasks::communication
  int32_t info = -1;     // of CommunicationRecords::infos; -1: none
  uint32_t context = kNoContext;
  float rest_ns = 0;  // as TaskRow
  bool master = false;

  double duration_ns() const { return static_cast<double>(end_ns - start_ns) + static_cast<double>(rest_ns); }
};

// An operation: its master tasks, from the start of the first to the end of the last.
struct CommunicationOp {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  uint64_t model = kNoModel;
  uint64_t group = 0;   // hash; 0: not known
  int32_t launch = -1;  // index of HostTasks::communication_launches
  int32_t number = 0;   // among those of its group, from 0; -1: before the collection
  int32_t repeat = 1;   // of its first task
  uint32_t rank_size = 0;
  int16_t device = 0;
  bool shown = false;   // begins in the collection and in the window; one without master tasks has no time
};

struct Communication {
  std::vector<CommunicationOp> ops;      // by device and first task's start
  std::vector<CommunicationTask> tasks;  // by op, each by start
};

}  // namespace profd::exporting::operators
