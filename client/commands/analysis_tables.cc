#include "client/commands/analysis_tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "client/render.h"

namespace profd::client {
namespace {

constexpr size_t kMostRows = 15;

}  // namespace

std::string Number(const Json& object, const char* name, int decimals) {
  const auto found = object.find(name);
  return found == object.end() || !found->is_number() ? "-" : fmt::format("{:.{}f}", found->get<double>(), decimals);
}

std::string Share(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || !found->is_number() ? "-" : fmt::format("{:.1f} %", found->get<double>() * 100);
}

std::string Text(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) return "-";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

Column Ms(std::string heading, const char* name) {
  return {">" + std::move(heading), [name](const Json& row) { return Number(row, name); }};
}
Column Plain(std::string heading, const char* name) {
  return {std::move(heading), [name](const Json& row) { return Text(row, name); }};
}

void PrintList(const Io& io, const std::string& title, const Json& list, const std::vector<Column>& columns, size_t means) {
  if (!list.is_array() || list.empty()) return;
  std::vector<std::string> headings;
  headings.reserve(columns.size());
  for (const Column& column : columns) headings.push_back(column.heading);
  Table table(std::move(headings));
  const size_t shown = std::min(list.size(), kMostRows + means);
  for (size_t i = 0; i < shown; ++i) {
    std::vector<Cell> cells;
    cells.reserve(columns.size());
    for (const Column& column : columns) cells.emplace_back(column.cell(list[i]));
    table.AddRow(std::move(cells));
  }
  io.out << '\n' << title;
  if (shown < list.size()) io.out << fmt::format(" ({} of {}; all with --json)", shown - means, list.size() - means);
  io.out << '\n';
  table.Print(io.out, io.out_color(), "  ", io.out_columns);
}

}  // namespace profd::client
