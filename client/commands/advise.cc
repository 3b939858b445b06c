#include "client/commands/advise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "analysis/checks/advise.h"
#include "analysis/report.h"
#include "client/commands/report.h"
#include "client/render.h"
#include "client/signals.h"

namespace profd::client {
namespace {

constexpr std::array<std::string_view, 3> kPriorities = {"high", "medium", "low"};

int PrintList(const Io& io, bool json) {
  if (json) {
    Json checks = Json::array();
    for (const analysis::Check& check : analysis::Checks()) {
      Json limits = Json::array();
      for (const analysis::Limit& limit : analysis::DefaultLimits()) {
        if (limit.check == check.id) limits.push_back({{"name", limit.name}, {"value", limit.value}, {"unit", limit.unit}, {"what", limit.what}});
      }
      checks.push_back({{"check", check.id}, {"dimension", analysis::DimensionWord(check.dimension)}, {"what", check.what}, {"needs", check.needs},
                        {"limits", std::move(limits)}});
    }
    io.out << JsonText(Json{{"checks", std::move(checks)}}, true) << std::endl;
    return kExitOk;
  }
  Table checks({"CHECK", "DIMENSION", "LOOKS FOR", "NEEDS"});
  for (const analysis::Check& check : analysis::Checks()) {
    checks.AddRow({std::string(check.id), std::string(analysis::DimensionWord(check.dimension)), std::string(check.what), std::string(check.needs)});
  }
  checks.Print(io.out, io.out_color());
  io.out << '\n';
  Table limits({"LIMIT", ">VALUE", "UNIT", "OF"});
  for (const analysis::Limit& limit : analysis::DefaultLimits()) {
    limits.AddRow({fmt::format("{}.{}", limit.check, limit.name), fmt::format("{}", limit.value), std::string(limit.unit), std::string(limit.what)});
  }
  limits.Print(io.out, io.out_color());
  io.out.flush();
  return kExitOk;
}

std::string Cost(const Json& finding) {
  return finding["cost_ms"].is_null() ? "-" : fmt::format("{:.3f}", finding["cost_ms"].get<double>());
}

void PrintFindings(const Io& io, const Json& findings) {
  if (findings.empty()) {
    io.out << "nothing was found\n";
    return;
  }
  Table table({"PRIORITY", "CHECK", ">RANK", ">MS PER STEP", "TITLE"});
  for (const Json& each : findings) {
    table.AddRow({each["priority"].get<std::string>(), each["check"].get<std::string>(), each["rank"].is_null() ? "-" : each["rank"].dump(), Cost(each),
                  each["title"].get<std::string>()});
  }
  table.Print(io.out, io.out_color());
  for (const Json& each : findings) {
    io.out << fmt::format("\n{} ({})\n  {}\n", each["title"].get<std::string>(), each["check"].get<std::string>(), Printable(each["evidence"].get<std::string>()));
    for (const Json& advice : each["advice"]) io.out << "  - " << Printable(advice.get<std::string>()) << '\n';
  }
}

Status WriteReport(const analysis::Run& run, const analysis::Run* baseline_or_null, const Json& advice, const AdviseCommand& command, const Clock& clock) {
  std::error_code error;
  std::filesystem::create_directories(*command.out, error);
  if (error) return Status::FromErrno(error.value(), *command.out);
  if (Status written = WriteWhole(*command.out + "/advice.json", JsonText(advice, true) + "\n", command.force); !written.ok()) return written;
  const analysis::Json data = analysis::PageData(run, baseline_or_null, advice["findings"], analysis::kReportSlices, clock.WallNs() / kNsPerSecond);
  const Result<std::string> packed = analysis::PackedJson(data);
  if (!packed.ok()) return packed.status();
  return WriteWhole(*command.out + "/advice.html", analysis::PageHtml(*packed), command.force);
}

// Whether one of this priority or a higher one was found.
bool Fails(const Json& findings, const std::string& priority) {
  const auto rank = [](std::string_view word) { return std::ranges::find(kPriorities, word) - kPriorities.begin(); };
  return std::ranges::any_of(findings, [&](const Json& each) { return rank(each["priority"].get<std::string>()) <= rank(priority) && each["priority"] != "info"; });
}

}  // namespace

int RunAdvise(const Io& io, const Clock& clock, const AdviseCommand& command, bool json) {
  const auto fail = [&](const Status& status, int code) { return FailWith(io, status, code, json); };
  if (command.list) return PrintList(io, json);
  if (command.runs.empty() && command.store.from.empty()) return fail(InvalidArgument("which run? profctl advise RUN, or --list"), kExitUsage);
  if (!command.fail_on.empty() && std::ranges::find(kPriorities, command.fail_on) == kPriorities.end()) {
    return fail(InvalidArgument(fmt::format("--fail-on \"{}\": high, medium or low", command.fail_on)), kExitUsage);
  }
  analysis::Limits limits;
  if (!command.limits.empty()) {
    if (Status read = limits.Read(command.limits); !read.ok()) return fail(read, ExitCodeFor(read.code()));
  }
  SignalWatch signals({SIGINT, SIGTERM, SIGHUP});
  const analysis::Progress progress = [&signals] { return signals.Poll() == 0; };
  RunReader reader(command.store, progress);
  if (const Status good = reader.Check(command.runs); !good.ok()) return fail(good, kExitUsage);
  const ReadHow how{true};
  Result<analysis::Run> run = reader.Read(command.runs, how);
  if (!run.ok()) return fail(run.status(), ExitCodeFor(run.status().code()));
  std::optional<analysis::Run> baseline;
  if (!command.baseline.empty()) {
    Result<analysis::Run> other = reader.ReadBaseline(command.baseline, how);
    if (!other.ok()) return fail(other.status(), ExitCodeFor(other.status().code()));
    baseline = std::move(*other);
  }
  Json advice = {{"run", {{"name", run->name}, {"inputs", run->inputs}, {"ranks", run->ranks.size()}}}};
  const analysis::Run* const baseline_or_null = baseline ? &*baseline : nullptr;
  advice["findings"] = analysis::Advise(*run, baseline_or_null, limits);
  advice["problems"] = Json::array();
  for (const analysis::Problem& problem : run->problems) advice["problems"].push_back({{"where", problem.where}, {"what", problem.what}});
  if (command.out) {
    if (Status written = WriteReport(*run, baseline_or_null, advice, command, clock); !written.ok()) return fail(written, ExitCodeFor(written.code()));
  }
  const Json cost = reader.CostJson();
  if (!cost.is_null()) advice["store"] = cost;
  if (json) {
    io.out << JsonText(advice, true) << std::endl;
  } else {
    PrintFindings(io, advice["findings"]);
    if (command.out) io.out << "\nwritten: " << Printable(*command.out) << "/advice.html and advice.json\n";
    io.out.flush();
    if (!run->problems.empty()) io.err << fmt::format("profctl: warning: {} parts of the data could not be read; --json lists them", run->problems.size()) << std::endl;
    if (!cost.is_null()) io.err << CostText(cost) << std::endl;
  }
  return !command.fail_on.empty() && Fails(advice["findings"], command.fail_on) ? kExitDegraded : kExitOk;
}

}  // namespace profd::client
