#include "client/commands/store_runs.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/store/stored_runs.h"
#include "base/text.h"
#include "client/clickhouse/clickhouse_server.h"
#include "client/connection.h"
#include "client/render.h"
#include "client/signals.h"

namespace profd::client {
namespace {

using analysis::StoredRun;

constexpr int64_t kMostDays = 36'500;

// The runs that a command is about.
struct RunSelection {
  ClickHouseUrl url;
  std::vector<std::string> names;  // none: all
  int64_t before_ns = INT64_MAX;   // loaded earlier than this
};

Result<RunSelection> RunSelectionOf(const StoreRunsCommand& command, const Clock& clock) {
  RunSelection asked;
  Result<ClickHouseUrl> url = ParseClickHouseUrl(command.from);
  if (!url.ok()) return url.status();
  asked.names = command.runs;
  if (!url->run.empty()) asked.names.push_back(url->run);
  asked.url = std::move(*url);
  if (!command.older_than) return asked;
  int64_t days = 0;
  if (!ParseNumber(*command.older_than, &days) || days < 1 || days > kMostDays) {
    return InvalidArgument(fmt::format("--older-than \"{}\": a number of days, from 1 on", *command.older_than));
  }
  asked.before_ns = clock.WallNs() - days * 24 * 3600 * kNsPerSecond;
  return asked;
}

bool IsAsked(const RunSelection& asked, const StoredRun& run) {
  return run.loaded_ns < asked.before_ns && (asked.names.empty() || std::ranges::find(asked.names, run.name) != asked.names.end());
}

// Some, in the order of the database; an error where one that is named is not there.
Result<std::vector<StoredRun>> Find(analysis::StoreServer* server, const RunSelection& asked) {
  Result<std::vector<StoredRun>> runs = analysis::ListStoredRuns(server);
  if (!runs.ok()) return runs;
  for (const std::string& name : asked.names) {
    if (std::ranges::find(*runs, name, &StoredRun::name) != runs->end()) continue;
    return NotFound(fmt::format("no run {} in {}; profctl list --from {} has their names", name, asked.url.database, asked.url.Shown()));
  }
  std::erase_if(*runs, [&asked](const StoredRun& run) { return !IsAsked(asked, run); });
  return runs;
}

Json ToJson(const StoredRun& run) { return {{"run", run.name}, {"complete", run.ranks > 0}, {"ranks", run.ranks}, {"rows", run.rows}, {"loaded_ns", run.loaded_ns}}; }

}  // namespace

int RunListRuns(const Io& io, const Clock& clock, const StoreRunsCommand& command, bool json) {
  SignalWatch signals;
  const Result<RunSelection> asked = RunSelectionOf(command, clock);
  if (!asked.ok()) return FailWith(io, asked.status(), kExitUsage, json);
  ClickHouseServer server(asked->url, command.tls, signals.go_on());
  const auto runs = Find(&server, *asked);
  if (!runs.ok()) return FailWith(io, runs.status(), json);
  if (json) {
    Json list = Json::array();
    for (const StoredRun& run : *runs) list.push_back(ToJson(run));
    io.out << JsonText({{"runs", std::move(list)}}, true) << std::endl;
    return kExitOk;
  }
  if (runs->empty()) {
    io.out << "no runs\n";
    return kExitOk;
  }
  Table table({"RUN", "STATE", ">RANKS", ">ROWS", "LOADED"});
  for (const StoredRun& run : *runs) {
    table.AddRow({Printable(run.name), run.ranks > 0 ? "complete" : "incomplete", std::to_string(run.ranks), std::to_string(run.rows), FormatTime(run.loaded_ns)});
  }
  table.Print(io.out, io.out_color());
  return kExitOk;
}

int RunRemoveRuns(const Io& io, const Clock& clock, const StoreRunsCommand& command, bool json) {
  SignalWatch signals;
  const Result<RunSelection> asked = RunSelectionOf(command, clock);
  if (!asked.ok()) return FailWith(io, asked.status(), kExitUsage, json);
  if (asked->names.empty() && !command.older_than) {
    return FailWith(io, InvalidArgument("which runs? name them, or those that were loaded long ago with --older-than DAYS"), kExitUsage, json);
  }
  if (!IsClusterName(command.cluster)) return FailWith(io, InvalidArgument("--cluster: not a name"), kExitUsage, json);
  ClickHouseServer server(asked->url, command.tls, signals.go_on());
  const auto runs = Find(&server, *asked);
  if (!runs.ok()) return FailWith(io, runs.status(), json);
  analysis::RunRemover remover(&server, command.cluster);
  Status status = runs->empty() ? Status() : remover.Prepare();
  Json removed = Json::array();
  for (const StoredRun& run : *runs) {
    if (!status.ok()) break;
    status = remover.Remove(run.name).Annotate("run " + run.name);
    if (!status.ok()) break;
    removed.push_back(ToJson(run));
    if (!json) io.out << fmt::format("removed {}, {} of {}", Printable(run.name), CountText(run.rows, "row"), CountText(run.ranks, "rank")) << std::endl;
  }
  if (const std::string note = remover.Note(); !note.empty() && !json) io.err << "profctl: note: " << note << std::endl;
  if (!status.ok()) return FailWith(io, status, removed.empty() ? ExitCodeFor(status.code()) : kExitPartial, json);
  if (json) io.out << JsonText({{"removed", removed}, {"note", remover.Note()}}, true) << std::endl;
  if (!json && removed.empty()) io.out << "no runs\n";
  return kExitOk;
}

}  // namespace profd::client
