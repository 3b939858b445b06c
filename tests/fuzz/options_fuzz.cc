// Input: how to check, PROFILING_OPTIONS, and behind a line "---" lines NAME=VALUE: options as
// fields, ACL switches by their names.
#include <map>

#include "base/text.h"
#include "base/utf8.h"
#include "proto/options/option_value.h"
#include "proto/options/options.h"
#include "tests/fuzz/fuzz_input.h"

namespace profd::options {
namespace {

constexpr std::string_view kSeparator = "\n---\n";

void CheckText(const std::string& text) {
  FUZZ_EXPECT(IsUtf8(text));
  for (char c : text) FUZZ_EXPECT(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
}

void CheckProblems(const std::vector<Problem>& problems) {
  for (const Problem& problem : problems) {
    FUZZ_EXPECT(!Describe(problem).empty() && Describe(problem).size() < 1500);
    CheckText(Describe(problem));
    CheckText(problem.field);
    CheckText(problem.value);
  }
}

void CheckNumbers(const OptionSet& options) {
  for (const Option& option : Table()) {
    FUZZ_EXPECT(options.Get(option.key) != nullptr);
    bool numeric = option.type == Type::kFrequency || option.type == Type::kCycles ||
                   option.type == Type::kSize;
    if (!numeric) continue;
    uint32_t number = options.Number(option.key);
    FUZZ_EXPECT(number == 0 || (number >= option.min && number <= option.max));
  }
}

// What is right stays right, and the same, when it is given as it was understood.
void CheckAgain(const CheckRequest& request, const CheckResult& result) {
  CheckRequest again = request;
  again.given.clear();
  for (const Effective& effective : result.options.effective) {
    const Option* option = Find(effective.key);
    if (option == nullptr || !effective.was_asked) continue;
    if (option->type == Type::kMetrics && effective.value == "off") continue;
    again.given.push_back({.key = effective.key, .value = effective.value});
  }
  CheckResult repeated = Check(again);
  FUZZ_EXPECT(repeated.ok());
  for (const OptionInput& given : again.given) {
    FUZZ_EXPECT(repeated.options.Text(given.key) == result.options.Text(given.key));
  }
}

NodeSupport SomeNode(uint8_t flags) {
  std::vector<std::string_view> names = ChipNames();
  return *SupportOfChip(names[(flags >> 4) % names.size()]);
}

void TakeLines(std::string_view rest, CheckRequest* request,
               std::map<std::string, std::string>* switches) {
  std::string_view line;
  while (NextLine(&rest, &line)) {
    size_t equal = std::min(line.find('='), line.size());
    std::string name(line.substr(0, equal));
    std::string value(line.substr(std::min(equal + 1, line.size())));
    if (name.starts_with("ACL_") || name.starts_with("TORCH_") || name.starts_with("ai")) {
      (*switches)[name] = value;
    } else {
      request->given.push_back({.key = name, .value = value});
    }
  }
}

void Run(fuzz::Input input) {
  const auto flags = input.Take<uint8_t>();
  std::string_view json = input.rest();
  std::string_view lines;
  if (size_t at = json.find(kSeparator); at != std::string_view::npos) {
    lines = json.substr(at + kSeparator.size());
    json = json.substr(0, at);
  }
  CheckRequest request;
  std::vector<Problem> problems;
  std::vector<std::string> warnings;
  ParseJson(json, &request.given, &problems);
  FUZZ_EXPECT(problems.size() <= kMaxProblems + 2);
  FUZZ_EXPECT(request.given.size() <= Table().size() + kMaxProblems);
  std::map<std::string, std::string> switches;
  TakeLines(lines, &request, &switches);
  FromAclSwitches(switches, (flags & 1) != 0, &request.given, &problems, &warnings);
  const NodeSupport node = SomeNode(flags);
  request.best_effort = (flags & 2) != 0;
  request.has_process = (flags & 4) == 0;
  if ((flags & 8) != 0) request.node = &node;
  CheckResult result = Check(request);
  FUZZ_EXPECT(result.problems.size() <= kMaxProblems + 1);
  CheckProblems(problems);
  CheckProblems(result.problems);
  for (const std::string& warning : result.warnings) CheckText(warning);
  for (const Effective& effective : result.options.effective) {
    CheckText(effective.asked);
    CheckText(effective.note);
  }
  CheckNumbers(result.options);
  if (result.ok() && !request.best_effort) CheckAgain(request, result);
}

}  // namespace
}  // namespace profd::options

void profd::fuzz::Run(Input input) { options::Run(input); }
