// What of a rank is in which table. fetch.cc reads it back.
#include <fmt/format.h>

#include <set>

#include "analysis/step_finder.h"
#include "analysis/store/pipeline_json.h"
#include "analysis/store/rows.h"
#include "analysis/views/views.h"

namespace profd::analysis {
namespace {

Json GroupsJson(const Rank& rank) {
  Json groups = Json::array();
  for (const auto& [name, group] : rank.groups) groups.push_back({name, group.id, group.label, group.ranks});
  return groups;
}

void WriteFacts(const Rank& rank, RowBlocks* blocks) {
  const auto fact = [blocks](std::string_view name, std::string_view value) { blocks->Row("facts").Text(name).Text(value).End(); };
  const auto json = [&fact](std::string_view name, const Json& value) { fact(name, value.dump(-1, ' ', false, Json::error_handler_t::replace)); };
  json("ratio_names", rank.ratio_names);
  json("unit_names", rank.unit_names);
  Json lanes = Json::array();
  for (const Lane& lane : rank.lanes) lanes.push_back({lane.group, lane.name});
  json("lanes", lanes);
  if (!rank.op_states.empty()) json("op_states", rank.op_states);
  if (!rank.pipeline.empty()) json("pipeline", PipelineJson(rank.pipeline));
  for (const auto& [name, value] : rank.environment) fact("environment." + name, value);
  if (!rank.cann_version.empty()) fact("cann_version", rank.cann_version);
  if (rank.only_device) json("only_device", true);
  for (const auto& [name, value] : rank.facts) fact("manifest." + name, value);
  if (rank.fp_point != kNoText) fact("fp_point", rank.TextOf(rank.fp_point));
  if (rank.bp_point != kNoText) fact("bp_point", rank.TextOf(rank.bp_point));
  if (rank.span) json("span", {rank.span->start_ns, rank.span->end_ns});
  if (rank.recorded) json("recorded", {rank.recorded->start_ns, rank.recorded->end_ns});
  // The rows of steps have such shares.
  if (rank.source != "dump" && !rank.steps.empty() && (rank.shares.empty() || rank.shares_of_intervals)) json("shares_of_intervals", true);
  if (rank.first_step_is_short) json("first_step_is_short", true);
  if (rank.count_ns != 0) json("count_ns", rank.count_ns);
  if (rank.cube_cores != 0) json("cube_cores", rank.cube_cores);
  if (rank.vector_cores != 0) json("vector_cores", rank.vector_cores);
  if (rank.core_mhz != 0) json("core_mhz", rank.core_mhz);
  if (rank.longest_communication_ns != 0) json("longest_communication_ns", rank.longest_communication_ns);
  if (rank.communication_sum_ns != 0) json("communication_sum_ns", rank.communication_sum_ns);
  if (!rank.groups.empty()) json("groups", GroupsJson(rank));
  if (!rank.parallel_sizes.empty()) json("parallel_sizes", rank.parallel_sizes);
  if (rank.parallel_index) json("parallel_index", *rank.parallel_index);
  if (!rank.host_uid.empty()) fact("host_uid", rank.host_uid);
  if (rank.first_call_ns) json("first_call_ns", *rank.first_call_ns);
}

void WriteTotals(const Rank& rank, RowBlocks* blocks) {
  const std::optional<Overall> known = OverallOf(rank);
  const Overall overall = known.value_or(Overall());
  const Json timeline = TimelineView(rank);
  blocks->Row("totals").Int(BeginOf(rank)).Uint(known.has_value()).Float(overall.e2e_ms).Float(overall.shares.computing)
      .Float(overall.shares.communication).Float(overall.shares.uncovered).Float(overall.shares.free)
      .Uint(timeline["streams"].get<uint64_t>()).Uint(rank.executions.size()).Uint(rank.steps.size()).End();
}

void WriteStep(const Rank& rank, int64_t number, const Step* step_or_null, const Shares* shares_or_null, RowBlocks* blocks) {
  const Step none;
  const Step& step = step_or_null == nullptr ? none : *step_or_null;
  const Shares no_shares;
  const Shares& shares = shares_or_null == nullptr ? no_shares : *shares_or_null;
  std::vector<std::string> names;
  std::vector<int64_t> starts;
  std::vector<int64_t> ends;
  for (const Reduce& reduce : step.reduces) {
    names.emplace_back(rank.TextOf(reduce.name));
    starts.push_back(reduce.start_ns);
    ends.push_back(reduce.end_ns);
  }
  blocks->Row("steps").Int(number).Uint(step_or_null != nullptr).Int(step.start_ns).Int(step.end_ns).IntOrNull(step.fp_ns).IntOrNull(step.bp_ns)
      .Uint(shares_or_null != nullptr).Float(shares.computing).Float(shares.communication).Float(shares.uncovered).Float(shares.free)
      .Texts(names).Ints(starts).Ints(ends).FloatOrNull(shares.stage).FloatOrNull(shares.bubble).FloatOrNull(shares.without_receive)
      .FloatOrNull(shares.preparing).Floats(shares.begun ? std::vector(shares.begun->begin(), shares.begun->end()) : std::vector<double>()).End();
}

void WriteSteps(const Rank& rank, RowBlocks* blocks) {
  std::map<int64_t, Shares> shares = StepSharesOf(rank);
  std::set<int64_t> written;
  for (const Step& step : rank.steps) {
    const auto found = shares.find(step.number);
    WriteStep(rank, step.number, &step, found == shares.end() ? nullptr : &found->second, blocks);
    written.insert(step.number);
  }
  for (const auto& [number, of] : shares) {
    if (!written.contains(number)) WriteStep(rank, number, nullptr, &of, blocks);
  }
}

void WriteOperators(const Rank& rank, RowBlocks* blocks) {
  const std::vector<ExecutionTimes> times = TimesOf(rank);
  for (size_t i = 0; i < rank.operators.size(); ++i) {
    const Operator& op = rank.operators[i];
    const ExecutionTimes& of = times[i];
    blocks->Row("operators").Uint(i).Text(rank.TextOf(op.name)).Text(rank.TextOf(op.type)).Text(rank.TextOf(op.core))
        .Text(rank.TextOf(op.input_shapes)).Text(rank.TextOf(op.input_types)).Text(rank.TextOf(op.output_shapes))
        .Text(rank.TextOf(op.output_types)).Text(rank.TextOf(op.input_formats)).Text(rank.TextOf(op.output_formats))
        .Floats(op.ratio_ns).Float(op.counted_ns).Floats(op.unit_ns)
        .Uint(of.count).Int(of.total_ns).Int(of.count == 0 ? 0 : of.min_ns).Int(of.max_ns).End();
  }
}

std::string_view LaneName(const Rank& rank, int32_t lane) {
  return lane < 0 ? std::string_view() : std::string_view(rank.lanes[static_cast<size_t>(lane)].name);
}

void WriteKernels(const Rank& rank, RowBlocks* blocks) {
  const StepFinder steps(rank);
  std::unordered_map<uint32_t, std::vector<uint32_t>> launched_by;
  for (const Flow& flow : rank.flows) launched_by[flow.execution].push_back(flow.slice);
  const std::set<uint32_t> after(rank.communication_at.begin(), rank.communication_at.end());
  const std::vector<uint32_t> none;
  for (size_t i = 0; i < rank.executions.size() && blocks->status().ok(); ++i) {
    const Execution& each = rank.executions[i];
    const Operator& op = rank.operators[static_cast<size_t>(each.op)];
    const auto number = static_cast<uint32_t>(i);
    const auto found = launched_by.find(number);
    blocks->Row("kernels").Uint(i).Int(each.start_ns).Int(each.end_ns).Int(steps.At(each.start_ns)).Int(each.op).Text(rank.TextOf(op.name))
        .Text(rank.TextOf(op.type)).Text(rank.TextOf(op.core)).Text(LaneName(rank, each.lane)).Int(each.lane).Uint(each.blocks)
        .Uint(each.mix_blocks).Ints(found == launched_by.end() ? none : found->second).Uint(after.contains(number)).Text(rank.TextOf(each.task)).End();
  }
}

void WriteSlices(const Rank& rank, RowBlocks* blocks) {
  for (size_t i = 0; i < rank.slices.size() && blocks->status().ok(); ++i) {
    const Slice& each = rank.slices[i];
    const auto stack = rank.stacks.find(static_cast<uint32_t>(i));
    blocks->Row("slices").Uint(i).Int(each.start_ns).Int(each.end_ns)
        .Text(each.lane < 0 ? std::string_view() : std::string_view(rank.lanes[static_cast<size_t>(each.lane)].group))
        .Text(LaneName(rank, each.lane)).Int(each.lane).Text(rank.TextOf(each.name))
        .Text(stack == rank.stacks.end() ? std::string_view() : rank.TextOf(stack->second)).Uint(each.is_operator).End();
  }
}

template <class T, class Of>
std::vector<T> Column(const std::vector<Transport>& transports, Of of) {
  std::vector<T> column;
  column.reserve(transports.size());
  for (const Transport& each : transports) column.push_back(of(each));
  return column;
}

void WriteCollective(const Rank& rank, size_t at, int64_t step, RowBlocks* blocks) {
  const Collective& each = rank.collectives[at];
  const Collective::Parts parts = each.parts.value_or(Collective::Parts());
  const std::vector<Transport>& by = each.transports;
  std::vector<size_t> size_of;
  std::vector<double> size_mb;
  std::vector<uint64_t> size_packets;
  std::vector<double> size_times;
  for (size_t i = 0; i < by.size(); ++i) {
    for (const PacketSize& size : by[i].sizes) {
      size_of.push_back(i);
      size_mb.push_back(size.mb);
      size_packets.push_back(size.count);
      size_times.push_back(size.time_ms);
    }
  }
  blocks->Row("collectives").Uint(at).Int(each.start_ns).Int(step).Text(rank.TextOf(each.name)).Text(rank.TextOf(each.type))
      .Text(rank.TextOf(each.group)).Float(each.elapse_ms).Uint(each.parts.has_value()).Float(parts.transit_ms).Float(parts.wait_ms)
      .Float(parts.synchronization_ms).Float(parts.idle_ms).Texts(Column<std::string>(by, [](const Transport& of) { return of.name; }))
      .Floats(Column<double>(by, [](const Transport& of) { return of.size_mb; })).Floats(Column<double>(by, [](const Transport& of) { return of.time_ms; }))
      .Ints(Column<uint64_t>(by, [](const Transport& of) { return of.packets; }))
      .Ints(Column<uint64_t>(by, [](const Transport& of) { return of.large_packets; })).Uint(each.step >= 0).Uint(each.p2p)
      .Floats(Column<double>(by, [](const Transport& of) { return of.large_ratio; })).Ints(size_of).Floats(size_mb).Ints(size_packets).Floats(size_times)
      .Int(each.between.first).Int(each.between.second).End();
}

void WriteCommunication(const Rank& rank, RowBlocks* blocks) {
  const StepFinder steps(rank);
  for (size_t i = 0; i < rank.collectives.size() && blocks->status().ok(); ++i) WriteCollective(rank, i, steps.Of(rank.collectives[i]), blocks);
  for (const Transfer& each : rank.transfers) {
    blocks->Row("transfers").Int(each.start_ns).Int(each.end_ns).Uint(each.bytes).Text(rank.TextOf(each.name)).Text(rank.TextOf(each.transport))
        .Text(rank.TextOf(each.link)).End();
  }
  for (const PlaneWait& each : rank.waits) blocks->Row("waits").Int(each.start_ns).Int(each.end_ns).Int(each.plane).Uint(each.behind_rdma).End();
  for (const Copy& each : rank.copies) blocks->Row("copies").Int(each.start_ns).Int(each.end_ns).Int(each.lane).End();
  for (size_t i = 0; i < rank.links.size(); ++i) {
    const Link& link = rank.links[i];
    blocks->Row("links").Text(rank.TextOf(link.group)).Text(rank.TextOf(link.source)).Text(rank.TextOf(link.destination)).Text(rank.TextOf(link.transport))
        .Float(link.size_mb).Float(link.time_ms).Uint(i).Int(link.step).Text(rank.TextOf(link.name)).Text(rank.TextOf(link.op)).Uint(link.p2p).Uint(link.part).End();
  }
}

void WriteMemory(const Rank& rank, RowBlocks* blocks) {
  for (const auto& [component, samples] : rank.memory) {
    for (const MemorySample& each : samples) {
      blocks->Row("memory").Text(component).Int(each.t_ns).FloatOrNull(each.allocated).FloatOrNull(each.reserved).FloatOrNull(each.active).End();
    }
  }
  for (const MemoryBlock& each : rank.blocks) {
    blocks->Row("blocks").Text(rank.TextOf(each.name)).Float(each.size_kb).Int(each.taken_ns).IntOrNull(each.released_ns).End();
  }
}

void WriteHardware(const Rank& rank, RowBlocks* blocks) {
  for (size_t i = 0; i < rank.hardware.size(); ++i) {
    const Series& series = *rank.hardware[i];
    blocks->Row("counters").Uint(i).Int(series.device).Text(series.name).Text(series.unit).Uint(series.count).Float(series.min).Float(series.max)
        .Float(series.sum).End();
    for (const Series::Point& point : series.points) {
      blocks->Row("samples").Uint(i).Int(series.device).Text(series.name).Int(point.t_ns).Float(point.value).End();
    }
  }
}

void WriteRest(const Rank& rank, RowBlocks* blocks) {
  for (size_t kind = 0; kind < rank.overlap.size(); ++kind) {
    for (const Interval& each : rank.overlap[kind]) {
      blocks->Row("intervals").Text(exporting::operators::OverlapName(static_cast<OverlapKind>(kind))).Int(each.start_ns).Int(each.end_ns).End();
    }
  }
  for (const Interval& each : rank.garbage) blocks->Row("intervals").Text(kGarbageKind).Int(each.start_ns).Int(each.end_ns).End();
  for (size_t i = 0; i < rank.cpu_operators.size(); ++i) {
    const CpuOperator& each = rank.cpu_operators[i];
    blocks->Row("cpu_operators").Uint(i).Text(rank.TextOf(each.type)).Float(each.total_ms).Float(each.dispatch_ms).Int(each.run_start).Int(each.run_end).End();
  }
  for (const Mark& each : rank.marks) {
    blocks->Row("marks").Int(each.start_ns).Int(each.end_ns).Int(each.thread).Text(rank.TextOf(each.domain)).Text(rank.TextOf(each.name)).End();
  }
  for (const Loss& each : rank.losses) {
    blocks->Row("losses").Int(each.t_ns).Int(each.duration_ns).Text(rank.TextOf(each.channel)).Int(each.lost).End();
  }
}

}  // namespace

void WriteProblems(const std::vector<Problem>& problems, RowBlocks* blocks) {
  for (const Problem& each : problems) blocks->Row("facts").Text(fmt::format("{}{}", kProblemFact, each.where)).Text(each.what).End();
}

void WriteRank(const Rank& rank, RowBlocks* blocks) {
  WriteFacts(rank, blocks);
  WriteTotals(rank, blocks);
  WriteSteps(rank, blocks);
  WriteOperators(rank, blocks);
  WriteKernels(rank, blocks);
  WriteSlices(rank, blocks);
  WriteCommunication(rank, blocks);
  WriteMemory(rank, blocks);
  WriteHardware(rank, blocks);
  WriteRest(rank, blocks);
}

}  // namespace profd::analysis
