#include <fmt/format.h>

#include "base/text.h"
#include "client/commands/start.h"
#include "client/commands/start_parse.h"
#include "client/parse.h"
#include "proto/enum_word/enum_word.h"

namespace profd::client {
namespace {

constexpr uint64_t kDefaultLeaseMs = 60'000;

// "" on the wire would mean "not requested".
Result<std::string> ParseText(std::string_view text) {
  if (text.empty()) return InvalidArgument("\"\" is empty; leave the option out instead");
  return std::string(text);
}

Result<int64_t> ParseStep(std::string_view text) {
  int64_t step = 0;
  if (ParseNumber(text, &step) && step >= 0) return step;
  return InvalidArgument(fmt::format("\"{}\" is not the number of a step; write 200, or +20 to count from the present one",
                                     text));
}

Result<v1::SessionSpec::Provider> ParseProvider(std::string_view text) {
  const auto provider = EnumOf<v1::SessionSpec::Provider>(text);
  if (provider != v1::SessionSpec::PROVIDER_UNSPECIFIED) return provider;
  return InvalidArgument(fmt::format("\"{}\" is not a provider; one of auto, mspti, aclprof, off", text));
}

// 0 would mean "not requested".
Result<uint32_t> ParseSteps(std::string_view text) {
  uint32_t steps = 0;
  if (ParseNumber(text, &steps) && steps > 0) return steps;
  return InvalidArgument(fmt::format("\"{}\" is not an integer above zero", text));
}

void ReadVendorOptions(const StartOptions& options, std::vector<std::string>* problems, v1::SessionSpec* request) {
  VendorOptions vendor = ReadOptions(options.options, problems);
  for (const Problem& problem : UnfitProblems(vendor)) problems->push_back(Describe(problem));
  if (vendor.options.ByteSizeLong() > 0) *request->mutable_options() = std::move(vendor.options);
  request->set_options_json(vendor.json);
  request->mutable_acl_switches()->insert(vendor.acl.begin(), vendor.acl.end());
  request->set_best_effort(vendor.best_effort);
  // Of other sources it may be there for sessions with a dump.
  const auto flag = options.options.flags.find("output");
  if (options.no_dump && flag != options.options.flags.end() && flag->second) {
    problems->push_back("--output and --no-dump: give one of them");
  }
  if (!vendor.output.empty() && !options.no_dump) {
    (*request->mutable_metadata())[kOutputMetadata] = vendor.output;
  }
}

// With a job --rank selects; without one, and where the job is only a name, one rank is the
// session's own.
void ReadRanks(const StartOptions& options, std::vector<std::string>* problems, v1::SessionSpec* request) {
  const auto ranks = ReadFlag("--rank", options.rank, ParseRanks, problems);
  if (!ranks) return;
  bool single = ranks->size() == 1 && ranks->front() <= 0x7fffffff;
  bool name_only = !options.job || options.all || options.devices || options.for_run;
  if (single && name_only) {
    request->mutable_target()->set_rank(static_cast<int32_t>(ranks->front()));
  } else if (!options.job) {
    problems->push_back("--rank: several ranks are of a job; name it with --job");
  } else if (options.all || options.devices) {
    problems->push_back("--rank: several ranks cannot be selected with --all or --devices; leave these out");
  } else {
    request->mutable_target()->mutable_ranks()->Assign(ranks->begin(), ranks->end());
  }
}

void ReadWhen(const StartOptions& options, std::vector<std::string>* problems, v1::SessionSpec* request) {
  if (const auto ns = ReadFlag("--at", options.at, ParseInstant, problems)) {
    request->mutable_schedule()->set_start_at_ns(*ns);
  }
  if (const auto ms = ReadFlag("--in", options.in, ParseDurationMs, problems)) {
    request->mutable_schedule()->set_start_in_ms(*ms);
  }
  if (options.start_step && options.start_step->starts_with('+')) {
    const auto steps = ReadFlag("--start-step", ParseSteps(options.start_step->substr(1)), problems);
    if (steps) request->mutable_schedule()->set_start_in_steps(*steps);
  } else if (const auto step = ReadFlag("--start-step", options.start_step, ParseStep, problems)) {
    request->mutable_schedule()->set_start_step(*step);
  }
  if (int(options.at.has_value()) + int(options.in.has_value()) +
          int(options.start_step.has_value()) >
      1) {
    problems->push_back("--at, --in and --start-step: give one of them");
  }
  if (const auto steps = ReadFlag("--steps", options.steps, ParseSteps, problems)) {
    request->mutable_schedule()->set_steps(*steps);
  }
  if (const auto ms = ReadFlag("--since", options.since, ParseAgoMs, problems)) {
    request->mutable_schedule()->set_since_ms(*ms);
  }
  if (const auto ms = ReadFlag("--duration", options.duration, ParseDurationMs, problems)) {
    request->mutable_schedule()->set_duration_ms(*ms);
  }
  if (const auto ms = ReadFlag("--lease", options.lease, ParseDurationMs, problems)) {
    request->mutable_lease()->set_lease_ms(*ms);
  }
  if (options.lease && options.detach) problems->push_back("--lease and --detach: give one of them");
}

void ReadMetadata(const StartOptions& options, std::vector<std::string>* problems, v1::SessionSpec* request) {
  for (const std::string& text : options.metadata) {
    const auto pair = ReadFlag("--metadata", ParsePair(text), problems);
    if (!pair) continue;
    auto [known, added] = request->mutable_metadata()->insert({pair->first, pair->second});
    if (!added) problems->push_back(fmt::format("--metadata {}: is given twice", pair->first));
  }
}

void ReadWhat(const StartOptions& options, std::vector<std::string>* problems, v1::SessionSpec* request) {
  if (const auto devices = ReadFlag("--devices", options.devices, ParseDevices, problems)) {
    request->mutable_target()->mutable_devices()->Assign(devices->begin(), devices->end());
  }
  if (options.all && options.devices) {
    problems->push_back("--all and --devices: give one of them; --devices alone takes only these");
  }
  ReadCollectors(options.collectors, problems, request);
  for (const std::string& text : options.pids) {
    if (const auto pid = ReadFlag("--pid", ParsePid(text), problems)) request->mutable_target()->add_pids(*pid);
  }
  if (const auto pid = ReadFlag("--end-with-pid", options.end_with_pid, ParsePid, problems)) {
    request->mutable_schedule()->set_end_with_pid(*pid);
  }
}

}  // namespace

v1::SessionSpec BuildStartRequest(const StartOptions& options,
                                          std::vector<std::string>* problems) {
  v1::SessionSpec request;
  if (const auto job = ReadFlag("--job", options.job, ParseText, problems)) request.mutable_target()->set_job_id(*job);
  if (const auto label = ReadFlag("--label", options.label, ParseText, problems)) request.set_label(*label);
  ReadRanks(options, problems, &request);
  ReadWhat(options, problems, &request);
  ReadVendorOptions(options, problems, &request);
  ReadMetadata(options, problems, &request);
  ReadWhen(options, problems, &request);
  const auto provider = ReadFlag("--provider", options.provider, ParseProvider, problems);
  if (provider) request.set_provider(*provider);
  const auto priority = ReadFlag("--priority", options.priority, ParseCount, problems);
  if (priority) request.set_priority(*priority);
  if (options.all) request.mutable_target()->set_all(true);
  if (options.follow) request.mutable_target()->set_follow(true);
  request.set_preempt(options.preempt);
  request.set_require_all(options.require_all);
  request.set_no_dump(options.no_dump);
  request.set_compress(options.compress);
  return request;
}

void AddDefaultLease(const StartOptions& options, pid_t starter, v1::SessionSpec* request) {
  if (options.detach) return;
  if (!options.lease && starter != 0) request->mutable_lease()->set_lease_ms(kDefaultLeaseMs);
  if (request->has_lease() && starter != 0) request->mutable_lease()->set_starter_pid(starter);
}

}  // namespace profd::client
