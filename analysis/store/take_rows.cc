#include "analysis/store/take_rows.h"

#include <algorithm>
#include <array>

#include "analysis/store/numbers.h"
#include "analysis/store/pipeline_json.h"
#include "analysis/store/rows.h"

namespace profd::analysis {
namespace {

constexpr size_t kMaxIndex = 50'000'000;
constexpr int kMostLanes = 1'000'000;

TextId TextIn(const StoreRow& row, size_t column, Rank* rank) { return row.Text(column).empty() ? kNoText : rank->Text(row.Text(column)); }

std::optional<double> FloatOrNone(const StoreRow& row, size_t column) {
  return row.IsNull(column) ? std::nullopt : std::optional(row.Float(column));
}
std::optional<int64_t> TimeOrNone(const StoreRow& row, size_t column) {
  return row.IsNull(column) ? std::nullopt : std::optional(row.Time(column));
}

template <class T>
T NumberOf(const std::string& text) {
  return NumberIn<T>(Json::parse(text, nullptr, false)).value_or(T());
}

std::vector<std::string> TextsOf(const std::string& text) {
  std::vector<std::string> texts;
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_array()) return texts;
  for (const Json& each : json) {
    if (each.is_string()) texts.push_back(each.get<std::string>());
  }
  return texts;
}

void TakeLanes(const std::string& text, Rank* rank) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_array()) return;
  for (const Json& each : json) {
    if (each.is_array() && each.size() == 2 && each[0].is_string() && each[1].is_string()) rank->LaneOf(each[0].get<std::string>(), each[1].get<std::string>());
  }
}

std::optional<Interval> SpanOf(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_array() || json.size() != 2) return std::nullopt;
  const auto start_ns = NumberIn<int64_t>(json[0]);
  const auto end_ns = NumberIn<int64_t>(json[1]);
  if (!start_ns || !end_ns || !IsTime(*start_ns) || !IsTime(*end_ns)) return std::nullopt;
  return Interval{*start_ns, *end_ns};
}

void TakeGroups(const std::string& text, Rank* rank) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_array()) return;
  for (const Json& each : json) {
    if (!each.is_array() || each.size() != 4 || !each[0].is_string() || !each[1].is_string() || !each[2].is_string() || !each[3].is_array()) continue;
    GroupFacts& group = rank->groups[each[0].get<std::string>()];
    group = {each[1].get<std::string>(), each[2].get<std::string>(), {}};
    for (const Json& number : each[3]) group.ranks.push_back(NumberIn<int>(number).value_or(-1));
  }
}

void TakeParallelSizes(const std::string& text, Rank* rank) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return;
  for (const auto& [name, size] : json.items()) rank->parallel_sizes[name] = NumberIn<int64_t>(size).value_or(0);
}

void TakeParallelIndex(const std::string& text, Rank* rank) {
  const Json json = Json::parse(text, nullptr, false);
  std::array<int64_t, 3> index{};
  if (!json.is_array() || json.size() != index.size()) return;
  for (size_t i = 0; i < index.size(); ++i) index[i] = NumberIn<int64_t>(json[i]).value_or(0);
  rank->parallel_index = index;
}

void TakeFirstCall(const std::string& text, Rank* rank) {
  const auto t_ns = NumberIn<int64_t>(Json::parse(text, nullptr, false));
  if (t_ns && IsTime(*t_ns)) rank->first_call_ns = *t_ns;
}

struct Fact {
  std::string_view name;
  void (*take)(const std::string& value, Rank* rank);
};
constexpr auto kFacts = std::to_array<Fact>({
    {"ratio_names", [](const std::string& value, Rank* rank) { rank->ratio_names = TextsOf(value); }},
    {"unit_names", [](const std::string& value, Rank* rank) { rank->unit_names = TextsOf(value); }},
    {"lanes", TakeLanes},
    {"op_states",
     [](const std::string& value, Rank* rank) {
       for (std::string& state : TextsOf(value)) rank->op_states.insert(std::move(state));
     }},
    {"pipeline", [](const std::string& value, Rank* rank) { rank->pipeline = PipelineOf(value); }},
    {"fp_point", [](const std::string& value, Rank* rank) { rank->fp_point = rank->Text(value); }},
    {"bp_point", [](const std::string& value, Rank* rank) { rank->bp_point = rank->Text(value); }},
    {"span", [](const std::string& value, Rank* rank) { rank->span = SpanOf(value); }},
    {"recorded", [](const std::string& value, Rank* rank) { rank->recorded = SpanOf(value); }},
    {"shares_of_intervals", [](const std::string& value, Rank* rank) { rank->shares_of_intervals = value == "true"; }},
    {"first_step_is_short", [](const std::string& value, Rank* rank) { rank->first_step_is_short = value == "true"; }},
    {"count_ns", [](const std::string& value, Rank* rank) { rank->count_ns = NumberOf<int64_t>(value); }},
    {"cube_cores", [](const std::string& value, Rank* rank) { rank->cube_cores = NumberOf<int>(value); }},
    {"vector_cores", [](const std::string& value, Rank* rank) { rank->vector_cores = NumberOf<int>(value); }},
    {"core_mhz", [](const std::string& value, Rank* rank) { rank->core_mhz = NumberOf<double>(value); }},
    {"longest_communication_ns", [](const std::string& value, Rank* rank) { rank->longest_communication_ns = NumberOf<int64_t>(value); }},
    {"communication_sum_ns", [](const std::string& value, Rank* rank) { rank->communication_sum_ns = NumberOf<int64_t>(value); }},
    {"groups", TakeGroups},
    {"parallel_sizes", TakeParallelSizes},
    {"parallel_index", TakeParallelIndex},
    {"cann_version", [](const std::string& value, Rank* rank) { rank->cann_version = value; }},
    {"only_device", [](const std::string& value, Rank* rank) { rank->only_device = value == "true"; }},
    {"host_uid", [](const std::string& value, Rank* rank) { rank->host_uid = value; }},
    {"first_call_ns", TakeFirstCall},
});

Status TakeFact(const StoreRow& row, Filling* to) {
  constexpr std::string_view kEnvironment = "environment.";
  constexpr std::string_view kManifest = "manifest.";
  const std::string& name = row.Text(1);
  if (name.starts_with(kEnvironment)) to->rank->environment[name.substr(kEnvironment.size())] = row.Text(2);
  if (name.starts_with(kManifest)) to->rank->facts[name.substr(kManifest.size())] = row.Text(2);
  if (name.starts_with(kProblemFact)) to->problems.push_back({name.substr(kProblemFact.size()), row.Text(2)});
  const auto* const found = std::ranges::find(kFacts, std::string_view(name), &Fact::name);
  if (found != kFacts.end()) found->take(row.Text(2), to->rank);
  return {};
}

Status TakeTotals(const StoreRow& row, Filling* to) {
  Sums& sums = to->rank->sums.emplace();
  sums.begin_ns = row.Time(1);
  sums.has_overall = row.Int(2) != 0;
  sums.e2e_ms = row.Float(3);
  sums.overall = {row.Float(4), row.Float(5), row.Float(6), row.Float(7)};
  sums.streams = row.Uint(8);
  sums.executions = row.Uint(9);
  return {};
}

Status TakeStep(const StoreRow& row, Filling* to) {
  const int64_t number = row.Int(1);
  if (row.Int(7) != 0) {
    Shares& shares = to->rank->shares[number];
    shares = {row.Float(8), row.Float(9), row.Float(10), row.Float(11), FloatOrNone(row, 15), FloatOrNone(row, 16), FloatOrNone(row, 17), FloatOrNone(row, 18)};
    const std::vector<double> begun = row.Floats(19);
    if (begun.size() == 4) shares.begun = {begun[0], begun[1], begun[2], begun[3]};
  }
  if (row.Int(2) == 0) return {};
  Step& step = to->rank->steps.emplace_back();
  step.number = number;
  step.start_ns = row.Time(3);
  step.end_ns = row.Time(4);
  step.fp_ns = TimeOrNone(row, 5);
  step.bp_ns = TimeOrNone(row, 6);
  const std::vector<int64_t> starts = row.Times(13);
  const std::vector<int64_t> ends = row.Times(14);
  const std::vector<std::string>& names = row.List(12);
  for (size_t i = 0; i < std::min({names.size(), starts.size(), ends.size()}); ++i) {
    step.reduces.push_back({to->rank->Text(names[i]), starts[i], ends[i]});
  }
  return {};
}

Status TakeOperator(const StoreRow& row, Filling* to) {
  const uint64_t number = row.Uint(1);
  if (number != to->rank->operators.size()) return DataLoss("the numbers of operators have gaps: load the run again");
  Operator& op = to->rank->operators.emplace_back();
  op.name = TextIn(row, 2, to->rank);
  op.type = TextIn(row, 3, to->rank);
  op.core = TextIn(row, 4, to->rank);
  op.input_shapes = TextIn(row, 5, to->rank);
  op.input_types = TextIn(row, 6, to->rank);
  op.output_shapes = TextIn(row, 7, to->rank);
  op.ratio_ns = row.Floats(8);
  op.counted_ns = row.Float(9);
  op.unit_ns = row.Floats(10);
  op.output_types = TextIn(row, 15, to->rank);
  op.input_formats = TextIn(row, 16, to->rank);
  op.output_formats = TextIn(row, 17, to->rank);
  // Names of them come with the facts.
  if (op.ratio_ns.size() > to->rank->ratio_names.size() || op.unit_ns.size() > to->rank->unit_names.size()) return DataLoss("counters of operators have no names: load the run again");
  if (!to->rank->sums) return {};
  ExecutionTimes& times = to->rank->sums->operators.emplace_back();
  times.count = row.Uint(11);
  times.total_ns = row.Time(12);
  if (times.count > 0) times.min_ns = row.Time(13);
  times.max_ns = row.Time(14);
  return {};
}

Status TakeKernel(const StoreRow& row, Filling* to) {
  Rank& rank = *to->rank;
  Execution each{row.Time(1), row.Time(2), static_cast<int32_t>(row.Uint(3)), static_cast<int32_t>(row.Int(4)), static_cast<uint16_t>(row.Uint(5)),
                 static_cast<uint16_t>(row.Uint(6)), TextIn(row, 9, &rank)};
  const bool known = each.op >= 0 && static_cast<size_t>(each.op) < rank.operators.size() && each.lane >= 0 && each.lane < static_cast<int64_t>(rank.lanes.size());
  if (!known || rank.executions.size() >= kMaxIndex) return DataLoss("executions of operators that are not there: load the run again");
  if (each.start_ns > each.end_ns) return DataLoss("executions that end before they begin: load the run again");
  const auto number = static_cast<uint32_t>(rank.executions.size());
  rank.executions.push_back(each);
  for (const int64_t slice : row.Ints(7)) to->flows.push_back({static_cast<uint32_t>(slice), number});
  if (row.Int(8) != 0) rank.communication_at.push_back(number);
  return {};
}

Status TakeSlice(const StoreRow& row, Filling* to) {
  Rank& rank = *to->rank;
  const auto number = static_cast<uint32_t>(rank.slices.size());
  const int64_t lane = row.Int(4);
  const bool known = lane >= 0 && lane < static_cast<int64_t>(rank.lanes.size()) && lane < kMostLanes;
  if (!known || number >= kMaxIndex) return DataLoss("slices of threads that are not there: load the run again");
  if (row.Int(2) > row.Int(3)) return DataLoss("slices that end before they begin: load the run again");
  to->slices[static_cast<uint32_t>(row.Uint(1))] = number;
  rank.slices.push_back({row.Time(2), row.Time(3), TextIn(row, 5, &rank), static_cast<int32_t>(lane), row.Uint(7) != 0});
  if (!row.Text(6).empty()) rank.stacks[number] = rank.Text(row.Text(6));
  return {};
}

Collective::Parts PartsOf(const StoreRow& row, size_t column) {
  return {row.Float(column), row.Float(column + 1), row.Float(column + 2), row.Float(column + 3)};
}

void TakePacketSizes(const StoreRow& row, size_t column, Collective* made) {
  const std::vector<int64_t> of = row.Ints(column);
  const std::vector<double> mb = row.Floats(column + 1);
  const std::vector<int64_t> packets = row.Ints(column + 2);
  const std::vector<double> times = row.Floats(column + 3);
  for (size_t i = 0; i < std::min({of.size(), mb.size(), packets.size(), times.size()}); ++i) {
    const auto transport = static_cast<size_t>(of[i]);
    if (of[i] >= 0 && transport < made->transports.size()) made->transports[transport].sizes.push_back({mb[i], static_cast<uint64_t>(packets[i]), times[i]});
  }
}

Status TakeCollective(const StoreRow& row, Filling* to) {
  Collective& made = to->rank->collectives.emplace_back();
  made.start_ns = row.Time(1);
  made.name = TextIn(row, 2, to->rank);
  made.type = TextIn(row, 3, to->rank);
  made.group = TextIn(row, 4, to->rank);
  made.elapse_ms = row.Float(5);
  if (row.Int(6) != 0) made.parts = PartsOf(row, 7);
  const std::vector<double> sizes = row.Floats(12);
  const std::vector<double> times = row.Floats(13);
  const std::vector<int64_t> packets = row.Ints(14);
  const std::vector<int64_t> large = row.Ints(15);
  const std::vector<double> ratios = row.Floats(19);
  const std::vector<std::string>& names = row.List(11);
  for (size_t i = 0; i < std::min({names.size(), sizes.size(), times.size(), packets.size(), large.size(), ratios.size()}); ++i) {
    made.transports.push_back({names[i], sizes[i], times[i], static_cast<uint64_t>(packets[i]), static_cast<uint64_t>(large[i]), ratios[i]});
  }
  TakePacketSizes(row, 20, &made);
  made.p2p = row.Int(18) != 0;
  const int64_t first = row.Int(24);
  const int64_t second = row.Int(25);
  if (first >= 0 && first < second && second <= INT32_MAX) made.between = {static_cast<int32_t>(first), static_cast<int32_t>(second)};
  if (row.Int(17) != 0) made.step = row.Int(16);  // else found by its time, which differs between ranks
  return {};
}

Status TakeCollectiveSum(const StoreRow& row, Filling* to) {
  Collective& made = to->rank->collectives.emplace_back();
  made.group = TextIn(row, 1, to->rank);
  made.name = TextIn(row, 2, to->rank);
  made.type = TextIn(row, 3, to->rank);
  made.count = row.Uint(4);
  made.elapse_ms = row.Float(5);
  if (row.Int(6) != 0) made.parts = PartsOf(row, 7);
  to->collectives[{made.group, made.name, made.type}] = to->rank->collectives.size() - 1;
  return {};
}

Status TakeTransportSum(const StoreRow& row, Filling* to) {
  const auto found = to->collectives.find({TextIn(row, 1, to->rank), TextIn(row, 2, to->rank), TextIn(row, 3, to->rank)});
  if (found == to->collectives.end()) return {};
  to->rank->collectives[found->second].transports.push_back({row.Text(4), row.Float(5), row.Float(6), row.Uint(7), row.Uint(8)});
  return {};
}

Status TakeTransfer(const StoreRow& row, Filling* to) {
  to->rank->transfers.push_back({row.Time(1), row.Time(2), row.Uint(3), TextIn(row, 4, to->rank), TextIn(row, 5, to->rank), TextIn(row, 6, to->rank)});
  return {};
}

Status TakeLinkSum(const StoreRow& row, Filling* to) {
  to->rank->links.push_back({TextIn(row, 1, to->rank), TextIn(row, 2, to->rank), TextIn(row, 3, to->rank), TextIn(row, 4, to->rank), row.Float(5), row.Float(6)});
  return {};
}

Status TakeLink(const StoreRow& row, Filling* to) {
  RETURN_IF_ERROR(TakeLinkSum(row, to));
  Link& link = to->rank->links.back();
  link.name = TextIn(row, 7, to->rank);
  link.op = TextIn(row, 8, to->rank);
  link.step = row.Int(9);
  link.p2p = row.Int(10) != 0;
  link.part = row.Int(11) != 0;
  return {};
}

Status TakeWait(const StoreRow& row, Filling* to) {
  to->rank->waits.push_back({row.Time(1), row.Time(2), static_cast<int32_t>(row.Int(3)), row.Int(4) != 0});
  return {};
}

Status TakeCopy(const StoreRow& row, Filling* to) {
  const int64_t lane = row.Int(3);
  if (lane < 0 || lane >= static_cast<int64_t>(to->rank->lanes.size())) return DataLoss("copies of streams that are not there: load the run again");
  to->rank->copies.push_back({row.Time(1), row.Time(2), static_cast<int32_t>(lane)});
  return {};
}

Status TakeMemory(const StoreRow& row, Filling* to) {
  to->rank->memory[row.Text(1)].push_back({row.Time(2), FloatOrNone(row, 3), FloatOrNone(row, 4), FloatOrNone(row, 5)});
  return {};
}

Status TakeBlock(const StoreRow& row, Filling* to) {
  to->rank->blocks.push_back({TextIn(row, 1, to->rank), row.Float(2), row.Time(3), TimeOrNone(row, 4)});
  return {};
}

Status TakeCounter(const StoreRow& row, Filling* to) {
  const auto series = std::make_shared<Series>();
  series->device = static_cast<int>(row.Int(2));
  series->name = row.Text(3);
  series->unit = row.Text(4);
  series->count = row.Uint(5);
  series->min = row.Float(6);
  series->max = row.Float(7);
  series->sum = row.Float(8);
  to->counters[row.Uint(1)] = to->rank->hardware.size();
  to->rank->hardware.push_back(series);
  return {};
}

Status TakeSample(const StoreRow& row, Filling* to) {
  const auto found = to->counters.find(row.Uint(1));
  if (found != to->counters.end()) to->rank->hardware[found->second]->points.push_back({row.Time(2), row.Float(3)});
  return {};
}

Status TakeInterval(const StoreRow& row, Filling* to) {
  const Interval each{row.Time(2), row.Time(3)};
  if (row.Text(1) == kGarbageKind) to->rank->garbage.push_back(each);
  for (size_t kind = 0; kind < exporting::operators::kOverlapKinds; ++kind) {
    if (row.Text(1) == exporting::operators::OverlapName(static_cast<OverlapKind>(kind))) to->rank->overlap[kind].push_back(each);
  }
  return {};
}

Status TakeCpuOperator(const StoreRow& row, Filling* to) {
  to->rank->cpu_operators.push_back({TextIn(row, 1, to->rank), row.Float(2), row.Float(3), row.Int(4), row.Int(5)});
  return {};
}

Status TakeMark(const StoreRow& row, Filling* to) {
  to->rank->marks.push_back({row.Time(1), row.Time(2), TextIn(row, 5, to->rank), TextIn(row, 4, to->rank), row.Int(1) == row.Int(2), row.Int(3)});
  return {};
}

constexpr std::string_view kKernelColumns = "start_ns, end_ns, op, lane, blocks, mix_blocks, launched_by, after_communication, task";

using enum FetchWhen;

// Facts first: others are numbered by them.
constexpr auto kQueries = std::to_array<FetchQuery>({
    {"facts", kBoth, "", "name, value", "ORDER BY load, name", TakeFact},
    {"totals", kSums, "", "begin_ns, has_overall, e2e_ms, computing_ms, communication_ms, uncovered_ms, free_ms, streams, executions", "", TakeTotals},
    {"steps", kBoth, " steps step_average step_distribution hardware cluster ",
     "step, has_times, start_ns, end_ns, fp_ns, bp_ns, has_shares, computing_ms, communication_ms, uncovered_ms, free_ms, reduce_names, "
     "reduce_start_ns, reduce_end_ns, stage_ms, bubble_ms, without_receive_ms, preparing_ms, begun_ms",
     "ORDER BY load, start_ns, step", TakeStep},
    {"operators", kBoth, " operator_types operators timeline hardware ",
     "op, name, type, core, input_shapes, input_types, output_shapes, ratio_ns, counted_ns, unit_ns, executions, total_ns, min_ns, max_ns, "
     "output_types, input_formats, output_formats",
     "ORDER BY load, op", TakeOperator},
    {"kernels", kComplete, "", kKernelColumns, "ORDER BY load, at", TakeKernel},
    {"slices", kComplete, "", "at, start_ns, end_ns, lane, name, stack, is_operator", "ORDER BY load, at", TakeSlice},
    {"collectives", kRows, " communication cluster ",
     "start_ns, name, type, group_name, elapse_ms, has_parts, transit_ms, wait_ms, synchronization_ms, idle_ms, transports, sizes_mb, times_ms, "
     "packets, large_packets, step, step_is_named, p2p, large_ratios, size_transports, size_packet_mb, size_packets, size_times_ms, between_first, between_second",
     "ORDER BY load, at", TakeCollective},
    {"collectives", kAdded, " communication ",
     "group_name, name, type, count() AS operations, sum(elapse_ms), max(has_parts), sum(transit_ms), sum(wait_ms), sum(synchronization_ms), sum(idle_ms)",
     "GROUP BY load, group_name, name, type ORDER BY load, min(start_ns)", TakeCollectiveSum},
    {"collectives", kAdded, " communication ", "group_name, name, type, transport, sum(size_mb), sum(time_ms), sum(packet_count), sum(large_count)",
     "GROUP BY load, group_name, name, type, transport ORDER BY load, transport", TakeTransportSum,
     "ARRAY JOIN transports AS transport, sizes_mb AS size_mb, times_ms AS time_ms, packets AS packet_count, large_packets AS large_count"},
    {"transfers", kComplete, "", "start_ns, end_ns, bytes, name, transport, link", "ORDER BY load, start_ns", TakeTransfer},
    {"waits", kComplete, "", "start_ns, end_ns, plane, behind_rdma", "ORDER BY load, start_ns, plane", TakeWait},
    {"copies", kComplete, "", "start_ns, end_ns, lane", "ORDER BY load, start_ns, lane", TakeCopy},
    {"links", kRows, " links cluster ", "group_name, src, dst, transport, size_mb, time_ms, name, op_name, step, p2p, part", "ORDER BY load, at", TakeLink},
    {"links", kAdded, " links ", "group_name, src, dst, transport, sum(size_mb), sum(time_ms)",
     "AND part = 0 GROUP BY load, group_name, src, dst, transport ORDER BY load, group_name, src, dst, transport", TakeLinkSum},
    {"memory", kBoth, " memory ", "component, t_ns, allocated_mb, reserved_mb, active_mb", "ORDER BY load, component, t_ns", TakeMemory},
    {"blocks", kBoth, " memory ", "name, size_kb, taken_ns, released_ns", "ORDER BY load, taken_ns", TakeBlock},
    {"counters", kBoth, " hardware ", "counter, device, name, unit, samples, min, max, sum", "ORDER BY load, counter", TakeCounter},
    {"samples", kBoth, " hardware ", "counter, t_ns, value", "ORDER BY load, counter, t_ns", TakeSample},
    {"intervals", kComplete, "", "kind, start_ns, end_ns", "ORDER BY load, kind, start_ns", TakeInterval},
    {"cpu_operators", kBoth, " ai_cpu ", "type, total_ms, dispatch_ms, run_start, run_end", "ORDER BY load, at", TakeCpuOperator},
    {"marks", kBoth, " marks ", "start_ns, end_ns, thread, domain, name", "ORDER BY load, start_ns", TakeMark},
});

constexpr FetchQuery kExecutions{"kernels", kSums, " hardware ", kKernelColumns, "ORDER BY load, at", TakeKernel};

}  // namespace

std::span<const FetchQuery> FetchQueries() { return kQueries; }
const FetchQuery& ExecutionsQuery() { return kExecutions; }

void FinishRank(Filling* filling) {
  for (const Flow& flow : filling->flows) {
    const auto found = filling->slices.find(flow.slice);
    if (found != filling->slices.end()) filling->rank->flows.push_back({found->second, flow.execution});
  }
  filling->flows.clear();
  filling->slices.clear();
}

}  // namespace profd::analysis
