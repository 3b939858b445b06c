#include "client/commands/analyze.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

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
  Result<analysis::Run> run = analysis::LoadRun(command.runs, progress, analysis::HostCalls::kLeftOut);
  if (!run.ok()) return FailWith(io, run.status(), ExitCodeFor(run.status().code()), json);
  Json made = analysis::RunJson(*run, *only);
  if (!command.baseline.empty()) {
    Result<analysis::Run> baseline = analysis::LoadRun({command.baseline}, progress, analysis::HostCalls::kLeftOut);
    if (!baseline.ok()) return FailWith(io, baseline.status(), ExitCodeFor(baseline.status().code()), json);
    made["compare"] = analysis::CompareView(*run, *baseline);
    std::ranges::move(baseline->problems, std::back_inserter(run->problems));
  }
  if (json) {
    io.out << JsonText(made, true) << std::endl;
    return kExitOk;
  }
  PrintAnalysis(io.out, made, io.out_color());
  io.out.flush();
  Warn(io, run->problems);
  return kExitOk;
}

}  // namespace profd::client
