#include "analysis/tuning/tuning_view.h"

#include "analysis/views/views.h"
#include "export/csv/csv_row.h"

namespace profd::analysis {
namespace {

void AddGain(const Gain& gain, const char* before, const char* after, Json* json) {
  (*json)[before] = gain.before;
  (*json)[after] = gain.after;
  (*json)["gain_percent"] = OrNull(gain.Percent());
  (*json)["written_percent"] = OrNull(gain.written);
}

Json SummaryJson(const TuningSummary& summary) {
  if (summary.empty()) return nullptr;
  return {{"add", OrNull(summary.add)},           {"hit", OrNull(summary.hit)},
          {"reserved", OrNull(summary.reserved)}, {"unsatisfied", OrNull(summary.unsatisfied)},
          {"update", OrNull(summary.update)},     {"total", OrNull(summary.total)}};
}

Json TaskJson(const TuningTask& task) {
  Json json = {{"key", task.key},       {"name", task.name},
               {"seconds", OrNull(task.seconds)}, {"state", task.State()},
               {"complete", task.complete}, {"result", task.result.empty() ? Json() : Json(task.result)}};
  json["operators"] = Json::array();
  for (const TunedOperator& row : task.operators) {
    Json each = {{"name", row.name}, {"types", row.types}, {"mode", row.mode}, {"update", row.update}};
    AddGain(row.gain, "before_us", "after_us", &each);
    json["operators"].push_back(std::move(each));
  }
  json["failed_operators"] = task.failed;
  json["model"] = nullptr;
  if (task.model) AddGain(*task.model, "before_ms", "after_ms", &(json["model"] = Json::object()));
  json["subgraphs"] = Json::array();
  for (const TunedSubgraph& row : task.subgraphs) {
    Json each = {{"key", row.key}, {"update", row.update}};
    AddGain(row.gain, "before_ms", "after_ms", &each);
    json["subgraphs"].push_back(std::move(each));
  }
  json["summary"] = SummaryJson(task.summary);
  return json;
}

}  // namespace

TuningResults ReadTuningResults(const std::vector<std::string>& paths) {
  TuningResults results;
  for (const std::string& path : paths) {
    Result<TuningFile> file = ReadTuningResult(path);
    if (file.ok()) {
      results.files.push_back(std::move(*file));
    } else {
      results.problems.push_back({path, file.status().message()});
    }
  }
  return results;
}

Json TuningView(const TuningResults& results) {
  Json json = {{"files", Json::array()}};
  size_t tasks = 0, operators = 0, subgraphs = 0, failed = 0, incomplete = 0;
  for (const TuningFile& file : results.files) {
    Json each = {{"path", file.path},
                 {"timestamp", file.timestamp.empty() ? Json() : Json(file.timestamp)},
                 {"pid", file.pid == 0 ? Json() : Json(file.pid)},
                 {"complete", file.complete},
                 {"left_out", file.left_out}};
    each["tasks"] = Json::array();
    for (const TuningTask& task : file.tasks) {
      each["tasks"].push_back(TaskJson(task));
      operators += task.operators.size();
      subgraphs += task.subgraphs.size();
      failed += task.failed.size();
      incomplete += task.State() == "incomplete" ? 1 : 0;
    }
    tasks += file.tasks.size();
    each["problems"] = ProblemsJson(file.problems);
    json["files"].push_back(std::move(each));
  }
  json["totals"] = {{"tasks", tasks},   {"operators", operators},          {"subgraphs", subgraphs},
                    {"failed_operators", failed}, {"incomplete_tasks", incomplete}};
  json["problems"] = ProblemsJson(results.problems);
  return json;
}

std::string TuningCsv(const TuningResults& results) {
  std::string out = "File,Task,State,Kind,Name,Type,Mode,Update,Before(us),After(us),Gain(%)\n";
  constexpr double kUsOfMs = 1000;
  for (const TuningFile& file : results.files) {
    for (const TuningTask& task : file.tasks) {
      const auto begin = [&](const char* kind) {
        exporting::csv::CsvRow row(out);
        row.Text(file.path).Text(task.name).Text(task.State()).Text(kind);
        return row;
      };
      const auto end = [](exporting::csv::CsvRow& row, const Gain& gain, double us) {
        row.Fixed3(gain.before * us).Fixed3(gain.after * us);
        const std::optional<double> percent = gain.Percent();
        percent ? row.Fixed3(*percent) : row.Text("");
        row.End();
      };
      for (const TunedOperator& each : task.operators) {
        std::string types;
        for (const std::string& type : each.types) types += (types.empty() ? "" : ";") + type;
        exporting::csv::CsvRow row = begin("operator");
        row.Text(each.name).Text(types).Text(each.mode).Text(each.update);
        end(row, each.gain, 1);
      }
      for (const std::string& name : task.failed) begin("failed operator").Text(name).Text("").Text("").Text("").Text("").Text("").Text("").End();
      for (const TunedSubgraph& each : task.subgraphs) {
        exporting::csv::CsvRow row = begin("subgraph");
        row.Text(each.key).Text("").Text("").Text(each.update);
        end(row, each.gain, kUsOfMs);
      }
    }
  }
  return out;
}

}  // namespace profd::analysis
