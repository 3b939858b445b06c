#include "client/serve/mindinsight_lists.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "base/text.h"
#include "base/utf8.h"

namespace profd::client::mindinsight {

using analysis::Rank;

namespace {

// "input_0": {"format": ..., "data_type": ..., "shape": ...} and so on, of lists with ';' between; a scalar's shape is empty.
void AddTensors(std::string_view what, std::string_view shapes, std::string_view types, std::string_view formats, Json* info) {
  const auto next = [](std::string_view* list) {
    std::string_view first;
    NextPart(list, ';', &first);
    return first;
  };
  int64_t tensors = 0;
  for (const std::string_view list : {shapes, types, formats}) {
    if (!list.empty()) tensors = std::max<int64_t>(tensors, std::ranges::count(list, ';') + 1);
  }
  const bool typed = !types.empty();
  const bool formatted = !formats.empty();
  for (int64_t number = 0; number < tensors; ++number) {
    Json& tensor = (*info)[fmt::format("{}_{}", what, number)];
    if (formatted) tensor["format"] = next(&formats);
    if (typed) tensor["data_type"] = next(&types);
    tensor["shape"] = next(&shapes);
  }
}
}  // namespace

Json TensorsOf(const Rank& rank, const analysis::Operator& op) {
  Json info = Json::object();
  AddTensors("input", rank.TextOf(op.input_shapes), rank.TextOf(op.input_types), rank.TextOf(op.input_formats), &info);
  AddTensors("output", rank.TextOf(op.output_shapes), rank.TextOf(op.output_types), rank.TextOf(op.output_formats), &info);
  return info;
}

namespace {

// Rows as MindInsight filters, sorts and cuts them (analysis 4.2).
struct Listing {
  std::vector<std::string> columns;
  std::vector<Json> rows;  // each a list

  size_t Column(const std::string& name) const {
    return static_cast<size_t>(std::ranges::find(columns, name) - columns.begin());
  }
};

constexpr auto kRules = std::to_array<std::string_view>({"in", "not_in", "partial_match_str_in"});

bool Passes(const Json& value, const Json& rule) {
  const auto among = [&value](const Json& list) {
    return list.is_array() && std::ranges::any_of(list, [&value](const Json& each) { return TextOf(each) == TextOf(value); });
  };
  if (rule.contains("in") && !among(rule["in"])) return false;
  if (rule.contains("not_in") && among(rule["not_in"])) return false;
  const auto partial = rule.find("partial_match_str_in");
  if (partial == rule.end() || !partial->is_array()) return true;
  return std::ranges::any_of(*partial, [&value](const Json& each) {
    return LowerCase(TextOf(value)).find(LowerCase(TextOf(each))) != std::string::npos;
  });
}

// Analysis 4.2; none: it is something else.
std::optional<int64_t> IntIn(const Json& object, const char* name, int64_t otherwise, int64_t least, int64_t most) {
  const auto found = object.find(name);
  if (found == object.end()) return otherwise;
  if (!found->is_number_integer() || *found < least || *found > most) return std::nullopt;
  return found->get<int64_t>();
}
std::optional<int64_t> LimitOf(const Json& group) { return IntIn(group, "limit", 10, 1, 100); }
std::optional<int64_t> OffsetOf(const Json& group) { return IntIn(group, "offset", 0, 0, 1'000'000); }

std::string FaultOfGroup(const RankQuery& asked) {
  const auto group = asked.body.find("group_condition");
  if (group == asked.body.end() || group->is_null()) return "";
  if (!group->is_object()) return "group_condition is not an object";
  if (!LimitOf(*group)) return "limit of group_condition is not a number from 1 to 100";
  return OffsetOf(*group) ? "" : "offset of group_condition is not a number from 0 to 1000000";
}

// A value of the request as a message shows it: of the longest the begin, of bytes that are no text what stands for them.
std::string Shown(const Json& value) {
  constexpr size_t kLongest = 80;
  std::string text = JsonText(value, false);
  return text.size() <= kLongest ? text : text.substr(0, BytesOfWholeCharacters(text, kLongest)) + "...";
}

std::string FaultOfRule(const std::string& column, const Json& rule) {
  if (!rule.is_object()) return fmt::format("{} of filter_condition is {}, not an object with {}", Shown(column), Shown(rule), fmt::join(kRules, ", "));
  for (const auto& [name, list] : rule.items()) {
    if (std::ranges::find(kRules, name) == kRules.end()) {
      return fmt::format("{} of filter_condition has {}, which is not one of {}", Shown(column), Shown(name), fmt::join(kRules, ", "));
    }
    if (!list.is_array()) return fmt::format("{} of {} of filter_condition is {}, not a list", name, Shown(column), Shown(list));
  }
  return "";
}

// `switches` are true or false; `besides` are columns of other lists, which MindInsight takes and passes over.
std::string FaultOfFilter(const Json& body, std::span<const std::string_view> columns, std::span<const std::string_view> switches,
                          std::span<const std::string_view> besides) {
  const auto filter = body.find("filter_condition");
  if (filter == body.end() || filter->is_null()) return "";
  if (!filter->is_object()) return fmt::format("filter_condition is {}, not an object", Shown(*filter));
  const auto among = [](std::span<const std::string_view> names, const std::string& name) { return std::ranges::find(names, name) != names.end(); };
  for (const auto& [name, rule] : filter->items()) {
    if (among(switches, name)) {
      if (!rule.is_boolean()) return fmt::format("{} of filter_condition is {}, not true or false", name, Shown(rule));
    } else if (!among(columns, name) && !among(besides, name)) {
      return fmt::format("filter_condition has {}, which is not one of {}", Shown(name), fmt::join(columns, ", "));
    } else if (std::string fault = FaultOfRule(name, rule); !fault.empty()) {
      return fault;
    }
  }
  return "";
}

// MindInsight's page leaves the type empty where it does not sort.
std::string FaultOfSort(const Json& body, std::span<const std::string_view> columns) {
  const auto sort = body.find("sort_condition");
  if (sort == body.end() || sort->is_null()) return "";
  if (!sort->is_object()) return fmt::format("sort_condition is {}, not an object", Shown(*sort));
  const auto fault = [&](const char* field, std::span<const std::string_view> allowed) -> std::string {
    const auto found = sort->find(field);
    if (found == sort->end() || found->is_null() || *found == "") return "";
    if (found->is_string() && std::ranges::find(allowed, found->get<std::string>()) != allowed.end()) return "";
    return fmt::format("{} of sort_condition is {}, not one of {}", field, Shown(*found), fmt::join(allowed, ", "));
  };
  const std::string name = fault("name", columns);
  return !name.empty() ? name : fault("type", std::to_array<std::string_view>({"ascending", "descending"}));
}

std::vector<std::string> ColumnsOf(std::span<const std::string_view> names) { return {names.begin(), names.end()}; }

Json Answer(Listing listing, const Json& body) {
  const Json none = Json::object();
  const auto part = [&](const char* name) -> const Json& {
    const auto found = body.find(name);
    return found != body.end() && found->is_object() ? *found : none;
  };
  for (const auto& [name, rule] : part("filter_condition").items()) {
    const size_t column = listing.Column(name);
    if (column == listing.columns.size()) continue;
    std::erase_if(listing.rows, [&rule = rule, column](const Json& row) { return !Passes(row[column], rule); });
  }
  const Json& sort = part("sort_condition");
  const size_t by = sort.contains("name") ? listing.Column(TextOf(sort["name"])) : listing.columns.size();
  if (by < listing.columns.size()) {
    const bool down = !sort.contains("type") || sort["type"] != "ascending";
    std::ranges::stable_sort(listing.rows, [by, down](const Json& a, const Json& b) { return down ? b[by] < a[by] : a[by] < b[by]; });
  }
  const size_t size = listing.rows.size();
  const Json& group = part("group_condition");
  if (!group.empty()) {
    const auto limit = static_cast<size_t>(LimitOf(group).value_or(1));
    const size_t begin = std::min(static_cast<size_t>(OffsetOf(group).value_or(0)) * limit, size);
    const size_t end = std::min(begin + limit, size);
    listing.rows = {listing.rows.begin() + static_cast<std::ptrdiff_t>(begin), listing.rows.begin() + static_cast<std::ptrdiff_t>(end)};
  }
  return {{"col_name", listing.columns}, {"object", listing.rows}, {"size", size}};
}

constexpr auto kTypeColumns = std::to_array<std::string_view>({"op_type", "execution_time", "execution_frequency", "percent"});
constexpr auto kDetailColumns = std::to_array<std::string_view>({"op_name", "op_type", "avg_execution_time", "subgraph", "full_op_name", "op_info"});
constexpr auto kCpuColumns = std::to_array<std::string_view>({"serial_number", "op_type", "total_time", "dispatch_time", "run_start", "run_end"});

Listing OperatorTypes(const Rank& rank) {
  Listing made{ColumnsOf(kTypeColumns), {}};
  const Json types = analysis::OperatorTypesView(rank);
  double total = 0;
  for (const Json& type : types) total += NumberOf(type, "execution_time_ms");
  for (const Json& type : types) {
    const double time = NumberOf(type, "execution_time_ms");
    made.rows.push_back(
        Json::array({type["type"], time, type["operators"], total > 0 ? std::round(time / total * 1e4) / 100 : 0}));
  }
  return made;
}

Listing OperatorDetails(const Rank& rank) {
  Listing made{ColumnsOf(kDetailColumns), {}};
  std::map<std::pair<std::string_view, std::string_view>, const analysis::Operator*> tensors;  // by name and type; null: they differ
  for (const analysis::Operator& op : rank.operators) {
    const auto [it, is_new] = tensors.try_emplace({rank.TextOf(op.name), rank.TextOf(op.type)}, &op);
    if (!is_new) it->second = nullptr;
  }
  const auto text = [](const Json& value) { return value.is_null() ? std::string() : value.get<std::string>(); };
  for (const Json& op : analysis::OperatorsView(rank)) {
    const std::string full = text(op["name"]);
    Json info = Json::object();
    const auto found = tensors.find({full, text(op["type"])});
    if (found != tensors.end() && found->second != nullptr) info = TensorsOf(rank, *found->second);
    made.rows.push_back(Json::array({full.substr(full.rfind('/') + 1), op["type"], op["mean_ms"], full.substr(0, full.find('/')), full, std::move(info)}));
  }
  return made;
}

Listing CpuOperators(const Rank& rank) {
  Listing made{ColumnsOf(kCpuColumns), {}};
  for (const Json& op : analysis::CpuOperatorsView(rank)) {
    made.rows.push_back(Json::array({op["serial_number"], op["type"], op["total_ms"], op["dispatch_ms"], op["run_start"], op["run_end"]}));
  }
  return made;
}

Listing CpuOperatorTypes(const Rank& rank) {
  std::map<std::string, std::pair<double, int64_t>> types;  // ms, times
  double all_ms = 0;
  for (const Json& op : analysis::CpuOperatorsView(rank)) {
    auto& [ms, times] = types[op["type"].is_string() ? op["type"].get<std::string>() : ""];
    ms += NumberOf(op, "total_ms");
    all_ms += NumberOf(op, "total_ms");
    ++times;
  }
  Listing made{ColumnsOf(kTypeColumns), {}};
  for (const auto& [type, sum] : types) {
    made.rows.push_back(Json::array({type, sum.first, sum.second, all_ms > 0 ? std::round(sum.first / all_ms * 1e4) / 100 : 0}));
  }
  return made;
}

struct OperatorKind {
  std::string_view name;
  std::span<const std::string_view> columns;
  Listing (*list)(const Rank& rank);
};
constexpr auto kOperatorKinds = std::to_array<OperatorKind>({
    {"aicore_type", kTypeColumns, OperatorTypes},
    {"aicore_detail", kDetailColumns, OperatorDetails},
    {"aicpu_type", kTypeColumns, CpuOperatorTypes},
    {"aicpu_detail", kCpuColumns, CpuOperators},
});

// Null: there is no such kind.
const OperatorKind* KindOf(const RankQuery& asked) {
  const auto type = asked.body.find("op_type");
  if (type == asked.body.end()) return nullptr;
  const auto found = std::ranges::find(kOperatorKinds, TextOf(*type), &OperatorKind::name);
  return found == kOperatorKinds.end() ? nullptr : &*found;
}

}  // namespace

std::string FaultOfSearch(const RankQuery& asked) {
  const OperatorKind* kind = KindOf(asked);
  if (kind == nullptr) {
    const auto type = asked.body.find("op_type");
    const std::string names = "aicore_type, aicore_detail, aicpu_type, aicpu_detail";
    return type == asked.body.end() ? "op_type is missing; it is one of " + names : fmt::format("op_type is {}, not one of {}", Shown(*type), names);
  }
  if (std::string fault = FaultOfGroup(asked); !fault.empty()) return fault;
  if (std::string fault = FaultOfSort(asked.body, kind->columns); !fault.empty()) return fault;
  return FaultOfFilter(asked.body, kind->columns, std::to_array<std::string_view>({"is_display_detail", "is_display_full_op_name"}),
                       std::to_array<std::string_view>({"op_type", "op_name"}));
}

namespace {

// Whether filter_condition has `name` with this value.
bool FilterHas(const RankQuery& asked, const char* name, bool value) {
  const auto filter = asked.body.find("filter_condition");
  return filter != asked.body.end() && filter->is_object() && filter->value(name, Json()) == Json(value);
}

}  // namespace

Json SearchOperators(const RankQuery& asked) {
  const OperatorKind* kind = KindOf(asked);
  if (kind == nullptr) return nullptr;
  Json answer = Answer(kind->list(asked.rank), asked.body);
  // The last column first, so that the other keeps its place.
  for (const auto& [flag, name] : {std::pair("is_display_detail", "op_info"), std::pair("is_display_full_op_name", "full_op_name")}) {
    const auto column = static_cast<size_t>(std::ranges::find(kind->columns, std::string_view(name)) - kind->columns.begin());
    if (column == kind->columns.size() || !FilterHas(asked, flag, false)) continue;
    answer["col_name"].erase(column);
    for (Json& row : answer["object"]) row.erase(column);
  }
  return answer;
}

namespace {

// An operator of the input pipeline; those without a queue are passed over, to their children.
struct PipelineRow {
  const analysis::Pipeline::Operator* op = nullptr;
  std::optional<int64_t> parent;
  std::vector<int64_t> children;
};

// Breadth first from the root, which is there in any case.
std::vector<PipelineRow> PipelineRows(const analysis::Pipeline& pipeline) {
  std::vector<PipelineRow> rows;
  std::set<int64_t> seen;
  const auto find = [&pipeline](int64_t id) { return std::ranges::find(pipeline.operators, id, &analysis::Pipeline::Operator::id); };
  const auto root = find(0);
  if (root == pipeline.operators.end()) return rows;
  rows.push_back({&*root, std::nullopt, {}});
  seen.insert(0);
  for (size_t i = 0; i < rows.size(); ++i) {
    std::vector<int64_t> below = rows[i].op->children;
    for (size_t k = 0; k < below.size(); ++k) {
      const auto child = find(below[k]);
      if (child == pipeline.operators.end() || !seen.insert(child->id).second) continue;
      if (!child->queue_length && child->queue_sizes.empty()) {
        below.insert(below.begin() + static_cast<std::ptrdiff_t>(k) + 1, child->children.begin(), child->children.end());
        continue;
      }
      rows[i].children.push_back(child->id);
      rows.push_back({&*child, rows[i].op->id, {}});
    }
  }
  return rows;
}

constexpr auto kPipelineColumns = std::to_array<std::string_view>(
    {"op_id", "op_type", "num_workers", "output_queue_size", "output_queue_average_size", "output_queue_length", "output_queue_usage_rate",
     "sample_interval", "parent_id", "children_id"});

std::vector<PipelineRow>::const_iterator AskedOf(const RankQuery& asked, const std::vector<PipelineRow>& rows) {
  return std::ranges::find_if(rows, [id = asked.Parameter("op_id")](const PipelineRow& row) { return std::to_string(row.op->id) == id; });
}

}  // namespace

std::string FaultOfPipelineSearch(const RankQuery& asked) {
  if (std::string fault = FaultOfGroup(asked); !fault.empty()) return fault;
  if (std::string fault = FaultOfSort(asked.body, kPipelineColumns); !fault.empty()) return fault;
  return FaultOfFilter(asked.body, kPipelineColumns, std::to_array<std::string_view>({"is_display_op_detail"}), {});
}

std::string FaultOfPipelineQueue(const RankQuery& asked) {
  const std::vector<PipelineRow> rows = PipelineRows(asked.rank.pipeline);
  if (AskedOf(asked, rows) != rows.end()) return "";
  std::vector<int64_t> ids;
  for (const PipelineRow& row : rows) ids.push_back(row.op->id);
  std::ranges::sort(ids);
  const std::string shown = Shown(asked.Parameter("op_id"));
  return ids.empty() ? fmt::format("op_id is {}, and no pipeline was recorded", shown) : fmt::format("op_id is {}, not one of {}", shown, fmt::join(ids, ", "));
}

Json SearchPipeline(const RankQuery& asked) {
  Listing made{ColumnsOf(kPipelineColumns), {}};
  const analysis::Pipeline& pipeline = asked.rank.pipeline;
  for (const auto& [op, parent, children] : PipelineRows(pipeline)) {
    const bool queue = op->queue_length || !op->queue_sizes.empty();
    made.rows.push_back(Json::array({op->id, op->type, op->workers, queue ? Json(op->queue_sizes) : Json(), analysis::OrNull(op->Mean()), analysis::OrNull(op->queue_length),
                                     analysis::OrNull(op->Use()), analysis::OrNull(pipeline.sampling_ms), analysis::OrNull(parent), children.empty() ? Json() : Json(children)}));
  }
  Json answer = Answer(std::move(made), asked.body);
  if (FilterHas(asked, "is_display_op_detail", true)) return answer;
  // Without the workers and the samples.
  const auto cut = [](Json* list) { list->erase(list->begin() + 2, list->begin() + 4); };
  cut(&answer["col_name"]);
  for (Json& row : answer["object"]) cut(&row);
  return answer;
}

Json PipelineQueue(const RankQuery& asked) {
  const auto named = [](const analysis::Pipeline::Operator& op) { return Json{{"op_id", op.id}, {"op_type", op.type}, {"num_workers", op.workers}}; };
  const std::vector<PipelineRow> rows = PipelineRows(asked.rank.pipeline);
  const auto current = AskedOf(asked, rows);
  if (current == rows.end()) return nullptr;  // FaultOfPipelineQueue has reported it
  const auto parent = std::ranges::find_if(rows, [&current](const PipelineRow& row) { return row.op->id == current->parent; });
  Json made = {{"current_op", named(*current->op)}, {"parent_op", nullptr}, {"queue_info", nullptr}};
  if (parent == rows.end()) return made;
  const analysis::Pipeline::Operator& op = *current->op;
  made["parent_op"] = named(*parent->op);
  made["queue_info"] = {{"output_queue_size", op.queue_sizes}, {"output_queue_average_size", analysis::OrNull(op.Mean())}, {"output_queue_length", analysis::OrNull(op.queue_length)},
                        {"output_queue_usage_rate", analysis::OrNull(op.Use())}, {"sample_interval", analysis::OrNull(asked.rank.pipeline.sampling_ms)}};
  return made;
}

}  // namespace profd::client::mindinsight
