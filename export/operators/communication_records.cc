#include "export/operators/communication_records.h"

#include <algorithm>
#include <bit>
#include <tuple>

namespace profd::exporting::operators {

void CommunicationRecords::AddInfo(const RecordView& record) {
  CommunicationInfo info;
  info.time = record.U64(16);
  info.thread = record.U32(8);
  info.name = record.U64(24);
  info.group = record.U64(40);
  info.local_rank = record.U32(48);
  info.remote_rank = record.U32(52);
  info.rank_size = record.U32(56);
  info.plane = record.U32(64);
  info.context = record.U32(68);
  info.notify = record.U64(72);
  info.estimated_us = std::bit_cast<double>(record.U64(88));
  info.bytes = record.U64(112);
  info.data_type = record.U32(124);
  info.link = record.U32(128);
  info.transport = record.U32(132);
  info.rdma = record.U32(136);
  infos.push_back(info);
}

void CommunicationRecords::AddOpInfo(const RecordView& record) {
  CommunicationOpInfo info;
  info.time = record.U64(16);
  info.thread = record.U32(8);
  info.relay = (record.U8(24) & 1) != 0;
  info.retry = (record.U8(24) & 2) != 0;
  info.data_type = record.U8(25);
  info.algorithm = record.U64(26);
  info.count = record.U64(34);
  info.group = record.U64(42);
  op_infos.push_back(info);
}

void CommunicationRecords::AddCopy(const RecordView& record) {
  copies.push_back({record.U64(16), record.U64(24), record.U32(8), record.U16(40)});
}

void CommunicationRecords::Sort() {
  const auto by_thread = [](const auto& a, const auto& b) {
    return std::tie(a.thread, a.time) < std::tie(b.thread, b.time);
  };
  std::ranges::stable_sort(infos, by_thread);
  std::ranges::stable_sort(op_infos, by_thread);
  std::ranges::stable_sort(copies, by_thread);
}

const CopyInfo* CommunicationRecords::CopyOf(uint32_t thread, uint64_t time) const {
  const auto found = std::ranges::lower_bound(copies, std::tuple(thread, time), {}, [](const CopyInfo& copy) {
    return std::tuple(copy.thread, copy.time);
  });
  return found != copies.end() && found->thread == thread && found->time == time ? &*found : nullptr;
}

}  // namespace profd::exporting::operators
