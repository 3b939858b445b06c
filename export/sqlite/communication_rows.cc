#include "export/sqlite/communication_rows.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "export/operators/communication_names.h"
#include "export/operators/numbers.h"
#include "export/operators/overlap.h"

namespace profd::exporting {
namespace {

using operators::CommunicationInfo;
using operators::CommunicationOp;
using operators::CommunicationTask;

// Of the vendor's ENUM tables.
constexpr int64_t kNotKnown = 65534;
constexpr int64_t kInvalid = 65535;
constexpr int64_t kOtherCopy = 65535;
constexpr std::string_view kNoName = "N/A";

int64_t EnumId(uint32_t number) { return std::min<int64_t>(number, kInvalid); }

int64_t CopyId(uint32_t direction) { return operators::CopyDirectionName(direction) == "other" ? kOtherCopy : direction; }

class CommunicationWriter : OperatorRowWriter {
 public:
  CommunicationWriter(const OperatorTarget& to, const TaskNumbers& tasks) : OperatorRowWriter(to), tasks_(tasks) {}

  Status Write() {
    RETURN_IF_ERROR(WriteOps());
    RETURN_IF_ERROR(WriteTasks());
    ids_.operation += static_cast<int64_t>(model_.communication.ops.size());
    RETURN_IF_ERROR(WriteCopies());
    return WriteOverlaps();
  }

 private:
  int64_t NameId(uint64_t hash) { return hash == 0 ? Id(kNoName) : Id(model_.host.NameOf(hash)); }

  Status WriteOps();
  Status WriteTasks();
  Status AddTask(CellLoader& out, const CommunicationTask& task);
  Status WriteCopies();
  Status WriteOverlaps();

  const TaskNumbers& tasks_;
};

Status CommunicationWriter::WriteOps() {
  KeyedLoader out = KeyedOf(OperatorTable::kCommunicationOp);
  for (size_t i = 0; i < model_.communication.ops.size(); ++i) {
    const CommunicationOp& op = model_.communication.ops[i];
    if (!op.shown) continue;
    const operators::CommunicationOpInfo* info = model_.InfoOf(op);
    const int64_t api = model_.LaunchOf(op).api;
    row_.Begin().Int(Id(model_.NameOf(op))).Int(op.start_ns).Int(op.end_ns);
    row_.Int(api < 0 ? -1 : ids_.connection + api).Int(NameId(op.group)).Key();
    row_.Int(info != nullptr && info->relay ? 1 : 0).Int(info != nullptr && info->retry ? 1 : 0);
    row_.Int(info == nullptr ? kNotKnown : EnumId(info->data_type)).Int(NameId(info == nullptr ? 0 : info->algorithm));
    row_.Int(info == nullptr ? 0 : static_cast<int64_t>(info->count)).Int(Id(model_.TypeOf(op)));
    row_.Int(op.device).Int(op.rank_size);
    RETURN_IF_ERROR(out.Add(ids_.operation + static_cast<int64_t>(i), row_.End()));
  }
  return out.Finish();
}

Status CommunicationWriter::AddTask(CellLoader& out, const CommunicationTask& task) {
  const operators::CommunicationHostTask& host = model_.HostOf(task);
  const CommunicationOp& op = model_.communication.ops[static_cast<size_t>(task.op)];
  const int64_t number = tasks_.Find(op.device, host.stream, host.batch, host.task, task.context);
  const CommunicationInfo* info = model_.InfoOf(task);
  row_.Begin().Int(Id(model_.NameOf(op))).Int(number < 0 ? -1 : ids_.task + number);
  row_.Int(NameId(info == nullptr ? 0 : info->name));
  row_.Int(info == nullptr ? kNoId32 : int64_t{info->plane}).Int(NameId(op.group));
  row_.Int(info == nullptr ? -1 : static_cast<int64_t>(info->notify));  // 2^64-1 is -1 here
  row_.Int(info == nullptr ? kInvalid : EnumId(info->rdma));
  row_.Int(info == nullptr ? kNoId32 : int64_t{info->local_rank});
  row_.Int(info == nullptr ? kNoId32 : int64_t{info->remote_rank});
  row_.Int(info == nullptr ? kInvalid : EnumId(info->transport));
  row_.Int(info == nullptr ? 0 : static_cast<int64_t>(info->bytes));
  row_.Int(info == nullptr ? kInvalid : EnumId(info->data_type)).Int(info == nullptr ? kInvalid : EnumId(info->link));
  row_.Int(ids_.operation + task.op).Int(task.master ? 1 : 0).Numeric(task.gbps * 1e9);
  return out.Add(row_.End(), 0);
}

Status CommunicationWriter::WriteTasks() {
  CellLoader out = CellsOf(OperatorTable::kCommunicationTaskInfo);
  for (const CommunicationTask& task : model_.communication.tasks) {
    if (!model_.communication.ops[static_cast<size_t>(task.op)].shown) continue;
    RETURN_IF_ERROR(AddTask(out, task));
  }
  return out.Finish();
}

// Every copy, if the dump describes any.
Status CommunicationWriter::WriteCopies() {
  if (model_.host.communication.copies.empty()) return {};
  CellLoader out = CellsOf(OperatorTable::kMemcpyInfo);
  for (size_t i = 0; i < tasks_.size(); ++i) {
    const operators::HostTask* host = model_.HostOf(model_.rows[tasks_.RowAt(i)]);
    if (host == nullptr) continue;
    const operators::CopyInfo* copy = model_.CopyOf(*host);
    if (copy == nullptr && operators::RuntimeTypeName(model_.host, host->type) != "MEMCPY_ASYNC") continue;
    row_.Begin().Int(ids_.task + tasks_.NumberAt(i)).Int(copy == nullptr ? 0 : static_cast<int64_t>(copy->bytes));
    row_.Int(copy == nullptr ? kOtherCopy : CopyId(copy->direction));
    RETURN_IF_ERROR(out.Add(row_.End(), 0));
  }
  return out.Finish();
}

Status CommunicationWriter::WriteOverlaps() {
  KeyedLoader out = KeyedOf(OperatorTable::kOverlapAnalysis);
  for (const auto& [device, overlap] : operators::OverlapsOf(model_)) {
    for (size_t kind = 0; kind < overlap.size(); ++kind) {
      for (const operators::Interval& interval : overlap[kind]) {
        row_.Begin().Key().Int(device).Int(interval.start_ns).Int(interval.end_ns).Int(static_cast<int64_t>(kind));
        RETURN_IF_ERROR(out.Add(ids_.overlap++, row_.End()));
      }
    }
  }
  return out.Finish();
}

}  // namespace

Status WriteCommunicationRows(const OperatorTarget& to, const TaskNumbers& tasks) {
  return CommunicationWriter(to, tasks).Write();
}

}  // namespace profd::exporting
