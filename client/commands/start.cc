#include "client/commands/start.h"

#include <unistd.h>

#include <algorithm>

#include "client/cli_message.h"
#include "client/option_view.h"
#include "client/render.h"
#include "client/session_view.h"
#include "client/starter.h"

namespace profd::client {
namespace {

bool WasNamed(const v1::SessionSpec& request, const std::string& collector) {
  return std::ranges::any_of(request.collectors(), [&](const v1::CollectorRequest& named) { return named.name() == collector; });
}

// Numbers of processes mean something to a daemon that sees the same ones: not on another machine,
// and not from inside a container of its own.
pid_t StarterFor(const Context& context) {
  if (context.endpoint.remote()) return 0;
  pid_t starter = StarterPid();
  if (starter == 0) return 0;
  auto node = context.api.GetNode();
  pid_t seen_as = node.ok() ? node->caller().pid() : 0;
  return seen_as == 0 || seen_as == getpid() ? starter : 0;
}

void PrintStarted(const Context& context, const v1::SessionSpec& request,
                  const v1::Session& session, bool verbose) {
  std::ostream& out = context.io.out;
  PrintSessionHead(out, session, StateCell(session.status().state()), context.io.out_color());
  if (std::string missing = MissingRanks(session); !missing.empty()) {
    out << missing << " on this node; the NPUs of the others join as they attach\n";
  }
  PrintOutcomes(out, session, /*with_counts=*/false, context.io.out_color());
  PrintEffective(out, session.status().effective_options(), verbose, context.io.out_color());
  PrintTerms(out, session, request.lease().starter_pid());
  if (!session.status().dump_path().empty()) out << "dump " << Printable(session.status().dump_path()) << '\n';
  auto output = request.metadata().find(kOutputMetadata);
  if (output != request.metadata().end()) {
    out << "output " << Printable(output->second) << ": profctl fetch "
        << Printable(session.session_id()) << " brings the dump there\n";
  }
  PrintWarnings(context.io.err, session, context.io.err_color());
}

}  // namespace

int ExitForStarted(const v1::SessionSpec& request, const v1::Session& session) {
  if (ExitForEnded(session) != kExitOk) return kExitPartial;
  if (session.status().state() == v1::Session::STATE_SCHEDULED) return kExitOk;
  bool any_runs = false;
  bool any_refused = false;
  for (const v1::Outcome& outcome : session.status().outcomes()) {
    switch (outcome.result()) {
      case v1::Outcome::RESULT_RUNNING:
      case v1::Outcome::RESULT_FINISHED:
        any_runs = true;
        break;
      case v1::Outcome::RESULT_UNSUPPORTED:
        if (WasNamed(request, outcome.collector())) return kExitPartial;
        any_refused = true;
        break;
      case v1::Outcome::RESULT_NEEDS_PROCESS:
      case v1::Outcome::RESULT_WAITING:
        break;
      case v1::Outcome::RESULT_PARTIAL:
        any_runs = true;
        break;
      case v1::Outcome::RESULT_OFF:
        any_refused = true;
        break;
      default:
        return kExitPartial;
    }
  }
  return any_runs || !any_refused ? kExitOk : kExitPartial;
}

int RunStart(const Context& context, const StartOptions& options) {
  std::vector<std::string> problems;
  v1::SessionSpec request = BuildStartRequest(options, &problems);
  if (!problems.empty()) return UsageError(context.io, "start", problems);
  if (options.wait_ranks) {
    Status waited = WaitForRanks(context, *options.wait_ranks, &request);
    if (!waited.ok()) {
      return waited.code() == StatusCode::kInvalidArgument
                 ? UsageError(context.io, "start", {waited.message()})
                 : Fail(context, waited);
    }
  }
  if (!options.detach) AddDefaultLease(options, StarterFor(context), &request);
  auto session =
      WithProgress(context, "starting", [&] { return context.api.StartSession(request); });
  if (!session.ok()) {
    int code = Fail(context, session.status(), NamesOf(options));
    if (session.status().code() == StatusCode::kDeadlineExceeded) {
      Warn(context, "the session may be starting all the same: profctl list");
    }
    return code;
  }
  int exit_code = ExitForStarted(request, *session);
  if (context.json) {
    Json json = ToJson(*session);
    json["partial"] = exit_code == kExitPartial;
    PrintJson(context, json);
    return exit_code;
  }
  PrintStarted(context, request, *session, options.verbose);
  return exit_code;
}

}  // namespace profd::client
