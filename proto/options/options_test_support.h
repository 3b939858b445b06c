// For tests of the options only: short ways to ask and to look at the answer.
#pragma once

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "proto/options/options.h"

namespace profd::options {

inline OptionInput Field(std::string key, std::string value) {
  return {.key = std::move(key), .value = std::move(value), .via = OptionSyntax::kField};
}

inline CheckResult CheckGiven(std::vector<OptionInput> given, const NodeSupport* node = nullptr) {
  CheckRequest request;
  request.given = std::move(given);
  request.node = node;
  return Check(request);
}

// Everything a JSON text leads to, as StartSession and CheckOptions put it together.
inline CheckResult CheckJson(const std::string& json, const NodeSupport* node = nullptr) {
  CheckRequest request;
  request.node = node;
  std::vector<Problem> problems;
  ParseJson(json, &request.given, &problems);
  CheckResult result = Check(request);
  result.problems.insert(result.problems.begin(), problems.begin(), problems.end());
  return result;
}

inline std::string Texts(const CheckResult& result) {
  std::string text;
  for (const Problem& problem : result.problems) text += problem.text + '\n';
  return text;
}

}  // namespace profd::options
