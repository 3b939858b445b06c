#include "client/commands/analyze.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "analysis/cluster/cluster_view.h"
#include "analysis/cluster/output.h"
#include "analysis/report.h"
#include "analysis/store/overview.h"
#include "analysis/views/views.h"
#include "base/text.h"
#include "client/render.h"
#include "client/signals.h"

namespace profd::client {
namespace {

constexpr size_t kMaxWarnings = 20;

Result<std::set<std::string, std::less<>>> ParseOnly(const std::string& text) {
  std::set<std::string, std::less<>> only;
  const std::vector<std::string> names = AnalysisNames();
  std::string_view rest = text;
  for (std::string_view name; NextPart(&rest, ',', &name);) {
    if (std::ranges::find(names, name) == names.end()) {
      return InvalidArgument(fmt::format("--only \"{}\": no such analysis; there are {}", name, fmt::join(names, ", ")));
    }
    only.emplace(name);
  }
  return only;
}

// As JsonText of an object with these fields, without having all ranks of the run as JSON at the same time.
void PrintJson(std::ostream& out, const analysis::Run& run, const analysis::ViewNames& only, const Json& before, const Json& behind) {
  const auto print = [&out](const Json& json, int level) {
    const std::string text = JsonText(json, true);
    const std::string indent(static_cast<size_t>(level) * 2, ' ');
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
      out.write(text.data() + begin, static_cast<std::streamsize>(end - begin));
      if (end < text.size()) out << indent;
      begin = end;
    }
  };
  const auto print_fields = [&](const Json& fields) {
    const char* comma = "";
    for (const auto& [name, value] : fields.items()) {
      out << comma << "\n  \"" << name << "\": ";
      print(value, 1);
      comma = ",";
    }
  };
  out << '{';
  print_fields(before);
  out << ",\n  \"ranks\": [";
  for (size_t i = 0; i < run.ranks.size(); ++i) {
    out << (i == 0 ? "\n    " : ",\n    ");
    print(analysis::RankJson(*run.ranks[i], only), 2);
  }
  out << "\n  ],";
  print_fields(behind);
  out << "\n}" << std::endl;
}

// All that does not go with --overview at once.
Status CheckOverview(const AnalyzeCommand& command) {
  std::vector<std::string_view> wrong;
  if (!command.runs.empty()) wrong.emplace_back("a path");
  if (!command.only.empty()) wrong.emplace_back("--only");
  if (!command.baseline.empty()) wrong.emplace_back("--baseline");
  if (command.cluster_out) wrong.emplace_back("--cluster-out");
  if (command.force) wrong.emplace_back("--force");
  if (!command.store.ranks.empty()) wrong.emplace_back("--ranks");
  std::string text;
  if (command.store.from.empty()) text = "--overview needs --from, the address of a run in a database";
  if (!wrong.empty()) text += fmt::format("{}it does not go with {}", text.empty() ? "--overview: " : "; ", fmt::join(wrong, ", "));
  return text.empty() ? Status() : InvalidArgument(text);
}

int RunOverview(const Io& io, const AnalyzeCommand& command, const analysis::Progress& progress, bool json) {
  if (const Status good = CheckOverview(command); !good.ok()) return FailWith(io, good, kExitUsage, json);
  const Result<OpenedStore> store = OpenStore(command.store.from, command.store.run, command.store.tls, progress);
  if (!store.ok()) return FailWith(io, store.status(), kExitUsage, json);
  Result<Json> made = analysis::StoreOverview(store->server.get(), store->run, progress);
  if (!made.ok()) return FailWith(io, made.status(), json);
  (*made)["store"] = CostJson(store->server->cost());
  if (json) {
    io.out << JsonText(*made, true) << std::endl;
    return kExitOk;
  }
  PrintOverview(io, *made);
  io.out.flush();
  PrintProblems(io, (*made)["problems"]);
  io.err << CostText((*made)["store"]) << std::endl;
  return kExitOk;
}

}  // namespace

std::vector<std::string> AnalysisNames() {
  std::vector<std::string> names;
  for (const analysis::View& view : analysis::Views()) names.emplace_back(view.name);
  names.emplace_back(analysis::kClusterView);
  return names;
}

void PrintProblems(const Io& io, const Json& problems) {
  size_t shown = 0;
  for (const Json& problem : problems) {
    if (shown++ == kMaxWarnings) {
      io.err << fmt::format("profctl: warning: and {} more; all of them with --json", problems.size() - kMaxWarnings) << std::endl;
      return;
    }
    io.err << Paint("profctl: warning: ", Tone::kWarning, io.err_color()) << Printable(problem["where"].get<std::string>() + ": " + problem["what"].get<std::string>())
           << std::endl;
  }
}

int RunAnalyze(const Io& io, const AnalyzeCommand& command, bool json) {
  const auto only = ParseOnly(command.only);
  if (!only.ok()) return FailWith(io, only.status(), kExitUsage, json);
  SignalWatch signals;
  const analysis::Progress progress = signals.go_on();
  if (command.overview) return RunOverview(io, command, progress, json);
  RunReader reader(command.store, progress);
  if (const Status good = reader.Check(command.runs); !good.ok()) return FailWith(io, good, kExitUsage, json);
  // A comparison is of everything.
  const bool all = only->empty() || !command.baseline.empty();
  const bool beside = command.cluster_out || only->empty() || only->contains(analysis::kClusterView);
  const ReadHow how{false, all ? std::set<std::string, std::less<>>() : *only, beside};
  Result<analysis::Run> run = reader.Read(command.runs, how);
  if (!run.ok()) return FailWith(io, run.status(), json);
  const analysis::Cluster cluster(*run);
  std::string written;
  if (command.cluster_out) {
    Result<std::string> out = analysis::WriteClusterOutput(cluster, *command.cluster_out, command.force);
    if (!out.ok()) return FailWith(io, out.status(), json);
    written = std::move(*out);
  }
  Json behind;
  if (only->empty() || only->contains(analysis::kClusterView)) behind["cluster"] = analysis::ClusterView(cluster);
  if (!written.empty()) behind["cluster_out"] = written;
  const auto baseline = reader.ReadBaseline(command.baseline, how);
  if (!baseline.ok()) return FailWith(io, baseline.status(), json);
  if (const Status released = signals.Release(); !released.ok()) return FailWith(io, released, json);
  if (*baseline) behind["compare"] = analysis::CompareView(*run, **baseline);
  behind["problems"] = analysis::ProblemsJson(*run, baseline->get());
  const Json cost = reader.CostJson();
  if (!cost.is_null()) behind["store"] = cost;
  const Json head = {{"run", {{"name", run->name}, {"inputs", run->inputs}}}};
  if (json) {
    PrintJson(io.out, *run, *only, head, behind);
    return kExitOk;
  }
  const bool many = run->ranks.size() > kMostRanksInFull;
  const analysis::ViewNames brief = {"overall"};
  Json made = analysis::RunJson(*run, many ? brief : *only);
  made.update(behind);
  PrintAnalysis(io, made);
  if (only->empty() && analysis::LacksOperators(*run)) io.out << '\n' << analysis::kLacksOperators.In(analysis::Language::kEnglish) << '\n';
  if (!written.empty()) io.out << "\nwritten: " << Printable(written) << '\n';
  io.out.flush();
  PrintProblems(io, behind["problems"]);
  if (!cost.is_null()) io.err << CostText(cost) << std::endl;
  return kExitOk;
}

}  // namespace profd::client
