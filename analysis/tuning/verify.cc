#include "analysis/tuning/verify.h"

#include <algorithm>
#include <map>

#include "analysis/rules/slowest_rank.h"
#include "analysis/views/views.h"
#include "base/text.h"

namespace profd::analysis {
namespace {

// Of the gain that was promised this much must be measured for the verdict.
constexpr double kSeen = 0.8;
constexpr double kPartly = 0.2;
constexpr double kNoisePercent = 2;  // times that differ less are the same

struct Sum {
  uint64_t count = 0;
  int64_t ns = 0;
  std::optional<double> MeanUs() const {
    return count == 0 ? std::nullopt : std::optional(static_cast<double>(ns) / 1e3 / static_cast<double>(count));
  }
};

// What each operator takes, by name and by type, over all ranks.
struct Times {
  std::map<std::string, Sum, std::less<>> by_name;
  std::map<std::string, Sum, std::less<>> by_type;
  std::vector<double> steps_ms;
};

Times TimesOf(const Run& run) {
  Times times;
  for (const auto& rank : run.ranks) {
    for (const Execution& each : rank->executions) {
      const Operator& op = rank->operators[static_cast<size_t>(each.op)];
      for (auto [sums, text] : {std::pair(&times.by_name, op.name), std::pair(&times.by_type, op.type)}) {
        if (text == kNoText) continue;
        Sum& sum = (*sums)[std::string(rank->TextOf(text))];
        ++sum.count;
        sum.ns += each.end_ns - each.start_ns;
      }
    }
    const size_t first = rank->first_step_is_short && rank->steps.size() > 1 ? 1 : 0;
    for (size_t i = first; i < rank->steps.size(); ++i) {
      times.steps_ms.push_back(Ms(rank->steps[i].end_ns - rank->steps[i].start_ns));
    }
  }
  return times;
}

// The median: a first step with compilation in it decides nothing.
std::optional<double> Median(const std::vector<double>& values) {
  return values.empty() ? std::nullopt : std::optional(MedianOf(values));
}

// As in result files.
std::optional<double> GainPercent(const std::optional<double>& before, const std::optional<double>& after) {
  if (!before || !after) return std::nullopt;
  return Gain{*before, *after, std::nullopt}.Percent();
}

// "x/Softmax_OPAT_0" is the operator x/Softmax in the profile.
std::string_view PlainName(std::string_view name) {
  constexpr std::string_view kMark = "_OPAT_";
  const size_t at = name.rfind(kMark);
  return at != std::string_view::npos && IsDigits(name.substr(at + kMark.size())) ? name.substr(0, at) : name;
}

struct Measured {
  const char* by = nullptr;  // "name", "type"; null: not in the profiles
  std::optional<double> before_us, after_us;
};

Sum SumOf(const std::map<std::string, Sum, std::less<>>& sums, std::string_view name) {
  const auto found = sums.find(name);
  return found == sums.end() ? Sum() : found->second;
}

Measured Measure(const TunedOperator& row, const Times& before, const Times& after) {
  for (std::string_view name : {std::string_view(row.name), PlainName(row.name)}) {
    const auto one = SumOf(before.by_name, name).MeanUs(), two = SumOf(after.by_name, name).MeanUs();
    if (one && two) return {"name", one, two};
  }
  Sum one, two;
  for (const std::string& type : row.types) {
    for (auto [sum, times] : {std::pair(&one, &before), std::pair(&two, &after)}) {
      const Sum each = SumOf(times->by_type, type);
      sum->count += each.count;
      sum->ns += each.ns;
    }
  }
  if (one.count == 0 || two.count == 0) return {};
  return {"type", one.MeanUs(), two.MeanUs()};
}

std::string_view VerdictOf(const std::optional<double>& promised, const std::optional<double>& measured) {
  if (!measured) return "not_in_profile";
  if (*measured < -kNoisePercent) return "slower";
  if (!promised || *promised <= kNoisePercent) return "too_small";
  if (*measured >= kSeen * *promised) return "seen";
  if (*measured > kNoisePercent && *measured >= kPartly * *promised) return "partly";
  return "not_seen";
}

// Strategies of one operator follow each other: from the first time before to the last one after.
std::vector<TunedOperator> Joined(const TuningResults& results) {
  std::vector<TunedOperator> rows;
  std::map<std::string, size_t, std::less<>> index;
  for (const TuningFile& file : results.files) {
    for (const TuningTask& task : file.tasks) {
      for (const TunedOperator& row : task.operators) {
        const auto [known, fresh] = index.emplace(row.name, rows.size());
        if (fresh) {
          rows.push_back(row);
          continue;
        }
        TunedOperator& same = rows[known->second];
        same.gain.after = std::min(same.gain.after, row.gain.after);
        if (same.mode.find(row.mode) == std::string::npos) same.mode += "+" + row.mode;
      }
    }
  }
  return rows;
}

Json PromisedModel(const TuningResults& results) {
  Json json;
  for (const TuningFile& file : results.files) {
    for (const TuningTask& task : file.tasks) {
      if (!task.model) continue;
      json = {{"before_ms", task.model->before}, {"after_ms", task.model->after}, {"gain_percent", OrNull(task.model->Percent())}};
    }
  }
  return json;
}

}  // namespace

Json VerifyTuning(const Run& before, const Run& after, const TuningResults& results) {
  const Times one = TimesOf(before), two = TimesOf(after);
  const std::optional<double> step_before = Median(one.steps_ms), step_after = Median(two.steps_ms);
  Json json = {{"before", before.name}, {"after", after.name}};
  json["step"] = {{"before_ms", OrNull(step_before)}, {"after_ms", OrNull(step_after)},
                  {"gain_percent", OrNull(GainPercent(step_before, step_after))},
                  {"steps_before", one.steps_ms.size()}, {"steps_after", two.steps_ms.size()}};
  json["promised_model"] = PromisedModel(results);
  json["operators"] = Json::array();
  std::map<std::string, size_t, std::less<>> counts;
  for (const char* verdict : {"seen", "partly", "not_seen", "slower", "too_small", "not_in_profile"}) counts[verdict] = 0;
  for (const TunedOperator& row : Joined(results)) {
    const Measured measured = Measure(row, one, two);
    const std::optional<double> percent = GainPercent(measured.before_us, measured.after_us);
    const std::string verdict(VerdictOf(row.gain.Percent(), percent));
    ++counts[verdict];
    json["operators"].push_back({{"name", row.name}, {"types", row.types}, {"mode", row.mode},
                                 {"promised_before_us", row.gain.before}, {"promised_after_us", row.gain.after},
                                 {"promised_percent", OrNull(row.gain.Percent())},
                                 {"found_by", measured.by == nullptr ? Json() : Json(measured.by)},
                                 {"before_us", OrNull(measured.before_us)}, {"after_us", OrNull(measured.after_us)},
                                 {"gain_percent", OrNull(percent)}, {"verdict", verdict}});
  }
  json["counts"] = counts;
  return json;
}

}  // namespace profd::analysis
