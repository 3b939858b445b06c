#include "export/operators/pmu.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace profd::exporting::operators {
namespace {

using Kind = PmuColumn::Kind;

constexpr std::string_view kCustom = "Custom:";

// Whose columns of op_summary these are; the database has them of both cores.
enum class Unit : uint8_t { kBoth, kCube, kVector };

struct Named {
  std::string_view name;
  Kind kind;
  std::vector<PmuTerm> terms;
  Unit unit = Unit::kBoth;
};

std::string Prefixed(std::string_view prefix, std::string_view name) {
  return prefix.empty() ? std::string(name) : fmt::format("{}_{}", prefix, name);
}

// A share of the time and of the cycles.
void AddShare(std::string_view prefix, std::string_view name, const std::vector<PmuTerm>& terms,
              std::vector<PmuColumn>* columns, bool only_database = false) {
  columns->push_back({Prefixed(prefix, fmt::format("{}_time(us)", name)), Kind::kTime, terms, only_database});
  columns->push_back({Prefixed(prefix, fmt::format("{}_ratio", name)), Kind::kRatio, terms, only_database});
}

void Add(const std::vector<Named>& named, PmuGroup* group) {
  for (const Named& each : named) {
    if (group->one_core) {
      group->aic.columns.push_back({std::string(each.name), each.kind, each.terms});
      continue;
    }
    group->aic.columns.push_back({Prefixed("aic", each.name), each.kind, each.terms, each.unit == Unit::kVector});
    group->aiv.columns.push_back({Prefixed("aiv", each.name), each.kind, each.terms, each.unit == Unit::kCube});
  }
}

Named Bandwidth(std::string_view name, uint32_t event, double pipe, double scalar, Unit unit = Unit::kBoth) {
  return {name, Kind::kBandwidth, {{event, pipe * scalar}}, unit};
}

void AddPipe(PmuGroup* group) {
  const Named miss{"icache_miss_rate", Kind::kMissRate, {{0x55}, {0x54}}};
  AddShare("aic", "mac", {{0x416}, {0x417}}, &group->aic.columns);
  AddShare("aic", "scalar", {{0x9}}, &group->aic.columns);
  AddShare("aic", "mte1", {{0x302}}, &group->aic.columns);
  AddShare("aic", "mte2", {{0xC}}, &group->aic.columns);
  AddShare("aic", "fixpipe", {{0x303}}, &group->aic.columns);
  AddShare("aiv", "vec", {{0x8}}, &group->aiv.columns);
  AddShare("aiv", "mac", {{0xA}}, &group->aiv.columns, true);
  AddShare("aiv", "scalar", {{0x9}}, &group->aiv.columns);
  AddShare("aiv", "mte1", {{0xB}}, &group->aiv.columns, true);
  AddShare("aiv", "mte2", {{0xC}}, &group->aiv.columns);
  AddShare("aiv", "mte3", {{0xD}}, &group->aiv.columns);
  Add({miss}, group);
  group->cube_utilization = true;
}

void AddArithmetic(PmuGroup* group) {
  const auto w = VectorWidths(group->chip);
  Add({{"mac_fp16_ratio", Kind::kRatio, {{0x49}}, Unit::kCube},
       {"mac_int8_ratio", Kind::kRatio, {{0x4A}}, Unit::kCube},
       {"vec_fp32_ratio", Kind::kRatio, {{0x4B}}, Unit::kVector},
       {"vec_fp16_ratio", Kind::kRatio, {{0x4C}, {0x4D}}, Unit::kVector},
       {"vec_int32_ratio", Kind::kRatio, {{0x4E}}, Unit::kVector},
       {"vec_misc_ratio", Kind::kRatio, {{0x4F}}, Unit::kVector},
       {"cube_fops", Kind::kSum, {{0x49, 8192}, {0x4A, 16384}}, Unit::kCube},
       {"vector_fops", Kind::kSum, {{0x4B, w[0]}, {0x4C, w[1]}, {0x4D, w[2]}, {0x4E, w[3]}, {0x4F, w[4]}}, Unit::kVector}},
      group);
}

void AddMemory(PmuGroup* group) {
  Add({Bandwidth("ub_read_bw(GB/s)", 0x15, 256, 4, Unit::kVector),
       Bandwidth("ub_write_bw(GB/s)", 0x16, 256, 4, Unit::kVector),
       Bandwidth("l1_read_bw(GB/s)", 0x31, 256, 16, Unit::kCube),
       Bandwidth("l1_write_bw(GB/s)", 0x32, 128, 8, Unit::kCube),
       Bandwidth("main_mem_read_bw(GB/s)", 0x12, 8, 8), Bandwidth("main_mem_write_bw(GB/s)", 0x13, 8, 8),
       Bandwidth("l2_read_bw(GB/s)", 0xF, 256, 8), Bandwidth("l2_write_bw(GB/s)", 0x10, 256, 8)},
      group);
}

void AddMemoryL0(PmuGroup* group) {
  Add({Bandwidth("l0a_read_bw(GB/s)", 0x1B, 256, 16, Unit::kCube),
       Bandwidth("l0a_write_bw(GB/s)", 0x1C, 256, 16, Unit::kCube),
       Bandwidth("l0b_read_bw(GB/s)", 0x21, 256, 16, Unit::kCube),
       Bandwidth("l0b_write_bw(GB/s)", 0x22, 256, 8, Unit::kCube),
       Bandwidth("l0c_read_bw(GB/s)", 0x27, 256, 8, Unit::kVector),
       Bandwidth("l0c_write_bw(GB/s)", 0x29, 256, 8, Unit::kVector),
       Bandwidth("l0c_read_bw_cube(GB/s)", 0x28, 256, 32, Unit::kCube),
       Bandwidth("l0c_write_bw_cube(GB/s)", 0x2A, 256, 32, Unit::kCube)},
      group);
}

void AddMemoryUb(PmuGroup* group) {
  Add({Bandwidth("ub_read_bw_vector(GB/s)", 0x43, 128, 2, Unit::kVector),
       Bandwidth("ub_write_bw_vector(GB/s)", 0x44, 128, 2, Unit::kVector),
       Bandwidth("ub_read_bw_scalar(GB/s)", 0x37, 128, 1), Bandwidth("ub_write_bw_scalar(GB/s)", 0x38, 128, 1)},
      group);
}

void AddConflicts(PmuGroup* group) {
  Add({{"vec_bankgroup_cflt_ratio", Kind::kRatio, {{0x64}}, Unit::kVector},
       {"vec_bank_cflt_ratio", Kind::kRatio, {{0x65}}, Unit::kVector},
       {"vec_resc_cflt_ratio", Kind::kRatio, {{0x66}}, Unit::kVector}},
      group);
}

void AddL2(PmuGroup* group) {
  Add({{"write_cache_hit", Kind::kSum, {{0x500}}},
       {"write_cache_miss_allocate", Kind::kSum, {{0x502}}},
       {"r0_read_cache_hit", Kind::kSum, {{0x504}}},
       {"r0_read_cache_miss_allocate", Kind::kSum, {{0x506}}},
       {"r1_read_cache_hit", Kind::kSum, {{0x508}}},
       {"r1_read_cache_miss_allocate", Kind::kSum, {{0x50A}}}},
      group);
}

void AddAccess(PmuGroup* group) {
  Add({{"read_main_memory_datas(KB)", Kind::kSum, {{0x50D, 0.125}, {0x50E, 0.125}}},
       {"write_main_memory_datas(KB)", Kind::kSum, {{0x50C, 0.125}}},
       {"GM_to_L1_datas(KB)", Kind::kSum, {{0x32, 0.25}, {0x206, -0.25}}},
       {"L0C_to_L1_datas(KB)", Kind::kSum, {{0x206, 0.125}}},
       {"L0C_to_GM_datas(KB)", Kind::kSum, {{0x20C, 0.125}, {0x206, -0.125}}},
       {"GM_to_UB_datas(KB)", Kind::kSum, {{0x3E, 0.125}}},
       {"UB_to_GM_datas(KB)", Kind::kSum, {{0x3D, 0.125}}}},
      group);
}

// "0x8,0xa" as columns r8, ra.
void AddCustom(std::string_view prefix, std::string_view list, std::vector<PmuColumn>* columns) {
  for (std::string_view item; NextPart(&list, ',', &item);) {
    if (item.starts_with("0x") || item.starts_with("0X")) item.remove_prefix(2);
    uint32_t event = 0;
    const auto parsed = std::from_chars(item.data(), item.data() + item.size(), event, 16);
    if (parsed.ec != std::errc()) continue;
    columns->push_back({Prefixed(prefix, fmt::format("r{:x}", event)), Kind::kSum, {{event}}});
  }
}

void AddOnePipe(PmuGroup* group) {
  std::vector<PmuColumn>& columns = group->aic.columns;
  AddShare("", "vec", {{0x8}}, &columns);
  AddShare("", "mac", {{0xA}}, &columns);
  AddShare("", "scalar", {{0x9}}, &columns);
  AddShare("", "mte1", {{0xB}}, &columns);
  AddShare("", "mte2", {{0xC}}, &columns);
  AddShare("", "mte3", {{0xD}}, &columns);
  Add({{"icache_miss_rate", Kind::kMissRate, {{0x55}, {0x54}}},
       {"memory_bound", Kind::kBound, {{0xC}, {0xA}, {0x8}}}},
      group);
  group->cube_utilization = true;
}

void AddOneMemory(PmuGroup* group) {
  Add({Bandwidth("ub_read_bw(GB/s)", 0x15, 256, 4), Bandwidth("ub_write_bw(GB/s)", 0x16, 256, 4),
       Bandwidth("l1_read_bw(GB/s)", 0x31, 256, 16), Bandwidth("l1_write_bw(GB/s)", 0x32, 128, 16),
       Bandwidth("main_mem_read_bw(GB/s)", 0x12, 8, 8), Bandwidth("main_mem_write_bw(GB/s)", 0x13, 8, 8)},
      group);
}

void AddOneMemoryL0(PmuGroup* group) {
  Add({Bandwidth("l0a_read_bw(GB/s)", 0x1B, 256, 16), Bandwidth("l0a_write_bw(GB/s)", 0x1C, 256, 16),
       Bandwidth("l0b_read_bw(GB/s)", 0x21, 256, 8), Bandwidth("l0b_write_bw(GB/s)", 0x22, 256, 8),
       Bandwidth("l0c_read_bw(GB/s)", 0x27, 256, 8), Bandwidth("l0c_write_bw(GB/s)", 0x29, 256, 8),
       Bandwidth("l0c_read_bw_cube(GB/s)", 0x28, 256, 8), Bandwidth("l0c_write_bw_cube(GB/s)", 0x2A, 256, 8)},
      group);
}

struct KnownGroup {
  std::string_view name;
  void (*add)(PmuGroup*);
  void (*add_of_one_core)(PmuGroup*) = nullptr;
};
constexpr KnownGroup kGroups[] = {
    {"PipeUtilization", AddPipe, AddOnePipe},
    {"PipeUtilizationExct", AddPipe},
    {"ArithmeticUtilization", AddArithmetic, AddArithmetic},
    {"Memory", AddMemory, AddOneMemory},
    {"MemoryL0", AddMemoryL0, AddOneMemoryL0},
    {"MemoryUB", AddMemoryUb, AddMemoryUb},
    {"ResourceConflictRatio", AddConflicts, AddConflicts},
    {"L2Cache", AddL2},
    {"MemoryAccess", AddAccess},
};

}  // namespace

void PmuCore::SetEvents(std::span<const uint32_t> events) {
  const auto counted = events.first(std::min(events.size(), kPmuCounters));
  for (PmuColumn& column : columns) {
    for (PmuTerm& term : column.terms) {
      const auto found = std::ranges::find(counted, term.event);
      term.counter = found == counted.end() ? -1 : static_cast<int>(found - counted.begin());
    }
  }
}

std::vector<const PmuColumn*> PmuCore::Summary() const {
  std::vector<const PmuColumn*> shown;
  for (const PmuColumn& column : columns) {
    if (!column.only_database) shown.push_back(&column);
  }
  return shown;
}

std::array<double, 5> VectorWidths(int chip) {
  if (chip == 0) return {32, 128, 64, 64, 32};
  if (chip >= 2 && chip <= 4) return {64, 128, 64, 16, 16};
  return {64, 128, 64, 64, 32};
}

PmuGroup PmuGroupOfOneCore(std::string_view metrics, int chip) {
  PmuGroup made;
  made.chip = chip;
  made.one_core = true;
  const auto known = std::ranges::find(kGroups, metrics, &KnownGroup::name);
  if (known != std::end(kGroups) && known->add_of_one_core != nullptr) known->add_of_one_core(&made);
  made.custom = metrics.starts_with(kCustom);
  if (made.custom) AddCustom("", metrics.substr(kCustom.size()), &made.aic.columns);
  return made;
}

bool IsPmuGroup(std::string_view metrics) {
  return metrics.starts_with(kCustom) || std::ranges::find(kGroups, metrics, &KnownGroup::name) != std::end(kGroups);
}

PmuGroup PmuGroupOf(std::string_view aic_metrics, std::string_view aiv_metrics) {
  PmuGroup made;
  const auto known = std::ranges::find(kGroups, aic_metrics, &KnownGroup::name);
  if (known != std::end(kGroups)) known->add(&made);
  made.custom = aic_metrics.starts_with(kCustom);
  if (made.custom) AddCustom("aic", aic_metrics.substr(kCustom.size()), &made.aic.columns);
  if (aiv_metrics.starts_with(kCustom)) AddCustom("aiv", aiv_metrics.substr(kCustom.size()), &made.aiv.columns);
  return made;
}

double PmuTime(const PmuCounts& counts, int64_t cores, double mhz, uint32_t blocks) {
  if (blocks == 0 || cores <= 0 || !(mhz > 0)) return 0;
  const int64_t rounds = (int64_t{blocks} + cores - 1) / cores;
  return static_cast<double>(counts.cycles) / mhz / blocks * static_cast<double>(rounds);
}

std::optional<double> PmuValue(const PmuColumn& column, const PmuCounts& counts, double time_us, double mhz) {
  double sum = 0;
  double last = 0;
  double first = 0;
  double larger = 0;  // of those behind the first
  for (size_t i = 0; i < column.terms.size(); ++i) {
    const int counter = column.terms[i].counter;
    if (counter < 0) return std::nullopt;
    last = static_cast<double>(counts.counters[counter]);
    if (i == 0) first = last;
    if (i > 0) larger = std::max(larger, last);
    sum += last * column.terms[i].weight;
  }
  const auto cycles = static_cast<double>(counts.cycles);
  switch (column.kind) {
    case Kind::kSum: return sum;
    case Kind::kMissRate: return first > 0 && last > 0 ? first / last : 0;
    case Kind::kBound: return larger > 0 ? first / larger : 0;
    case Kind::kRatio: return cycles > 0 ? sum / cycles : 0;
    case Kind::kTime: return cycles > 0 ? sum / cycles * time_us : 0;
    case Kind::kBandwidth: {
      constexpr double kBitsPerUnit = 8589934592.0;  // 2^33: bits to 2^30 bytes
      const double seconds = mhz > 0 ? cycles / (mhz * 1e6) : 0;
      return seconds > 0 ? sum / seconds / kBitsPerUnit : 0;
    }
  }
  return std::nullopt;
}

}  // namespace profd::exporting::operators
