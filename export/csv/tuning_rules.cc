// Rules, limits and keys are those of the vendor's public analyser (analysis/tuning of msprof, and its tables
// prof_rule_config and prof_condition_config). A rule is about names of operators: one that meets each of its conditions
// in some execution, not necessarily in the same. The sentences are ours.
#include "export/csv/tuning_rules.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "export/csv/vendor_math.h"
#include "export/number_text.h"
#include "export/operators/details.h"
#include "export/operators/overlap.h"
#include "export/repaired_text.h"

namespace profd::exporting::csv {
namespace {

using operators::HostTask;
using operators::Model;
using Json = nlohmann::ordered_json;

// Columns of op_summary, without the prefix of a core.
enum Metric : uint8_t {
  kMac, kVec, kScalar, kMte1, kMte2, kMte3, kMemoryBound, kBankGroupConflict, kBankConflict, kMetrics
};
constexpr std::array<std::string_view, kMetrics> kMetricNames = {
    "mac_ratio",    "vec_ratio",                "scalar_ratio",       "mte1_ratio", "mte2_ratio", "mte3_ratio",
    "memory_bound", "vec_bankgroup_cflt_ratio", "vec_bank_cflt_ratio"};

struct Execution {
  std::string_view name;
  std::string_view type;
  std::string_view core;
  double duration_us = 0;
  double wait_us = 0;
  std::optional<double> blocks;
  int64_t cores = 0;  // of the device; 0: not known
  bool takes_int64 = false;
  double workspace_bytes = 0;
  std::array<std::optional<double>, kMetrics> metrics;  // none: not counted, or on a core that did not run
};

enum Condition : uint32_t {
  kFewBlocks = 1u << 0,
  kIsTransData = 1u << 1,
  kHasWorkspace = 1u << 2,
  kWaits = 1u << 3,
  kIsAiCpu = 1u << 4,
  kIsMemoryBound = 1u << 5,
  kIsVectorBound = 1u << 6,
  kVectorLow = 1u << 7,
  kVectorHigh = 1u << 8,
  kCubeLow = 1u << 9,
  kUsesCube = 1u << 10,
  kScalarHigh = 1u << 11,
  kBankGroups = 1u << 12,
  kBanks = 1u << 13,
  kIsLong = 1u << 14,
  kTakesInt64 = 1u << 15,
  kIsStridedSliceGrad = 1u << 16,
};

bool IsVectorBound(const Execution& each) {
  const auto& [mac, vec, mte2] = std::tuple(each.metrics[kMac], each.metrics[kVec], each.metrics[kMte2]);
  if (!mac || !vec || !mte2) return false;
  const double other = std::max(*mac, *mte2);
  return other > 0 && *vec / other > 1;
}

uint32_t ConditionsOf(const Execution& each) {
  constexpr double kUsed = 0.8;       // ratio from which a unit is well used
  constexpr double kConflicts = 0.04;
  const auto above = [&](Metric metric, double limit) { return each.metrics[metric] && *each.metrics[metric] > limit; };
  const auto below = [&](Metric metric, double limit) { return each.metrics[metric] && *each.metrics[metric] < limit; };
  const std::pair<Condition, bool> all[] = {
      {kFewBlocks, each.blocks && each.cores > 0 && *each.blocks < static_cast<double>(each.cores)},
      {kIsTransData, each.type == "TransData"},
      {kHasWorkspace, each.workspace_bytes > 0},
      {kWaits, each.wait_us > 10},
      {kIsAiCpu, each.core == "AI_CPU"},
      {kIsMemoryBound, above(kMemoryBound, 1)},
      {kIsVectorBound, IsVectorBound(each)},
      {kVectorLow, below(kVec, kUsed)},
      {kVectorHigh, above(kVec, kUsed)},
      {kCubeLow, below(kMac, kUsed)},
      {kUsesCube, above(kMac, 0)},
      {kScalarHigh, above(kScalar, kUsed)},
      {kBankGroups, above(kBankGroupConflict, kConflicts)},
      {kBanks, above(kBankConflict, kConflicts)},
      {kIsLong, each.duration_us > 20},
      {kTakesInt64, each.takes_int64},
      {kIsStridedSliceGrad, each.name.find("StridedSliceGrad") != std::string_view::npos},
  };
  uint32_t met = 0;
  for (const auto& [condition, holds] : all) met |= holds ? condition : 0u;
  return met;
}

struct Section {
  std::string_view type;
  std::string_view description;
};
constexpr Section kSections[] = {
    {"Computation", "Operators that use cube, vector or scalar units too little or too much"},
    {"Memory", "Operators that use memory badly"},
    {"Operator Schedule", "Operators that are scheduled badly"},
    {"Operator Processing", "Use of all cores, data formats, and operators on the AI CPU"},
    {"Operator Metrics", "Operators that take many resources"},
    {"Operator Parallelism", "Whether AI Core and AI CPU wait for each other"},
    {"Model Bottleneck Analysis", "Which of cube, vector, scalar and MTE bounds the model"},
};

// By name: conditions met, and sums over all executions.
struct OfName {
  uint32_t conditions = 0;
  uint64_t transdata = 0;  // executions
  double duration_us = 0;
  double wait_us = 0;
};
using Names = std::map<std::string_view, OfName>;

struct Rule {
  std::string_view section;
  std::string_view subtype;
  uint32_t conditions = 0;
  std::string_view suggestion;
  // Whether those that meet the conditions are enough of `all` to say it; null: one is.
  bool (*enough)(const Names& met, const Names& all) = nullptr;
};

double SumOf(const Names& names, double OfName::* part) {
  return std::accumulate(names.begin(), names.end(), 0.0,
                         [part](double sum, const auto& each) { return sum + each.second.*part; });
}
bool AreThreeOrMore(const Names& met, const Names& /*all*/) {
  uint64_t count = 0;
  for (const auto& [name, of] : met) count += of.transdata;
  return count > 2;
}
bool WaitForLong(const Names& met, const Names& all) {
  const double whole = SumOf(all, &OfName::duration_us) + SumOf(all, &OfName::wait_us);
  return whole > 0 && SumOf(met, &OfName::wait_us) / whole > 0.03;
}
bool TakeHalfTheTime(const Names& met, const Names& all) {
  const double whole = SumOf(all, &OfName::duration_us);
  return whole > 0 && SumOf(met, &OfName::duration_us) / whole > 0.5;
}

constexpr Rule kRules[] = {
    {"Operator Processing", "", kFewBlocks | kUsesCube, "Use all cores"},
    {"Memory", "", kIsVectorBound, "Check repeat times and masks of vector instructions"},
    {"Computation", "Cube", kVectorHigh | kUsesCube | kIsLong, "Cube operators compute on the vector unit for long"},
    {"Computation", "Scalar", kScalarHigh, "The scalar unit is used too much"},
    {"Memory", "", kIsMemoryBound, "Moving data takes longer than computing", TakeHalfTheTime},
    {"Computation", "Vector", kBankGroups, "Too many conflicts of bank groups on the vector unit"},
    {"Computation", "Vector", kBanks, "Too many conflicts of banks on the vector unit"},
    {"Computation", "Vector", kVectorLow, "The vector unit is used too little"},
    {"Computation", "Cube", kCubeLow, "The cube unit is used too little"},
    {"Operator Processing", "", kIsTransData, "Reduce conversions of the data format", AreThreeOrMore},
    {"Operator Processing", "", kIsAiCpu, "Reduce operators on the AI CPU"},
    {"Operator Processing", "", kIsLong | kIsAiCpu | kTakesInt64, "Cast INT64 to INT32, so that they run on AI Cores"},
    {"Operator Processing", "", kIsStridedSliceGrad | kIsAiCpu | kIsLong, "Run StridedSliceGrad on AI Cores"},
    {"Operator Schedule", "", kWaits, "Tasks wait for long before they start", WaitForLong},
    {"Operator Metrics", "Memory", kHasWorkspace, "Reduce workspace memory"},
};

// Where the counters of one device's group have the metrics.
class MetricColumns {
 public:
  MetricColumns(const Model& model, int device) : model_(model) {
    const auto setup = model.device_pmu.find(device);
    if (setup == model.device_pmu.end()) return;
    mhz_ = setup->second.mhz;
    const operators::PmuCore* cores[] = {&setup->second.group.aic, &setup->second.group.aiv};
    for (size_t core = 0; core < std::size(cores); ++core) {
      for (const operators::PmuColumn* column : cores[core]->Summary()) {
        std::string_view name = column->name;
        for (const std::string_view prefix : {"aic_", "aiv_"}) {
          if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
        }
        const auto* known = std::ranges::find(kMetricNames, name);
        if (known == kMetricNames.end()) continue;
        columns_.push_back({static_cast<Metric>(known - kMetricNames.begin()), core, column});
      }
    }
  }

  // As op_summary shows them; of both cores the larger one.
  void Read(const operators::TaskRow& task, const HostTask& host, Execution* into) const {
    if (columns_.empty()) return;
    const auto cores = operators::CountersOf(model_, task, host);
    if (!cores) return;
    for (const auto& [metric, core, column] : columns_) {
      const operators::CoreCounters& counted = (*cores)[core];
      if (counted.counts.cycles == 0) continue;
      const auto value = operators::PmuValue(*column, counted.counts, counted.time_us, mhz_);
      if (!value) continue;
      std::optional<double>& known = into->metrics[metric];
      known = std::max(known.value_or(0), SqlRound(*value, 3));
    }
  }

 private:
  struct Column {
    Metric metric;
    size_t core;
    const operators::PmuColumn* column;
  };
  const Model& model_;
  double mhz_ = 0;
  std::vector<Column> columns_;
};

// What bounds most of the time, by the largest ratio of each operator.
class Bottleneck {
 public:
  void Add(const Execution& each) {
    if (each.core == "AI_CPU") return;
    const auto ratio = [&](std::initializer_list<Metric> metrics) {
      double most = 0;
      for (const Metric metric : metrics) most = std::max(most, each.metrics[metric].value_or(0));
      return most;
    };
    const double ratios[] = {ratio({kMac}), ratio({kVec}), ratio({kScalar}), ratio({kMte1, kMte2, kMte3})};
    const auto* most = std::ranges::max_element(ratios);
    if (*most > 0) times_us_[static_cast<size_t>(most - ratios)] += each.duration_us;
  }
  // Null: nothing was counted.
  Json Result() const {
    const double all = std::accumulate(times_us_.begin(), times_us_.end(), 0.0);
    if (all <= 0) return nullptr;
    Json times;
    constexpr std::string_view kNames[] = {"Cube Utilization", "Vector Utilization", "Scalar Utilization",
                                           "MTE Utilization"};
    for (size_t i = 0; i < times_us_.size(); ++i) times[std::string(kNames[i])] = PyRound3(times_us_[i]);
    const bool is_cube = times_us_[0] / all >= 0.5;
    return {{"Rule Subtype", ""},
            {"Rule Suggestion", is_cube ? "The cube unit bounds the model" : "The cube unit does not bound the model"},
            {"Tuning Data", std::move(times)}};
  }

 private:
  std::array<double, 4> times_us_ = {};  // by what bounds them
};

// When AI Core and AI CPU ran.
class Parallelism {
 public:
  void Add(const OperatorRow& row, std::string_view core) {
    if (core == "AI_CORE") core_.push_back({row.start_ns(), row.end_ns()});
    if (core == "AI_CPU") cpu_.push_back({row.start_ns(), row.end_ns()});
  }
  // Null: the AI CPU is not what the time goes to.
  Json Result() const {
    if (core_.empty() || cpu_.empty()) return nullptr;
    const operators::Overlap ran = operators::MakeOverlap(core_, cpu_, std::nullopt);
    const auto micros = [&](operators::OverlapKind kind) {
      int64_t ns = 0;
      for (const auto& each : ran[static_cast<size_t>(kind)]) ns += each.end_ns - each.start_ns;
      return static_cast<double>(ns) / 1000;
    };
    const double cpu_alone = micros(operators::OverlapKind::kNotOverlapped);
    const double both = micros(operators::OverlapKind::kCommunication) - cpu_alone;
    const double core_alone = micros(operators::OverlapKind::kComputing) - both;
    constexpr double kShare = 0.05;
    if (cpu_alone <= kShare * (cpu_alone + core_alone + both)) return nullptr;
    return {{"Rule Subtype", ""},
            {"Rule Suggestion", "AI Core waits for operators on the AI CPU: replace or fuse them, or change their data type"},
            {"Tuning Data",
             {{"AI Core Execution Time(us)", core_alone},
              {"AI CPU Execution Time(us)", cpu_alone},
              {"Concurrent AI Core and AI CPU Execution Time(us)", both}}}};
  }

 private:
  operators::Intervals core_;
  operators::Intervals cpu_;
};

class DeviceRules {
 public:
  DeviceRules(const Model& model, int device) : model_(model), columns_(model, device) {
    const auto setup = model.device_pmu.find(device);
    if (setup != model.device_pmu.end()) cores_ = setup->second.group.aic.cores;
    constexpr size_t kWorkspace = 3;
    for (const operators::FusedOperator& fused : model.host.fused) {
      workspace_[model.host.NameOf(fused.name)] = static_cast<double>(fused.bytes[kWorkspace]);
    }
  }

  // Of a task.
  void Add(const OperatorRow& row, double wait_us) {
    const HostTask& host = *model_.HostOf(*row.task);
    Execution each;
    each.name = model_.OperatorName(host);
    each.type = model_.OperatorType(host);
    each.core = model_.CoreType(host);
    each.duration_us = static_cast<double>(row.duration()) / 1000;
    each.wait_us = wait_us;
    if (host.has_blocks) each.blocks = host.blocks;
    each.cores = cores_;
    each.takes_int64 = TakesInt64(host);
    const auto workspace = workspace_.find(each.name);
    if (workspace != workspace_.end()) each.workspace_bytes = workspace->second;
    columns_.Read(*row.task, host, &each);
    OfName& of = names_[each.name];
    of.conditions |= ConditionsOf(each);
    of.transdata += each.type == "TransData" ? 1 : 0;
    of.duration_us += each.duration_us;
    of.wait_us += each.wait_us;
    bottleneck_.Add(each);
    parallelism_.Add(row, each.core);
  }

  std::string AsJson() const {
    Json sections = Json::array();
    for (const Section& section : kSections) {
      Json results = Json::array();
      for (const Rule& rule : kRules) {
        if (rule.section == section.type) AddResult(rule, &results);
      }
      Json other;
      if (section.type == "Operator Parallelism") other = parallelism_.Result();
      if (section.type == "Model Bottleneck Analysis") other = bottleneck_.Result();
      if (!other.is_null()) results.push_back(std::move(other));
      sections.push_back({{"Rule Type", section.type}, {"Rule Description", section.description}, {"result", std::move(results)}});
    }
    return Json{{"status", 0}, {"data", std::move(sections)}}.dump();
  }

 private:
  bool TakesInt64(const HostTask& host) const {
    const int32_t number = operators::TensorsNumber(model_, host);
    if (number < 0) return false;
    return std::ranges::any_of(model_.host.tensors[static_cast<size_t>(number)], [](const operators::Tensor& tensor) {
      constexpr uint32_t kInt64 = 9;
      return !tensor.output && tensor.data_type == kInt64;
    });
  }
  void AddResult(const Rule& rule, Json* results) const {
    Names met;
    for (const auto& [name, of] : names_) {
      if ((of.conditions & rule.conditions) == rule.conditions) met.emplace(name, of);
    }
    if (met.empty() || (rule.enough != nullptr && !rule.enough(met, names_))) return;
    Json names = Json::array();
    for (const auto& [name, of] : met) names.push_back(RepairedText(name));
    results->push_back({{"Rule Subtype", rule.subtype}, {"Rule Suggestion", rule.suggestion}, {"Tuning Data", std::move(names)}});
  }

  const Model& model_;
  MetricColumns columns_;
  int64_t cores_ = 0;
  std::map<std::string_view, double> workspace_;  // bytes, by name
  Names names_;
  Bottleneck bottleneck_;
  Parallelism parallelism_;
};

}  // namespace

Status WriteTuningRules(const Model& model, std::span<const OperatorRow> rows, const CsvTarget& target) {
  std::map<int, DeviceRules> devices;
  for (size_t at = 0; at < rows.size(); ++at) {
    if (rows[at].task == nullptr) continue;  // a collective
    const int device = rows[at].device();
    devices.try_emplace(device, model, device).first->second.Add(rows[at], WaitOf(model, rows, at).value_or(0));
  }
  for (const auto& [device, rules] : devices) {
    RETURN_IF_ERROR(WriteWhole(target, "prof_rule_" + std::to_string(device) + ".json", rules.AsJson(), 1));
  }
  return Status::Ok();
}

}  // namespace profd::exporting::csv
