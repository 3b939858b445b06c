// Statements that change tables. On a cluster all servers execute them, from a queue that the cluster keeps: those that
// are away execute it after they have started again, and no command waits for them for long.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "analysis/store/server.h"
#include "analysis/store/tables.h"
#include "base/status.h"

namespace profd::analysis {

// "18.16.1" is {18, 16}; none where it is not a version.
std::optional<std::pair<int, int>> VersionOf(std::string_view text);

class TableChanger {
 public:
  // How long a statement waits for all servers of the cluster. After the first of which not all were heard none does.
  static constexpr int kClusterSeconds = 15;

  TableChanger(StoreServer* server, const StoreLayout* layout) : server_(*server), layout_(*layout) {}

  // `statement` has layout.OnCluster() in it.
  Status Execute(std::string_view statement);
  // Whether a server of the cluster has not answered.
  bool missed() const { return missed_; }
  // What that means, as a sentence; empty: all answered.
  std::string Note() const;

 private:
  StoreServer& server_;
  const StoreLayout& layout_;
  bool missed_ = false;
};

// The server's release into the layout, where it is one that can be used.
Status CheckStoreVersion(StoreServer* server, StoreLayout* layout);
// That the tables, where they are there, are of one server or of a cluster as the layout is.
Status CheckStoreKind(StoreServer* server, const StoreLayout& layout);
// Whether this server has all tables. An error: it has one with other columns.
Result<bool> HasStoreTables(StoreServer* server, const StoreLayout& layout);
// Makes what is not there, on all servers of a cluster.
Status MakeStoreTables(const StoreLayout& layout, TableChanger* changer);

}  // namespace profd::analysis
