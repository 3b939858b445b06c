// Where a command's runs come from: paths of this machine, or ClickHouse.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/run.h"
#include "analysis/store/server.h"
#include "base/status.h"
#include "client/clickhouse/clickhouse_server.h"
#include "client/clickhouse/url.h"
#include "client/endpoint.h"
#include "client/json.h"

namespace profd::client {

// Options of analyze, advise and report.
struct StoreOptions {
  std::string from;   // address of a database; empty: the runs are paths
  std::string run;    // its run, where the address has none
  std::string ranks;  // "0,4-7"; empty: all
  TlsFiles tls;       // those of the command line
};

struct OpenedStore {
  std::unique_ptr<ClickHouseServer> server;
  std::string run;
};
// `text`: an address with a run, or `run` is one; else kInvalidArgument. Nothing is sent yet.
Result<OpenedStore> OpenStore(const std::string& text, const std::string& run, const TlsFiles& tls, const analysis::Progress& go_on);

Result<std::set<int>> ParseRankList(const std::string& text);

struct ReadHow {
  // All rows: for checks and pages. Otherwise what these views are made of.
  bool complete = false;
  std::set<std::string, std::less<>> only = {};
  bool beside = false;  // also of ranks beside each other
};

// Reads a command's run and its baseline, which may be an address, too.
class RunReader {
 public:
  // `options` must outlive it.
  RunReader(const StoreOptions& options, analysis::Progress progress) : options_(options), progress_(std::move(progress)) {}

  // What is wrong with the arguments; nothing is read or sent yet.
  Status Check(const std::vector<std::string>& paths) const;
  Result<analysis::Run> Read(const std::vector<std::string>& paths, const ReadHow& how);
  // Null where `where` is empty.
  Result<std::unique_ptr<const analysis::Run>> ReadBaseline(const std::string& where, const ReadHow& how);
  // What it cost the server, {"queries", "seconds", "rows_read", "bytes_read"}; null: none was asked.
  Json CostJson() const;

 private:
  Result<analysis::Run> Fetch(const std::string& address, const std::string& run, const ReadHow& how);

  const StoreOptions& options_;
  const analysis::Progress progress_;
  std::optional<analysis::StoreCost> cost_;
};

Json CostJson(const analysis::StoreCost& cost);
// "ClickHouse: 7 queries, 0.1 s, 4096 rows and 1.2 MiB read"
std::string CostText(const Json& cost);

}  // namespace profd::client
