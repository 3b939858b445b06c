#include "client/commands/sessions.h"

#include <string>

#include "client/commands/keep.h"
#include "client/render.h"
#include "client/session_view.h"
#include "client/user_names.h"

namespace profd::client {
namespace {

// "1.2 MiB", "3.4 MiB in 2", "5.6 MiB pinned"
std::string DumpCell(const v1::Session& session) {
  if (session.status().dump_path().empty()) return "-";
  std::string text = FormatBytes(session.status().dump_bytes());
  if (session.status().segments_size() > 1) text += " in " + std::to_string(session.status().segments_size());
  if (session.status().pinned()) text += " pinned";
  return text;
}

}  // namespace

int RunList(const Context& context, const ListOptions& options) {
  if (options.dumps && options.active) return UsageError(context.io, "list", {"--active is for sessions, --dumps lists dumps: give one of them"});
  if (options.dumps) return RunListDumps(context, options.job);
  v1::ListSessionsRequest request;
  request.set_job_id(options.job);
  request.set_active_only(options.active);
  auto list =
      WithProgress(context, "asking profd", [&] { return context.api.ListSessions(request); });
  if (!list.ok()) return Fail(context, list.status());
  if (context.json) {
    Json sessions = Json::array();
    for (const v1::Session& session : list->sessions()) sessions.push_back(ToJson(session));
    PrintJson(context, Json{{"sessions", std::move(sessions)}});
    return kExitOk;
  }
  if (list->sessions().empty()) {
    context.io.out << "no sessions\n";
    return kExitOk;
  }
  const int64_t now_ns = DaemonNowNs(context);
  Table table({"SESSION", "STATE", "JOB", ">RANK", "USER", "DEVICES", "STARTED", ">RAN FOR",
               ">DUMP", "LABEL"});
  for (const v1::Session& s : list->sessions()) {
    table.AddRow({s.session_id(), StateCell(s), OrDash(s.spec().target().job_id()),
                  s.spec().target().has_rank() ? std::to_string(s.spec().target().rank()) : "-", UserText(s.owner().uid()),
                  FormatDevices({s.status().devices().begin(), s.status().devices().end()}),
                  FormatTime(s.status().started_ns()), RanFor(s, now_ns),
                  DumpCell(s), s.spec().label()});
  }
  table.Print(context.io.out, context.io.out_color());
  return kExitOk;
}

}  // namespace profd::client
