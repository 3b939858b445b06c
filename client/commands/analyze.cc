#include "client/commands/analyze.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "analysis/store/overview.h"
#include "analysis/views/views.h"
#include "client/render.h"
#include "client/signals.h"

namespace profd::client {
namespace {

constexpr size_t kMaxWarnings = 20;

Result<std::set<std::string, std::less<>>> ParseOnly(const std::string& text) {
  std::set<std::string, std::less<>> only;
  const std::vector<std::string> names = AnalysisNames();
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    const std::string name = text.substr(begin, comma - begin);
    begin = comma + 1;
    if (std::ranges::find(names, name) == names.end()) {
      return InvalidArgument(fmt::format("--only \"{}\": no such analysis; there are {}", name, fmt::join(names, ", ")));
    }
    only.insert(name);
  }
  return only;
}

void Warn(const Io& io, const std::vector<analysis::Problem>& problems) {
  size_t told = 0;
  for (const analysis::Problem& problem : problems) {
    if (told++ == kMaxWarnings) {
      io.err << fmt::format("profctl: warning: and {} more; all of them with --json", problems.size() - kMaxWarnings) << std::endl;
      return;
    }
    io.err << Paint("profctl: warning: ", Tone::kWarning, io.err_color()) << Printable(problem.where + ": " + problem.what)
           << std::endl;
  }
}

int RunOverview(const Io& io, const AnalyzeCommand& command, const analysis::Progress& progress, bool json) {
  if (command.store.from.empty() || !command.runs.empty() || !command.only.empty() || !command.baseline.empty() || !command.store.ranks.empty()) {
    return FailWith(io, InvalidArgument("--overview goes with --from, and without a path, --only, --ranks and --baseline"), kExitUsage, json);
  }
  const Result<OpenedStore> store = OpenStore(command.store.from, command.store.run, command.store.tls, progress);
  if (!store.ok()) return FailWith(io, store.status(), kExitUsage, json);
  Result<Json> made = analysis::StoreOverview(store->server.get(), store->run, progress);
  if (!made.ok()) return FailWith(io, made.status(), ExitCodeFor(made.status().code()), json);
  (*made)["store"] = CostJson(store->server->cost());
  if (json) {
    io.out << JsonText(*made, true) << std::endl;
    return kExitOk;
  }
  PrintOverview(io.out, *made, io.out_color());
  io.out.flush();
  io.err << CostText((*made)["store"]) << std::endl;
  return kExitOk;
}

}  // namespace

std::vector<std::string> AnalysisNames() {
  std::vector<std::string> names;
  for (const analysis::View& view : analysis::Views()) names.emplace_back(view.name);
  return names;
}

int RunAnalyze(const Io& io, const AnalyzeCommand& command, bool json) {
  const auto only = ParseOnly(command.only);
  if (!only.ok()) return FailWith(io, only.status(), kExitUsage, json);
  SignalWatch signals({SIGINT, SIGTERM, SIGHUP});
  const analysis::Progress progress = [&signals] { return signals.Poll() == 0; };
  if (command.overview) return RunOverview(io, command, progress, json);
  RunReader reader(command.store, progress);
  if (const Status good = reader.Check(command.runs); !good.ok()) return FailWith(io, good, kExitUsage, json);
  // A comparison is of everything.
  const ReadHow how{false, command.baseline.empty() ? *only : std::set<std::string, std::less<>>()};
  Result<analysis::Run> run = reader.Read(command.runs, how);
  if (!run.ok()) return FailWith(io, run.status(), ExitCodeFor(run.status().code()), json);
  Json made = analysis::RunJson(*run, *only);
  if (!command.baseline.empty()) {
    Result<analysis::Run> baseline = reader.ReadBaseline(command.baseline, how);
    if (!baseline.ok()) return FailWith(io, baseline.status(), ExitCodeFor(baseline.status().code()), json);
    made["compare"] = analysis::CompareView(*run, *baseline);
    std::ranges::move(baseline->problems, std::back_inserter(run->problems));
  }
  const Json cost = reader.CostJson();
  if (!cost.is_null()) made["store"] = cost;
  if (json) {
    io.out << JsonText(made, true) << std::endl;
    return kExitOk;
  }
  PrintAnalysis(io.out, made, io.out_color());
  io.out.flush();
  Warn(io, run->problems);
  if (!cost.is_null()) io.err << CostText(cost) << std::endl;
  return kExitOk;
}

}  // namespace profd::client
