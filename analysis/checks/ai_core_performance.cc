#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>

#include "analysis/checks/check.h"
#include "base/text.h"

namespace profd::analysis {
namespace {

using Shape = std::vector<int64_t>;

// "4096,2,512;;8" as tensors; what is not a number makes a tensor without dimensions.
std::vector<Shape> ShapesOf(std::string_view text) {
  std::vector<Shape> shapes(1);
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] != ',' && text[i] != ';') continue;
    int64_t dimension = 0;
    if (ParseNumber(text.substr(begin, i - begin), &dimension)) shapes.back().push_back(dimension);
    if (i < text.size() && text[i] == ';') shapes.emplace_back();
    begin = i + 1;
  }
  return shapes;
}

struct Group {
  const Operator* op = nullptr;
  double ns = 0;
  uint64_t calls = 0;
};

// What limits a group, or how far it is below its limits.
struct Verdict {
  enum class Kind : uint8_t { kImprovable, kBound, kNotAffine, kUnknown } kind = Kind::kImprovable;
  TranslatedText what;
  double improvement = 0;
};

class Looker {
 public:
  Looker(const Rank& rank, const Limits& limits) : rank_(rank), limits_(limits) {}

  double Limit(std::string_view name) const { return limits_.At("ai_core_performance", name); }
  double Ratio(const Operator& op, std::string_view name) const {
    double most = 0;
    for (size_t i = 0; i < rank_.ratio_names.size(); ++i) {
      if (rank_.ratio_names[i] == name) most = std::max(most, op.MeanRatio(i));
    }
    return most;
  }

  Verdict Cube(const Operator& op) const {
    const std::vector<Shape> inputs = ShapesOf(rank_.TextOf(op.input_shapes));
    const auto mod = static_cast<int64_t>(Limit("cube_multiple"));
    const auto fits = [mod](int64_t size) { return size % mod == 0; };
    const bool nz = inputs.size() > 1 && inputs[0].size() == 4 && inputs[1].size() == 4;
    const bool nd = inputs.size() > 1 && inputs[0].size() == 2 && !inputs[1].empty();
    const bool affine = nz   ? fits(inputs[0][1] * inputs[0][2]) && fits(inputs[1][1] * inputs[1][2])
                        : nd ? fits(inputs[0].back()) && fits(inputs[1].back())
                             : false;
    if (!affine) return {Verdict::Kind::kNotAffine, Translate({"the inner axis is not a multiple of {}", "内轴不是 {} 的整数倍"}, mod)};
    const double mac = Ratio(op, "aic_mac");
    const double mte2 = Ratio(op, "aic_mte2");
    if (Reaches(mac, Limit("mac_beside_mte2")) && Reaches(mte2, Limit("cube_bound"))) return {Verdict::Kind::kBound, "mac and mte2"};
    if (Reaches(mac, Limit("cube_bound"))) return {Verdict::Kind::kBound, "mac"};
    if (Reaches(mte2, Limit("cube_bound"))) return {Verdict::Kind::kBound, "mte2"};
    return {Verdict::Kind::kImprovable, {}, std::max(Limit("mac_beside_mte2") - mac, Limit("cube_bound") - mte2)};
  }

  Verdict Attention(const Operator& op) const {
    if (ShapesOf(rank_.TextOf(op.input_shapes)).front().size() < 3) return {Verdict::Kind::kUnknown, {}};
    if (const TranslatedText odd = OddAttention(op); !odd.empty()) return {Verdict::Kind::kNotAffine, odd};
    const bool backward = rank_.TextOf(op.type).ends_with("Grad");
    const std::string_view name = backward ? "fixpipe" : "vec";
    const double mte2 = Ratio(op, "aic_mte2");
    const double other = Ratio(op, backward ? "aic_fixpipe" : "aiv_vec");
    const bool moves = Reaches(mte2, Limit("attention_mte2"));
    const bool works = Reaches(other, Limit("attention_unit"));
    if (moves || works) return {Verdict::Kind::kBound, moves && works ? TranslatedText(fmt::format("mte2 and {}", name)) : TranslatedText(moves ? "mte2" : name)};
    return {Verdict::Kind::kImprovable, {}, std::max(Limit("attention_mte2") - mte2, Limit("attention_unit") - other)};
  }

  Verdict Vector(const Operator& op) const {
    struct Unit {
      std::string_view name;
      double ratio;
    };
    const std::array<Unit, 3> units = {{{"mte2", Ratio(op, "aiv_mte2")}, {"mte3", Ratio(op, "aiv_mte3")}, {"vec", Ratio(op, "aiv_vec")}}};
    double sum = 0;
    double least = 1;
    for (const Unit& unit : units) {
      sum += unit.ratio;
      least = std::min(least, unit.ratio);
    }
    if (Reaches(sum, Limit("vector_sum"))) return {Verdict::Kind::kBound, "vec, mte2 and mte3"};
    for (const Unit& unit : units) {
      if (Reaches(unit.ratio, Limit("vector_unit"))) return {Verdict::Kind::kBound, TranslatedText(unit.name)};
    }
    return {Verdict::Kind::kImprovable, {}, Limit("vector_unit") - least};
  }

  // What all tensors of a call take, of two bytes an element; an input of one dimension counts twice.
  double Megabytes(const Operator& op) const {
    double elements = 0;
    for (const TextId text : {op.input_shapes, op.output_shapes}) {
      for (const Shape& shape : ShapesOf(rank_.TextOf(text))) {
        if (shape.empty()) continue;
        double product = 1;
        for (const int64_t dimension : shape) product *= static_cast<double>(dimension);
        elements += shape.size() == 1 && text == op.input_shapes ? 2 * product : product;
      }
    }
    return 2 * elements / (1 << 20);
  }

 private:
  // Empty: head dimension and length of the sequence fit.
  TranslatedText OddAttention(const Operator& op) const {
    const std::vector<Shape> inputs = ShapesOf(rank_.TextOf(op.input_shapes));
    const std::vector<Shape> outputs = ShapesOf(rank_.TextOf(op.output_shapes));
    const auto mod = static_cast<int64_t>(Limit("attention_multiple"));
    const Shape& first = inputs.front();
    const bool varlen = LowerCase(rank_.TextOf(op.name)).find("varlen") != std::string::npos;
    int64_t head = first[2];
    int64_t length = mod;
    if (!varlen && first.size() == 4) {
      head = first[3];
      length = first[2];
    } else if (!varlen) {
      const int64_t heads = outputs.front().size() > 1 ? outputs.front()[1] : 1;
      head = heads > 0 ? first[2] / heads : first[2];
      length = first[0];
    }
    // The layout shows where the sequence is; softmax_max of the forward pass, (B, N, S, 8), has it in any.
    if (!varlen && rank_.TextOf(op.type) == "FlashAttentionScore" && outputs.front().size() == 4) length = outputs.front()[2];
    TranslatedText odd;
    if (head % mod != 0) odd = Translate({"the head dimension ({}) is not a multiple of {}", "head 维度（{}）不是 {} 的整数倍"}, head, mod);
    if (length % mod != 0) Join(&odd, Text("; ", "；"), Translate({"the sequence ({}) is not a multiple of {}", "序列长度（{}）不是 {} 的整数倍"}, length, mod));
    return odd;
  }

  const Rank& rank_;
  const Limits& limits_;
};

constexpr std::array<std::string_view, 3> kVerdicts = {"improvable", "bound", "not affine"};
constexpr size_t kMostOfKind = 5;  // of each class and verdict

struct Row {
  std::string_view of;
  Group group;
  Verdict verdict;
};

std::vector<Row> RowsOf(const Rank& rank, const Looker& looker) {
  std::vector<Group> groups(rank.operators.size());
  std::map<TextId, double> types;  // ns
  auto all_ns = static_cast<double>(rank.communication_sum_ns);
  for (const Execution& each : rank.executions) {
    Group& group = groups[static_cast<size_t>(each.op)];
    const auto ns = static_cast<double>(each.end_ns - each.start_ns);
    group.op = &rank.operators[static_cast<size_t>(each.op)];
    group.ns += ns;
    ++group.calls;
    types[group.op->type] += ns;
    all_ns += ns;
  }
  std::vector<Row> rows;
  for (const Group& group : groups) {
    if (group.op == nullptr || group.op->counted_ns <= 0) continue;
    const std::string_view type = rank.TextOf(group.op->type);
    const std::string_view core = rank.TextOf(group.op->core);
    if (core == "AI_CORE" && LowerCase(type).find("matmul") != std::string::npos) {
      const bool large = looker.Megabytes(*group.op) * static_cast<double>(group.calls) >= looker.Limit("cube_mb");
      if (large) rows.push_back({"cube", group, looker.Cube(*group.op)});
    } else if (type == "FlashAttentionScore" || type == "FlashAttentionScoreGrad") {
      rows.push_back({"attention", group, looker.Attention(*group.op)});
    } else if (core == "AI_VECTOR_CORE" || core == "MIX_AIV") {
      const double ns = types[group.op->type];
      const bool matters = ns / all_ns >= looker.Limit("vector_share") || ns / 1000 >= looker.Limit("vector_us");
      if (matters) rows.push_back({"vector", group, looker.Vector(*group.op)});
    }
  }
  std::erase_if(rows, [](const Row& row) { return row.verdict.kind == Verdict::Kind::kUnknown; });
  return rows;
}

}  // namespace

std::optional<Finding> CheckAiCorePerformance(const CheckInput& input) {
  const Rank& rank = input.rank;
  const Looker looker(rank, input.limits);
  std::vector<Row> rows = RowsOf(rank, looker);
  if (rows.empty()) return std::nullopt;
  std::ranges::stable_sort(rows, [](const Row& a, const Row& b) {
    if (a.of != b.of) return a.of < b.of;
    if (a.verdict.kind != b.verdict.kind) return a.verdict.kind < b.verdict.kind;
    return a.verdict.kind == Verdict::Kind::kImprovable ? a.verdict.improvement > b.verdict.improvement : a.group.ns > b.group.ns;
  });
  Finding finding;
  finding.priority = Priority::kLow;
  finding.title = Text("What limits operators on the AI Core", "AI Core 算子的性能瓶颈");
  finding.advice = {Text("Not affine: pad the shapes.", "not affine（shape 不亲和）：补齐 shape。"),
                    Text("Improvable: tune the operator with AOE, or give it more work at once.", "improvable（可优化）：使用 AOE 调优，或增大单次计算量。"),
                    Text("Bound: it is as fast as the unit; only less work helps (fusion, smaller types).", "bound（已达单元上限）：只能减少计算量（融合、更小的数据类型）。")};
  finding.columns = {"class", "verdict", "detail", "improvement", "type", "name", "calls", "total_ms", "input_shapes", "input_types"};
  std::array<size_t, 3> counts{};
  std::map<std::pair<std::string_view, Verdict::Kind>, size_t> shown;
  for (const Row& row : rows) {
    ++counts[static_cast<size_t>(row.verdict.kind)];
    if (++shown[{row.of, row.verdict.kind}] > kMostOfKind) continue;
    const Operator& op = *row.group.op;
    finding.rows.push_back({row.of, kVerdicts[static_cast<size_t>(row.verdict.kind)], CellOf(row.verdict.what),
                            row.verdict.kind == Verdict::Kind::kImprovable ? Json(std::round(row.verdict.improvement * 1e4) / 1e4) : Json(), rank.TextOf(op.type), rank.TextOf(op.name),
                            row.group.calls, row.group.ns / 1e6, rank.TextOf(op.input_shapes), rank.TextOf(op.input_types)});
  }
  finding.evidence = Translate({"{:operator} could be faster, {:is|are} as fast as a unit of the core, {:has a shape that does|have shapes that do} not fit the core",
                          "{} 个算子有优化空间，{} 个已达到某个计算单元的上限，{} 个的 shape 与硬件不亲和"}, Counted{counts[0]}, Counted{counts[1]}, Counted{counts[2]});
  return finding;
}

}  // namespace profd::analysis
