#include <fmt/format.h>

#include "base/text.h"
#include "client/commands/start.h"
#include "client/commands/start_parse.h"
#include "client/parse.h"
#include "proto/enum_word/enum_word.h"

namespace profd::client {
namespace {

constexpr uint64_t kDefaultLeaseMs = 60'000;

// Reads one option after the other and gathers what is wrong with them.
class Reader {
 public:
  explicit Reader(std::vector<std::string>* problems) : problems_(problems) {}

  // True when `value` was given and `parse` took it.
  template <class T>
  bool Read(std::string_view flag, const std::optional<std::string>& value,
            Result<T> (*parse)(std::string_view), T* out) {
    if (!value) return false;
    return Take(flag, parse(*value), out);
  }
  template <class T>
  bool Take(std::string_view flag, Result<T> result, T* out) {
    if (!result.ok()) {
      problems_->push_back(fmt::format("{} {}", flag, result.status().message()));
      return false;
    }
    *out = std::move(result).value();
    return true;
  }
  void Add(std::string problem) { problems_->push_back(std::move(problem)); }
  std::vector<std::string>* problems() { return problems_; }

 private:
  std::vector<std::string>* problems_;
};

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

void ReadVendorOptions(const StartOptions& options, Reader* reader,
                       std::vector<std::string>* problems, v1::SessionSpec* request) {
  VendorOptions vendor = ReadOptions(options.options, problems);
  for (const Problem& problem : UnfitProblems(vendor)) reader->Add(Describe(problem));
  if (vendor.options.ByteSizeLong() > 0) *request->mutable_options() = std::move(vendor.options);
  request->set_options_json(vendor.json);
  request->mutable_acl_switches()->insert(vendor.acl.begin(), vendor.acl.end());
  request->set_best_effort(vendor.best_effort);
  // Of other sources it may be there for sessions with a dump.
  const auto flag = options.options.flags.find("output");
  if (options.no_dump && flag != options.options.flags.end() && flag->second) {
    reader->Add("--output and --no-dump: give one of them");
  }
  if (!vendor.output.empty() && !options.no_dump) {
    (*request->mutable_metadata())[kOutputMetadata] = vendor.output;
  }
}

// With a job --rank selects; without one, and where the job is only a name, one rank is the
// session's own.
void ReadRanks(const StartOptions& options, Reader* reader, v1::SessionSpec* request) {
  std::vector<uint32_t> ranks;
  if (!reader->Read("--rank", options.rank, ParseRanks, &ranks)) return;
  bool single = ranks.size() == 1 && ranks.front() <= 0x7fffffff;
  bool name_only = !options.job || options.all || options.devices || options.for_run;
  if (single && name_only) {
    request->mutable_target()->set_rank(static_cast<int32_t>(ranks.front()));
  } else if (!options.job) {
    reader->Add("--rank: several ranks are of a job; name it with --job");
  } else if (options.all || options.devices) {
    reader->Add(
        "--rank: several ranks cannot be selected with --all or --devices; leave these out");
  } else {
    request->mutable_target()->mutable_ranks()->Assign(ranks.begin(), ranks.end());
  }
}

void ReadWhen(const StartOptions& options, Reader* reader, v1::SessionSpec* request) {
  int64_t number = 0;
  uint64_t ms = 0;
  uint32_t count = 0;
  if (reader->Read("--at", options.at, ParseInstant, &number)) request->mutable_schedule()->set_start_at_ns(number);
  if (reader->Read("--in", options.in, ParseDurationMs, &ms)) request->mutable_schedule()->set_start_in_ms(ms);
  const bool relative = options.start_step && options.start_step->starts_with('+');
  if (!relative && reader->Read("--start-step", options.start_step, ParseStep, &number)) {
    request->mutable_schedule()->set_start_step(number);
  }
  if (relative &&
      reader->Take("--start-step", ParseSteps(options.start_step->substr(1)), &count)) {
    request->mutable_schedule()->set_start_in_steps(count);
  }
  if (int(options.at.has_value()) + int(options.in.has_value()) +
          int(options.start_step.has_value()) >
      1) {
    reader->Add("--at, --in and --start-step: give one of them");
  }
  if (reader->Read("--steps", options.steps, ParseSteps, &count)) request->mutable_schedule()->set_steps(count);
  if (reader->Read("--since", options.since, ParseAgoMs, &ms)) request->mutable_schedule()->set_since_ms(ms);
  if (reader->Read("--duration", options.duration, ParseDurationMs, &ms)) {
    request->mutable_schedule()->set_duration_ms(ms);
  }
  if (reader->Read("--lease", options.lease, ParseDurationMs, &ms)) request->mutable_lease()->set_lease_ms(ms);
  if (options.lease && options.detach) reader->Add("--lease and --detach: give one of them");
}

void ReadMetadata(const StartOptions& options, Reader* reader, v1::SessionSpec* request) {
  std::pair<std::string, std::string> pair;
  for (const std::string& text : options.metadata) {
    if (!reader->Take("--metadata", ParsePair(text), &pair)) continue;
    auto [known, added] = request->mutable_metadata()->insert({pair.first, pair.second});
    if (!added) reader->Add(fmt::format("--metadata {}: is given twice", pair.first));
  }
}

void ReadWhat(const StartOptions& options, Reader* reader, v1::SessionSpec* request) {
  std::vector<uint32_t> devices;
  if (reader->Read("--devices", options.devices, ParseDevices, &devices)) {
    request->mutable_target()->mutable_devices()->Assign(devices.begin(), devices.end());
  }
  if (options.all && options.devices) {
    reader->Add("--all and --devices: give one of them; --devices alone takes only these");
  }
  ReadCollectors(options.collectors, reader->problems(), request);
  int32_t pid = 0;
  for (const std::string& text : options.pids) {
    if (reader->Take("--pid", ParsePid(text), &pid)) request->mutable_target()->add_pids(pid);
  }
  if (reader->Read("--end-with-pid", options.end_with_pid, ParsePid, &pid)) {
    request->mutable_schedule()->set_end_with_pid(pid);
  }
}

}  // namespace

v1::SessionSpec BuildStartRequest(const StartOptions& options,
                                          std::vector<std::string>* problems) {
  v1::SessionSpec request;
  Reader reader(problems);
  std::string text;
  if (reader.Read("--job", options.job, ParseText, &text)) request.mutable_target()->set_job_id(text);
  if (reader.Read("--label", options.label, ParseText, &text)) request.set_label(text);
  ReadRanks(options, &reader, &request);
  ReadWhat(options, &reader, &request);
  ReadVendorOptions(options, &reader, problems, &request);
  ReadMetadata(options, &reader, &request);
  ReadWhen(options, &reader, &request);
  v1::SessionSpec::Provider provider{};
  if (reader.Read("--provider", options.provider, ParseProvider, &provider)) request.set_provider(provider);
  uint32_t priority = 0;
  if (reader.Read("--priority", options.priority, ParseCount, &priority)) {
    request.set_priority(priority);
  }
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
