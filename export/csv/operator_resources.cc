// Memory, cache and the AI CPU beside the operators: memory_record, operator_memory, static_op_mem, l2_cache, aicpu, dp,
// aicpu_mi. The analyser makes them in Python, and so they look: numbers as it prints floats. And fusion_op, which its
// C++ makes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "export/csv/csv_row.h"
#include "export/csv/operator_parts.h"
#include "export/number_text.h"
#include "export/operators/numbers.h"

namespace profd::exporting::csv {
namespace {

using operators::Model;

std::string NpuOf(const operators::MemoryRecord& record) { return fmt::format("NPU:{}", record.device); }

double KiB(double bytes) { return bytes / 1024; }

OperatorCsv MemoryRecordCsv(const Model& model) {
  std::vector<std::string> lines;
  for (const operators::MemoryRecord& record : model.host.memory.memory) {
    const int64_t time = model.host.WallNs(record.time);
    if (record.device_type != operators::kNpuMemory || !model.window.Has(time)) continue;
    CsvRow row(lines.emplace_back(), Place{});
    row.Text("GE").Time(time).Fixed3(KiB(static_cast<double>(record.allocated)));
    row.Fixed3(KiB(static_cast<double>(record.reserved))).Text(NpuOf(record)).End();
  }
  return OfLines("memory_record", "Component,Timestamp(us),Total Allocated(KB),Total Reserved(KB),Device", std::move(lines));
}

OperatorCsv OperatorMemoryCsv(const Model& model) {
  std::vector<std::string> lines;
  for (const operators::Allocation& each : model.host.memory.Allocations()) {
    const operators::MemoryRecord& taken = *each.taken;
    const int64_t begin = model.host.WallNs(taken.time);
    if (taken.device_type != operators::kNpuMemory || !model.window.Has(begin)) continue;
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
    row.Int(planned.graph).Int(planned.life_begin).Int(planned.life_end);
    row.Int(planned.bytes / 1024).End();
  }
  return OfLines("static_op_mem", "Op Name,Model Name,Graph ID,Node Index Start,Node Index End,Size(KB)", std::move(lines));
}

OperatorCsv FusedCsv(const Model& model) {
  std::vector<std::string> lines;
  for (const operators::FusedOperator& fused : model.host.fused) {
    const std::optional<uint64_t> id = model.host.ModelAt(fused.thread, fused.time);
    if (!id || !model.host.HasModelNames()) continue;
    std::vector<std::string> originals;
    for (const uint64_t original : fused.originals) originals.push_back(model.host.NameOf(original));
    CsvRow row(lines.emplace_back(), Place{});
    row.Text(model.host.ModelName(*id)).Int(*id).Text(model.host.NameOf(fused.name));
    row.Text(fmt::format("{}", fmt::join(originals, ";")));
    for (const uint64_t bytes : fused.bytes) row.Text(ShortDecimal(KiB(static_cast<double>(bytes))));
    row.End();
  }
  return OfLines("fusion_op",
                 "Model Name,Model ID,Fusion Op,Original Ops,Memory Input(KB),Memory Output(KB),Memory Weight(KB),"
                 "Memory Workspace(KB),Memory Total(KB)", std::move(lines));
}

std::string_view NameOf(const Model& model, const operators::HostTask* task) {
  return task == nullptr || !task->compute ? operators::kNotKnown : model.OperatorName(*task);
}

// Events whose sums a rate of the cache is made of, by chip.
struct CacheEvents {
  std::array<uint32_t, 2> request, hit, victim;  // 0: none
  bool has_hit_rate;                             // else the analyser has N/A
};
const CacheEvents* CacheEventsOf(int chip) {
  static constexpr CacheEvents kChip1 = {{0x59, 0}, {0x5b, 0}, {0x5c, 0}, true};
  static constexpr CacheEvents kChip5 = {{0xfb, 0xfc}, {0x90, 0x91}, {0x9c, 0}, false};
  return chip == 1 ? &kChip1 : chip == 5 ? &kChip5 : nullptr;
}

// None: one of them was not counted.
std::optional<double> SumOf(const operators::DeviceCache& cache, const operators::CacheRecord& record,
                            const std::array<uint32_t, 2>& events) {
  double sum = 0;
  for (const uint32_t event : events) {
    if (event == 0) continue;
    const auto at = static_cast<size_t>(std::ranges::find(cache.events, event) - cache.events.begin());
    if (at >= std::min(cache.events.size(), record.counts.size())) return std::nullopt;
    sum += static_cast<double>(record.counts[at]);
  }
  return sum;
}

// As Python's round(rate, 6).
double SixDecimals(double rate) {
  return rate < 1e12 ? static_cast<double>(RoundScaled(rate, 1e6)) / 1e6 : rate;
}

OperatorCsv CacheCsv(const Model& model) {
  std::vector<std::string> lines;
  for (const auto& [device, cache] : model.cache) {
    const CacheEvents* events = CacheEventsOf(cache.chip);
    if (events == nullptr || cache.events.empty()) continue;
    const operators::Executions executions = operators::ExecutionsOf(model, device);
    std::map<operators::Executions::key_type, size_t> seen;
    for (const operators::CacheRecord& record : cache.records) {
      const std::optional<double> request = SumOf(cache, record, events->request);
      CsvRow row(lines.emplace_back(), device);
      row.Int(record.stream).Int(record.task);
      const auto rate = [&, &its = cache](const std::array<uint32_t, 2>& of, bool shown) {
        const std::optional<double> part = SumOf(its, record, of);
        const bool known = shown && part && request.value_or(0) > 0;
        known ? row.Repr(SixDecimals(*part / *request)) : row.Text(operators::kNotKnown);
      };
      rate(events->hit, events->has_hit_rate);
      rate(events->victim, true);
      const operators::Executions::key_type task(record.stream, record.task);
      const size_t number = seen[task]++;
      const auto found = executions.find(task);
      const bool known = found != executions.end() && number < found->second.size();
      row.Text(NameOf(model, known ? model.HostOf(*found->second[number]) : nullptr)).End();
    }
  }
  return OfLines("l2_cache", "Stream Id,Task Id,Hit Rate,Victim Rate,Op Name", std::move(lines));
}

OperatorCsv CpuNodeCsv(const Model& model) {
  std::vector<std::string> lines;
  for (const auto& [device, cpu] : model.cpu) {
    for (const operators::CpuNode& node : cpu.records.nodes) {
      const int64_t start = cpu.clock(node.start);
      CsvRow row(lines.emplace_back(), device);
      row.Time(start).Text(NameOf(model, model.HostOf(node))).Int(node.compute_us);
      row.Int(node.copy_us);
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
      CsvRow row(lines.emplace_back(), device);
      row.Time(cpu.monotonic(record.time_ns)).Text(record.action).Text(record.source);
      row.Int(record.buffered).End();
    }
  }
  return OfLines("dp", "Timestamp(us),Action,Source,Cached Buffer Size", std::move(lines));
}

OperatorCsv QueueWaitCsv(const Model& model) {
  std::vector<std::string> lines;
  for (const auto& [device, cpu] : model.cpu) {
    for (const operators::QueueWait& wait : cpu.records.waits) {
      CsvRow row(lines.emplace_back(), device);
      row.Text(!wait.name.empty() ? wait.name : wait.node == 1 ? "GetNext_dequeue_wait" : fmt::to_string(wait.node));
      row.Int(wait.start_us).Int(wait.end_us);
      row.Int(wait.queued).End();
    }
  }
  return OfLines("aicpu_mi", "Node Name,Start Time(us),End Time(us),Queue Size", std::move(lines));
}

}  // namespace

std::vector<OperatorCsv> ResourceCsvs(const Model& model) {
  return {MemoryRecordCsv(model), OperatorMemoryCsv(model), StaticMemoryCsv(model), FusedCsv(model),
          CacheCsv(model),        CpuNodeCsv(model),        PipelineCsv(model),     QueueWaitCsv(model)};
}

}  // namespace profd::exporting::csv
