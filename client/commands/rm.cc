#include "client/commands/keep.h"

#include <algorithm>

#include "client/cli_message.h"
#include "client/render.h"

namespace profd::client {

int RunRm(const Context& context, const std::vector<std::string>& ids) {
  if (ids.empty()) return UsageError(context.io, "rm", {"name sessions or dumps"});
  int exit_code = kExitOk;
  Json removed = Json::array();
  Json errors = Json::array();
  for (const std::string& id : ids) {
    auto answer = WithProgress(context, "removing " + id, [&] { return context.api.DeleteDump(DumpRequest<v1::DeleteDumpRequest>(id)); });
    if (!answer.ok()) {
      exit_code = std::max(exit_code, FailOne(context, SeeIfNotFound(answer.status(), kListDumps), {{"session_id", id}}, &errors));
      continue;
    }
    if (context.json) {
      removed.push_back({{"session_id", id}, {"freed_bytes", answer->freed_bytes()}});
      if (answer->not_archived_size() > 0) {
        removed.back()["not_archived"] = std::vector<std::string>(answer->not_archived().begin(), answer->not_archived().end());
      }
    } else {
      context.io.out << "removed " << Printable(id) << ", " << FormatBytes(answer->freed_bytes())
                     << " freed\n";
    }
    for (const std::string& name : answer->not_archived()) Warn(context, Printable(name) + " was not in the database yet");
  }
  if (context.json) {
    PrintJson(context, Json{{"removed", std::move(removed)}, {"errors", std::move(errors)}});
  }
  return exit_code;
}

}  // namespace profd::client
