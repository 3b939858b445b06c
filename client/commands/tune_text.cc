#include "client/commands/tune_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "client/render.h"

namespace profd::client {
namespace {

Tone ToneOf(TuneVerdict verdict) {
  switch (verdict) {
    case TuneVerdict::kOk: return Tone::kGood;
    case TuneVerdict::kUnknown: return Tone::kFaint;
    case TuneVerdict::kAdvice: return Tone::kWarning;
    case TuneVerdict::kImpossible: return Tone::kBad;
  }
  return Tone::kPlain;
}

std::string Fixed(const Json& value, const char* format) {
  return value.is_number() ? fmt::format(fmt::runtime(format), value.get<double>()) : "-";
}

// As the tool writes those of models and subgraphs: cut to two decimals, where those of operators are rounded.
std::string CutPercent(const Json& value) {
  constexpr double kRounded = 1e-6;
  if (!value.is_number()) return "-";
  const double hundredths = value.get<double>() * 100;  // below 0 where tuning made it slower
  return fmt::format("{:.2f}", std::trunc(hundredths + std::copysign(kRounded, hundredths)) / 100);
}

std::string Count(const Json& value) { return value.is_number() ? value.dump() : "-"; }
std::string Count(const Json& value, std::string_view what) { return CountText(value.get<uint64_t>(), what); }

std::string Types(const Json& types) {
  std::string text;
  for (const Json& type : types) text += (text.empty() ? "" : ", ") + type.get<std::string>();
  return text;
}

void PrintOperators(std::ostream& out, const Json& operators, bool color) {
  if (operators.empty()) return;
  Table table({"OPERATOR", "TYPE", "MODE", ">BEFORE us", ">AFTER us", ">GAIN %", "BANK"});
  for (const Json& row : operators) {
    table.AddRow({row["name"].get<std::string>(), Types(row["types"]), row["mode"].get<std::string>(), Fixed(row["before_us"], "{:.3f}"),
                  Fixed(row["after_us"], "{:.3f}"), Fixed(row["gain_percent"], "{:.2f}"), row["update"].get<std::string>()});
  }
  table.Print(out, color, "  ");
}

void PrintSubgraphs(std::ostream& out, const Json& task, bool color) {
  if (task["model"].is_object()) {
    const Json& model = task["model"];
    out << fmt::format("  model: {} ms before, {} ms after, {} %\n", Fixed(model["before_ms"], "{:.6f}"), Fixed(model["after_ms"], "{:.6f}"),
                       CutPercent(model["gain_percent"]));
  }
  if (task["subgraphs"].empty()) return;
  Table table({"SUBGRAPH", ">BEFORE ms", ">AFTER ms", ">GAIN %", "BANK"});
  for (const Json& row : task["subgraphs"]) {
    table.AddRow({row["key"].get<std::string>(), Fixed(row["before_ms"], "{:.6f}"), Fixed(row["after_ms"], "{:.6f}"), CutPercent(row["gain_percent"]),
                  row["update"].get<std::string>()});
  }
  table.Print(out, color, "  ");
}

void PrintTask(std::ostream& out, const Json& task, bool color) {
  const std::string state = task["state"];
  const Tone tone = state == "failed" ? Tone::kBad : state == "incomplete" ? Tone::kWarning : Tone::kPlain;
  const std::string name = task["name"];
  out << fmt::format("\n{}: {}{}\n", Printable(name.empty() ? task["key"].get<std::string>() : name), Paint(state, tone, color),
                     task["seconds"].is_number() ? fmt::format(", {} s", Fixed(task["seconds"], "{:.0f}")) : ", its end was not written");
  PrintOperators(out, task["operators"], color);
  PrintSubgraphs(out, task, color);
  for (const Json& each : task["failed_operators"]) out << "  failed: " << Printable(each.get<std::string>()) << '\n';
  const Json& sum = task["summary"];
  if (!sum.is_object()) return;
  out << fmt::format("  {} tuned: {} added, {} in the bank ({} unchanged, {} updated), {} without gain\n", Count(sum["total"]), Count(sum["add"]), Count(sum["hit"]),
                     Count(sum["reserved"]), Count(sum["update"]), Count(sum["unsatisfied"]));
}

void PrintProblems(std::ostream& out, const Json& problems) {
  for (const Json& each : problems) {
    const std::string where = each["where"];
    out << "  note: " << Printable((where.empty() ? "" : where + ": ") + each["what"].get<std::string>()) << '\n';
  }
}

}  // namespace

void PrintConditions(std::ostream& out, const std::vector<TuneCondition>& conditions, bool color) {
  Table table({"CONDITION", "VERDICT", "FIGURE"});
  for (const TuneCondition& each : conditions) {
    table.AddRow({std::string(each.name), {std::string(WordOf(each.verdict)), ToneOf(each.verdict)}, each.figure});
  }
  table.Print(out, color);
  for (const TuneCondition& each : conditions) {
    if (each.verdict == TuneVerdict::kOk || each.advice.empty()) continue;
    out << fmt::format("{}: {}; {}\n", each.name, each.what, Printable(each.advice));
  }
  out.flush();
}

void PrintTuning(std::ostream& out, const Json& tuning, bool color) {
  for (const Json& file : tuning["files"]) {
    out << Printable(file["path"].get<std::string>()) << (file["complete"].get<bool>() ? "" : ": incomplete") << '\n';
    for (const Json& task : file["tasks"]) PrintTask(out, task, color);
    PrintProblems(out, file["problems"]);
    if (const auto left = file["left_out"].get<uint64_t>(); left > 0) out << fmt::format("  note: {} more are left out\n", left);
    out << '\n';
  }
  PrintProblems(out, tuning["problems"]);
  const Json& totals = tuning["totals"];
  out << fmt::format("{}: {} and {} with a new strategy, {} failed, {} incomplete\n", Count(totals["tasks"], "task"), Count(totals["operators"], "operator"),
                     Count(totals["subgraphs"], "subgraph"), Count(totals["failed_operators"], "operator"), Count(totals["incomplete_tasks"], "task"));
  out.flush();
}

void PrintVerified(std::ostream& out, const Json& verified, bool color) {
  const Json& step = verified["step"];
  out << fmt::format("step: {} ms before, {} ms after, {} % gained (medians of {} and {} steps)\n", Fixed(step["before_ms"], "{:.3f}"), Fixed(step["after_ms"], "{:.3f}"),
                     Fixed(step["gain_percent"], "{:.2f}"), Count(step["steps_before"]), Count(step["steps_after"]));
  if (verified["promised_model"].is_object()) out << fmt::format("promised for the model: {} %\n", CutPercent(verified["promised_model"]["gain_percent"]));
  if (verified["operators"].empty()) {
    out << "no operators in the results\n";
  } else {
    Table table({"OPERATOR", "TYPE", ">PROMISED %", ">BEFORE us", ">AFTER us", ">GAIN %", "FOUND BY", "VERDICT"});
    for (const Json& row : verified["operators"]) {
      std::string verdict = row["verdict"];
      const Tone tone = verdict == "seen" ? Tone::kGood : verdict == "slower" ? Tone::kBad : verdict == "not_seen" ? Tone::kWarning : Tone::kPlain;
      for (char& c : verdict) c = c == '_' ? ' ' : c;
      table.AddRow({row["name"].get<std::string>(), Types(row["types"]), Fixed(row["promised_percent"], "{:.2f}"), Fixed(row["before_us"], "{:.3f}"),
                    Fixed(row["after_us"], "{:.3f}"), Fixed(row["gain_percent"], "{:.2f}"), row["found_by"].is_string() ? row["found_by"].get<std::string>() : "-",
                    {verdict, tone}});
    }
    table.Print(out, color);
  }
  out.flush();
}

namespace {

// As a word of a shell.
std::string ShellWord(const std::string& text) {
  if (text.find_first_of(" \t\n'\"\\$`&|;<>()*?[]#~!{}") == std::string::npos) return text;
  std::string quoted = "'";
  for (const char letter : text) quoted += letter == '\'' ? "'\\''" : std::string(1, letter);
  return quoted + "'";
}

}  // namespace

std::vector<std::string> RestoreSteps(bool subgraph, const std::string& bank) {
  std::vector<std::string> steps = {"restore the training's own code and steps, and unset AOE_MODE"};
  if (!subgraph) steps.emplace_back("set op_compiler_cache_mode to force for one run, so that operators are compiled anew");
  steps.push_back(bank.empty() ? "train with the tuned bank in its default place (TUNE_BANK_PATH unset, as while tuning)" : "train with the tuned bank: export TUNE_BANK_PATH=" + ShellWord(bank));
  steps.emplace_back("compare: profctl tune verify --before RUN --after RUN");
  return steps;
}

}  // namespace profd::client
