#include "export/trace/series.h"

namespace profd::exporting {
namespace {

ArgSource SourceOf(const ArgSpec& arg, const TableSpec& table) {
  ArgSource source;
  source.show = arg.show;
  source.mul = arg.mul;
  source.div = arg.div;
  source.column = static_cast<size_t>(std::max(0, ColumnIndex(table, arg.column)));
  if (!arg.column2.empty()) source.column2 = ColumnIndex(table, arg.column2);
  source.real = IsReal(table.columns[source.column].type);
  return source;
}

// A table without counters of its own: the keys, and the column's name.
NamedCounter Plain(const TableSpec& table, size_t column, const std::string& keys) {
  const Column& spec = table.columns[column];
  NamedArg arg;
  arg.key = spec.name;
  if (!spec.unit.empty()) arg.key.append("(").append(spec.unit).append(")");
  arg.unit = spec.unit;
  arg.source.show = Show::kCell;
  arg.source.column = column;
  arg.source.real = IsReal(spec.type);
  NamedCounter counter;
  counter.name = keys.empty() ? std::string(spec.name) : keys + "/" + std::string(spec.name);
  counter.args.push_back(std::move(arg));
  return counter;
}

std::vector<NamedCounter> PlainCounters(const TableSpec& table, std::span<const int64_t> keys,
                                        const Strings* strings) {
  std::string prefix;
  for (size_t k = 0; k < keys.size(); ++k) {
    if (k > 0) prefix += ' ';
    prefix.append(table.columns[k].name).append(" ");
    prefix += Expand(std::string("{") + static_cast<char>('0' + k) + "}", table, keys, strings);
  }
  std::vector<NamedCounter> counters;
  for (size_t c = keys.size(); c < table.columns.size(); ++c) {
    counters.push_back(Plain(table, c, prefix));
  }
  return counters;
}

}  // namespace

std::vector<NamedCounter> CountersOf(const TableLayout& layout, const TableSpec& table,
                                     std::span<const int64_t> keys, const Strings* strings) {
  if (layout.counters.empty()) return PlainCounters(table, keys, strings);
  std::vector<NamedCounter> counters;
  for (const CounterSpec& spec : layout.counters) {
    if (spec.when_key >= 0 && keys[static_cast<size_t>(spec.when_key)] != spec.when) continue;
    NamedCounter counter{Expand(spec.name, table, keys, strings), spec.tid, {}};
    for (const ArgSpec& arg : spec.args) {
      if (arg.show == Show::kNone) continue;
      NamedArg named{Expand(arg.key, table, keys, strings), arg.unit, SourceOf(arg, table)};
      if (named.unit.empty() && arg.show != Show::kKey && arg.show != Show::kConstant) {
        named.unit = table.columns[named.source.column].unit;
      }
      counter.args.push_back(std::move(named));
    }
    counters.push_back(std::move(counter));
  }
  return counters;
}

}  // namespace profd::exporting
