#include "client/commands/run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "client/child.h"
#include "client/commands/export.h"
#include "client/commands/export_parse.h"
#include "client/commands/fetch.h"
#include "client/option_view.h"
#include "client/cli_message.h"
#include "client/render.h"
#include "client/session_view.h"
#include "client/signals.h"

namespace profd::client {
namespace {

int WaitForCommand(SignalWatch* signals, HeldChild* child) {
  int exit_code = 0;
  while (!child->Ended(&exit_code)) child->Forward(signals->Wait());
  return exit_code;
}

void ReportStart(const Context& context, const v1::Session& session, int exit_code, bool verbose) {
  if (context.json) return;
  std::ostream& err = context.io.err;
  err << "profctl: session " << Printable(session.session_id()) << '\n';
  if (verbose) {
    PrintEffective(err, session.status().effective_options(), /*all=*/true, context.io.err_color());
  }
  if (exit_code != kExitOk) {
    Warn(context, "not everything that was requested is collected:");
    PrintOutcomes(err, session, /*with_counts=*/false, context.io.err_color());
  }
  PrintWarnings(err, session, context.io.err_color());
  err.flush();
}

// `fetched`: where the dumps are on the caller's side, oldest first.
void ReportEnd(const Context& context, const v1::Session& session, int command_exit,
               const std::vector<std::string>& fetched) {
  std::ostream& err = context.io.err;
  if (context.json) {
    Json json = ToJson(session);
    json["command_exit_code"] = command_exit;
    json["output"] = fetched.empty() ? "" : fetched.back();
    err << JsonText(json, /*indent=*/false) << std::endl;
    return;
  }
  Cell state = StateCell(session.status().state());
  err << fmt::format(
      "profctl: session {} {}: {}, {}, {} in {}\n", Printable(session.session_id()),
      Paint(state.text, state.tone, context.io.err_color()), CountText(session.status().records(), "record"),
      DroppedText(session), FormatBytes(session.status().dump_bytes()), RanFor(session, DaemonNowNs(context)));
  if (const std::string removed = RemovedText(session); !removed.empty()) err << "profctl: removed " << Printable(removed) << '\n';
  PrintStatistics(err, session, context.io.err_color());
  PrintNotCollected(context, session);
  const bool never_began = session.status().started_ns() == 0;
  if (!session.status().reason().empty() && (never_began || ExitForEnded(session) != kExitOk)) {
    err << "profctl: " << Printable(session.status().reason()) << '\n';
  }
  if (!session.status().dump_path().empty())
    err << "profctl: dump " << Printable(session.status().dump_path()) << '\n';
  for (const std::string& dump : fetched) err << "profctl: output " << Printable(dump) << '\n';
  err.flush();
}

// A minute: a daemon that is being restarted is back by then.
constexpr int64_t kRestartNs = 60 * kNsPerSecond;

// Repeats what is not answered when the command has exited, until profd is back. A signal gives up.
class DaemonRetry {
 public:
  DaemonRetry(const Context& context, SignalWatch* signals) : context_(context), signals_(*signals) {}

  bool Continue() {
    const int signal = signals_.Poll();
    given_up_ = given_up_ || (signal != 0 && signal != SIGCHLD);
    return !given_up_;
  }
  // Whether to try once more, after a second.
  bool ShouldRetry(const Status& status) {
    const bool away = status.code() == StatusCode::kUnavailable || status.code() == StatusCode::kCancelled;
    // A daemon that is back completes the dump of a session that it found.
    const bool completing = until_ns_ != 0 && status.code() == StatusCode::kFailedPrecondition;
    if (given_up_ || (!away && !completing)) return false;
    if (until_ns_ == 0) {
      until_ns_ = context_.clock.SteadyNs() + kRestartNs;
      Warn(context_, "profd does not answer, perhaps because it is being restarted; trying again for a minute");
    }
    return context_.clock.SteadyNs() < until_ns_ && WaitASecond([this] { return Continue(); });
  }

 private:
  const Context& context_;
  SignalWatch& signals_;
  bool given_up_ = false;
  int64_t until_ns_ = 0;  // 0: it has always answered
};

// The dumps to where the request wants them, as the user; none when they do not get there.
std::vector<std::string> Deliver(const Context& context, DaemonRetry* retry, const v1::SessionSpec& spec,
                                 const v1::Session& session) {
  auto output = spec.metadata().find(kOutputMetadata);
  if (output == spec.metadata().end() || session.status().dump_path().empty()) return {};
  if (!IsFinal(session.status().state())) return {};
  FetchResult fetched;
  do {
    fetched = FetchInto(context, session.session_id(), output->second, /*keep=*/false, [retry] { return retry->Continue(); });
    if (fetched.status.ok()) return fetched.paths;
  } while (retry->ShouldRetry(fetched.status));
  Warn(context, fmt::format("the dump could not be brought to {}: {}\nprofctl fetch {} tries again",
                            output->second, Explain(fetched.status, context.endpoint),
                            session.session_id()));
  return {};
}

// The command's stdout is its own.
void Export(const Context& context, const RunOptions& options, const std::vector<std::string>& fetched) {
  if (!options.export_formats) return;
  if (fetched.empty()) return Warn(context, "nothing was exported: there is no dump here");
  ExportCommand command;
  command.dumps = fetched;
  command.format = options.export_formats;
  command.out = fetched.back() + ".export";
  Io io{context.io.err, context.io.err, context.io.err_tty, context.io.err_tty, context.io.color};
  if (RunExport(io, context.clock, "", command, /*json=*/false) != kExitOk) {
    Warn(context, fmt::format("the export is not complete; profctl export {} tries again", fmt::join(fetched, " ")));
  }
}

void StopAndReport(const Context& context, SignalWatch* signals, const RunOptions& options,
                   const v1::SessionSpec& spec, const std::string& id, int command_exit) {
  DaemonRetry retry(context, signals);
  const auto stop = [&] {
    Progress progress(context, "completing the dump", [&retry] { return retry.Continue(); });
    return context.api.StopSession(id);
  };
  Result<v1::Session> session = stop();
  while (!session.ok() && retry.ShouldRetry(session.status())) session = stop();
  if (session.ok()) {
    const std::vector<std::string> fetched = Deliver(context, &retry, spec, *session);
    ReportEnd(context, *session, command_exit, fetched);
    Export(context, options, fetched);
    return;
  }
  Warn(context, fmt::format("session {} was not seen to end: {}\nprofd ends it with the process; "
                            "profctl show {}",
                            id, Explain(session.status(), context.endpoint), id));
}

v1::SessionSpec BuildSpec(StartOptions options, std::vector<std::string>* problems) {
  options.for_run = true;
  options.options.no_stdin = true;
  v1::SessionSpec spec = BuildStartRequest(options, problems);
  // The command belongs to no job yet that the node could know.
  if (spec.target().devices().empty() && spec.target().ranks().empty()) spec.mutable_target()->set_all(true);
  AddDefaultLease(options, getpid(), &spec);
  return spec;
}

// What is exported has to be here.
void AddExport(const RunOptions& options, v1::SessionSpec* spec,
               std::vector<std::string>* problems) {
  if (!options.export_formats) return;
  CheckFormats("--export", *options.export_formats, problems);
  if (options.start.no_dump) problems->emplace_back("--export needs a dump: leave --no-dump out");
  const std::string& here = options.start.options.working_directory;
  spec->mutable_metadata()->insert({kOutputMetadata, here.empty() ? "." : here});
}

// The dump's folder, which a wrong path or a full disk would otherwise keep from it only at the end.
Status CheckOutput(const v1::SessionSpec& spec) {
  auto output = spec.metadata().find(kOutputMetadata);
  if (output == spec.metadata().end()) return Status::Ok();
  const std::string& folder = output->second;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error && access(folder.c_str(), W_OK | X_OK) == 0) return Status::Ok();
  // Whatever is wrong with it, it is not a session or a dump that was not found.
  return InvalidArgument(Status::FromErrno(error ? error.value() : errno, "output " + folder).message());
}

// For the command, beside the caller's own.
std::vector<std::string> EnvironmentOf(const RunOptions& options, const v1::SessionSpec& request) {
  std::vector<std::string> environment;
  if (!request.target().job_id().empty()) environment.push_back("PROFD_JOB_ID=" + request.target().job_id());
  // Its processes would begin sessions of their own with them.
  if (options.start.options.from_environment) environment.emplace_back("PROFILING_OPTIONS=");
  return environment;
}

}  // namespace

int RunRun(const Context& context, const RunOptions& options) {
  std::vector<std::string> problems;
  v1::SessionSpec request = BuildSpec(options.start, &problems);
  AddExport(options, &request, &problems);
  if (options.command.empty()) problems.emplace_back("no command; write it last, as in: profctl run sleep 1");
  if (!problems.empty()) return UsageError(context.io, "run", problems);
  Context quiet = context;
  quiet.json = false;
  auto program = FindProgram(options.command.front(), options.search_path);
  if (!program.ok()) return Fail(quiet, program.status(), ExitWithoutProgram(program.status()));
  if (Status output = CheckOutput(request); !output.ok()) {
    if (!options.anyway) return Fail(quiet, output);
    Warn(context, output.message() + ": the dump will stay on the node");
  }
  // Before the fork, so that no signal is lost between the child's birth and the first wait.
  SignalWatch signals(kCommandSignals);
  HeldChild::Plan plan{.program = *program,
                       .argv = options.command,
                       .environment = EnvironmentOf(options, request),
                       .signal_mask = signals.original_mask()};
  auto child = HeldChild::Fork(plan);
  if (!child.ok()) return Fail(quiet, child.status());
  request.mutable_target()->add_pids(child->pid());
  request.mutable_schedule()->set_end_with_pid(child->pid());

  int interrupted_by = 0;
  Result<v1::Session> session = [&] {
    Progress progress(context, "starting", [&] {
      int signal = signals.Poll();
      if (signal != 0 && signal != SIGCHLD) interrupted_by = signal;
      return interrupted_by == 0;
    });
    return context.api.StartSession(request);
  }();
  if (interrupted_by != 0) {
    int code = kExitKilledBase + interrupted_by;
    if (session.ok()) {
      StopAndReport(context, &signals, options, request, session->session_id(), code);
    }
    return code;
  }
  if (!session.ok()) {
    int code = Fail(quiet, session.status(), NamesOf(options.start));
    if (!options.anyway) return code;
    Warn(context, "running the command without a profile");
  } else {
    ReportStart(context, *session, ExitForStarted(request, *session), options.start.verbose);
  }
  child->Release();
  int command_exit = WaitForCommand(&signals, &*child);
  if (session.ok()) {
    StopAndReport(context, &signals, options, request, session->session_id(), command_exit);
  }
  return command_exit;
}

}  // namespace profd::client
