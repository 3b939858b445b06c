#include "daemon/recorder/trigger.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <tuple>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "collectors/collector_hint.h"
#include "collectors/metric_table.h"
#include "daemon/advice/check_ids.h"

namespace profd {
namespace {

constexpr size_t kMaxText = 512;
constexpr size_t kMaxTriggers = 64;
constexpr int64_t kMaxForNs = 3600 * kNsPerSecond;
constexpr double kMaxFactor = 1000;
constexpr double kMinHz = 0.01;

struct OpName {
  std::string_view text;
  TriggerOp op;
};
// Longer ones first: ">" begins ">=".
constexpr auto kOps = std::to_array<OpName>({{">=", TriggerOp::kAtLeast},
                                             {"<=", TriggerOp::kAtMost},
                                             {"==", TriggerOp::kEqual},
                                             {"!=", TriggerOp::kNotEqual},
                                             {">", TriggerOp::kAbove},
                                             {"<", TriggerOp::kBelow}});

bool IsNameChar(char c) { return IsLetterOrDigit(c) || c == '_' || c == ':'; }

// Reads a text from left to right.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) { SkipSpace(); }

  std::string_view rest() const { return rest_; }
  bool AtEnd() const { return rest_.empty(); }
  bool Take(std::string_view token) {
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    SkipSpace();
    return true;
  }
  // A word, not just the beginning of one.
  bool TakeWord(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    if (rest_.size() > word.size() && IsNameChar(rest_[word.size()])) return false;
    return Take(word);
  }
  std::string_view TakeName() { return TakeWhile(IsNameChar); }
  bool TakeNumber(double* out) {
    std::string_view digits = TakeWhile([](char c) {
      return IsDigit(c) || c == '.' || c == '-' || c == '+' || c == 'e' || c == 'E';
    });
    return ParseNumber(digits, out) && std::isfinite(*out);
  }
  // "10s", "500ms", "2m", "1h".
  bool TakeDuration(int64_t* ns) {
    uint64_t number = 0;
    std::string_view digits = TakeWhile(IsDigit);
    if (!ParseNumber(digits, &number) || number > static_cast<uint64_t>(kMaxForNs)) return false;
    int64_t unit = TakeWord("ms")  ? kNsPerMs
                   : TakeWord("s") ? kNsPerSecond
                   : TakeWord("m") ? 60 * kNsPerSecond
                   : TakeWord("h") ? 3600 * kNsPerSecond
                                   : 0;
    if (unit == 0 || static_cast<int64_t>(number) > kMaxForNs / unit) return false;
    *ns = static_cast<int64_t>(number) * unit;
    return true;
  }
  // "..." with \" and \\ inside.
  bool TakeString(std::string* out) {
    if (rest_.empty() || rest_.front() != '"') return false;
    for (size_t i = 1; i < rest_.size(); ++i) {
      if (rest_[i] == '"') {
        rest_.remove_prefix(i + 1);
        SkipSpace();
        return true;
      }
      if (rest_[i] == '\\' && ++i == rest_.size()) break;
      *out += rest_[i];
    }
    return false;
  }

 private:
  template <class Predicate>
  std::string_view TakeWhile(Predicate is_part) {
    size_t size = 0;
    while (size < rest_.size() && is_part(rest_[size])) ++size;
    std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    SkipSpace();
    return taken;
  }
  void SkipSpace() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t')) rest_.remove_prefix(1);
  }
  std::string_view rest_;
};

// "npu, uuid, sensor" of the metric.
std::vector<std::string_view> LabelsOf(const MetricSpec& metric) {
  std::vector<std::string_view> labels;
  if (metric.scope == MetricScope::kDevice) labels = {"npu", "uuid"};
  std::string_view rest = metric.labels;
  for (std::string_view label; NextPart(&rest, ',', &label);) labels.push_back(label);
  return labels;
}

Status ParseLabels(Reader& reader, Trigger* trigger) {
  const MetricSpec& metric = kMetrics[trigger->metric];
  const std::vector<std::string_view> known = LabelsOf(metric);
  while (!reader.Take("}")) {
    if (!trigger->labels.empty() && !reader.Take(",")) {
      return InvalidArgument("labels are written {name=\"value\",...}");
    }
    std::string_view name = reader.TakeName();
    std::string value;
    if (name.empty() || !reader.Take("=") || !reader.TakeString(&value)) {
      return InvalidArgument("labels are written {name=\"value\",...}");
    }
    if (std::ranges::find(known, name) == known.end()) {
      return InvalidArgument(fmt::format("{} has no label {}; it has {}", metric.name, name,
                                         known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "))));
    }
    trigger->labels.emplace_back(name, std::move(value));
  }
  return {};
}

// A condition compares one present value of a series.
Status CheckMetric(const MetricSpec& metric) {
  if (metric.type == MetricType::kHistogram) {
    return InvalidArgument(fmt::format("{} is a histogram, which has no value to compare", metric.name));
  }
  if (!metric.window_of.empty()) {
    return InvalidArgument(fmt::format("{} is of what happens between two scrapes; use {}", metric.name, metric.window_of));
  }
  return {};
}

Status ParseThreshold(std::string_view name, Reader& reader, Trigger* trigger) {
  auto found = std::ranges::find(kMetrics, name, &MetricSpec::name);
  if (found == kMetrics.end()) {
    return InvalidArgument(
        fmt::format("there is no metric {} in /metrics, and it is none of error_code, crash, step and advice",
                    log::Quote(name)));
  }
  RETURN_IF_ERROR(CheckMetric(*found));
  trigger->metric = static_cast<MetricId>(found - kMetrics.begin());
  if (reader.Take("{")) RETURN_IF_ERROR(ParseLabels(reader, trigger));
  auto op = std::ranges::find_if(kOps, [&reader](const OpName& one) { return reader.Take(one.text); });
  if (op == kOps.end()) return InvalidArgument("after the metric must be one of > >= < <= == !=");
  trigger->op = op->op;
  if (!reader.TakeNumber(&trigger->value)) {
    return InvalidArgument("after the comparison must be a number");
  }
  if (reader.TakeWord("for") && !reader.TakeDuration(&trigger->for_ns)) {
    return InvalidArgument("\"for\" takes a duration up to an hour: 500ms, 10s, 2m");
  }
  return {};
}

Status ParseStep(Reader& reader, Trigger* trigger) {
  constexpr std::string_view kForm = "written \"step > 2x median\", with a factor above 1, at most 1000";
  trigger->kind = TriggerKind::kSlowStep;
  bool good = reader.Take(">") && reader.TakeNumber(&trigger->factor) && reader.TakeWord("x") &&
              reader.TakeWord("median");
  if (!good || trigger->factor <= 1 || trigger->factor > kMaxFactor) {
    return InvalidArgument(std::string(kForm));
  }
  return {};
}

Status ParseAdvice(Reader& reader, Trigger* trigger) {
  trigger->kind = TriggerKind::kAdvice;
  trigger->check = reader.TakeName();
  const bool known = std::ranges::find(kLiveChecks, trigger->check) != kLiveChecks.end();
  if (trigger->check.empty() || known) return {};
  return InvalidArgument(fmt::format("no check {}; there are {}", log::Quote(trigger->check), fmt::join(kLiveChecks, ", ")));
}

}  // namespace

std::string_view ToString(TriggerKind kind) {
  constexpr std::array<std::string_view, 5> kNames = {"threshold", "error_code", "crash", "slow_step", "advice"};
  return kNames[static_cast<size_t>(kind)];
}

bool Holds(TriggerOp op, double left, double right) {
  switch (op) {
    case TriggerOp::kAbove:
      return left > right;
    case TriggerOp::kAtLeast:
      return left >= right;
    case TriggerOp::kBelow:
      return left < right;
    case TriggerOp::kAtMost:
      return left <= right;
    case TriggerOp::kEqual:
      return left >= right && left <= right;
    case TriggerOp::kNotEqual:
      return left < right || left > right;
  }
  return false;
}

Result<Trigger> ParseTrigger(std::string_view text) {
  Trigger trigger;
  if (text.size() > kMaxText) {
    return InvalidArgument(fmt::format("longer than {} characters", kMaxText));
  }
  trigger.text = Trim(text);
  Reader reader(trigger.text);
  std::string_view name = reader.TakeName();
  Status status;
  if (name == "error_code") {
    trigger.kind = TriggerKind::kErrorCode;
  } else if (name == "crash") {
    trigger.kind = TriggerKind::kCrash;
  } else if (name == "step") {
    status = ParseStep(reader, &trigger);
  } else if (name == "advice") {
    status = ParseAdvice(reader, &trigger);
  } else {
    status = ParseThreshold(name, reader, &trigger);
  }
  if (status.ok() && !reader.AtEnd()) {
    status = InvalidArgument(fmt::format("{} is too much", log::Quote(reader.rest())));
  }
  if (!status.ok()) return status;
  return trigger;
}

Result<WantedCollector> ParseWantedCollector(std::string_view text) {
  size_t equals = text.find('=');
  std::string_view name = Trim(text.substr(0, equals));
  const CollectorEntry* entry = FindCollector(name);
  if (entry == nullptr) {
    return InvalidArgument(
        fmt::format("no collector {}{}", log::Quote(name), CollectorHint(name)));
  }
  const CollectorSpec& spec = *entry->spec;
  WantedCollector wanted;
  wanted.collector = static_cast<uint16_t>(entry - Collectors().data());
  wanted.hz = spec.default_hz;
  if (equals == std::string_view::npos) return wanted;
  std::string_view rate = Trim(text.substr(equals + 1));
  double most = spec.max_hz > 0 ? spec.max_hz : 1000;
  if (!ParseNumber(rate, &wanted.hz) || !(wanted.hz >= kMinHz && wanted.hz <= most)) {
    return InvalidArgument(fmt::format("{} must be {}..{} Hz", log::Quote(rate), kMinHz, most));
  }
  return wanted;
}

void ValidateCollectors(std::string_view key, const std::vector<std::string>& collectors,
                        std::vector<std::string>* problems) {
  std::set<uint16_t> seen;
  for (const std::string& text : collectors) {
    Result<WantedCollector> wanted = ParseWantedCollector(text);
    if (!wanted.ok()) {
      problems->push_back(fmt::format("{}: {}: {}", key, log::Quote(text), wanted.status().message()));
    } else if (!seen.insert(wanted->collector).second) {
      problems->push_back(fmt::format("{}: {}: named twice", key, log::Quote(text)));
    }
  }
}

void ValidateRecorder(const std::vector<std::string>& collectors,
                      const std::vector<std::string>& triggers,
                      std::vector<std::string>* problems) {
  ValidateCollectors("recorder.collectors", collectors, problems);
  if (triggers.size() > kMaxTriggers) {
    problems->push_back(fmt::format("recorder.triggers: {} given, at most {}", triggers.size(),
                                    kMaxTriggers));
  }
  const auto condition = [](Trigger trigger) {
    std::ranges::sort(trigger.labels);
    return std::tuple(trigger.kind, trigger.metric, trigger.labels, trigger.op, trigger.value, trigger.for_ns, trigger.factor,
                      trigger.check);
  };
  std::set<decltype(condition(Trigger()))> seen;
  for (const std::string& text : triggers) {
    Result<Trigger> trigger = ParseTrigger(text);
    if (!trigger.ok()) {
      problems->push_back(fmt::format("recorder.triggers: {}: {}", log::Quote(text),
                                      trigger.status().message()));
    } else if (!seen.insert(condition(*trigger)).second) {
      problems->push_back(fmt::format("recorder.triggers: {}: named twice", log::Quote(text)));
    }
  }
}

}  // namespace profd
