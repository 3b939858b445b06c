#include "export/sqlite/operator_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

namespace profd::exporting {
namespace {

constexpr std::array<OperatorTableSpec, kOperatorTables> kSpecs = {{
    {"TASK",
     "startNs INTEGER, endNs INTEGER, deviceId INTEGER, connectionId INTEGER, globalTaskId INTEGER, "
     "globalPid INTEGER, taskType INTEGER, contextId INTEGER, streamId INTEGER, taskId INTEGER, modelId INTEGER",
     "TaskIndex ON TASK (startNs, globalTaskId)"},
    {"COMPUTE_TASK_INFO",
     "name INTEGER, globalTaskId INTEGER PRIMARY KEY, blockNum INTEGER, mixBlockNum INTEGER, taskType INTEGER, "
     "opType INTEGER, inputFormats INTEGER, inputDataTypes INTEGER, inputShapes INTEGER, outputFormats INTEGER, "
     "outputDataTypes INTEGER, outputShapes INTEGER, attrInfo INTEGER, opState INTEGER, hf32Eligible INTEGER, "
     "gridDim INTEGER, blockDim INTEGER",
     ""},
    {"TASK_PMU_INFO", "globalTaskId INTEGER, name INTEGER, value NUMERIC", ""},
    {"CANN_API",
     "startNs INTEGER, endNs INTEGER, type INTEGER, globalTid INTEGER, connectionId INTEGER PRIMARY KEY, name INTEGER",
     ""},
    {"COMMUNICATION_OP",
     "opName INTEGER, startNs INTEGER, endNs INTEGER, connectionId INTEGER, groupName INTEGER, "
     "opId INTEGER PRIMARY KEY, relay INTEGER, retry INTEGER, dataType INTEGER, algType INTEGER, count NUMERIC, "
     "opType INTEGER, deviceId INTEGER, rankSize INTEGER",
     ""},
    {"COMMUNICATION_TASK_INFO",
     "name INTEGER, globalTaskId INTEGER, taskType INTEGER, planeId INTEGER, groupName INTEGER, notifyId INTEGER, "
     "rdmaType INTEGER, srcRank INTEGER, dstRank INTEGER, transportType INTEGER, size INTEGER, dataType INTEGER, "
     "linkType INTEGER, opId INTEGER, isMaster INTEGER, bandwidth NUMERIC",
     "CommunicationTaskIndex ON COMMUNICATION_TASK_INFO (globalTaskId)"},
    {"MEMCPY_INFO", "globalTaskId NUMERIC, size NUMERIC, memcpyOperation NUMERIC", ""},
    {"OVERLAP_ANALYSIS",
     "id INTEGER PRIMARY KEY, deviceId INTEGER, startNs NUMERIC, endNs NUMERIC, type INTEGER", ""},
    {"COMMUNICATION_SCHEDULE_TASK_INFO",
     "name INTEGER, globalTaskId INTEGER, taskType INTEGER, opType INTEGER", ""},
    {"NPU_OP_MEM",
     "operatorName INTEGER, addr INTEGER, type INTEGER, size INTEGER, timestampNs INTEGER, globalTid INTEGER, "
     "totalAllocate NUMERIC, totalReserve NUMERIC, component INTEGER, deviceId INTEGER",
     ""},
    // Times are numbers: the vendor's TEXT does not compare with them.
    {"PYTORCH_API",
     "startNs INTEGER, endNs INTEGER, globalTid INTEGER, connectionId INTEGER, name INTEGER, sequenceNumber INTEGER, "
     "fwdThreadId INTEGER, inputDtypes INTEGER, inputShapes INTEGER, callchainId INTEGER, type INTEGER",
     ""},
    {"PYTORCH_CALLCHAINS", "id INTEGER, stack INTEGER, stackDepth INTEGER",
     "PytorchCallchainIndex ON PYTORCH_CALLCHAINS (id)"},
    {"CONNECTION_IDS", "id INTEGER, connectionId INTEGER", "ConnectionIndex ON CONNECTION_IDS (id, connectionId)"},
    {"STEP_TIME", "id INTEGER, startNs INTEGER, endNs INTEGER", ""},
    {"GC_RECORD", "startNs INTEGER, endNs INTEGER", ""},
    {"MEMORY_RECORD",
     "component INTEGER, timestamp INTEGER, totalAllocated INTEGER, totalReserved INTEGER, totalActive INTEGER, "
     "streamPtr INTEGER, deviceId INTEGER",
     ""},
    {"OP_MEMORY",
     "name INTEGER, size INTEGER, allocationTime INTEGER, releaseTime INTEGER, activeReleaseTime INTEGER, "
     "duration INTEGER, activeDuration INTEGER, allocationTotalAllocated INTEGER, allocationTotalReserved INTEGER, "
     "allocationTotalActive INTEGER, releaseTotalAllocated INTEGER, releaseTotalReserved INTEGER, "
     "releaseTotalActive INTEGER, streamPtr INTEGER, deviceId INTEGER",
     ""},
}};

struct View {
  std::string_view name;
  std::string_view columns;
  std::vector<OperatorTable> of;
  std::string_view select;  // {d}: the dump and the rank of the row's device
};

const std::vector<View>& Views() {
  using enum OperatorTable;
  static const std::vector<View> kViews = {
      {"profd_tasks", "start_ns, end_ns, node, job, rank, device, stream, type, task, connection, model", {kTask},
       "SELECT t.startNs, t.endNs, d.node, d.job, coalesce(p.rank, d.rank), t.deviceId, t.streamId, "
       "(SELECT value FROM STRING_IDS WHERE id = t.taskType), t.globalTaskId, t.connectionId, t.modelId FROM TASK t {d}"},
      {"profd_operators",
       "start_ns, end_ns, node, job, rank, device, stream, name, type, core_type, shapes, blocks, task, connection",
       {kTask, kComputeTaskInfo},
       "SELECT t.startNs, t.endNs, d.node, d.job, coalesce(p.rank, d.rank), t.deviceId, t.streamId, "
       "(SELECT value FROM STRING_IDS WHERE id = c.name), (SELECT value FROM STRING_IDS WHERE id = c.opType), "
       "(SELECT value FROM STRING_IDS WHERE id = c.taskType), (SELECT value FROM STRING_IDS WHERE id = c.inputShapes), "
       "c.blockNum, t.globalTaskId, t.connectionId FROM TASK t JOIN COMPUTE_TASK_INFO c "
       "ON c.globalTaskId = t.globalTaskId {d} WHERE c.taskType NOT IN (SELECT id FROM STRING_IDS WHERE value IN "
       "('WRITE_BACK', 'INVALID', 'HCCL_AI_CPU', 'COMMUNICATION')) OR ((SELECT value FROM STRING_IDS WHERE id = c.taskType) "
       "= 'COMMUNICATION' AND (SELECT value FROM STRING_IDS WHERE id = c.name) LIKE '%AivKernel')"},
      {"profd_launches", "start_ns, end_ns, node, job, rank, level, pid, tid, name, connection", {kCannApi},
       "SELECT t.startNs, t.endNs, d.node, d.job, coalesce(p.rank, d.rank), "
       "(SELECT name FROM ENUM_API_TYPE WHERE id = t.type), t.globalTid >> 32, t.globalTid & 4294967295, "
       "(SELECT value FROM STRING_IDS WHERE id = t.name), t.connectionId FROM CANN_API t {h}"},
      {"profd_operator_counters", "task, counter, value", {kTaskPmuInfo},
       "SELECT t.globalTaskId, (SELECT value FROM STRING_IDS WHERE id = t.name), t.value FROM TASK_PMU_INFO t"},
      {"profd_collectives",
       "start_ns, end_ns, node, job, rank, device, name, type, communicator, algorithm, count, connection",
       {kCommunicationOp},
       "SELECT t.startNs, t.endNs, d.node, d.job, coalesce(p.rank, d.rank), t.deviceId, "
       "(SELECT value FROM STRING_IDS WHERE id = t.opName), (SELECT value FROM STRING_IDS WHERE id = t.opType), "
       "(SELECT value FROM STRING_IDS WHERE id = t.groupName), (SELECT value FROM STRING_IDS WHERE id = t.algType), "
       "t.count, t.connectionId FROM COMMUNICATION_OP t {d}"},
      {"profd_copies", "start_ns, end_ns, node, job, rank, device, stream, operation, bytes, connection",
       {kTask, kMemcpyInfo},
       "SELECT t.startNs, t.endNs, d.node, d.job, coalesce(p.rank, d.rank), t.deviceId, t.streamId, "
       "(SELECT name FROM ENUM_MEMCPY_OPERATION WHERE id = c.memcpyOperation), c.size, t.connectionId "
       "FROM TASK t JOIN (SELECT DISTINCT globalTaskId, size, memcpyOperation FROM MEMCPY_INFO) c "
       "ON c.globalTaskId = t.globalTaskId {d}"},
      {"profd_overlap", "start_ns, end_ns, node, job, rank, device, kind", {kOverlapAnalysis},
       "SELECT t.startNs, t.endNs, d.node, d.job, coalesce(p.rank, d.rank), t.deviceId, "
       "(SELECT name FROM ENUM_OVERLAP_ANALYSIS_TYPE WHERE id = t.type) FROM OVERLAP_ANALYSIS t {d}"},
      {"profd_framework",
       "start_ns, end_ns, node, job, rank, kind, pid, tid, name, sequence, shapes, types, callchain, connection",
       {kPytorchApi},
       "SELECT t.startNs, t.endNs, d.node, d.job, coalesce(p.rank, d.rank), "
       "(SELECT name FROM ENUM_API_TYPE WHERE id = t.type), t.globalTid >> 32, t.globalTid & 4294967295, "
       "(SELECT value FROM STRING_IDS WHERE id = t.name), t.sequenceNumber, "
       "(SELECT value FROM STRING_IDS WHERE id = t.inputShapes), "
       "(SELECT value FROM STRING_IDS WHERE id = t.inputDtypes), t.callchainId, t.connectionId FROM PYTORCH_API t {h}"},
      {"profd_framework_kernels",
       "start_ns, end_ns, node, job, rank, device, stream, framework_name, framework_start_ns, framework_tid, "
       "callchain, task, connection",
       {kPytorchApi, kConnectionIds, kTask},
       "SELECT t.startNs, t.endNs, d.node, d.job, coalesce(p.rank, d.rank), t.deviceId, t.streamId, "
       "(SELECT value FROM STRING_IDS WHERE id = a.name), a.startNs, a.globalTid & 4294967295, a.callchainId, "
       "t.globalTaskId, t.connectionId FROM PYTORCH_API a JOIN CONNECTION_IDS c ON c.id = a.connectionId "
       // Contexts stand for the task around them.
       "JOIN TASK t ON t.connectionId = c.connectionId {d} WHERE t.contextId <> 4294967295 OR "
       "(t.connectionId, t.deviceId, t.streamId, t.taskId) NOT IN "
       "(SELECT connectionId, deviceId, streamId, taskId FROM TASK WHERE contextId <> 4294967295)"},
      {"profd_framework_stacks", "callchain, depth, frame", {kPytorchCallchains},
       "SELECT t.id, t.stackDepth, (SELECT value FROM STRING_IDS WHERE id = t.stack) FROM PYTORCH_CALLCHAINS t"},
      {"profd_framework_steps", "start_ns, end_ns, node, job, rank, step", {kStepTime},
       "SELECT t.startNs, t.endNs, d.node, d.job, coalesce(p.rank, d.rank), t.id FROM STEP_TIME t {h}"},
  };
  return kViews;
}

std::string Replaced(std::string_view text, std::string_view what, std::string_view by) {
  std::string out(text);
  if (const size_t at = out.find(what); at != std::string::npos) out.replace(at, what.size(), by);
  return out;
}

}  // namespace

const OperatorTableSpec& OperatorTableOf(OperatorTable table) { return kSpecs[static_cast<size_t>(table)]; }

std::string IndexSql(const OperatorTableSpec& table) {
  return table.index.empty() ? std::string() : fmt::format("CREATE INDEX {}", table.index);
}

std::string OperatorViewsSql(std::span<const bool> filled, bool merged) {
  std::string sql;
  for (const View& view : Views()) {
    const bool there =
        std::ranges::all_of(view.of, [&](OperatorTable table) { return filled[static_cast<size_t>(table)]; });
    fmt::format_to(std::back_inserter(sql), "CREATE VIEW {}({}) AS ", view.name, view.columns);
    if (!there) {
      sql += "SELECT NULL";
      for (auto n = std::ranges::count(view.columns, ','); n > 0; --n) sql += ", NULL";
      sql += " WHERE 0;\n";
      continue;
    }
    const std::string dump = fmt::format("JOIN PROFD_DUMPS d{} LEFT JOIN PROFD_PLACES p ON p.dumpId = d.dumpId AND "
                                         "p.deviceId = ",
                                         merged ? " ON d.dumpId = t.dumpId" : "");
    sql += Replaced(Replaced(view.select, "{d}", dump + "t.deviceId"), "{h}", dump + "-1") + ";\n";
  }
  return sql;
}

}  // namespace profd::exporting
