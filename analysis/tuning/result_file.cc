#include "analysis/tuning/result_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "analysis/read/readers.h"
#include "analysis/tuning/lenient_json.h"
#include "base/count_text.h"
#include "base/text.h"

namespace profd::analysis {
namespace {

namespace fs = std::filesystem;

constexpr double kTolerance = 0.01;  // of a percentage as it is written
constexpr int kFolderDepth = 2;
constexpr size_t kMostFiles = 1000;
constexpr size_t kMostEntries = 20'000;

// "118.71%"
std::optional<double> PercentOf(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  std::string_view digits = Trim(*text);
  if (digits.ends_with('%')) digits = Trim(digits.substr(0, digits.size() - 1));
  double value = 0;
  if (!ParseNumber(digits, &value) || !std::isfinite(value)) return std::nullopt;
  return value;
}

class Parser {
 public:
  Parser(std::string_view text, TuningFile* file) : json_(text), file_(*file) {}

  void Run() {
    const auto take = [this](const std::string& key) {
      if (key.starts_with("report_")) ReadTask(key);
    };
    json_.Members(take, false);
    // Results of several processes may have been joined.
    while (json_.Peek() == '{') json_.Members(take);
    file_.complete = !json_.stopped();
    if (json_.missing_commas() > 0) AddProblem("", CountText(json_.missing_commas(), "comma is", "commas are") + " missing");
    if (json_.stopped()) AddProblem("", json_.why());
    if (json_.Peek() != '\0') AddProblem("", fmt::format("line {}: what is behind the object is left out", json_.Line()));
    if (file_.tasks.empty() && !json_.stopped()) AddProblem("", "not a result of AOE: it has no report_...");
  }

 private:
  void AddProblem(std::string where, std::string what) {
    if (file_.problems.size() < kMostTuningProblems) file_.problems.push_back({std::move(where), std::move(what)});
  }

  void ReadTask(const std::string& key) {
    if (file_.tasks.size() >= kMostTuningTasks) {
      ++file_.left_out;
      return;
    }
    TuningTask task;
    task.key = key;
    const auto parts = [&] { json_.Members([&](const std::string& part) { ReadPart(part, &task); }); };
    json_.Peek() == '{' ? parts() : json_.Items(parts);
    task.complete = !json_.stopped();
    Check(task);
    file_.tasks.push_back(std::move(task));
  }

  void ReadPart(const std::string& part, TuningTask* task) {
    if (part == "basic") {
      json_.Members([&](const std::string& key) {
        if (key == "tuning_name") task->name = json_.Text().value_or("");
        if (key == "tuning_time(s)") task->seconds = json_.Number();
      });
    } else if (part == "OPAT") {
      task->has_operators = true;
      json_.Members([&](const std::string& key) { ReadOperators(key, task); });
    } else if (part == "SGAT") {
      task->has_subgraphs = true;
      Gain model{-1, -1, std::nullopt};
      json_.Members([&](const std::string& key) { ReadSubgraphs(key, task, &model); });
      if (model.before >= 0 && model.after >= 0) task->model = model;
    }
  }

  void ReadOperators(const std::string& key, TuningTask* task) {
    if (key == "opat_tuning_result") task->result = json_.Text().value_or("");
    if (key == "repo_modified_operators") json_.Items([&] { ReadOperator(task); });
    if (key == "repo_summary") ReadSummary(&task->summary);
    if (key == "tuning_failed_operators") {
      json_.Items([&] {
        std::optional<std::string> name = json_.Text();
        if (name && HasPlace()) task->failed.push_back(std::move(*name));
      });
    }
  }

  // A row for each of its modes; only once all of it has been read.
  void ReadOperator(TuningTask* task) {
    TunedOperator common;
    std::vector<TunedOperator> modes;
    json_.Members([&](const std::string& key) {
      if (key == "op_name") common.name = json_.Text().value_or("");
      if (key == "op_type") ReadTypes(&common.types);
      if (key != "tune_performance") return;
      json_.Members([&](const std::string& mode) {
        TunedOperator& row = modes.emplace_back();
        row.mode = mode;
        if (!ReadGain("(us)", &row.gain, &row.update) && !json_.stopped()) {
          AddProblem(common.name, mode + " has no times before and after");
          modes.pop_back();
        }
      });
    });
    if (json_.stopped()) return;
    for (TunedOperator& row : modes) {
      if (!HasPlace()) return;
      row.name = common.name;
      row.types = common.types;
      task->operators.push_back(std::move(row));
    }
  }

  void ReadTypes(std::vector<std::string>* types) {
    if (json_.Peek() == '[') {
      json_.Items([&] {
        std::optional<std::string> type = json_.Text();
        if (type && types->size() < 100) types->push_back(std::move(*type));
      });
      return;
    }
    // "[Add, Mul]" is a list, too.
    const std::string text = json_.Text().value_or("");
    std::string_view rest = Trim(text);
    if (rest.starts_with('[') && rest.ends_with(']')) rest = rest.substr(1, rest.size() - 2);
    for (std::string_view part; types->size() < 100 && NextPart(&rest, ',', &part);) {
      if (const std::string_view type = Trim(part); !type.empty()) types->emplace_back(type);
    }
  }

  // False: one of the two times is not there.
  bool ReadGain(std::string_view unit, Gain* gain, std::string* update) {
    std::optional<double> before, after;
    json_.Members([&](const std::string& key) { ReadGainMember(key, unit, gain, update, &before, &after); });
    gain->before = before.value_or(0);
    gain->after = after.value_or(0);
    return before && after && *before >= 0 && *after >= 0 && !json_.stopped();
  }
  void ReadGainMember(std::string_view key, std::string_view unit, Gain* gain, std::string* other,
                      std::optional<double>* before, std::optional<double>* after) {
    if (key == fmt::format("performance_before_tune{}", unit)) *before = json_.Number();
    if (key == fmt::format("performance_after_tune{}", unit)) *after = json_.Number();
    if (key == "performance_improvement") gain->written = PercentOf(json_.Text());
    if (key == "update_mode" || key == "repo_key") *other = json_.Text().value_or("");
  }

  void ReadSubgraphs(const std::string& key, TuningTask* task, Gain* model) {
    if (key == "model_baseline_performance(ms)") model->before = json_.Number().value_or(-1);
    if (key == "model_result_performance(ms)") model->after = json_.Number().value_or(-1);
    if (key == "model_performance_improvement") model->written = PercentOf(json_.Text());
    if (key == "repo_summary") ReadSummary(&task->summary);
    if (key != "repo_modified_subgraphs") return;
    json_.Members([&](const std::string& list) {
      const bool added = list == "add_repo_subgraphs";
      if (!added && list != "update_repo_subgraphs") return;
      json_.Items([&] {
        TunedSubgraph row;
        row.update = added ? "add" : "update";
        const bool complete = ReadGain("(ms)", &row.gain, &row.key);
        if (json_.stopped()) return;
        if (!complete) return AddProblem(row.key, "the subgraph has no times before and after");
        if (HasPlace()) task->subgraphs.push_back(std::move(row));
      });
    });
  }

  void ReadSummary(TuningSummary* summary) {
    TuningSummary read;
    const std::pair<std::string_view, std::optional<int64_t>*> fields[] = {
        {"repo_add_num", &read.add},           {"repo_hit_num", &read.hit},
        {"repo_reserved_num", &read.reserved}, {"repo_unsatisfied_num", &read.unsatisfied},
        {"repo_update_num", &read.update},     {"total_num", &read.total}};
    json_.Members([&](const std::string& key) {
      for (const auto& [name, value] : fields) {
        if (name != key) continue;
        const std::optional<double> number = json_.Number();
        if (number && *number >= 0 && *number <= 1e15) *value = std::llround(*number);
      }
    });
    if (!json_.stopped()) *summary = read;
  }

  bool HasPlace() {
    if (rows_ < kMostTuningRows) {
      ++rows_;
      return true;
    }
    ++file_.left_out;
    return false;
  }

  // What is written against what follows from it: operators are rounded to two decimals, subgraphs cut (8.3).
  void CheckGain(const std::string& where, const Gain& gain, bool rounded) {
    const std::optional<double> percent = gain.Percent();
    if (!percent) return AddProblem(where, "the time after tuning is 0");
    if (!gain.written) return;
    const double expected = (rounded ? std::round(*percent * 100) : std::trunc(*percent * 100)) / 100;
    if (std::abs(expected - *gain.written) <= kTolerance + 1e-6) return;
    AddProblem(where, fmt::format("improvement is written as {:.2f} %, but {} -> {} is {:.2f} %", *gain.written, gain.before,
                           gain.after, expected));
  }

  void Check(const TuningTask& task) {
    for (const TunedOperator& row : task.operators) CheckGain(row.name + ", " + row.mode, row.gain, true);
    for (const TunedSubgraph& row : task.subgraphs) CheckGain("subgraph " + row.key, row.gain, false);
    if (task.model) CheckGain("model", *task.model, false);
    const TuningSummary& sum = task.summary;
    if (sum.total && sum.add && sum.hit && sum.unsatisfied && *sum.total != *sum.add + *sum.hit + *sum.unsatisfied) {
      AddProblem(task.key, fmt::format("total_num is {}, but added {} + hit {} + unsatisfied {} is {}", *sum.total, *sum.add,
                                *sum.hit, *sum.unsatisfied, *sum.add + *sum.hit + *sum.unsatisfied));
    }
    if (sum.hit && sum.reserved && sum.update && *sum.hit != *sum.reserved + *sum.update) {
      AddProblem(task.key, fmt::format("repo_hit_num is {}, but reserved {} + updated {} is {}", *sum.hit, *sum.reserved,
                                *sum.update, *sum.reserved + *sum.update));
    }
    if (!task.failed.empty() && task.result != "tuning failed") {
      AddProblem(task.key, "lists operators that failed, but its result is \"" + task.result + "\"");
    }
  }

  LenientJson json_;
  TuningFile& file_;
  size_t rows_ = 0;
};

void FindIn(const fs::path& folder, int depth, std::vector<std::string>* found) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator it(folder, error), end; !error && it != end && entries.size() < kMostEntries; it.increment(error)) {
    entries.push_back(it->path());
  }
  std::ranges::sort(entries);
  for (const fs::path& entry : entries) {
    if (found->size() >= kMostFiles) return;
    const fs::file_status status = fs::symlink_status(entry, error);
    if (fs::is_regular_file(status)) {
      if (IsTuningResultName(entry.filename().string(), nullptr, nullptr)) found->push_back(entry.string());
    } else if (fs::is_directory(status) && depth > 0) {
      FindIn(entry, depth - 1, found);
    }
  }
}

// Each file once, however it is named.
std::vector<std::string> Once(std::vector<std::string> found) {
  std::set<fs::path> seen;
  std::erase_if(found, [&seen](const std::string& path) {
    std::error_code error;
    const fs::path real = fs::weakly_canonical(path, error);
    return !seen.insert(error ? fs::path(path) : real).second;
  });
  return found;
}

}  // namespace

std::optional<double> Gain::Percent() const {
  if (!(after > 0)) return std::nullopt;
  const double percent = (before - after) / after * 100;
  return std::isfinite(percent) ? std::optional(percent) : std::nullopt;
}

std::string_view TuningTask::State() const {
  if (result == "tuning failed") return "failed";
  if (!complete || !seconds || result == "tuning incomplete") return "incomplete";
  if (has_operators || has_subgraphs) return "successful";
  return of_subgraphs ? "failed" : "nothing";
}

bool IsTuningResultName(std::string_view name, std::string* timestamp, int64_t* pid) {
  if (!name.starts_with("aoe_result_opat_") && !name.starts_with("aoe_result_sgat_")) return false;
  if (!name.ends_with(".json")) return false;
  name.remove_suffix(5);
  name.remove_prefix(16);
  const size_t bar = name.find('_');
  if (bar == std::string_view::npos) return false;
  const std::string_view time = name.substr(0, bar);
  std::string_view process = name.substr(bar + 1);
  if (process.starts_with("pid")) process.remove_prefix(3);
  int64_t number = 0;
  if (!IsDigits(time) || !IsDigits(process) || !ParseNumber(process, &number)) return false;
  if (timestamp != nullptr) *timestamp = time;
  if (pid != nullptr) *pid = number;
  return true;
}

TuningFile ParseTuningResult(std::string_view text) {
  TuningFile file;
  Parser(text, &file).Run();
  return file;
}

Result<TuningFile> ReadTuningResult(const std::string& path) {
  Result<std::string> text = ReadWhole(path, kMostTuningBytes);
  if (!text.ok()) return text.status();
  TuningFile file = ParseTuningResult(*text);
  file.path = path;
  const std::string name = fs::path(path).filename().string();
  (void)IsTuningResultName(name, &file.timestamp, &file.pid);
  // The tool writes subgraphs under the name of operators, too.
  const bool of_subgraphs = name.starts_with("aoe_result_sgat_") || std::ranges::any_of(file.tasks, &TuningTask::has_subgraphs);
  for (TuningTask& task : file.tasks) task.of_subgraphs = of_subgraphs;
  return file;
}

std::vector<std::string> TuningResultsIn(const std::vector<std::string>& inputs) {
  std::vector<std::string> found;
  std::error_code error;
  for (const std::string& path : inputs) {
    if (fs::is_directory(path, error)) FindIn(path, kFolderDepth, &found);
  }
  return Once(std::move(found));
}

Result<std::vector<std::string>> FindTuningResults(const std::vector<std::string>& paths) {
  std::vector<std::string> found;
  for (const std::string& path : paths) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (!fs::exists(status)) return NotFound(path + ": not there");
    if (fs::is_directory(status)) {
      FindIn(path, kFolderDepth, &found);
    } else {
      found.push_back(path);
    }
  }
  return Once(std::move(found));
}

}  // namespace profd::analysis
