#include "client/commands/sessions.h"

#include "client/cli_message.h"
#include "client/commands/keep.h"
#include "client/session_view.h"

namespace profd::client {

int RunShow(const Context& context, const std::string& id) {
  // Directories were recognised before.
  if (NamesDump(id)) {
    return Fail(context, NotFound("no dump " + id + " is in this directory; `profctl list --dumps` lists those of the node, `profctl fetch " + id + "` copies it here"));
  }
  auto session = WithProgress(context, "asking profd", [&] { return context.api.GetSession(id); });
  if (!session.ok()) return Fail(context, SeeIfNotFound(session.status(), kListSessions));
  if (context.json) {
    PrintJson(context, ToJson(*session));
  } else {
    PrintSession(context, context.io.out, context.io.out_color(), *session);
  }
  return kExitOk;
}

}  // namespace profd::client
