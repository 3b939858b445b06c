#include "client/commands/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "analysis/store/load.h"
#include "analysis/views/views.h"
#include "client/clickhouse/run_source.h"
#include "client/cli_message.h"
#include "client/commands/analyze.h"
#include "client/render.h"
#include "client/signals.h"

namespace profd::client {
namespace {

struct Loaded {
  std::vector<analysis::RankLoad> ranks;
  std::vector<analysis::Problem> problems;
  std::vector<uint64_t> skipped;  // timestamps of sources
  std::string note;    // of servers that were away
  double seconds = 0;

  bool IsDamaged() const { return std::ranges::any_of(problems, analysis::IsDamage); }
};

Json ToJson(const Loaded& loaded, const std::string& run) {
  Json json = {{"ok", true}, {"damaged", loaded.IsDamaged()}, {"run", run}, {"seconds", loaded.seconds}, {"skipped_sources", loaded.skipped.size()}};
  if (!loaded.note.empty()) json["note"] = loaded.note;
  json["ranks"] = Json::array();
  for (const analysis::RankLoad& rank : loaded.ranks) json["ranks"].push_back({{"rank", rank.who}, {"rows", rank.rows}, {"bytes", rank.bytes}});
  json["problems"] = analysis::ProblemsJson(loaded.problems);
  return json;
}

void Print(const Io& io, const Loaded& loaded, const std::string& run) {
  Table table({"RANK", ">ROWS", ">SIZE"});
  uint64_t rows = 0;
  uint64_t bytes = 0;
  for (const analysis::RankLoad& rank : loaded.ranks) {
    table.AddRow({Printable(rank.who), std::to_string(rank.rows), FormatBytes(rank.bytes)});
    rows += rank.rows;
    bytes += rank.bytes;
  }
  if (!table.empty()) table.Print(io.out, io.out_color());
  io.out << fmt::format("{}: {} of {}, {} in {:.1f} s", Printable(run), CountText(rows, "row"), CountText(loaded.ranks.size(), "rank"),
                        FormatBytes(bytes), loaded.seconds);
  if (!loaded.skipped.empty()) io.out << fmt::format("; {} loaded before and not changed since", loaded.skipped.size());
  io.out << std::endl;
  PrintProblems(io, analysis::ProblemsJson(loaded.problems));
}

Status LoadAll(analysis::StoreLoader* loader, const ExportCommand& command, const analysis::Progress& go_on, Loaded* loaded) {
  RETURN_IF_ERROR(loader->Prepare());
  analysis::SourceCalls calls;
  calls.wants = [&](uint64_t timestamp) {
    const bool skip = command.resume && loader->IsLoaded(timestamp);
    if (skip) loaded->skipped.push_back(timestamp);
    return !skip;
  };
  calls.take = [&](const analysis::Run& source, uint64_t timestamp) {
    loaded->problems.insert(loaded->problems.end(), source.problems.begin(), source.problems.end());
    return loader->Load(source, timestamp, &loaded->ranks);
  };
  Status done = WithFetchHint(analysis::LoadBySource(command.dumps, go_on, calls), command.dumps);
  if (done.code() == StatusCode::kCancelled) return done;
  if (done.ok() && !loaded->skipped.empty()) {
    Result<std::vector<analysis::Problem>> stored = loader->ProblemsOf({loaded->skipped.begin(), loaded->skipped.end()});
    if (stored.ok()) std::ranges::move(*stored, std::back_inserter(loaded->problems));
    done = stored.status();
  }
  // Also of those that were loaded before an error.
  const Status cleaned = loader->CleanUp();
  return done.ok() ? cleaned : done;
}

}  // namespace

std::optional<std::string> UnfitForStore(const ExportCommand& command) {
  const std::pair<const char*, bool> given[] = {
      {"--format", command.format.has_value()}, {"--out", command.out.has_value()},     {"--devices", command.devices.has_value()},
      {"--channels", command.channels.has_value()}, {"--from", command.from.has_value()}, {"--step", command.step.has_value()},
      {"--rank", command.rank.has_value()},     {"--top", command.top.has_value()},     {"--threads", command.threads.has_value()},
      {"--clock", command.clock.has_value()},   {"--names", command.names.has_value()}, {"--compat", command.compat.has_value()},
      {"--gzip", command.gzip},                 {"--force", command.force},             {"--open", command.open},
  };
  for (const auto& [name, is_given] : given) {
    if (is_given) return fmt::format("{} is for files, not for --to with a database", name);
  }
  return std::nullopt;
}

bool IsExportToStore(const ExportCommand& command) { return command.to && IsClickHouseUrl(*command.to); }

int RunExportToStore(const Io& io, const Clock& clock, const ExportCommand& command, bool json) {
  if (command.dumps.empty()) return FailWith(io, InvalidArgument("name the dumps or runs to load"), kExitUsage, json);
  if (const auto unfit = UnfitForStore(command)) return FailWith(io, InvalidArgument(*unfit), kExitUsage, json);
  if (command.cluster && (command.cluster->empty() || !IsClusterName(*command.cluster))) return FailWith(io, InvalidArgument("--cluster: not a name"), kExitUsage, json);
  SignalWatch signals;
  const analysis::Progress go_on = signals.go_on();
  std::string run = command.run_name.value_or("");
  if (const auto url = ParseClickHouseUrl(*command.to); run.empty() && url.ok() && url->run.empty()) run = DirectoryName(command.dumps.front());
  Result<OpenedStore> store = OpenStore(*command.to, run, command.tls, go_on);
  if (!store.ok()) return FailWith(io, store.status(), kExitUsage, json);
  run = store->run;
  const int64_t begin_ns = clock.SteadyNs();
  Loaded loaded;
  analysis::StoreLoader loader(store->server.get(), {run, command.cluster.value_or(""), &clock, go_on});
  const Status done = LoadAll(&loader, command, go_on, &loaded);
  loaded.note = loader.Note();
  if (!loaded.note.empty() && !json) io.err << "profctl: note: " << loaded.note << std::endl;
  loaded.seconds = static_cast<double>(clock.SteadyNs() - begin_ns) / static_cast<double>(kNsPerSecond);
  if (!done.ok()) {
    const bool some = !loaded.ranks.empty() || signals.caught() != 0;
    if (!loaded.ranks.empty()) io.err << fmt::format("profctl: {} loaded before this; --resume continues with the others", CountText(loaded.ranks.size(), "rank was", "ranks were")) << std::endl;
    return FailWith(io, done, some || done.code() == StatusCode::kAborted ? kExitPartial : ExitCodeFor(done.code()), json);
  }
  if (json) {
    io.out << JsonText(ToJson(loaded, run), true) << std::endl;
  } else {
    Print(io, loaded, run);
  }
  return !loaded.IsDamaged() || command.allow_damaged ? kExitOk : kExitPartial;
}

}  // namespace profd::client
