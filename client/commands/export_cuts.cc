#include "client/commands/export_parse.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "base/text.h"
#include "client/parse.h"
#include "export/find_steps.h"

namespace profd::client {
namespace {

using exporting::ExportOptions;
using exporting::StepNumbers;

// More than there are ranks anywhere, so that "0-4000000000" is not a loop.
constexpr int64_t kMaxRank = 1'000'000;

// "3" or "3-7".
std::optional<StepNumbers> ParseNumbers(std::string_view text) {
  const size_t dash = text.find('-', 1);
  StepNumbers numbers;
  if (!ParseNumber(Trim(text.substr(0, dash)), &numbers.first)) return std::nullopt;
  numbers.last = numbers.first;
  if (dash != std::string_view::npos && !ParseNumber(Trim(text.substr(dash + 1)), &numbers.last)) return std::nullopt;
  if (numbers.first < 0 || numbers.last < numbers.first) return std::nullopt;
  return numbers;
}

std::string Written(const StepNumbers& steps) {
  return steps.first == steps.last ? std::to_string(steps.first) : fmt::format("{} to {}", steps.first, steps.last);
}

}  // namespace

void ParseCuts(const ExportCommand& command, ExportOptions* options, std::vector<std::string>* problems) {
  if (command.top && (!ParseNumber(*command.top, &options->longest) || options->longest == 0)) {
    problems->push_back(fmt::format("--top \"{}\": a number from 1 on", *command.top));
  }
  if (command.step && (command.from || command.to)) {
    problems->push_back("--step sets the times: leave out --from and --to, or --step");
  }
  const auto items = ReadFlag("--rank", command.rank, ParseList, problems);
  if (!items) return;
  for (const std::string& item : *items) {
    const auto ranks = ParseNumbers(item);
    if (!ranks || ranks->last > kMaxRank) {
      problems->push_back(fmt::format("--rank \"{}\": a rank, or a range such as 4-7", item));
      continue;
    }
    for (int64_t rank = ranks->first; rank <= ranks->last; ++rank) options->ranks.insert(static_cast<int>(rank));
  }
}

void CheckRanks(const std::vector<exporting::Dump>& dumps, const std::set<int>& ranks,
                std::vector<std::string>* problems) {
  if (ranks.empty() || dumps.empty()) return;
  std::set<int> known;
  for (const exporting::Dump& dump : dumps) {
    const std::vector<int> its = dump.info().RanksOf(-1);
    known.insert(its.begin(), its.end());
  }
  std::vector<int> unknown;
  std::ranges::set_difference(ranks, known, std::back_inserter(unknown));
  if (unknown.empty()) return;
  if (known.empty()) {
    return problems->push_back(fmt::format("--rank {}: no dump records which ranks it is of; use --devices", fmt::join(unknown, ",")));
  }
  problems->push_back(fmt::format("--rank {}: no dump is of {}; there are {}", fmt::join(unknown, ","),
                                  unknown.size() == 1 ? "it" : "them", fmt::join(known, ", ")));
}

Status ResolveSteps(const ExportCommand& command, ExportOptions* options, std::vector<std::string>* problems) {
  if (!command.step) return {};
  const auto wanted = ParseNumbers(*command.step);
  if (!wanted) {
    problems->push_back(fmt::format("--step \"{}\": the number of a step, or a range such as 3-7", *command.step));
  }
  if (!problems->empty()) return {};
  const auto found = exporting::FindSteps(*options, *wanted);
  if (!found.ok()) return found.status();
  if (found->window) {
    options->window = *found->window;
    return {};
  }
  if (!found->all) {
    return InvalidArgument(
        fmt::format("--step {}: the dumps have no training steps; use --from and --to", *command.step));
  }
  return InvalidArgument(fmt::format("--step {}: there is no such step; there are {}", *command.step,
                                     Written(*found->all)));
}

}  // namespace profd::client
