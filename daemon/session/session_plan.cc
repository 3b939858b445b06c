#include "daemon/session/session_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/duration_text.h"
#include "base/log.h"
#include "base/problem.h"
#include "base/text.h"
#include "daemon/jobs/process_facts.h"
#include "daemon/session/aclprof_plan.h"
#include "daemon/session/collector_plan.h"
#include "profd/v1/profd.pb.h"

namespace profd {
namespace {

constexpr size_t kMaxText = 128;
constexpr int kMaxPids = 1024;
// Of the volume's free space, when the request sets no limit.
constexpr uint64_t kFreePercent = 90;

// Builds a plan, gathering problems instead of stopping at the first.
class Planner {
 public:
  Planner(const v1::SessionSpec& spec, const PlanContext& context)
      : spec_(spec), context_(context) {}

  Result<SessionPlan> Run() {
    CheckTexts();
    CheckDevices();
    CheckProcesses();
    CheckOptions();
    CheckLimits();
    PlanCollectors();
    DescribeOptions();
    RETURN_IF_ERROR(Verdict());
    return std::move(plan_);
  }

 private:
  void Refuse(std::string_view field, std::string value, std::string text) {
    invalid_ = true;
    problems_.Add({.field = std::string(field), .value = std::move(value), .text = std::move(text)});
  }

  void Deny(std::string_view field, std::string value, std::string text) {
    denied_.Add({.kind = Problem::Kind::kDenied,
                 .field = std::string(field),
                 .value = std::move(value),
                 .text = std::move(text)});
  }

  Status Verdict() {
    if (!denied_.empty()) {
      denied_.Append(problems_);
      return {StatusCode::kPermissionDenied, std::move(denied_).Take()};
    }
    if (problems_.empty()) return Status::Ok();
    const StatusCode code = invalid_       ? StatusCode::kInvalidArgument
                            : unsupported_ ? StatusCode::kUnimplemented
                                           : StatusCode::kFailedPrecondition;
    return {code, std::move(problems_).Take()};
  }

  void CheckTexts() {
    const std::string& job_id = spec_.target().job_id();
    if (!job_id.empty() && !IsJobId(job_id)) {
      Refuse("job_id", job_id, fmt::format("at most {} letters, digits and any of . _ - : /", kMaxText));
    }
    if (Status label = CheckLabel(spec_.label()); !label.ok()) Refuse("label", "", label.message());
    if (spec_.provider() != v1::SessionSpec::PROVIDER_UNSPECIFIED && !v1::SessionSpec::Provider_IsValid(spec_.provider())) {
      Refuse("provider", std::to_string(spec_.provider()), "is not a provider that this profd knows");
    }
    if (spec_.target().rank() < 0) Refuse("rank", std::to_string(spec_.target().rank()), "must not be negative");
  }

  void CheckDevices() {
    std::set<int> wanted;
    for (uint32_t id : spec_.target().devices()) {
      auto found = std::ranges::find(context_.devices, static_cast<int>(id), &DeviceInfo::id);
      if (found == context_.devices.end()) {
        invalid_ = true;
        problems_.Add(NoSuchDevice(id, context_.devices));
      } else {
        wanted.insert(found->id);
      }
    }
    for (const DeviceInfo& device : context_.devices) {
      if (!spec_.target().devices().empty() && !wanted.contains(device.id)) continue;
      if (Status status = context_.node_devices.MayUse(context_.peer, device); !status.ok()) {
        // Without an explicit list "all" means all the caller may use.
        if (!spec_.target().devices().empty()) Deny("", "", status.message());
        continue;
      }
      plan_.devices.push_back(device.id);
      devices_.push_back(device);
    }
  }

  void CheckPid(std::string_view key, int32_t pid) {
    if (pid <= 0) {
      Refuse(key, std::to_string(pid), "must be a process id");
      return;
    }
    Result<uint32_t> owner = context_.processes.OwnerOf(pid);
    if (!owner.ok()) {
      Refuse(key, std::to_string(pid), WhyNoOwner(owner.status()));
    } else if (!context_.peer.Owns(*owner)) {
      Deny(key, std::to_string(pid),
           fmt::format("the process belongs to uid {}, you are uid {}", *owner, context_.peer.uid));
    }
  }

  void CheckProcesses() {
    if (spec_.schedule().has_end_with_pid()) CheckPid("end_with_pid", spec_.schedule().end_with_pid());
    const auto& pids = spec_.target().pids();
    if (pids.size() > kMaxPids) {
      Refuse("pids", "", fmt::format("{} given, at most {}", pids.size(), kMaxPids));
      return;
    }
    for (int32_t pid : pids) {
      CheckPid("pids", pid);
      plan_.pids.push_back(pid);
    }
  }

  // Where no device was left by mistakes in the order, the node's own say what could be supported.
  std::span<const DeviceInfo> ConcernedDevices() const {
    return devices_.empty() ? context_.devices : std::span<const DeviceInfo>(devices_);
  }

  void CheckOptions() {
    options::NodeSupport support =
        SupportOf(ConcernedDevices(), context_.collectors, context_.probe, context_.no_devices, context_.maybe_devices);
    options::CheckResult result = CheckOptionsOf(spec_, support);
    for (Problem& problem : CheckUserRates(result.options, MaxUserHz())) {
      result.problems.push_back(std::move(problem));
    }
    for (const Problem& problem : result.problems) {
      (problem.kind == Problem::Kind::kUnsupported ? unsupported_ : invalid_) = true;
      problems_.Add(problem);
    }
    options_ = std::move(result.options);
    plan_.warnings = std::move(result.warnings);
  }

  double MaxUserHz() const {
    return context_.peer.admin ? 0 : static_cast<double>(context_.config.max_user_hz);
  }

  void CheckDuration() {
    if (!spec_.schedule().has_duration_ms()) return;
    const uint64_t duration = spec_.schedule().duration_ms();
    const auto max_ms = static_cast<uint64_t>(context_.config.max_duration_s) * 1000;
    if (duration == 0) Refuse("duration_ms", "0", "must be above zero");
    if (duration > max_ms) {
      Refuse("duration_ms", std::to_string(duration), fmt::format("at most {} here (limits.max_duration_s)", ExactDuration(max_ms)));
    }
  }

  void CheckLimits() {
    CheckDuration();
    if (spec_.compress() && spec_.no_dump()) {
      Refuse("compress", "", "is about the dump, and {no_dump} is given");
    }
    if (spec_.no_dump() && spec_.schedule().has_since_ms()) {
      Refuse("since_ms", std::to_string(spec_.schedule().since_ms()),
             "needs a dump to put the past into, and {no_dump} is given");
    }
    const uint64_t most = static_cast<uint64_t>(context_.config.max_session_mb) << 20;
    const uint64_t asked = uint64_t{options_.Number("storage_limit")} << 20;
    plan_.max_bytes = most;
    if (asked == 0) {
      uint64_t of_free = context_.free_bytes / 100 * kFreePercent;
      if (of_free > 0) plan_.max_bytes = std::min(most, of_free);
      plan_.limit_ages = plan_.max_bytes < most;
      return;
    }
    plan_.storage_limited = true;
    plan_.limit_ages = true;
    plan_.max_bytes = std::min(most, asked);
    if (asked > most) {
      plan_.warnings.push_back(fmt::format("storage_limit {}MB lowered to {} MB (dump.max_session_mb)",
                                           asked >> 20, context_.config.max_session_mb));
    }
  }

  ProcessScope JobScope() const {
    ProcessScope scope;
    scope.pids.assign(plan_.pids.begin(), plan_.pids.end());
    scope.job_id = spec_.target().job_id();
    if (!context_.peer.admin) scope.only_uid = context_.peer.uid;
    return scope;
  }

  void PlanCollectors() {
    CollectorPlanner planner({context_.collectors, options_, JobScope(), MaxUserHz(),
                              [this](const Problem& problem) { Refuse(problem.field, problem.value, problem.text); }});
    plan_.application_options = ApplicationOptions(options_);
    plan_.awaited_options = AwaitedOptions(options_);
    // Of the defaults of the switches only what a session of this kind can record.
    std::erase_if(plan_.awaited_options, [this](const std::string& key) {
      return !options_.Asked(key) && !CanServe(key, options_.Text(key), spec_);
    });
    const OptionAims aims = AimsOf(options_);
    if (!aims.node && !aims.application && spec_.collectors().empty()) {
      planner.AddAll();
    } else {
      planner.AddByOptions();
      planner.AddByName({spec_.collectors().data(),
                         static_cast<size_t>(spec_.collectors_size())});
    }
    plan_.collectors = std::move(planner.planned());
    if (planner.lowered()) {
      plan_.warnings.push_back(fmt::format(
          "rates that were not requested are at most {} Hz (limits.max_user_hz)", MaxUserHz()));
    }
    if (!plan_.collectors.empty() || !problems_.empty()) return;
    if (aims.application && AwaitsAnything()) {
      PlanApplicationOnly();
    } else {
      RefuseNothing(aims);
    }
  }

  // A process that starts the session itself has its marks recorded at least.
  bool AwaitsAnything() const {
    if (spec_.marks()) return !plan_.awaited_options.empty();
    return std::ranges::any_of(plan_.awaited_options, [this](const std::string& key) {
      return !options::NamesRegisters(key, options_.Text(key));
    });
  }

  // The vendor's semantics: options of the application alone collect in the application alone.
  void PlanApplicationOnly() {
    plan_.application_only = context_.attached || context_.awaits_processes || StartsWithCommand(spec_);
    if (plan_.application_only) return;
    // Without a job no process takes part, though some may be attached.
    std::string_view what = spec_.target().job_id().empty() && plan_.pids.empty()
                                ? "the request names none of its processes; give {job_id} or {pids}"
                                : "no process of this job is attached; attach one";
    problems_.Add(
        {.kind = Problem::Kind::kNeedsProcess,
         .field = fmt::format("{}", fmt::join(plan_.awaited_options, ", ")),
         .text = fmt::format("these data come from inside the application, and {}, or add what the node itself "
                             "measures (sys_hardware_mem_freq, sys_io_sampling_freq, sys_interconnection_freq, "
                             "dvpp_freq, host_sys_usage)",
                             what)});
  }

  void RefuseNothing(const OptionAims& aims) {
    if ((aims.node || !plan_.awaited_options.empty()) && !plan_.warnings.empty()) {
      // All of what was requested became warnings (best_effort), or can never be recorded.
      unsupported_ = true;
      problems_.Add({.kind = Problem::Kind::kUnsupported, .text = "nothing requested can be collected here:"});
      for (const std::string& warning : plan_.warnings) {
        problems_.Add({.kind = Problem::Kind::kUnsupported, .text = warning});
      }
    } else {
      Refuse("", "", "the options turn everything off: nothing would be collected");
    }
  }

  // Of what is collected; where the dump is written to and how large it may become is something else.
  bool AskedNothing() const {
    const OptionAims aims = AimsOf(options_);
    return !aims.node && !aims.application;
  }

  // What was requested; and where that is nothing at all, or a process starts its own session, the default.
  void PlanCollect() {
    if (ProviderOff()) return;
    for (const std::string& key : plan_.awaited_options) {
      const attach::CollectKinds kinds = CollectKindsOf(key, options_.Text(key));
      if (!kinds.empty()) plan_.collect.emplace(key, kinds);
    }
    constexpr std::string_view kDefault = "task_time";
    const bool implied = !options_.Asked(kDefault) && !options_.Asked("task_trace") &&
                         options_.On(kDefault) &&
                         ((AskedNothing() && spec_.collectors().empty()) || spec_.marks());
    if (implied) plan_.collect.emplace(kDefault, CollectKindsOf(kDefault, options_.Text(kDefault)));
    PlanAclprof();
  }

  // A process runs one of the vendor's profilers at a time: where something that was requested needs this one, it
  // serves all of the session.
  void PlanAclprof() {
    const bool chosen = spec_.provider() == v1::SessionSpec::PROVIDER_ACLPROF;
    const bool free = spec_.provider() == v1::SessionSpec::PROVIDER_AUTO ||
                      spec_.provider() == v1::SessionSpec::PROVIDER_UNSPECIFIED;
    std::map<std::string, std::string> asked;
    for (const auto& [key, kinds] : plan_.collect) asked[key] = options_.Text(key);
    bool needed = chosen;
    for (const std::string& key : plan_.awaited_options) {
      asked[key] = options_.Text(key);
      needed = needed || (free && NeedsAclprof(key, asked[key]));
    }
    // Its files have no other place.
    if (!needed || spec_.no_dump()) return;
    // Implied by task_trace it does not choose this profiler, but what runs anyway records it.
    constexpr std::string_view kIteration = "training_trace";
    if (options_.On(kIteration)) asked.emplace(kIteration, options_.Text(kIteration));
    std::map<std::string, std::string> ordered = asked;
    // Without the tasks there is nothing to name what was counted.
    if (!options_.Asked("task_time") && !options_.Asked("task_trace")) {
      ordered["task_time"] = options_.Text("task_time");
    }
    plan_.aclprof = AclprofRequestOf(ordered, plan_.max_bytes >> 20);
    plan_.collect.clear();
    if (!plan_.aclprof) return;
    for (const auto& [key, value] : asked) {
      if (value != "off" && Serves(*plan_.aclprof, key)) plan_.collect[key];
    }
  }

  bool ProviderOff() const { return spec_.provider() == v1::SessionSpec::PROVIDER_OFF; }

  // msproftx, unless it is the default and was not mentioned.
  void PlanMarks() {
    const bool implied = !options_.Asked(kMarksOption) && (AskedNothing() || spec_.marks());
    // The ranges of modules are marks.
    plan_.takes_marks = implied || options_.On(kMarksOption) || options_.On(kStacksOption);
    if (!implied) return;
    for (options::Effective& effective : plan_.options) {
      if (effective.key != kMarksOption) continue;
      effective.value = "on";
      AddNote(spec_.marks() ? "on: the process started the session itself"
                               : "on: no option was given",
              &effective);
    }
  }

  void DescribeOptions() {
    plan_.options = options_.effective;
    PlanMarks();
    PlanCollect();
    if (options_.On("host_sys") && plan_.pids.empty() && !context_.awaits_processes) {
      plan_.warnings.push_back(fmt::format("host_sys: no process of job {} is known here; it records what has PROFD_JOB_ID or the "
                                           "scheduler's job id in its environment, and nothing where there is no such process",
                                           spec_.target().job_id()));
    }
    RoundRates(ConcernedDevices(), context_.collectors, &plan_.options);
    for (options::Effective& effective : plan_.options) {
      if (plan_.application_options.contains(effective.key)) {
        const bool is_known = context_.attached || options::NamesRegisters(effective.key, effective.value);
        if (!is_known || effective.key == kStacksOption) {
          AddNote(kNeedsProcess, &effective);
        } else if (effective.key != kMarksOption && !IsCollectedInside(effective.key)) {
          AddNote(WhyNotServed(effective.key, effective.value, spec_).why, &effective);
        }
        continue;
      }
      const options::Option* option = options::Find(effective.key);
      if (option == nullptr) continue;
      if (option->origin == options::Origin::kHost && option->type == options::Type::kFrequency) {
        DescribeHostRate(options_.Number(option->key), &effective);
      } else if (option->origin == options::Origin::kDevice && option->type == options::Type::kFrequency) {
        DescribeNamedRates(options_.Number(option->key), &effective);
      } else if (option->type == options::Type::kSize) {
        DescribeStorageLimit(&effective);
      }
    }
  }

  // Under either name of the switch of tasks; aclprof takes them along whatever it is ordered for.
  bool IsCollectedInside(const std::string& key) const {
    if (key != "task_time" && key != "task_trace") return plan_.collect.contains(key);
    return plan_.aclprof || plan_.collect.contains("task_time") || plan_.collect.contains("task_trace");
  }

  // A collector that is named has the rate it is named with.
  void DescribeNamedRates(double hz, options::Effective* effective) const {
    for (const PlannedCollector& planned : plan_.collectors) {
      if (planned.by_option || planned.hz == hz || !planned.option_keys.contains(effective->key)) continue;
      AddNote(fmt::format("{} at {} Hz, by its name", context_.collectors[planned.index].spec->name, FormatHz(planned.hz)), effective);
    }
  }

  void DescribeHostRate(double hz, options::Effective* effective) const {
    if (!options_.On("host_sys_usage")) return;
    for (const PlannedCollector& planned : plan_.collectors) {
      if (!planned.option_keys.contains("host_sys_usage") || planned.hz == hz) continue;
      effective->value = FormatHz(planned.hz);
      AddNote(planned.hz > hz ? "shares the samples of host_sys, at its rate"
                              : "limits.max_user_hz",
              effective);
      return;
    }
  }

  void DescribeStorageLimit(options::Effective* effective) const {
    if (spec_.no_dump()) return;
    const uint64_t asked = options_.Number(effective->key);
    const uint64_t mb = plan_.max_bytes >> 20;
    const bool capped = mb == static_cast<uint64_t>(context_.config.max_session_mb);
    effective->value = fmt::format("{}MB", mb);
    if (capped && asked != mb) {
      AddNote("dump.max_session_mb", effective);
    } else if (asked == 0) {
      AddNote(fmt::format("{} % of the free space", kFreePercent), effective);
    }
  }

  const v1::SessionSpec& spec_;
  const PlanContext& context_;
  SessionPlan plan_;
  std::vector<DeviceInfo> devices_;  // of the plan
  options::OptionSet options_;
  ProblemList problems_;
  ProblemList denied_;
  bool invalid_ = false;
  bool unsupported_ = false;
};

}  // namespace

Problem NoSuchDevice(uint32_t id, std::span<const DeviceInfo> devices) {
  std::vector<int> ids;
  for (const DeviceInfo& device : devices) ids.push_back(device.id);
  return {.field = "devices",
          .text = fmt::format("no device {} on this node (there are {})", id,
                              ids.empty() ? "none" : fmt::format("{}", fmt::join(ids, ", ")))};
}

Status CheckLabel(std::string_view text) {
  const bool printable = std::ranges::none_of(text, IsControl);
  if (printable && text.size() <= kMaxText) return Status::Ok();
  return InvalidArgument(fmt::format("at most {} bytes of UTF-8 without control characters", kMaxText));
}

bool StartsWithCommand(const v1::SessionSpec& spec) {
  return spec.schedule().has_end_with_pid() && std::ranges::count(spec.target().pids(), spec.schedule().end_with_pid()) > 0;
}

Result<SessionPlan> PlanSession(const v1::SessionSpec& spec_untrusted,
                                const PlanContext& context) {
  return Planner(spec_untrusted, context).Run();
}

}  // namespace profd
