#include "export/csv/aicore_metrics.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.h"
#include "export/decoder.h"
#include "export/operators/pmu.h"

namespace profd::exporting::csv {
namespace {

enum class Formula : uint8_t {
  kRatio,      // sum of the codes / cycles
  kMissRate,   // first / second
  kBandwidth,  // sum of the codes * a * b per second, in GB/s
  kCount,      // code
  kKilobytes,  // a * codes / 1024, the last one subtracted where `minus`
  kCubeFops,
  kVectorFops,
};

struct Metric {
  std::string_view name;
  Formula formula = Formula::kRatio;
  std::array<uint32_t, 5> codes = {};
  int code_count = 1;
  double a = 0;
  double b = 1;
  bool minus = false;
};

constexpr Metric Ratio(std::string_view name, uint32_t code) {
  return {name, Formula::kRatio, {code}};
}
constexpr Metric Ratio2(std::string_view name, uint32_t one, uint32_t two) {
  return {name, Formula::kRatio, {one, two}, 2};
}
constexpr Metric Bandwidth(std::string_view name, uint32_t code, double a, double b) {
  return {name, Formula::kBandwidth, {code}, 1, a, b};
}
constexpr Metric Bandwidth2(std::string_view name, uint32_t one, uint32_t two, double a, double b) {
  return {name, Formula::kBandwidth, {one, two}, 2, a, b};
}
constexpr Metric Count(std::string_view name, uint32_t code) {
  return {name, Formula::kCount, {code}};
}

// In the order of the CSV's columns.
constexpr auto kMetrics = std::to_array<Metric>({
    Ratio("mac_fp16_ratio", 0x49),
    Ratio("mac_int8_ratio", 0x4a),
    Ratio("vec_ratio", 0x8),
    Ratio("vec_exe_ratio", 0x12c),
    Ratio("mac_ratio", 0xa),
    Ratio2("mac_exe_ratio", 0x4a, 0x49),
    Ratio2("mac_ratio_extra", 0x416, 0x417),
    Ratio("scalar_ratio", 0x9),
    Ratio("scalar_exe_ratio", 0x9),
    Ratio("vec_bankgroup_cflt_ratio", 0x64),
    Ratio("vec_bank_cflt_ratio", 0x65),
    Ratio("vec_resc_cflt_ratio", 0x66),
    Ratio("vec_fp32_ratio", 0x4b),
    Ratio2("vec_fp16_ratio", 0x4c, 0x4d),
    Ratio("vec_int32_ratio", 0x4e),
    Ratio("vec_misc_ratio", 0x4f),
    Ratio("mte1_ratio", 0xb),
    Ratio("mte1_exe_ratio", 0x302),
    Ratio("mte1_ratio_extra", 0x302),
    Ratio("mte2_ratio", 0xc),
    Ratio("mte2_exe_ratio", 0xc),
    Ratio("mte3_ratio", 0xd),
    Ratio("mte3_exe_ratio", 0xd),
    Ratio("fixpipe_ratio", 0x303),
    Ratio("fixpipe_exe_ratio", 0x303),
    {"icache_miss_rate", Formula::kMissRate, {0x55, 0x54}, 2},
    {"cube_fops", Formula::kCubeFops, {0x49, 0x4a}, 2},
    {"vector_fops", Formula::kVectorFops, {0x4b, 0x4c, 0x4d, 0x4e, 0x4f}, 5},
    Bandwidth("ub_read_bw(GB/s)", 0x15, 256, 4),
    Bandwidth("ub_write_bw(GB/s)", 0x16, 256, 4),
    Bandwidth("l1_read_bw(GB/s)", 0x31, 256, 16),
    Bandwidth("l1_write_bw(GB/s)", 0x32, 128, 8),
    Bandwidth("l2_read_bw(GB/s)", 0xf, 256, 8),
    Bandwidth("l2_write_bw(GB/s)", 0x10, 256, 8),
    Bandwidth("main_mem_read_bw(GB/s)", 0x12, 8, 8),
    Bandwidth("main_mem_write_bw(GB/s)", 0x13, 8, 8),
    Bandwidth("l0a_read_bw(GB/s)", 0x1b, 256, 16),
    Bandwidth("l0a_write_bw(GB/s)", 0x1c, 256, 16),
    Bandwidth("l0b_read_bw(GB/s)", 0x21, 256, 16),
    Bandwidth("l0b_write_bw(GB/s)", 0x22, 256, 8),
    Bandwidth("l0c_read_bw(GB/s)", 0x27, 256, 8),
    Bandwidth("l0c_write_bw(GB/s)", 0x29, 256, 8),
    Bandwidth("l0c_read_bw_cube(GB/s)", 0x28, 256, 32),
    Bandwidth("l0c_write_bw_cube(GB/s)", 0x2a, 256, 32),
    Bandwidth("ub_read_bw_vector(GB/s)", 0x43, 128, 2),
    Bandwidth("ub_write_bw_vector(GB/s)", 0x44, 128, 1),
    Bandwidth("ub_read_bw_scalar(GB/s)", 0x37, 128, 1),
    Bandwidth("ub_write_bw_scalar(GB/s)", 0x38, 128, 1),
    Bandwidth("ub_read_bw_mte(GB/s)", 0x3d, 128, 1),
    Bandwidth("ub_write_bw_mte(GB/s)", 0x3e, 128, 1),
    Count("write_cache_hit", 0x500),
    Count("write_cache_miss_allocate", 0x502),
    Count("r0_read_cache_hit", 0x504),
    Count("r0_read_cache_miss_allocate", 0x506),
    Count("r1_read_cache_hit", 0x508),
    Count("r1_read_cache_miss_allocate", 0x50a),
    {"read_main_memory_datas(KB)", Formula::kKilobytes, {0x50d, 0x50e}, 2, 128},
    {"write_main_memory_datas(KB)", Formula::kKilobytes, {0x50c}, 1, 128},
    {"gm_to_l1_datas(KB)", Formula::kKilobytes, {0x32, 0x206}, 2, 256, 1, true},
    {"l0c_to_l1_datas(KB)", Formula::kKilobytes, {0x206}, 1, 128},
    {"l0c_to_gm_datas(KB)", Formula::kKilobytes, {0x20c, 0x206}, 2, 128, 1, true},
    {"gm_to_ub_datas(KB)", Formula::kKilobytes, {0x3e}, 1, 128},
    {"ub_to_gm_datas(KB)", Formula::kKilobytes, {0x3d}, 1, 128},
});

struct Group {
  std::string_view name;
  std::string_view metrics;  // ",a,b,"
};

constexpr auto kGroups = std::to_array<Group>({
    {"PipeUtilizationExct",
     ",mac_ratio_extra,scalar_ratio,mte1_ratio_extra,mte2_ratio,fixpipe_ratio,icache_miss_rate,"},
    {"PipelineExecuteUtilization",
     ",vec_exe_ratio,mac_exe_ratio,scalar_exe_ratio,mte1_exe_ratio,mte2_exe_ratio,mte3_exe_ratio,"
     "fixpipe_exe_ratio,"},
    {"ArithmeticUtilization",
     ",mac_fp16_ratio,mac_int8_ratio,vec_fp32_ratio,vec_fp16_ratio,vec_int32_ratio,vec_misc_ratio,"
     "cube_fops,vector_fops,"},
    {"PipeUtilization",
     ",vec_ratio,mac_ratio,scalar_ratio,mte1_ratio,mte2_ratio,mte3_ratio,icache_miss_rate,"},
    {"Memory",
     ",ub_read_bw(GB/s),ub_write_bw(GB/s),l1_read_bw(GB/s),l1_write_bw(GB/s),l2_read_bw(GB/s),"
     "l2_write_bw(GB/s),main_mem_read_bw(GB/s),main_mem_write_bw(GB/s),"},
    {"MemoryL0",
     ",l0a_read_bw(GB/s),l0a_write_bw(GB/s),l0b_read_bw(GB/s),l0b_write_bw(GB/s),"
     "l0c_read_bw(GB/s),l0c_write_bw(GB/s),l0c_read_bw_cube(GB/s),l0c_write_bw_cube(GB/s),"},
    {"ResourceConflictRatio", ",vec_bankgroup_cflt_ratio,vec_bank_cflt_ratio,vec_resc_cflt_ratio,"},
    {"MemoryUB",
     ",ub_read_bw_mte(GB/s),ub_write_bw_mte(GB/s),ub_read_bw_vector(GB/s),"
     "ub_write_bw_vector(GB/s),ub_read_bw_scalar(GB/s),ub_write_bw_scalar(GB/s),"},
    {"L2Cache",
     ",write_cache_hit,write_cache_miss_allocate,r0_read_cache_hit,r0_read_cache_miss_allocate,"
     "r1_read_cache_hit,r1_read_cache_miss_allocate,"},
    {"MemoryAccess",
     ",read_main_memory_datas(KB),write_main_memory_datas(KB),gm_to_l1_datas(KB),"
     "l0c_to_l1_datas(KB),l0c_to_gm_datas(KB),gm_to_ub_datas(KB),ub_to_gm_datas(KB),"},
});

// Chips 15 and 16 have event codes of their own.
constexpr auto kMetricsV6 = std::to_array<Metric>({
    Ratio("vec_ratio", 0x501),
    Ratio("mac_ratio", 0x301),
    Ratio("scalar_ratio", 0x1),
    Ratio("mte1_ratio", 0x701),
    Ratio("mte2_ratio", 0x202),
    Ratio("mte3_ratio", 0x203),
    {"icache_miss_rate", Formula::kMissRate, {0x35, 0x34}, 2},
    Ratio("fixpipe_ratio", 0x714),
    Bandwidth2("ub_read_bw(GB/s)", 0x56f, 0x571, 256, 4),
    Bandwidth2("ub_write_bw(GB/s)", 0x570, 0x572, 256, 4),
    Bandwidth("l1_read_bw(GB/s)", 0x707, 256, 16),
    Bandwidth("l1_write_bw(GB/s)", 0x709, 256, 8),
    Bandwidth("main_mem_read_bw(GB/s)", 0x422, 128, 8),
    Bandwidth("main_mem_write_bw(GB/s)", 0x423, 128, 8),
    Bandwidth("l0a_read_bw(GB/s)", 0x304, 256, 16),
    Bandwidth("l0a_write_bw(GB/s)", 0x703, 256, 16),
    Bandwidth("l0b_read_bw(GB/s)", 0x306, 256, 8),
    Bandwidth("l0b_write_bw(GB/s)", 0x705, 256, 8),
    Bandwidth("l0c_read_bw(GB/s)", 0x712, 256, 8),
    Bandwidth("l0c_read_bw_cube(GB/s)", 0x30a, 256, 8),
    Bandwidth("l0c_write_bw_cube(GB/s)", 0x308, 256, 8),
    Bandwidth("ub_write_bw_mte(GB/s)", 0x206, 128, 1),
    Bandwidth("ub_read_bw_mte(GB/s)", 0x204, 128, 1),
    Bandwidth("ub_read_bw_vector(GB/s)", 0x571, 128, 2),
    Bandwidth("ub_write_bw_vector(GB/s)", 0x572, 128, 1),
    Bandwidth("ub_read_bw_scalar(GB/s)", 0x3, 128, 1),
    Bandwidth("ub_write_bw_scalar(GB/s)", 0x5, 128, 1),
    Ratio("mac_fp16_ratio", 0x323),
    Ratio("mac_int8_ratio", 0x324),
    {"cube_fops", Formula::kCubeFops, {0x323, 0x324}, 2},
    Count("read_local_l2_hit", 0x424),
    Count("read_local_l2_miss", 0x425),
    Count("read_local_l2_victim", 0x426),
    Count("write_local_l2_hit", 0x42a),
    Count("write_local_l2_miss", 0x42b),
    Count("write_local_l2_victim", 0x42c),
    Ratio2("vec_bank_cflt_ratio", 0x540, 0x556),
    {"vec_resc_cflt_ratio", Formula::kMissRate, {0x528, 0x502}, 2},
});

constexpr auto kGroupsV6 = std::to_array<Group>({
    {"PipeUtilization",
     ",vec_ratio,mac_ratio,scalar_ratio,mte1_ratio,mte2_ratio,mte3_ratio,fixpipe_ratio,"
     "icache_miss_rate,"},
    {"Memory",
     ",ub_read_bw(GB/s),ub_write_bw(GB/s),l1_read_bw(GB/s),l1_write_bw(GB/s),"
     "main_mem_read_bw(GB/s),main_mem_write_bw(GB/s),"},
    {"MemoryL0",
     ",l0a_read_bw(GB/s),l0a_write_bw(GB/s),l0b_read_bw(GB/s),l0b_write_bw(GB/s),"
     "l0c_read_bw(GB/s),l0c_read_bw_cube(GB/s),l0c_write_bw_cube(GB/s),"},
    {"MemoryUB",
     ",ub_read_bw_mte(GB/s),ub_write_bw_mte(GB/s),ub_read_bw_vector(GB/s),"
     "ub_write_bw_vector(GB/s),ub_read_bw_scalar(GB/s),ub_write_bw_scalar(GB/s),"},
    {"ArithmeticUtilization", ",mac_fp16_ratio,mac_int8_ratio,cube_fops,"},
    {"L2Cache",
     ",read_local_l2_hit,read_local_l2_miss,read_local_l2_victim,write_local_l2_hit,"
     "write_local_l2_miss,write_local_l2_victim,"},
    {"ResourceConflictRatio", ",vec_bank_cflt_ratio,vec_resc_cflt_ratio,"},
});

std::span<const Metric> MetricsOfChip(int chip) {
  if (IsV6(chip)) return kMetricsV6;
  return kMetrics;
}
std::span<const Group> GroupsOfChip(int chip) {
  if (IsV6(chip)) return kGroupsV6;
  return kGroups;
}

bool IsMiniV3(int chip) { return chip == 7 || chip == 8 || chip == 11; }

std::string RawName(uint32_t code) {
  std::array<char, 16> hex;
  return "r" + std::string(hex.data(), std::to_chars(hex.data(), hex.data() + 16, code, 16).ptr);
}

std::vector<std::string> CustomMetrics(std::string_view codes) {
  std::vector<std::string> names;
  for (std::string_view code; names.size() < 64 && NextPart(&codes, ',', &code);) {
    if (code.starts_with("0x") || code.starts_with("0X")) code.remove_prefix(2);
    uint32_t number = 0;
    auto end = code.data() + code.size();
    if (std::from_chars(code.data(), end, number, 16).ptr == end && !code.empty()) {
      names.push_back(RawName(number));
    }
  }
  return names;
}

double Divide(double a, double b) { return b != 0 ? a / b : 0; }

double Evaluate(const Metric& metric, std::span<const double> sums, const CoreCounters& core) {
  auto cycles = static_cast<double>(core.cycles);
  double all = 0;
  switch (metric.formula) {
    case Formula::kRatio:
      for (double sum : sums) all += sum;
      return Divide(all, cycles);
    case Formula::kMissRate:
      return Divide(sums[0], sums[1]);
    case Formula::kBandwidth: {
      double seconds = Divide(cycles * 1000, core.hz * 1000);
      for (double sum : sums) all += sum;
      return Divide(all * metric.a * metric.b, seconds) / 8589934592.0;
    }
    case Formula::kCount:
      return sums[0];
    case Formula::kKilobytes:
      for (double sum : sums) all += sum;
      if (metric.minus) all = sums[0] - sums[1];
      return metric.a / 1024 * all;
    case Formula::kCubeFops:
      return sums[0] * 16 * 16 * 16 * 2 + sums[1] * 16 * 16 * 32 * 2;
    case Formula::kVectorFops: {
      auto widths = operators::VectorWidths(core.chip);
      for (size_t i = 0; i < widths.size(); ++i) all += sums[i] * widths[i];
      return all;
    }
  }
  return 0;
}

}  // namespace

std::optional<double> CoreCounters::Sum(uint32_t code) const {
  auto it = std::ranges::find(events, code);
  auto index = static_cast<size_t>(it - events.begin());
  if (it == events.end() || index >= sums.size()) {
    // Chips 7, 8 and 11 count the same under other codes (dump-format 2.11's groups).
    if (IsMiniV3(chip) && code == 0x3e) return Sum(0x1a6);
    if (IsMiniV3(chip) && code == 0x3d) return Sum(0x1a5);
    if (IsMiniV3(chip) && code == 0x44) return Sum(0x191);
    if (IsMiniV3(chip) && code == 0x43) {
      auto one = Sum(0x17f);
      auto two = Sum(0x180);
      if (one && two) return *one + *two;
    }
    return std::nullopt;
  }
  return static_cast<double>(sums[index]);
}

std::vector<std::string> MetricsOf(std::string_view group, int chip) {
  if (group.starts_with("Custom:")) return CustomMetrics(group.substr(7));
  std::span<const Group> groups = GroupsOfChip(chip);
  auto it = std::ranges::find(groups, group, &Group::name);
  if (it == groups.end()) return {};
  std::vector<std::string> names;
  for (const Metric& metric : MetricsOfChip(chip)) {
    if (it->metrics.find("," + std::string(metric.name) + ",") != std::string_view::npos) {
      names.emplace_back(metric.name);
    }
  }
  return names;
}

std::optional<double> MetricValue(std::string_view metric, const CoreCounters& core) {
  std::span<const Metric> metrics = MetricsOfChip(core.chip);
  auto it = std::ranges::find(metrics, metric, &Metric::name);
  if (it == metrics.end()) {
    uint32_t code = 0;
    auto end = metric.data() + metric.size();
    if (!metric.starts_with('r') || std::from_chars(metric.data() + 1, end, code, 16).ptr != end) {
      return std::nullopt;
    }
    return core.Sum(code);
  }
  std::array<double, 5> sums;
  auto count = static_cast<size_t>(it->code_count);
  for (size_t i = 0; i < count; ++i) {
    auto sum = core.Sum(it->codes[i]);
    if (!sum) return std::nullopt;
    sums[i] = *sum;
  }
  return Evaluate(*it, std::span(sums).first(count), core);
}

bool IsShown(std::string_view metric, std::span<const std::string> metrics, int chip) {
  auto has = [&](std::string_view name) {
    return std::ranges::find(metrics, name) != metrics.end();
  };
  bool both_mte = has("ub_read_bw_mte(GB/s)") && has("ub_write_bw_mte(GB/s)");
  bool both_l2 = has("l2_read_bw(GB/s)") && has("l2_write_bw(GB/s)");
  if (both_mte && chip != 0 && metric.ends_with("_bw_mte(GB/s)")) return false;
  return !(both_l2 && chip != 0 && chip != 5 && metric.starts_with("l2_"));
}

bool IsNotAvailable(std::string_view metric, int chip) {
  constexpr std::string_view kMissing =
      ",vec_ratio,ub_read_bw(GB/s),ub_write_bw(GB/s),l0c_write_bw(GB/s),l2_write_bw(GB/s),"
      "vec_fp32_ratio,vec_fp16_ratio,vec_int32_ratio,vec_misc_ratio,vec_bankgroup_cflt_ratio,"
      "vec_bank_cflt_ratio,vec_resc_cflt_ratio,";
  return IsMiniV3(chip) && kMissing.find("," + std::string(metric) + ",") != std::string_view::npos;
}

std::string ColumnOf(std::string_view metric) {
  constexpr std::string_view kExtra = "_extra";
  std::string name(metric);
  if (size_t at = name.find(kExtra); at != std::string::npos) name.erase(at, kExtra.size());
  return name;
}

}  // namespace profd::exporting::csv
