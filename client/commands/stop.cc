#include "client/commands/sessions.h"

#include <fmt/format.h>

#include <algorithm>

#include "client/cli_message.h"
#include "client/render.h"
#include "client/session_view.h"

namespace profd::client {
namespace {

// `several`: of more than one, whose warnings are on stderr without the lines on stdout.
void PrintStopped(const Context& context, const v1::Session& session, bool several) {
  std::ostream& out = context.io.out;
  PrintSessionHead(out, session, StateCell(session.status().state()), context.io.out_color());
  out << fmt::format("  {}, {}, {} in {}\n", CountText(session.status().records(), "record"),
                     DroppedText(session), FormatBytes(session.status().dump_bytes()),
                     RanFor(session, DaemonNowNs(context)));
  if (const std::string removed = RemovedText(session); !removed.empty()) out << "  removed " << Printable(removed) << '\n';
  PrintStatistics(out, session, context.io.out_color());
  if (!session.status().dump_path().empty()) out << "dump " << Printable(session.status().dump_path()) << '\n';
  PrintNotCollected(context, session, several);
  PrintWarnings(context.io.err, session, context.io.err_color(), several);
}

// A stop that is still going on is not a success yet.
int ExitForStopped(const v1::Session& session) {
  return IsFinal(session.status().state()) ? ExitForEnded(session) : kExitPartial;
}

int StopAll(const Context& context, const std::vector<std::string>& ids) {
  int exit_code = kExitOk;
  Json stopped = Json::array();
  Json errors = Json::array();
  for (const std::string& id : ids) {
    auto session = WithProgress(context, "stopping " + id, [&] { return context.api.StopSession(id); });
    if (!session.ok()) {
      Status failed = SeeIfNotFound(session.status(), kListSessions);
      if (failed.code() == StatusCode::kNotFound && OwnSessions(context.api, id).ok()) {
        failed = NotFound(fmt::format("{}; a job has this name: `profctl stop --job {}` stops your sessions of it", failed.message(), id));
      }
      exit_code = std::max(exit_code, FailOne(context, failed, {{"session_id", id}}, &errors));
      continue;
    }
    exit_code = std::max(exit_code, ExitForStopped(*session));
    if (context.json) {
      stopped.push_back(ToJson(*session));
    } else {
      PrintStopped(context, *session, ids.size() > 1);
    }
  }
  if (context.json) {
    PrintJson(context, Json{{"sessions", std::move(stopped)}, {"errors", std::move(errors)}});
  }
  return exit_code;
}

}  // namespace

Result<std::vector<std::string>> OwnSessions(ProfdApi& api, const std::string& job) {
  auto node = api.GetNode();
  if (!node.ok()) return node.status();
  // It owns none, which is not why; the daemon's words for a stop by id.
  if (node->caller().viewer()) {
    return PermissionDenied(fmt::format(
        "the certificate {} has the role profd-viewer, which may look but not call StopSession: that takes one with "
        "OU=profd-user or OU=profd-admin", node->caller().certificate()));
  }
  v1::ListSessionsRequest request;
  request.set_job_id(job);
  request.set_active_only(true);
  auto list = api.ListSessions(request);
  if (!list.ok()) return list.status();
  std::vector<std::string> ids;
  int others = 0;
  for (const v1::Session& session : list->sessions()) {
    if (session.owner().uid() == node->caller().uid()) {
      ids.push_back(session.session_id());
    } else {
      ++others;
    }
  }
  if (!ids.empty()) return ids;
  std::string what = job.empty() ? "you have no running session"
                                 : fmt::format("you have no running session for job {}", job);
  if (others > 0) what += fmt::format("; {} of other users: stop them by id", others);
  return NotFound(what);
}

int RunStop(const Context& context, const StopOptions& options) {
  int ways = (options.ids.empty() ? 0 : 1) + (options.job ? 1 : 0) + (options.all_mine ? 1 : 0);
  if (ways != 1 || (options.job && options.job->empty())) {
    return UsageError(context.io, "stop", {"give session ids, or --job JOB, or --all-mine"});
  }
  if (!options.ids.empty()) return StopAll(context, options.ids);
  auto ids = OwnSessions(context.api, options.job.value_or(""));
  if (!ids.ok()) return Fail(context, ids.status());
  return StopAll(context, *ids);
}

}  // namespace profd::client
