// The tables of runs in a database, in one place: their columns, how they are ordered, and the statements that make
// them. A table is partitioned by run; rows of a load that was not committed in `loads` do not count.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace profd::analysis {

enum class StoreCodec : uint8_t { kDefault, kTime, kText };

struct StoreColumn {
  std::string_view name;
  std::string_view type;
  StoreCodec codec = StoreCodec::kDefault;
};

// In front of the others in all tables.
inline constexpr std::array<std::string_view, 3> kHeadColumns = {"run", "rank", "load"};

struct StoreTable {
  std::string_view name;
  std::string_view what;                 // for documents
  std::span<const StoreColumn> columns;  // behind kHeadColumns
  std::string_view order;                // behind run, rank and load; may be empty
};

inline constexpr std::string_view kLoadsTable = "loads";

// All of them; that of the loads is the first.
std::span<const StoreTable> StoreTables();
const StoreTable& StoreTableOf(std::string_view name);

struct StoreLayout {
  std::string database;
  std::string cluster;  // empty: one server
  int server_major = 0;

  // Where rows are kept: beside the distributed table of the name, on a cluster.
  std::string LocalName(std::string_view table) const;
  // All tables of the name, without the database.
  std::vector<std::string> NamesOf(std::string_view table) const;
  std::string OnCluster() const;  // " ON CLUSTER `name`", or nothing
};

// Statements that make the database and all tables where they are not there, that of the loads last: where it is, all are.
std::vector<std::string> CreateStatements(const StoreLayout& layout);

}  // namespace profd::analysis
