#include "daemon/session/sampling_rule.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/problem.h"
#include "base/text.h"
#include "proto/options/options.h"

namespace profd {
namespace {

struct Key {
  std::string_view name;
  int64_t SamplingRule::* member;
  int64_t min;
  int64_t max;
};
constexpr Key kKeys[] = {{"every_minutes", &SamplingRule::every_minutes, 0, kMostSamplingMinutes},
                         {"every_steps", &SamplingRule::every_steps, 0, kMostSamplingEverySteps},
                         {"steps", &SamplingRule::steps, 1, kMostSamplingSteps}};

Status Set(std::string_view word, SamplingRule* rule) {
  const size_t equals = word.find('=');
  for (const Key& key : kKeys) {
    if (word.substr(0, equals) != key.name) continue;
    int64_t value = 0;
    const bool number = equals != std::string_view::npos && ParseNumber(word.substr(equals + 1), &value);
    if (!number || value < key.min || value > key.max) {
      return InvalidArgument(fmt::format("\"{}\": {} must be an integer from {} to {}", word, key.name, key.min, key.max));
    }
    rule->*key.member = value;
    return Status::Ok();
  }
  return InvalidArgument(fmt::format("\"{}\" must be off, every_minutes=N, every_steps=N or steps=N", word));
}

}  // namespace

bool SamplingRule::Matches(const std::string& job_id) const {
  return ::fnmatch(pattern.c_str(), job_id.c_str(), 0) == 0;
}

Result<SamplingRule> ParseSamplingRule(std::string_view text, const SamplingRule& usual) {
  SamplingRule rule = usual;
  std::istringstream words{std::string(text)};
  std::string word;
  if (!(words >> rule.pattern)) return InvalidArgument("must begin with a pattern of job ids");
  bool any = false;
  while (words >> word) {
    any = true;
    if (word == "off") {
      rule.off = true;
    } else if (Status set = Set(word, &rule); !set.ok()) {
      return set;
    }
  }
  if (!any) return InvalidArgument("needs off, every_minutes=N, every_steps=N or steps=N behind the pattern");
  return rule;
}

Result<std::string> SamplingOptions(const std::vector<std::string>& given, const std::vector<std::string>& collectors) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  options::CheckRequest request;
  for (const std::string& text : collectors) request.collectors.push_back(text.substr(0, text.find('=')));
  std::string problems;
  for (const std::string& text : given) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) {
      problems += fmt::format("; \"{}\" must be OPTION=VALUE", text);
      continue;
    }
    request.given.push_back({text.substr(0, equals), text.substr(equals + 1), options::OptionSyntax::kJson});
    object[text.substr(0, equals)] = text.substr(equals + 1);
  }
  for (const Problem& problem : options::Check(request).problems) {
    problems += fmt::format("; {}", Describe(std::vector{problem}));
  }
  if (!problems.empty()) return InvalidArgument(problems.substr(2));
  return object.dump();
}

}  // namespace profd
