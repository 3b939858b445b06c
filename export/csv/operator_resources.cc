// Memory and the AI CPU beside the operators: memory_record, operator_memory, static_op_mem, aicpu, dp, aicpu_mi. The
// analyser makes them in Python, and so they look: numbers as it prints floats.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "export/csv/csv_row.h"
#include "export/csv/operator_parts.h"
#include "export/operators/numbers.h"

namespace profd::exporting::csv {
namespace {

using operators::Model;

std::string NpuOf(const operators::MemoryRecord& record) { return fmt::format("NPU:{}", record.device); }

double KiB(double bytes) { return bytes / 1024; }

OperatorCsv MemoryRecordCsv(const Model& model) {
  std::vector<std::string> lines;
  for (const operators::MemoryRecord& record : model.host.memory.memory) {
    if (record.device_type != operators::kNpuMemory) continue;
    CsvRow row(lines.emplace_back(), Place{});
    row.Text("GE").Time(model.host.WallNs(record.time)).Fixed3(KiB(static_cast<double>(record.allocated)));
    row.Fixed3(KiB(static_cast<double>(record.reserved))).Text(NpuOf(record)).End();
  }
  return OfLines("memory_record", "Component,Timestamp(us),Total Allocated(KB),Total Reserved(KB),Device", std::move(lines));
}

OperatorCsv OperatorMemoryCsv(const Model& model) {
  std::vector<std::string> lines;
  for (const operators::Allocation& each : model.host.memory.Allocations()) {
    const operators::MemoryRecord& taken = *each.taken;
    if (taken.device_type != operators::kNpuMemory) continue;
    const int64_t begin = model.host.WallNs(taken.time);
    const int64_t end = each.freed == nullptr ? begin : model.host.WallNs(each.freed->time);
    CsvRow row(lines.emplace_back(), Place{});
    row.Text(taken.name == 0 ? operators::kNotKnown : model.host.NameOf(taken.name));
    row.Fixed3(KiB(static_cast<double>(taken.bytes))).Time(begin).Fixed3(static_cast<double>(end - begin) / 1000);
    for (const operators::MemoryRecord* at : {&taken, each.freed}) {
      row.Fixed3(at == nullptr ? 0 : KiB(static_cast<double>(at->allocated)));
      row.Fixed3(at == nullptr ? 0 : KiB(static_cast<double>(at->reserved)));
    }
    row.Text(NpuOf(taken)).End();
  }
  return OfLines("operator_memory",
                 "Name,Size(KB),Allocation Time(us),Duration(us),Allocation Total Allocated(KB),"
                 "Allocation Total Reserved(KB),Release Total Allocated(KB),Release Total Reserved(KB),Device",
                 std::move(lines));
}

OperatorCsv StaticMemoryCsv(const Model& model) {
  std::vector<std::string> lines;
  for (const operators::PlannedMemory& planned : model.host.memory.planned) {
    CsvRow row(lines.emplace_back(), Place{});
    row.Text(planned.name == 0 ? "TOTAL" : model.host.NameOf(planned.name)).Text(model.host.GraphName(planned.graph));
    row.Int(planned.graph).Int(static_cast<int64_t>(planned.life_begin)).Int(static_cast<int64_t>(planned.life_end));
    row.Int(planned.bytes / 1024).End();
  }
  return OfLines("static_op_mem", "Op Name,Model Name,Graph ID,Node Index Start,Node Index End,Size(KB)", std::move(lines));
}

// Names of AI CPU operators by the time they ran on their stream.
class NodeNames {
 public:
  NodeNames(const Model& model, int device) : model_(model) {
    for (const operators::TaskRow& row : model.rows) {
      if (row.device == device && row.host >= 0) rows_[{row.stream, row.task}].push_back(&row);
    }
    for (auto& [key, rows] : rows_) std::ranges::sort(rows, {}, &operators::TaskRow::start_ns);
  }
  // Of the execution whose start is next to the node's.
  std::string Of(const operators::CpuNode& node, int64_t start_ns) const {
    const auto found = rows_.find({node.stream, node.task});
    if (found == rows_.end()) return operators::kNotKnown;
    const operators::TaskRow* best = nullptr;
    int64_t least = std::numeric_limits<int64_t>::max();
    const auto after = std::ranges::lower_bound(found->second, start_ns, {}, &operators::TaskRow::start_ns);
    for (auto it = after == found->second.begin() ? after : after - 1; it != found->second.end() && it <= after; ++it) {
      const int64_t apart = std::max((*it)->start_ns, start_ns) - std::min((*it)->start_ns, start_ns);
      if (apart >= least) continue;
      least = apart;
      best = *it;
    }
    const operators::HostTask* host = best == nullptr ? nullptr : model_.HostOf(*best);
    return host == nullptr || !host->compute ? operators::kNotKnown : model_.OperatorName(*host);
  }

 private:
  const Model& model_;
  std::map<std::pair<uint16_t, uint16_t>, std::vector<const operators::TaskRow*>> rows_;
};

OperatorCsv CpuNodeCsv(const Model& model) {
  std::vector<std::string> lines;
  for (const auto& [device, cpu] : model.cpu) {
    const NodeNames names(model, device);
    for (const operators::CpuNode& node : cpu.records.nodes) {
      const int64_t start = cpu.clock(node.start);
      CsvRow row(lines.emplace_back(), DevicePlace(device));
      row.Time(start).Text(names.Of(node, start)).Int(static_cast<int64_t>(node.compute_us));
      row.Int(static_cast<int64_t>(node.copy_us));
      row.Fixed3(static_cast<double>(cpu.clock(node.end) - start) / 1000).Int(node.dispatch_us);
      row.Fixed3(static_cast<double>(cpu.clock(node.after_run) - cpu.clock(node.submitted)) / 1000);
      row.Int(node.stream).Int(node.task).End();
    }
  }
  return OfLines("aicpu",
                 "Timestamp(us),Node,Compute_time(us),Memcpy_time(us),Task_time(us),Dispatch_time(us),Total_time(us),"
                 "Stream ID,Task ID", std::move(lines));
}

OperatorCsv PipelineCsv(const Model& model) {
  std::vector<std::string> lines;
  for (const auto& [device, cpu] : model.cpu) {
    for (const operators::PipelineRecord& record : cpu.records.pipeline) {
      CsvRow row(lines.emplace_back(), DevicePlace(device));
      row.Time(cpu.monotonic(record.time_ns)).Text(record.action).Text(record.source);
      row.Int(static_cast<int64_t>(record.buffered)).End();
    }
  }
  return OfLines("dp", "Timestamp(us),Action,Source,Cached Buffer Size", std::move(lines));
}

OperatorCsv QueueWaitCsv(const Model& model) {
  std::vector<std::string> lines;
  for (const auto& [device, cpu] : model.cpu) {
    for (const operators::QueueWait& wait : cpu.records.waits) {
      CsvRow row(lines.emplace_back(), DevicePlace(device));
      row.Text(wait.node == 1 ? "GetNext_dequeue_wait" : fmt::to_string(wait.node));
      row.Int(static_cast<int64_t>(wait.start_us)).Int(static_cast<int64_t>(wait.end_us));
      row.Int(static_cast<int64_t>(wait.queued)).End();
    }
  }
  return OfLines("aicpu_mi", "Node Name,Start Time(us),End Time(us),Queue Size", std::move(lines));
}

}  // namespace

std::vector<OperatorCsv> ResourceCsvs(const Model& model) {
  return {MemoryRecordCsv(model), OperatorMemoryCsv(model), StaticMemoryCsv(model),
          CpuNodeCsv(model),      PipelineCsv(model),       QueueWaitCsv(model)};
}

}  // namespace profd::exporting::csv
