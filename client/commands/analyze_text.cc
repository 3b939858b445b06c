// The tables of `profctl analyze`, from what --json prints.
#include <fmt/format.h>

#include "client/commands/analysis_tables.h"
#include "client/commands/analyze.h"
#include "client/render.h"

namespace profd::client {
namespace {

struct Scale {
  double divisor = 1;
  std::string unit;
};

// Bytes of one counter in the unit that suits its largest value.
Scale ScaleOf(const Json& row) {
  Scale scale = {1, Text(row, "unit")};
  if (scale.unit != "B" && scale.unit != "B/s") return scale;
  const double max = row.value("max", 0.0);
  std::string_view prefix;
  for (const std::string_view next : {"k", "M", "G", "T"}) {
    if (max < scale.divisor * 1000) break;
    scale.divisor *= 1000;
    prefix = next;
  }
  scale.unit.insert(0, prefix);
  return scale;
}

Column Scaled(std::string heading, const char* name) {
  return {">" + std::move(heading), [name](const Json& row) {
            const auto value = row.find(name);
            return value == row.end() || !value->is_number() ? "-" : fmt::format("{:.3f}", value->get<double>() / ScaleOf(row).divisor);
          }};
}

void PrintOverall(const Io& io, const Json& ranks) {
  Json rows = Json::array();
  for (const Json& rank : ranks) {
    if (!rank.contains("overall") || !rank["overall"].is_object()) continue;
    Json row = rank["overall"];
    row["rank"] = rank["rank"];
    row["device"] = rank["device"];
    rows.push_back(std::move(row));
  }
  const auto part = [](const char* name) {
    return [name](const Json& row) {
      const double total = row.value("e2e_ms", 0.0);
      const double value = row.value(name, 0.0);
      return total > 0 ? fmt::format("{:.3f} ({:.1f} %)", value, value / total * 100) : fmt::format("{:.3f}", value);
    };
  };
  PrintList(io, "Time in all, ms", rows,
            {Plain("RANK", "rank"), Plain("DEVICE", "device"), Ms("END TO END", "e2e_ms"),
             {">COMPUTING", part("computing_ms")}, {">COMMUNICATION NOT OVERLAPPED", part("uncovered_communication_ms")},
             Ms("OVERLAPPED", "overlapped_ms"), {">FREE", part("free_ms")}});
}

void PrintSteps(const Io& io, const Json& rank) {
  Json rows = Json::array();
  if (rank.contains("step_average") && rank["step_average"].is_object()) rows.push_back(rank["step_average"]);
  const size_t means = rows.size();
  if (rank.contains("steps") && rank["steps"].is_array()) {
    for (const Json& step : rank["steps"]) rows.push_back(step);
  }
  PrintList(io, "Training steps, ms", rows,
            {Plain("STEP", "step"), Ms("TOTAL", "total_ms"), Ms("INTERVAL", "iteration_interval_ms"),
             Ms("FORWARD+BACKWARD", "fp_and_bp_ms"), Ms("TAIL", "tail_ms"), Ms("COMPUTING", "computing_ms"),
             Ms("NOT OVERLAPPED", "uncovered_communication_ms"), Ms("FREE", "free_ms")}, means);
}

void PrintPipeline(const Io& io, const Json& rank) {
  const auto found = rank.find("data_pipeline");
  if (found == rank.end() || !found->is_object()) return;
  io.out << "\nData pipeline ("
      << ((*found)["bottleneck"].is_null() ? std::string("no bottleneck") : "bottleneck: " + Text(*found, "bottleneck_name")) << ")\n";
  // MindInsight's name of the good case: the pipeline keeps up.
  Json stages = Json::array();
  for (const Json& stage : (*found)["stages"]) {
    if (stage["stage"] != "device_queue_warning") stages.push_back(stage);
  }
  PrintList(io, "Stages", stages, {Plain("STAGE", "name"), Plain("STATUS", "status")});
  PrintList(io, "Queues", (*found)["queues"],
            {Plain("QUEUE", "queue"), Plain(">CAPACITY", "capacity"), Plain(">EMPTY", "empty"), Plain(">FULL", "full"),
             Plain(">STEPS", "total"), Ms("MEAN SIZE", "mean_size")});
  const Json& suggestions = (*found)["suggestions"];
  for (const Json& advice : suggestions) io.out << "  " << Printable(advice.get<std::string>()) << '\n';
  for (const Json& advice : (*found)["rules_1_0"]["suggestions"]) {
    if (std::ranges::find(suggestions, advice) != suggestions.end()) continue;
    io.out << "  " << Printable(advice.get<std::string>()) << " (by the rules of MindInsight 1.0)\n";
  }
}

void PrintRank(const Io& io, const Json& rank) {
  // There may be very many operators: no copies.
  const Json none;
  const auto list = [&rank, &none](const char* name) -> const Json& {
    const auto found = rank.find(name);
    return found == rank.end() ? none : *found;
  };
  io.out << '\n' << Printable(fmt::format("Rank {}, device {}, host {}: {} ({})", Text(rank, "rank"), Text(rank, "device"),
                                       Text(rank, "host"), Text(rank, "source"), Text(rank, "path"))) << '\n';
  if (const auto timeline = rank.find("timeline"); timeline != rank.end()) {
    const auto counted = [&](const char* what, const char* one) {
      const std::string number = Text(*timeline, what);
      return number == "1" ? fmt::format("1 {}", one) : fmt::format("{} {}", number, what);
    };
    io.out << fmt::format("  {}, {}, {}, {} ms\n", counted("streams", "stream"), counted("operators", "operator"),
                       counted("executions", "execution"), Number(*timeline, "total_ms"));
  }
  PrintSteps(io, rank);
  const Column share = {">SHARE", [](const Json& row) { return Share(row, "share"); }};
  PrintList(io, "Operators by kind of core, ms", list("operator_kinds"),
            {Plain("KIND", "kind"), Plain(">OPERATORS", "operators"), Plain(">COUNT", "count"), Ms("TOTAL", "total_ms"), share});
  PrintList(io, "Operators by type, ms", list("operator_types"),
            {Plain("TYPE", "type"), Plain("CORE", "core"), Plain(">COUNT", "count"), Ms("TOTAL", "total_ms"), share,
             Ms("MEAN", "mean_ms"), Ms("MAX", "max_ms")});
  PrintList(io, "Operators, ms", list("operators"),
            {Plain("NAME", "name"), Plain("TYPE", "type"), Plain(">COUNT", "count"), Ms("TOTAL", "total_ms"), share,
             Ms("MEAN", "mean_ms"), Ms("MAX", "max_ms"), Plain("BOUND", "bound")});
  PrintList(io, "Roofline, ms", list("roofline"),
            {Plain("NAME", "name"), Ms("TOTAL", "total_ms"), {">OF PEAK", [](const Json& row) { return Share(row, "of_peak"); }},
             Ms("AT PEAK", "at_peak_ms"), Plain("LIMIT", "limit")});
  PrintList(io, "AI CPU, ms", list("ai_cpu"),
            {Plain(">NUMBER", "serial_number"), Plain("TYPE", "type"), Ms("TOTAL", "total_ms"), Ms("DISPATCH", "dispatch_ms")});
  PrintPipeline(io, rank);
  PrintList(io, "Communication, ms", list("communication"),
            {Plain("NAME", "name"), Plain("GROUP", "group"), Plain(">COUNT", "count"), Ms("ELAPSED", "elapse_ms"),
             Ms("TRANSIT", "transit_ms"), Ms("WAIT", "wait_ms"), Ms("SYNCHRONIZATION", "synchronization_ms")});
  PrintList(io, "Links", list("links"),
            {Plain("GROUP", "group"), Plain("FROM", "src"), Plain("TO", "dst"), Plain("TRANSPORT", "transport"),
             Ms("SIZE, MB", "size_mb"), Ms("TIME, ms", "time_ms"), Ms("GB/s", "bandwidth_gb_s"), Ms("REFERENCE", "reference_gb_s")});
  if (const Json& marks = list("marks"); marks.is_object()) {
    PrintList(io, "Marks, ms", marks["names"],
              {Plain("NAME", "name"), Plain("DOMAIN", "domain"), Plain(">COUNT", "count"), Ms("TOTAL", "total_ms"),
               Ms("MEAN", "mean_ms"), Ms("MAX", "max_ms")});
  }
  const Json& memory = list("memory");
  if (memory.is_object()) {
    PrintList(io, "Memory, MB", memory["components"],
              {Plain("COMPONENT", "component"), Ms("PEAK ALLOCATED", "peak_allocated_mb"), Ms("PEAK RESERVED", "peak_reserved_mb"),
               Ms("PEAK ACTIVE", "peak_active_mb"), Ms("AT, ms", "peak_at_ms")});
  }
  PrintList(io, "Hardware", list("hardware"),
            {Plain("COUNTER", "name"), {"UNIT", [](const Json& row) { return ScaleOf(row).unit; }}, Scaled("MIN", "min"), Scaled("MEAN", "mean"),
             Scaled("MAX", "max")});
}

}  // namespace

void PrintOverview(const Io& io, const Json& overview) {
  const Json& all = overview["overall"];
  io.out << Printable(Text(overview["run"], "name")) << fmt::format(": {} ranks, {} executions\n", Text(all, "ranks"), Text(all, "executions"));
  PrintList(io, "Mean of the ranks, ms", Json::array({all}),
            {Ms("END TO END", "e2e_ms"), Ms("COMPUTING", "computing_ms"), Ms("COMMUNICATION NOT OVERLAPPED", "uncovered_communication_ms"), Ms("FREE", "free_ms")});
  PrintList(io, "Ranks that compute longest, ms per step", overview["slow_ranks"],
            {Plain(">RANK", "rank"), Plain(">STEPS", "steps"), Ms("TOTAL", "total_ms"), Ms("COMPUTING", "computing_ms"),
             Ms("NOT OVERLAPPED", "uncovered_communication_ms"), Ms("FREE", "free_ms")});
  PrintList(io, "Steps, ms", overview["steps"],
            {Plain(">STEP", "step"), Plain(">RANKS", "ranks"), Ms("MEAN", "mean_ms"), Ms("MAX", "max_ms"), Ms("COMPUTING", "computing_ms"),
             Ms("MAX COMPUTING", "max_computing_ms"), Plain(">OF RANK", "slowest_rank")});
  const Column share = {">SHARE", [](const Json& row) { return Share(row, "share"); }};
  PrintList(io, "Operators by type, ms", overview["operator_types"],
            {Plain("TYPE", "type"), Plain("CORE", "core"), Plain(">COUNT", "count"), Ms("TOTAL", "total_ms"), share, Ms("MEAN", "mean_ms"), Ms("MAX", "max_ms")});
  PrintList(io, "Operators, ms", overview["operators"],
            {Plain("NAME", "name"), Plain("TYPE", "type"), Plain(">RANKS", "ranks"), Plain(">COUNT", "count"), Ms("TOTAL", "total_ms"), share,
             Ms("MEAN", "mean_ms"), Ms("MAX", "max_ms")});
  PrintList(io, "Communication, ms", overview["communication"],
            {Plain("TYPE", "type"), Plain("GROUP", "group"), Plain(">COUNT", "count"), Ms("ELAPSED", "elapse_ms"), Ms("TRANSIT", "transit_ms"),
             Ms("WAIT", "wait_ms"), Ms("SYNCHRONIZATION", "synchronization_ms")});
  PrintList(io, "Slowest links", overview["links"],
            {Plain("FROM", "src"), Plain("TO", "dst"), Plain("TRANSPORT", "transport"), Ms("SIZE, MB", "size_mb"), Ms("TIME, ms", "time_ms"),
             Ms("GB/s", "bandwidth_gb_s")});
}

void PrintAnalysis(const Io& io, const Json& run) {
  io.out << Printable(Text(run["run"], "name")) << ": " << CountText(run["ranks"].size(), "rank") << '\n';
  PrintOverall(io, run["ranks"]);
  if (run.contains("cluster") && run["cluster"].is_object()) PrintCluster(io, run["cluster"]);
  if (run["ranks"].size() > kMostRanksInFull) {
    io.out << fmt::format("\nMore of each rank: --json, or one rank alone\n");
  } else {
    for (const Json& rank : run["ranks"]) PrintRank(io, rank);
  }
  if (!run.contains("compare")) return;
  const Json& compare = run["compare"];
  const bool of_steps = compare["of"] == "step";
  PrintList(io, "Compared with " + Printable(Text(compare, "baseline")) + (of_steps ? "" : ": " + Printable(Text(compare, "note"))), compare["differences"],
            {Plain("WHAT", "what"), Plain("NAME", "name"), Ms("BASELINE", "baseline"), Ms("RUN", "run"), Ms("DIFFERENCE", "difference"), Plain("UNIT", "unit"),
             {of_steps ? ">OF THE STEP'S DIFFERENCE" : ">OF THE DIFFERENCE", [](const Json& row) { return Share(row, "share_of_difference"); }}});
}

}  // namespace profd::client
