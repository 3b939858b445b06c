// What the host's records say of communication (operator-data a.2): one record per task (hccl_info), one per operation
// (hccl_op_info), and the copies between host and device (memcpy_info).
#pragma once

#include <cstdint>
#include <vector>

#include "export/operators/records.h"

namespace profd::exporting::operators {

// additional.hccl_info
struct CommunicationInfo {
  uint64_t time = 0;
  uint64_t name = 0;   // hashes
  uint64_t group = 0;
  uint64_t notify = 0;  // 2^64-1: none
  uint64_t bytes = 0;
  double estimated_us = 0;
  uint32_t thread = 0;
  uint32_t local_rank = 0;
  uint32_t remote_rank = 0;
  uint32_t rank_size = 0;
  uint32_t plane = 0;
  uint32_t context = kNoContext;
  uint32_t data_type = 0;
  uint32_t link = 0;
  uint32_t transport = 0;
  uint32_t rdma = 0;
};

// compact.hccl_op_info
struct CommunicationOpInfo {
  uint64_t time = 0;
  uint64_t algorithm = 0;  // hashes
  uint64_t group = 0;
  uint64_t count = 0;
  uint32_t thread = 0;
  uint8_t data_type = 0;
  bool relay = false;
  bool retry = false;
};

// compact.memcpy_info; of the task that the same thread put on a stream at the same time.
struct CopyInfo {
  uint64_t time = 0;
  uint64_t bytes = 0;
  uint32_t thread = 0;
  uint16_t direction = 0;
};

struct CommunicationRecords {
  void AddInfo(const RecordView& record);
  void AddOpInfo(const RecordView& record);
  void AddCopy(const RecordView& record);
  // After the last: all by thread and time.
  void Sort();
  const CopyInfo* CopyOf(uint32_t thread, uint64_t time) const;  // null: none

  std::vector<CommunicationInfo> infos;
  std::vector<CommunicationOpInfo> op_infos;
  std::vector<CopyInfo> copies;
};

}  // namespace profd::exporting::operators
