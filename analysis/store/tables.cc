#include "analysis/store/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace profd::analysis {
namespace {

using enum StoreCodec;

// The first release that has CODEC in CREATE TABLE without a setting.
constexpr int kCodecsSince = 20;

constexpr StoreColumn kStart{"start_ns", "Int64", kTime};
constexpr StoreColumn kEnd{"end_ns", "Int64", kTime};
constexpr StoreColumn kStep{"step", "Int64"};
constexpr StoreColumn kName{"name", "String", kText};
constexpr StoreColumn kType{"type", "String", kText};

// `state`: 0 begun, 1 committed. `source_stamp` and `source_ranks`: of what was read, for --resume.
constexpr auto kLoads = std::to_array<StoreColumn>({
    {"who", "String"}, {"state", "UInt8"}, {"loaded_at", "DateTime"}, {"device", "Int32"}, {"host", "String"}, {"source", "String"},
    {"path", "String"}, {"row_count", "UInt64"}, {"source_stamp", "UInt64"}, {"source_ranks", "UInt32"},
});
constexpr auto kFacts = std::to_array<StoreColumn>({kName, {"value", "String", kText}});
constexpr auto kTotals = std::to_array<StoreColumn>({
    {"begin_ns", "Int64"}, {"has_overall", "UInt8"}, {"e2e_ms", "Float64"}, {"computing_ms", "Float64"}, {"communication_ms", "Float64"},
    {"uncovered_ms", "Float64"}, {"free_ms", "Float64"}, {"streams", "UInt64"}, {"executions", "UInt64"}, {"steps", "UInt64"},
});
constexpr auto kSteps = std::to_array<StoreColumn>({
    kStep, {"has_times", "UInt8"}, kStart, kEnd, {"fp_ns", "Nullable(Int64)"}, {"bp_ns", "Nullable(Int64)"}, {"has_shares", "UInt8"},
    {"computing_ms", "Float64"}, {"communication_ms", "Float64"}, {"uncovered_ms", "Float64"}, {"free_ms", "Float64"},
    {"reduce_names", "Array(String)"}, {"reduce_start_ns", "Array(Int64)"}, {"reduce_end_ns", "Array(Int64)"},
    {"stage_ms", "Nullable(Float64)"}, {"bubble_ms", "Nullable(Float64)"}, {"without_receive_ms", "Nullable(Float64)"}, {"preparing_ms", "Nullable(Float64)"},
    {"begun_ms", "Array(Float64)"},
});
// With the sums of all their executions.
constexpr auto kOperators = std::to_array<StoreColumn>({
    {"op", "UInt32"}, kName, kType, {"core", "String", kText}, {"input_shapes", "String", kText}, {"input_types", "String", kText},
    {"output_shapes", "String", kText}, {"output_types", "String", kText}, {"input_formats", "String", kText}, {"output_formats", "String", kText},
    {"ratio_ns", "Array(Float64)"}, {"counted_ns", "Float64"}, {"unit_ns", "Array(Float64)"}, {"executions", "UInt64"}, {"total_ns", "Int64"},
    {"min_ns", "Int64"}, {"max_ns", "Int64"},
});
// `launched_by`: rows of slices, by their `at`. `after_communication`: a row of communication stands in front of it.
constexpr auto kKernels = std::to_array<StoreColumn>({
    {"at", "UInt32", kTime}, kStart, kEnd, kStep, {"op", "UInt32"}, kName, kType, {"core", "String", kText}, {"stream", "String", kText},
    {"lane", "Int32"}, {"blocks", "UInt16"}, {"mix_blocks", "UInt16"}, {"launched_by", "Array(UInt32)"}, {"after_communication", "UInt8"},
    {"task", "String", kText},
});
// Framework operators ("Python"), API calls ("CANN", ...), collectives ("Communication"): by layer.
constexpr auto kSlices = std::to_array<StoreColumn>({
    {"at", "UInt32", kTime}, kStart, kEnd, {"layer", "String", kText}, {"thread", "String", kText}, {"lane", "Int32"}, kName, {"stack", "String", kText},
    {"is_operator", "UInt8"},
});
// `size_...`: packets by size; `size_transports` are places in `transports`. `between_...`: the two ranks of a message, numbered
// within their group, the smaller first; -1: not known.
constexpr auto kCollectives = std::to_array<StoreColumn>({
    {"at", "UInt32", kTime}, kStart, kStep, kName, kType, {"group_name", "String", kText}, {"elapse_ms", "Float64"}, {"has_parts", "UInt8"},
    {"transit_ms", "Float64"}, {"wait_ms", "Float64"}, {"synchronization_ms", "Float64"}, {"idle_ms", "Float64"},
    {"transports", "Array(String)"}, {"sizes_mb", "Array(Float64)"}, {"times_ms", "Array(Float64)"}, {"packets", "Array(UInt64)"},
    {"large_packets", "Array(UInt64)"}, {"step_is_named", "UInt8"}, {"p2p", "UInt8"}, {"large_ratios", "Array(Float64)"},
    {"size_transports", "Array(UInt32)"}, {"size_packet_mb", "Array(Float64)"}, {"size_packets", "Array(UInt64)"}, {"size_times_ms", "Array(Float64)"},
    {"between_first", "Int32"}, {"between_second", "Int32"},
});
constexpr auto kTransfers = std::to_array<StoreColumn>({
    kStart, kEnd, {"bytes", "UInt64"}, kName, {"transport", "String", kText}, {"link", "String", kText},
});
// Kinds of operations have several, such as "allreduce-top1"; those with `part` are of what another row has in all.
constexpr auto kLinks = std::to_array<StoreColumn>({
    {"group_name", "String"}, {"src", "String"}, {"dst", "String"}, {"transport", "String"}, {"size_mb", "Float64"}, {"time_ms", "Float64"},
    {"at", "UInt32"}, kStep, kName, {"op_name", "String", kText}, {"p2p", "UInt8"}, {"part", "UInt8"},
});
// On a plane of a collective, for another rank; of a stream, by itself.
constexpr auto kWaits = std::to_array<StoreColumn>({kStart, kEnd, {"plane", "Int32"}, {"behind_rdma", "UInt8"}});
constexpr auto kCopies = std::to_array<StoreColumn>({kStart, kEnd, {"lane", "Int32"}});
constexpr auto kMemory = std::to_array<StoreColumn>({
    {"component", "String", kText}, {"t_ns", "Int64", kTime}, {"allocated_mb", "Nullable(Float64)"}, {"reserved_mb", "Nullable(Float64)"},
    {"active_mb", "Nullable(Float64)"},
});
constexpr auto kBlocks = std::to_array<StoreColumn>({
    kName, {"size_kb", "Float64"}, {"taken_ns", "Int64", kTime}, {"released_ns", "Nullable(Int64)"},
});
constexpr auto kCounters = std::to_array<StoreColumn>({
    {"counter", "UInt32"}, {"device", "Int32"}, kName, {"unit", "String"}, {"samples", "UInt64"}, {"min", "Float64"}, {"max", "Float64"}, {"sum", "Float64"},
});
constexpr auto kSamples = std::to_array<StoreColumn>({
    {"counter", "UInt32"}, {"device", "Int32"}, kName, {"t_ns", "Int64", kTime}, {"value", "Float64"},
});
// Times in which a device computed, communicated, ..., and collections of Python's garbage.
constexpr auto kIntervals = std::to_array<StoreColumn>({{"kind", "String", kText}, kStart, kEnd});
constexpr auto kCpuOperators = std::to_array<StoreColumn>({
    {"at", "UInt32"}, kType, {"total_ms", "Float64"}, {"dispatch_ms", "Float64"}, {"run_start", "Int64"}, {"run_end", "Int64"},
});
constexpr auto kMarks = std::to_array<StoreColumn>({
    kStart, kEnd, {"thread", "Int64"}, {"domain", "String", kText}, kName,
});
constexpr auto kLosses = std::to_array<StoreColumn>({{"t_ns", "Int64", kTime}, {"duration_ns", "Int64"}, {"channel", "String", kText}, {"lost", "Int64"}});
constexpr auto kFindings = std::to_array<StoreColumn>({
    {"check_id", "String"}, {"priority", "String"}, {"cost_ms", "Nullable(Float64)"}, {"title", "String"}, {"evidence", "String"}, {"advice", "Array(String)"},
});

constexpr auto kTables = std::to_array<StoreTable>({
    {kLoadsTable, "which loads of which ranks count", kLoads, "who"},
    {"facts", "what is known of a rank, by name; lists are JSON", kFacts, "name"},
    {"totals", "a rank's time in all and its parts", kTotals, ""},
    {"steps", "training steps and their parts", kSteps, "step"},
    {"operators", "operators and the sums of their executions", kOperators, "op"},
    {"kernels", "executions on the device", kKernels, "start_ns"},
    {"slices", "framework operators, API calls and collectives of the timeline, by layer", kSlices, "start_ns"},
    {"collectives", "operations of communication", kCollectives, "start_ns"},
    {"transfers", "tasks of collectives that move data", kTransfers, "start_ns"},
    {"links", "traffic between ranks", kLinks, "src, dst"},
    {"waits", "tasks of collectives that wait for another rank", kWaits, "start_ns"},
    {"copies", "copies that a stream carries out itself", kCopies, "start_ns"},
    {"memory", "memory by component over time", kMemory, "component, t_ns"},
    {"blocks", "memory blocks of operators", kBlocks, "taken_ns"},
    {"counters", "counters of the hardware, over all their samples", kCounters, "counter"},
    {"samples", "samples of the counters", kSamples, "counter, t_ns"},
    {"intervals", "when a device computed, communicated or was free; collections of garbage", kIntervals, "kind, start_ns"},
    {"cpu_operators", "operators of the AI CPU, where they have a log of their own", kCpuOperators, "at"},
    {"marks", "marks and ranges of the application", kMarks, "start_ns"},
    {"losses", "records that are missing", kLosses, "t_ns"},
    {"findings", "what profctl advise finds", kFindings, "check_id"},
});

std::string_view CodecText(StoreCodec codec) {
  switch (codec) {
    case kTime:
      return " CODEC(Delta, ZSTD(1))";
    case kText:
      return " CODEC(ZSTD(1))";
    case kDefault:
      break;
  }
  return "";
}

std::string ColumnsText(const StoreTable& table, bool codecs) {
  std::string text = "run String, rank Int32, load UInt64";
  for (const StoreColumn& column : table.columns) {
    text += fmt::format(", {} {}{}", column.name, column.type, codecs ? CodecText(column.codec) : "");
  }
  return text;
}

}  // namespace

std::span<const StoreTable> StoreTables() { return kTables; }

const StoreTable& StoreTableOf(std::string_view name) {
  const auto* const found = std::ranges::find(kTables, name, &StoreTable::name);
  if (found == kTables.end()) std::abort();
  return *found;
}

std::string StoreLayout::LocalName(std::string_view table) const {
  return fmt::format("{}.{}{}", database, table, cluster.empty() ? "" : "_local");
}

std::vector<std::string> StoreLayout::NamesOf(std::string_view table) const {
  std::vector<std::string> names = {std::string(table)};
  if (!cluster.empty()) names.push_back(names.front() + "_local");
  return names;
}

std::string StoreLayout::OnCluster() const { return cluster.empty() ? "" : fmt::format(" ON CLUSTER `{}`", cluster); }

std::vector<std::string> CreateStatements(const StoreLayout& layout) {
  std::vector<std::string> statements = {fmt::format("CREATE DATABASE IF NOT EXISTS {}{}", layout.database, layout.OnCluster())};
  std::vector<StoreTable> tables(kTables.begin(), kTables.end());
  std::rotate(tables.begin(), tables.begin() + 1, tables.end());
  for (const StoreTable& table : tables) {
    const std::string engine =
        layout.cluster.empty()
            ? "MergeTree"
            : fmt::format("ReplicatedMergeTree('/clickhouse/tables/{{shard}}/{}/{}', '{{replica}}')", layout.database, table.name);
    statements.push_back(fmt::format("CREATE TABLE IF NOT EXISTS {}{} ({}) ENGINE = {} PARTITION BY run ORDER BY (run, rank, load{}{})",
                                     layout.LocalName(table.name), layout.OnCluster(),
                                     ColumnsText(table, layout.server_major >= kCodecsSince), engine, table.order.empty() ? "" : ", ", table.order));
    if (layout.cluster.empty()) continue;
    statements.push_back(fmt::format("CREATE TABLE IF NOT EXISTS {0}.{1}{2} AS {3} ENGINE = Distributed(`{4}`, {0}, {1}_local, cityHash64(run, rank))",
                                     layout.database, table.name, layout.OnCluster(), layout.LocalName(table.name), layout.cluster));
  }
  return statements;
}

}  // namespace profd::analysis
