#include "client/commands/tune.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "analysis/tuning/verify.h"
#include "base/exec.h"
#include "client/child.h"
#include "client/cli_message.h"
#include "client/commands/tune_facts.h"
#include "client/commands/tune_text.h"
#include "client/commands/tune_watch.h"
#include "client/parse.h"
#include "client/render.h"
#include "client/signals.h"
#include "proto/enum_word/enum_word.h"

namespace profd::client {
namespace {

// A shell's convention, as for profctl run.
constexpr int kPollMs = 100;
// What a command leaves in its pipes arrives at once, or is of a process that it left behind.
constexpr int kLastOutputMs = 200;

// One of the command's output streams, on its way to ours.
class PassedStream {
 public:
  explicit PassedStream(std::ostream& out) : out_(out) {}
  Status Open() {
    Result<Pipe> made = MakePipe();
    if (!made.ok()) return made.status();
    pipe_ = std::move(*made);
    ::fcntl(pipe_.read.get(), F_SETFL, O_NONBLOCK);
    return Status::Ok();
  }
  int write_end() const { return pipe_.write.get(); }
  void CloseWriteEnd() { pipe_.write.Reset(); }
  int read_end() const { return pipe_.read.valid() ? pipe_.read.get() : -1; }
  // Whether anything arrived.
  bool Pass(TuneSigns* signs) {
    if (!pipe_.read.valid()) return false;
    std::array<char, 1 << 16> buffer;
    const ssize_t got = ::read(pipe_.read.get(), buffer.data(), buffer.size());
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (got <= 0) {
      pipe_.read.Reset();
      return false;
    }
    out_.write(buffer.data(), got);
    out_.flush();
    signs->Feed({buffer.data(), static_cast<size_t>(got)});
    return true;
  }

 private:
  std::ostream& out_;
  Pipe pipe_;
};

class TuneRun {
 public:
  TuneRun(const Context& context, const TuneRequest& request, int64_t interval_ns, SignalWatch* signals)
      : context_(context), request_(request), interval_ns_(interval_ns), signals_(*signals), out_(context.io.out), err_(context.io.err) {}

  int Run(const std::string& program, const TuneFacts& facts) {
    watch_.emplace(facts.work_path);
    Result<HeldChild> child = Fork(program);
    // The command's stdout is its own: errors go to stderr only.
    Context quiet = context_;
    quiet.json = false;
    if (!child.ok()) return Fail(quiet, child.status());
    if (Status kept = Keep(child->pid(), facts); !kept.ok()) return Fail(quiet, kept);
    if (const int signal = signals_.Poll(); signal != 0 && signal != SIGCHLD) return Abandon(signal);
    begin_ns_ = shown_ns_ = context_.clock.SteadyNs();
    child->Release();
    const int code = Follow(&*child);
    Release();
    Report(code);
    return code;
  }

 private:
  Result<HeldChild> Fork(const std::string& program) {
    RETURN_IF_ERROR(out_.Open());
    RETURN_IF_ERROR(err_.Open());
    HeldChild::Plan plan{.program = program, .argv = request_.command, .environment = {}, .signal_mask = signals_.original_mask(),
                         .stdout_fd = out_.write_end(), .stderr_fd = err_.write_end()};
    for (const auto& [name, value] : request_.variables) plan.environment.push_back(fmt::format("{}={}", name, value));
    if (!request_.job.empty()) plan.environment.push_back("PROFD_JOB_ID=" + request_.job);
    Result<HeldChild> child = HeldChild::Fork(plan);
    out_.CloseWriteEnd();
    err_.CloseWriteEnd();
    return child;
  }

  // The devices, for as long as the command lives.
  Status Keep(pid_t pid, const TuneFacts& facts) {
    if (!facts.node.ok()) {
      Warn(context_, "profd does not answer: nothing keeps other users and profilers from the devices");
      return Status::Ok();
    }
    v1::AcquireTuningLeaseRequest request;
    for (const uint32_t device : request_.devices) request.add_devices(device);
    // A daemon outside of this container numbers processes otherwise: then the lease lives as long as profctl.
    if (facts.caller_pid == 0 || facts.caller_pid == ::getpid()) request.set_pid(pid);
    request.set_job_id(request_.job);
    request.set_mode(request_.subgraph ? v1::TuningLease::MODE_SUBGRAPH : v1::TuningLease::MODE_OPERATOR);
    const Result<v1::TuningLease> lease = context_.api.AcquireTuningLease(request);
    if (!lease.ok()) return lease.status();
    lease_ = lease->lease_id();
    if (!context_.json) context_.io.err << fmt::format("profctl: NPU {} kept for tuning, lease {}\n", fmt::join(request_.devices, ","), Printable(lease_));
    return Status::Ok();
  }
  void Release() {
    if (lease_.empty()) return;
    context_.api.ReleaseTuningLease(lease_).status().Ignore();  // it may have ended with its process
  }
  int Abandon(int signal) {
    Release();
    return kExitKilledBase + signal;
  }

  int Follow(HeldChild* child) {
    int code = 0;
    for (;;) {
      PassOutput(kPollMs);
      for (siginfo_t info = signals_.Wait(0); info.si_signo != 0; info = signals_.Wait(0)) child->Forward(info);
      if (child->Ended(&code)) break;
      ShowProgress();
    }
    while (PassOutput(kLastOutputMs)) {
    }
    return code;
  }

  bool PassOutput(int patience_ms) {
    std::array<pollfd, 2> fds = {{{out_.read_end(), POLLIN, 0}, {err_.read_end(), POLLIN, 0}}};
    ::poll(fds.data(), fds.size(), patience_ms);
    const bool one = out_.Pass(&signs_), two = err_.Pass(&signs_);
    return one || two;
  }

  void ShowProgress() {
    const int64_t now = context_.clock.SteadyNs();
    if (now - shown_ns_ < interval_ns_ || context_.json) return;
    shown_ns_ = now;
    const analysis::TuningResults& results = watch_->Look();
    size_t operators = 0, subgraphs = 0, tasks = 0;
    for (const analysis::TuningFile& file : results.files) {
      for (const analysis::TuningTask& task : file.tasks) {
        tasks += task.complete ? 1 : 0;
        operators += task.operators.size() + task.failed.size();
        subgraphs += task.subgraphs.size();
      }
    }
    const char* const begun = signs_.tool() ? "tuning" : signs_.adapter() ? "graph handed to the tool" : "no sign of tuning yet";
    context_.io.err << fmt::format("profctl: {} {}; {} done, {}, {}; results {}\n", FormatSpan(now - begin_ns_), begun, CountText(tasks, "task"),
                                   CountText(operators, "operator"), CountText(subgraphs, "subgraph"), FormatBytes(watch_->bytes()))
                    << std::flush;
  }

  void Report(int code) {
    const Json tuning = analysis::TuningView(watch_->Look());
    const auto bank = request_.variables.find("TUNE_BANK_PATH");
    const std::vector<std::string> steps = RestoreSteps(request_.subgraph, bank == request_.variables.end() ? "" : bank->second);
    std::ostream& err = context_.io.err;
    if (context_.json) {
      err << JsonText(Json{{"command_exit_code", code}, {"mode", request_.subgraph ? "subgraph" : "operator"}, {"lease_id", lease_},
                           {"signs", {{"adapter", signs_.adapter()}, {"tool", signs_.tool()}}}, {"tuning", tuning}, {"restore", steps}}, false)
          << std::endl;
      return;
    }
    if (!signs_.adapter() && !signs_.tool()) {
      Warn(context_, "neither sign of tuning was in the output: did the framework take AOE_MODE? See its log (ASCEND_PROCESS_LOG_PATH)");
    }
    if (tuning["files"].empty()) {
      Warn(context_, fmt::format("no result file appeared in {}; the training may have changed its folder, profctl tune show FILE", watch_->folder()));
    } else {
      PrintTuning(err, tuning, context_.io.err_color());
    }
    err << "afterwards:\n";
    for (const std::string& step : steps) err << "  - " << Printable(step) << '\n';
    err.flush();
  }

  const Context& context_;
  const TuneRequest& request_;
  const int64_t interval_ns_;
  SignalWatch& signals_;
  PassedStream out_, err_;
  TuneSigns signs_;
  std::optional<TuneResultWatch> watch_;
  std::string lease_;
  int64_t begin_ns_ = 0;
  int64_t shown_ns_ = 0;
};

int RunLeases(const Context& context) {
  const auto leases = context.api.ListTuningLeases();
  if (!leases.ok()) return Fail(context, leases.status());
  if (context.json) {
    PrintJson(context, ToJson(*leases));
    return kExitOk;
  }
  if (leases->leases().empty()) {
    context.io.out << "no device is kept for tuning\n";
    return kExitOk;
  }
  Table table({"LEASE", "NPU", "USER", ">PROCESS", "MODE", "JOB", "SINCE"});
  for (const v1::TuningLease& lease : leases->leases()) {
    table.AddRow({lease.lease_id(), fmt::format("{}", fmt::join(lease.devices().begin(), lease.devices().end(), ",")),
                  lease.has_uid() ? std::to_string(lease.uid()) : "another", lease.has_pid() ? std::to_string(lease.pid()) : "-",
                  lease.mode() == v1::TuningLease::MODE_UNSPECIFIED ? "-" : EnumWord(lease.mode()), OrDash(lease.job_id()), FormatTime(lease.since_ns())});
  }
  table.Print(context.io.out, context.io.out_color());
  return kExitOk;
}

int RunRelease(const Context& context, const std::string& id) {
  const auto released = context.api.ReleaseTuningLease(id);
  if (!released.ok()) return Fail(context, SeeIfNotFound(released.status(), "profctl tune leases"));
  if (context.json) PrintJson(context, Json{{"released", id}});
  return kExitOk;
}

int PrintCheck(const Context& context, const std::vector<TuneCondition>& conditions, bool may) {
  if (context.json) {
    PrintJson(context, Json{{"may_tune", may}, {"conditions", ToJson(conditions)}});
  } else {
    PrintConditions(context.io.out, conditions, context.io.out_color());
  }
  return may ? kExitOk : kExitRefused;
}

// The conditions that stand in the way, for a caller that reads JSON.
Status Refusal(const std::vector<TuneCondition>& conditions, bool force) {
  std::string names;
  bool impossible = false;
  for (const TuneCondition& each : conditions) {
    const bool counts = each.verdict == TuneVerdict::kImpossible || (each.verdict == TuneVerdict::kAdvice && !force);
    if (counts) names += fmt::format("{}{}", names.empty() ? "" : ", ", each.name);
    impossible = impossible || each.verdict == TuneVerdict::kImpossible;
  }
  return FailedPrecondition(fmt::format("not tuned: {}{}", names, impossible ? "" : "; --force tunes all the same"));
}

// Refused where there are files, none of which can be read.
Result<analysis::TuningResults> ReadResults(const std::vector<std::string>& found) {
  analysis::TuningResults results = analysis::ReadTuningResults(found);
  if (!results.files.empty() || found.empty()) return results;
  const analysis::Problem& first = results.problems.front();
  return InvalidArgument(first.where + ": " + first.what);
}

// Why neither a tuned operator nor what was promised for the model could be compared; empty: something was.
std::string NothingCompared(const analysis::TuningResults& results, const Json& verified) {
  if (verified["promised_model"].is_object() && verified["step"]["gain_percent"].is_number()) return "";
  const size_t absent = verified["counts"]["not_in_profile"].get<size_t>();
  if (verified["operators"].size() > absent) return "";
  if (results.files.empty()) return "no aoe_result_opat_*.json or aoe_result_sgat_*.json was found; name the files behind --before and --after";
  return absent > 0 ? "no tuned operator is in both profiles" : "no tuned operators are in the results";
}

}  // namespace

int RunTune(const Context& context, const TuneCommand& command) {
  if (command.action == TuneCommand::Action::kLeases) return RunLeases(context);
  if (command.action == TuneCommand::Action::kRelease) return RunRelease(context, command.lease);
  const bool only_check = command.action == TuneCommand::Action::kCheck;
  std::vector<std::string> problems;
  const TuneRequest request = ReadTuneRequest(command, &problems);
  const Result<uint64_t> interval_ms = ParseDurationMs(command.interval.value_or("10s"));
  if (!interval_ms.ok()) problems.push_back("--interval " + interval_ms.status().message());
  if (command.command.empty() && !only_check) problems.emplace_back("no command; write it behind --, as in: profctl tune -- python train.py");
  if (context.endpoint.remote()) problems.emplace_back("tuning is on this machine: leave --address out");
  if (!problems.empty()) return UsageError(context.io, "tune", problems);
  Context quiet = context;
  quiet.json = context.json && only_check;
  std::string program;
  if (!only_check) {
    const Result<std::string> found = FindProgram(command.command.front(), command.surroundings.search_path);
    if (!found.ok()) return Fail(quiet, found.status(), ExitWithoutProgram(found.status()));
    program = *found;
  }
  // Before the connection's threads: what they do not block would end the process.
  SignalWatch signals(kCommandSignals);
  TuneFacts facts;
  GatherMachine(request, command.surroundings, &facts);
  GatherNode(context, request, &facts);
  if (command.profile) {
    const Result<TuneProfile> profile = ReadTuneProfile(*command.profile);
    if (!profile.ok()) return Fail(quiet, profile.status());
    facts.profile = *profile;
  }
  if (const int signal = signals.Poll(); signal != 0 && signal != SIGCHLD) return kExitKilledBase + signal;
  const std::vector<TuneCondition> conditions = CheckConditions(request, facts);
  const bool may = MayTune(conditions, command.force);
  if (only_check) return PrintCheck(context, conditions, may);
  if (!context.json) PrintConditions(context.io.err, conditions, context.io.err_color());
  if (!may) {
    if (context.json) context.io.err << JsonText(Json{{"may_tune", false}, {"conditions", ToJson(conditions)}}, false) << std::endl;
    return Fail(quiet, Refusal(conditions, command.force));
  }
  TuneRun run(context, request, static_cast<int64_t>(*interval_ms) * kNsPerMs, &signals);
  return run.Run(program, facts);
}

int RunTuneShow(const Io& io, const TuneCommand& command, bool json) {
  const Result<std::vector<std::string>> found = analysis::FindTuningResults(command.results);
  if (!found.ok()) return FailWith(io, found.status(), json);
  if (found->empty()) return FailWith(io, NotFound("no aoe_result_opat_*.json or aoe_result_sgat_*.json there"), kExitNotFound, json);
  const Result<analysis::TuningResults> results = ReadResults(*found);
  if (!results.ok()) return FailWith(io, results.status(), json);
  if (command.csv) {
    io.out << analysis::TuningCsv(*results) << std::flush;
    return kExitOk;
  }
  const Json tuning = analysis::TuningView(*results);
  if (json) {
    io.out << JsonText(tuning, true) << std::endl;
  } else {
    PrintTuning(io.out, tuning, io.out_color());
  }
  return kExitOk;
}

int RunTuneVerify(const Io& io, const TuneCommand& command, bool json) {
  const auto fail = [&](const Status& status) { return FailWith(io, status, json); };
  const Result<std::vector<std::string>> found =
      command.results.empty() ? Result<std::vector<std::string>>(analysis::TuningResultsIn({command.before, command.after}))
                              : analysis::FindTuningResults(command.results);
  if (!found.ok()) return fail(found.status());
  const Result<analysis::TuningResults> results = ReadResults(*found);
  if (!results.ok()) return fail(results.status());
  SignalWatch signals;
  const Result<analysis::Run> before = analysis::LoadRun({command.before}, signals.go_on());
  if (!before.ok()) return fail(WithFetchHint(before.status(), {&command.before, 1}).Annotate("--before"));
  const Result<analysis::Run> after = analysis::LoadRun({command.after}, signals.go_on());
  if (!after.ok()) return fail(WithFetchHint(after.status(), {&command.after, 1}).Annotate("--after"));
  Json verified = analysis::VerifyTuning(*before, *after, *results);
  bool subgraph = false;
  for (const analysis::TuningFile& file : results->files) {
    for (const analysis::TuningTask& task : file.tasks) subgraph = subgraph || task.has_subgraphs;
  }
  verified["restore"] = RestoreSteps(subgraph, "");
  verified["problems"] = analysis::TuningView(*results)["problems"];
  if (json) {
    io.out << JsonText(verified, true) << std::endl;
  } else {
    PrintVerified(io.out, verified, io.out_color());
  }
  if (const std::string why = NothingCompared(*results, verified); !why.empty()) {
    io.err << "profctl: nothing to compare: " << why << std::endl;
    return kExitNotFound;
  }
  const auto count = [&verified](const char* verdict) { return verified["counts"][verdict].get<size_t>(); };
  const bool missing = count("not_seen") + count("slower") > 0;
  if (missing && !json) io.err << "profctl: gains that are not seen: was the code restored, op_compiler_cache_mode=force set, TUNE_BANK_PATH that of tuning?\n";
  return missing ? kExitDegraded : kExitOk;
}

}  // namespace profd::client
