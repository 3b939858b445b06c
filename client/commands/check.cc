#include "client/commands/options.h"

#include <fmt/format.h>

#include "client/commands/start_parse.h"
#include "client/option_view.h"
#include "client/render.h"
#include "proto/options/options_message.h"
#include "proto/problems/problem_message.h"

namespace profd::client {
namespace {

v1::CheckOptionsResponse CheckHere(const VendorOptions& vendor, const CheckOptions& options,
                                   const options::NodeSupport* node) {
  v1::CheckOptionsResponse response;
  options::CheckRequest request;
  std::vector<Problem> problems;
  std::vector<std::string> warnings;
  request.given = options::FromMessage(vendor.options);
  if (!vendor.json.empty()) options::ParseJson(vendor.json, &request.given, &problems);
  // As the daemon: with defaults of their own once one of them is given.
  options::FromAclSwitches(vendor.acl, /*with_defaults=*/!vendor.acl.empty(), &request.given, &problems, &warnings);
  request.node = node;
  request.best_effort = vendor.best_effort;
  request.has_process = !options.no_job;
  options::CheckResult result = options::Check(request);
  problems.insert(problems.end(), result.problems.begin(), result.problems.end());
  warnings.insert(warnings.end(), result.warnings.begin(), result.warnings.end());
  const std::vector<std::string> awaited = options::AwaitedOptions(result.options);
  if (options.no_job && !awaited.empty()) warnings.push_back(fmt::format("{}: {}", fmt::join(awaited, ", "), options::kNeedsProcess));
  for (const Problem& problem : problems) ToWire(problem, response.add_problems());
  for (const std::string& warning : warnings) response.add_warnings(warning);
  for (const options::Effective& effective : result.options.effective) ToWire(effective, response.add_effective_options());
  return response;
}

Result<v1::CheckOptionsResponse> AskDaemon(const Context& context, const VendorOptions& vendor,
                                           const CheckOptions& options, v1::CheckOptionsRequest request) {
  // Judged as for a job, whichever it will be.
  if (!options.no_job) request.mutable_spec()->mutable_target()->set_job_id("any");
  *request.mutable_spec()->mutable_options() = vendor.options;
  request.mutable_spec()->set_options_json(vendor.json);
  request.mutable_spec()->mutable_acl_switches()->insert(vendor.acl.begin(), vendor.acl.end());
  request.mutable_spec()->set_best_effort(vendor.best_effort);
  return WithProgress(context, "checking", [&] { return context.api.CheckOptions(request); });
}

void Print(const Context& context, const v1::CheckOptionsResponse& response, bool verbose) {
  for (const v1::Problem& problem : response.problems()) {
    context.io.err << Paint("problem: ", Tone::kBad, context.io.err_color())
                   << Printable(Describe(FromWire(problem))) << '\n';
  }
  for (const std::string& warning : response.warnings()) {
    context.io.err << Paint("warning: ", Tone::kWarning, context.io.err_color())
                   << Printable(warning) << '\n';
  }
  if (response.problems_size() > 0) {
    uint64_t count = 0;
    for (const v1::Problem& problem : response.problems()) count += problem.has_left_out() ? problem.left_out() : 1;
    context.io.err << fmt::format("profctl: {}; nothing would start. See `profctl options`\n", CountText(count, "problem"));
    return;
  }
  context.io.out << "the options are right\n";
  PrintEffective(context.io.out, response.effective_options(), verbose, context.io.out_color());
}

}  // namespace

int RunCheck(const Context& context, const CheckOptions& options) {
  std::vector<std::string> problems;
  std::optional<options::NodeSupport> chip;
  if (options.chip) {
    chip = options::SupportOfChip(*options.chip);
    if (!options.offline) problems.emplace_back("--chip needs --offline");
    if (!chip) {
      problems.push_back(fmt::format("unknown chip --chip \"{}\"; must be one of {}", *options.chip,
                                     fmt::join(options::ChipNames(), ", ")));
    }
  }
  if (options.offline && !options.collectors.empty()) problems.emplace_back("--collector needs a daemon; leave out --offline");
  VendorOptions vendor = ReadOptions(options.options, &problems);
  v1::CheckOptionsRequest request;
  ReadCollectors(options.collectors, &problems, request.mutable_spec());
  if (!problems.empty()) return UsageError(context.io, "check", problems);
  v1::CheckOptionsResponse response;
  if (options.offline) {
    response = CheckHere(vendor, options, chip ? &*chip : nullptr);
  } else {
    auto answer = AskDaemon(context, vendor, options, std::move(request));
    if (!answer.ok()) return Fail(context, answer.status());
    response = std::move(*answer);
  }
  for (const Problem& problem : UnfitProblems(vendor)) ToWire(problem, response.add_problems());
  if (context.json) {
    Json json = ToJson(response);
    json["ok"] = response.problems_size() == 0;
    PrintJson(context, json);
  } else {
    Print(context, response, options.verbose);
  }
  return response.problems_size() == 0 ? kExitOk : kExitRefused;
}

}  // namespace profd::client
