// The operators of `profctl show DUMP`.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "client/commands/show_dump.h"
#include "client/render.h"
#include "client/sparkline.h"
#include "proto/attach/cut_text.h"

namespace profd::client {
namespace {

using exporting::ActivityTotal;
using OperatorTotals = exporting::DumpSummary::OperatorTotals;

constexpr size_t kOperatorsShown = 10;
constexpr size_t kShownRanks = 8;
constexpr size_t kLeastName = 20;
constexpr size_t kMostName = 48;
// RANK, COUNT, TOTAL, MEAN, MAX and the share, with what is between them.
constexpr size_t kNumbers = 6 + 7 + 10 + 10 + 10 + 12 + 2;
// Where it fits into a line.
constexpr size_t kLeastBar = 8;
constexpr size_t kMostBar = 30;

struct Operators {
  std::vector<std::pair<std::string, ActivityTotal>> longest;  // all of them, the longest in all first
  double total_ns = 0;
};

Operators SortedOperators(const std::map<std::string, ActivityTotal>& names) {
  Operators operators;
  operators.longest.assign(names.begin(), names.end());
  std::ranges::stable_sort(operators.longest, [](const auto& a, const auto& b) {
    return a.second.total_ns > b.second.total_ns;
  });
  for (const auto& [name, total] : names) operators.total_ns += static_cast<double>(total.total_ns);
  return operators;
}


// Fills what the table leaves of a line.
size_t BarWidth(size_t line, size_t names) {
  return line >= kNumbers + names + kLeastBar ? std::min(line - kNumbers - names, kMostBar) : 0;
}

// The map's key: "all" first where there are several ranks, then each rank.
std::vector<std::pair<std::string, Operators>> OperatorsByRank(const OperatorTotals& totals) {
  std::map<std::string, ActivityTotal> all;
  std::map<int, std::map<std::string, ActivityTotal>> ranks;
  for (const auto& [key, total] : totals.totals()) {
    all[key.second].Merge(total);
    ranks[key.first][key.second].Merge(total);
  }
  if (totals.rest().count > 0) all["(other)"].Merge(totals.rest());
  std::vector<std::pair<std::string, Operators>> shown;
  if (ranks.size() != 1 && !all.empty()) shown.emplace_back("all", SortedOperators(all));
  for (const auto& [rank, names] : ranks) {
    shown.emplace_back(rank < 0 ? "-" : std::to_string(rank), SortedOperators(names));
  }
  return shown;
}

void PrintTotals(std::ostream& out, std::string_view heading, std::string_view share, const OperatorTotals& totals,
           const PictureStyle& style) {
  auto shown = OperatorsByRank(totals);
  if (shown.empty()) return;
  const size_t groups = style.all ? shown.size() : std::min(shown.size(), kShownRanks + 1);
  auto length = [](double ns) { return FormatQuantity(ns / 1e9, "seconds"); };
  const auto lines_of = [&style](const Operators& operators) {
    return style.all ? operators.longest.size() : std::min(operators.longest.size(), kOperatorsShown);
  };
  const size_t longest_name = std::clamp(style.width - std::min(style.width, kNumbers), kLeastName, kMostName);
  size_t widest = heading.size();
  for (size_t i = 0; i < groups; ++i) {
    for (size_t line = 0; line < lines_of(shown[i].second); ++line) {
      widest = std::max(widest, DisplayWidth(ShortName(shown[i].second.longest[line].first, longest_name)));
    }
  }
  const size_t bar = BarWidth(style.width, widest);
  Table table({"RANK", std::string(heading), ">COUNT", ">TOTAL", ">MEAN", ">MAX", std::string(share), ""});
  for (size_t i = 0; i < groups; ++i) {
    const auto& [rank, operators] = shown[i];
    for (size_t line = 0; line < lines_of(operators); ++line) {
      const auto& [name, total] = operators.longest[line];
      const double part =
          operators.total_ns > 0 ? static_cast<double>(total.total_ns) / operators.total_ns * 100 : 0;
      table.AddRow({rank, ShortName(name, longest_name), std::to_string(total.count), length(static_cast<double>(total.total_ns)),
                    length(total.MeanNs()), length(static_cast<double>(total.max_ns)),
                    fmt::format("{:.1f} %", part), Cell(Bar(part / 100, bar, style.ascii), Tone::kGood)});
    }
  }
  out << '\n';
  table.Print(out, style.color);
  const size_t names = shown.front().second.longest.size();
  if (!style.all && (names > kOperatorsShown || groups < shown.size())) {
    out << fmt::format("the {} longest of {} names", std::min(kOperatorsShown, names), names);
    if (groups < shown.size()) out << fmt::format(", of {} of {} ranks", groups - 1, shown.size() - 1);
    out << " (--all, --json, profctl export)\n";
  }
}

}  // namespace

std::string ShortName(const std::string& name, size_t bytes) {
  if (name.empty()) return "(no name)";
  std::string text = Printable(name);
  if (text.size() <= bytes) return text;
  return std::string(attach::CutText(text.c_str(), bytes - 2)) + "..";
}

void PrintOperators(std::ostream& out, const exporting::DumpSummary& summary, const PictureStyle& style) {
  PrintTotals(out, "OPERATOR", ">OF KERNELS", summary.kernels, style);
  PrintTotals(out, "COMMUNICATION", ">OF IT ALL", summary.communication, style);
}

namespace {

Json OperatorList(const OperatorTotals& totals) {
  Json list = Json::array();
  auto add = [&list](Json rank, const std::string& name, const ActivityTotal& total) {
    list.push_back({{"rank", std::move(rank)},
                    {"name", name},
                    {"count", total.count},
                    {"total_ns", total.total_ns},
                    {"mean_ns", total.MeanNs()},
                    {"min_ns", total.min_ns},
                    {"max_ns", total.max_ns}});
  };
  for (const auto& [key, total] : totals.totals()) {
    add(key.first < 0 ? Json(nullptr) : Json(key.first), key.second, total);
  }
  if (totals.rest().count > 0) add(nullptr, "(other)", totals.rest());
  return list;
}

}  // namespace

Json OperatorsJson(const exporting::DumpSummary& summary) {
  return {{"kernels", OperatorList(summary.kernels)}, {"communication", OperatorList(summary.communication)}};
}

}  // namespace profd::client
