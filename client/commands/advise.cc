#include "client/commands/advise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "analysis/checks/advise.h"
#include "analysis/report.h"
#include "analysis/report_sarif.h"
#include "analysis/report_xlsx.h"
#include "analysis/views/views.h"
#include "base/text.h"
#include "client/commands/analyze.h"
#include "client/commands/report.h"
#include "client/render.h"
#include "client/signals.h"

#ifndef PROFD_VERSION
#error "the build defines PROFD_VERSION"
#endif

namespace profd::client {
namespace {

constexpr std::array<std::string_view, 3> kPriorities = {"high", "medium", "low"};
constexpr std::array<std::string_view, 3> kFormats = {"text", "json", "sarif"};
constexpr int kAdviceVersion = 1;  // of docs/advice.schema.json

Json ListJson(analysis::Language language, const analysis::Limits& limits) {
  Json checks = Json::array();
  for (const analysis::Check& check : analysis::Checks()) {
    checks.push_back({{"check", check.id}, {"dimension", analysis::DimensionWord(check.dimension)}, {"what", check.what.In(language)},
                      {"needs", check.needs.In(language)}, {"limits", Json::array()}});
  }
  Json others = Json::array();  // limits of priorities and of live checks
  for (const analysis::Limit& limit : analysis::DefaultLimits()) {
    Json json = {{"name", limit.name}, {"value", limits.At(limit.check, limit.name)}, {"unit", limit.unit}, {"what", limit.what}};
    const auto check = std::ranges::find_if(checks, [&limit](const Json& each) { return each["check"] == limit.check; });
    if (check == checks.end()) json["check"] = limit.check;
    (check == checks.end() ? others : (*check)["limits"]).push_back(std::move(json));
  }
  return {{"checks", std::move(checks)}, {"limits", std::move(others)}};
}

int PrintList(const Io& io, analysis::Language language, const analysis::Limits& values, bool json) {
  if (json) {
    io.out << JsonText(ListJson(language, values), true) << std::endl;
    return kExitOk;
  }
  Table checks({"CHECK", "DIMENSION", "LOOKS FOR", "NEEDS"});
  for (const analysis::Check& check : analysis::Checks()) {
    checks.AddRow({std::string(check.id), std::string(analysis::DimensionWord(check.dimension)), std::string(check.what.In(language)), std::string(check.needs.In(language))});
  }
  checks.Print(io.out, io.out_color());
  io.out << '\n';
  Table limits({"LIMIT", ">VALUE", "UNIT", "OF"});
  for (const analysis::Limit& limit : analysis::DefaultLimits()) {
    limits.AddRow({fmt::format("{}.{}", limit.check, limit.name), fmt::format("{}", values.At(limit.check, limit.name)), std::string(limit.unit), std::string(limit.what)});
  }
  limits.Print(io.out, io.out_color());
  io.out.flush();
  return kExitOk;
}

std::string Cost(const Json& finding) {
  return finding["cost_ms"].is_null() ? "-" : fmt::format("{:.3f}", finding["cost_ms"].get<double>());
}

// Lines to paste, set off from the text around them.
std::string Indented(std::string_view lines, size_t columns) {
  std::string text;
  for (std::string_view line; NextLine(&lines, &line);) text += fmt::format("{:{}}{}\n", "", columns, line);
  return text;
}

// Shapes and call stacks are as long as they like; --json has all of them.
std::string CellText(const Json& cell) {
  constexpr size_t kMostColumns = 80;
  if (cell.is_null()) return "-";
  if (cell.is_number_float()) return fmt::format("{:.3f}", cell.get<double>());
  std::string text = cell.is_string() ? cell.get<std::string>() : cell.dump();
  std::erase(text, '\r');
  std::ranges::replace(text, '\n', ' ');
  text = Printable(text);
  return CutAtEnd(text, kMostColumns);
}

void PrintFindingTable(const Io& io, const Json& finding) {
  constexpr size_t kMostRows = 10;
  const Json& columns = finding["table"]["columns"];
  const Json& rows = finding["table"]["rows"];
  if (rows.empty()) return;
  const size_t shown = std::min(rows.size(), kMostRows);
  std::vector<std::string> headings;
  for (size_t i = 0; i < columns.size(); ++i) {
    const bool is_number = std::ranges::all_of(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(shown), [i](const Json& row) {
      return i < row.size() && (row[i].is_number() || row[i].is_null());
    });
    headings.push_back((is_number ? ">" : "") + columns[i].get<std::string>());
  }
  Table table(std::move(headings));
  for (size_t i = 0; i < shown; ++i) {
    std::vector<Cell> cells;
    for (const Json& cell : rows[i]) cells.emplace_back(CellText(cell));
    table.AddRow(std::move(cells));
  }
  table.PrintInParts(io.out, io.out_color(), "  ", io.out_columns);
  if (shown < rows.size()) io.out << fmt::format("  … {} more; all with --json or -o DIR\n", rows.size() - shown);
}

// `per_step`: else costs are of all that was recorded.
void PrintFindings(const Io& io, const Json& findings, analysis::Language language, bool per_step) {
  if (findings.empty()) {
    io.out << analysis::Text("nothing was found", "未发现问题").In(language) << '\n';
    return;
  }
  Table table({"PRIORITY", "CHECK", ">RANK", per_step ? ">MS PER STEP" : ">MS IN ALL", "TITLE"});
  for (const Json& each : findings) {
    table.AddRow({each["priority"].get<std::string>(), each["check"].get<std::string>(), each["rank"].is_null() ? "-" : each["rank"].dump(), Cost(each),
                  each["title"].get<std::string>()});
  }
  table.Print(io.out, io.out_color(), "", io.out_columns);
  for (const Json& each : findings) {
    io.out << fmt::format("\n{} ({})\n  {}\n", each["title"].get<std::string>(), each["check"].get<std::string>(), Printable(each["evidence"].get<std::string>()));
    for (const Json& merged : each["merged"]) io.out << fmt::format("  {} ({}): {}\n", merged["title"].get<std::string>(), merged["check"].get<std::string>(), Printable(merged["evidence"].get<std::string>()));
    for (const Json& advice : each["advice"]) io.out << "  - " << Printable(advice.get<std::string>()) << '\n';
    for (const Json& code : each["code"]) io.out << Indented(PrintableLines(code.get<std::string>()), 6);
    for (const Json& place : each["places"]) io.out << fmt::format("  {}:{}\n", Printable(place["file"].get<std::string>()), place["line"].get<int64_t>());
    PrintFindingTable(io, each);
  }
}

// What is written and printed: the findings, and what they are of.
struct Advice {
  const analysis::Run& run;
  const analysis::Run* baseline_or_null;
  analysis::Language language;
  Json json;
};

Status WriteReport(const Advice& advice, const AdviseCommand& command, const Clock& clock) {
  std::error_code error;
  std::filesystem::create_directories(*command.out, error);
  if (error) return Status::FromErrno(error.value(), *command.out);
  const Json& findings = advice.json["findings"];
  const auto write = [&command](const char* name, const std::string& text) { return WriteWhole(*command.out + name, text, command.force); };
  if (Status written = write("/advice.json", JsonText(advice.json, true) + "\n"); !written.ok()) return written;
  if (Status written = write("/advice.sarif", JsonText(analysis::Sarif(findings, PROFD_VERSION, advice.language), true) + "\n"); !written.ok()) return written;
  Status written = WriteBy(*command.out + "/advice.xlsx", command.force, [&](const std::string& path) { return analysis::WriteXlsx(findings, advice.language, path); });
  if (!written.ok()) return written;
  analysis::Json data =
      analysis::PageData(advice.run, advice.baseline_or_null, findings, analysis::kReportSlices, clock.WallNs() / kNsPerSecond, advice.language);
  data["first_page"] = "advice";
  const Result<std::string> packed = analysis::PackedJson(data);
  return packed.ok() ? write("/advice.html", analysis::PageHtml(*packed)) : packed.status();
}

void Print(const Io& io, const Advice& advice, const AdviseCommand& command, bool json) {
  if (command.format == "sarif") {
    io.out << JsonText(analysis::Sarif(advice.json["findings"], PROFD_VERSION, advice.language), true) << std::endl;
    return;
  }
  if (json) {
    io.out << JsonText(advice.json, true) << std::endl;
    return;
  }
  PrintFindings(io, advice.json["findings"], advice.language, analysis::HasSteps(advice.run));
  if (analysis::LacksOperators(advice.run)) io.out << '\n' << analysis::kLacksOperators.In(advice.language) << '\n';
  if (command.out) io.out << "\nwritten: " << Printable(*command.out) << "/advice.html, advice.xlsx, advice.json and advice.sarif\n";
  io.out.flush();
  PrintProblems(io, advice.json["problems"]);
}

// Whether one of this priority or a higher one was found.
bool Fails(const Json& findings, const std::string& priority) {
  const auto rank = [](std::string_view word) { return std::ranges::find(kPriorities, word) - kPriorities.begin(); };
  return std::ranges::any_of(findings, [&](const Json& each) { return rank(each["priority"].get<std::string>()) <= rank(priority) && each["priority"] != "info"; });
}

}  // namespace

int RunAdvise(const Io& io, const Clock& clock, const AdviseCommand& command, bool as_json) {
  const bool json = as_json || command.format == "json";
  const auto fail = [&](const Status& status) { return FailWith(io, status, json); };
  const auto misused = [&](const Status& status) { return FailWith(io, status, kExitUsage, json); };
  const auto language = ParseLanguage(command.language);
  if (!language.ok()) return misused(language.status());
  analysis::Limits limits;
  if (!command.limits.empty()) {
    if (Status read = analysis::ReadLimits(command.limits, &limits); !read.ok()) return fail(read);
  }
  if (command.list) return PrintList(io, *language, limits, json);
  if (command.runs.empty() && command.store.from.empty()) return misused(InvalidArgument("which run? profctl advise RUN, or --list"));
  if (!command.fail_on.empty() && std::ranges::find(kPriorities, command.fail_on) == kPriorities.end()) {
    return misused(InvalidArgument(fmt::format("--fail-on \"{}\": high, medium or low", command.fail_on)));
  }
  if (std::ranges::find(kFormats, command.format) == kFormats.end()) {
    return misused(InvalidArgument(fmt::format("--format \"{}\": text, json or sarif", command.format)));
  }
  SignalWatch signals;
  RunReader reader(command.store, signals.go_on());
  if (const Status good = reader.Check(command.runs); !good.ok()) return misused(good);
  const ReadHow how{true};
  Result<analysis::Run> run = reader.Read(command.runs, how);
  if (!run.ok()) return fail(run.status());
  const auto baseline = reader.ReadBaseline(command.baseline, how);
  if (!baseline.ok()) return fail(baseline.status());
  if (const Status released = signals.Release(); !released.ok()) return fail(released);
  Advice advice{*run, baseline->get(), *language, {{"version", kAdviceVersion}, {"language", command.language}}};
  advice.json["run"] = {{"name", run->name}, {"inputs", run->inputs}, {"ranks", run->ranks.size()}};
  advice.json["findings"] = analysis::Advise(*run, baseline->get(), limits, *language);
  advice.json["problems"] = analysis::ProblemsJson(run->problems);
  if (command.out) {
    if (Status written = WriteReport(advice, command, clock); !written.ok()) return fail(written);
  }
  const Json cost = reader.CostJson();
  if (!cost.is_null()) advice.json["store"] = cost;
  Print(io, advice, command, json);
  if (!json && !cost.is_null()) io.err << CostText(cost) << std::endl;
  return !command.fail_on.empty() && Fails(advice.json["findings"], command.fail_on) ? kExitDegraded : kExitOk;
}

}  // namespace profd::client
