#include "client/commands/keep.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "client/cli_message.h"
#include "client/render.h"
#include "client/session_view.h"

namespace profd::client {
namespace {

std::string Limit(uint64_t bytes) { return bytes == 0 ? "no limit" : FormatBytes(bytes); }

template <class Response>
Result<std::vector<v1::Dump>> DumpsIn(const Result<Response>& response) {
  if (!response.ok()) return response.status();
  return std::vector<v1::Dump>(response->dumps().begin(), response->dumps().end());
}

}  // namespace

bool NamesDump(const std::string& id) { return id.starts_with("PROF_"); }

int RunPin(const Context& context, const std::vector<std::string>& ids, bool unpin) {
  int exit_code = kExitOk;
  Json dumps = Json::array();
  Json errors = Json::array();
  for (const std::string& id : ids) {
    Result<std::vector<v1::Dump>> answer = WithProgress(context, "asking profd", [&] {
      return unpin ? DumpsIn(context.api.UnpinDump(DumpRequest<v1::UnpinDumpRequest>(id)))
                   : DumpsIn(context.api.PinDump(DumpRequest<v1::PinDumpRequest>(id)));
    });
    if (!answer.ok()) {
      exit_code = std::max(exit_code, FailOne(context, SeeIfNotFound(answer.status(), kListDumps), {{"id", id}}, &errors));
      continue;
    }
    for (const v1::Dump& dump : *answer) {
      if (context.json) {
        dumps.push_back(ToJson(dump));
      } else {
        context.io.out << (dump.pinned() ? "pinned " : "unpinned ") << Printable(dump.name())
                       << ", " << FormatBytes(dump.bytes()) << '\n';
      }
    }
  }
  if (context.json) {
    PrintJson(context, Json{{"dumps", std::move(dumps)}, {"errors", std::move(errors)}});
  }
  return exit_code;
}

// "archived", "waiting", "waiting, attempt 3: unreachable: ...", "not archived: ..."; empty: not meant for the database.
std::string ArchiveCell(const v1::Dump& dump) {
  if (!dump.has_archive()) return "";
  const v1::ArchiveState& archive = dump.archive();
  const std::string problem = archive.problem().empty() ? "" : ": " + archive.problem();
  switch (archive.state()) {
    case v1::ArchiveState::STATE_LOADED:
      return "archived" + problem;
    case v1::ArchiveState::STATE_WAITING:
      return (archive.attempts() == 0 ? "waiting" : fmt::format("waiting, attempt {}", archive.attempts())) + problem;
    default:
      return "not archived" + problem;
  }
}

int RunListDumps(const Context& context, const std::string& job) {
  auto list = WithProgress(context, "asking profd", [&] { return context.api.ListDumps(); });
  if (!list.ok()) return Fail(context, list.status());
  const auto of_another = [&job](const v1::Dump& dump) { return !job.empty() && dump.job_id() != job; };
  auto& dumps = *list->mutable_dumps();
  dumps.erase(std::remove_if(dumps.begin(), dumps.end(), of_another), dumps.end());
  if (context.json) {
    PrintJson(context, ToJson(*list));
    return kExitOk;
  }
  Table table({"DUMP", "SESSION", ">SEGMENT", "STATE", "JOB", ">UID", "STARTED", ">SIZE", "PINNED", "ARCHIVE"});
  for (const v1::Dump& dump : list->dumps()) {
    table.AddRow({dump.name(), OrDash(dump.session_id()),
                  std::to_string(dump.segment()), StateCell(dump.state()),
                  OrDash(dump.job_id()), std::to_string(dump.uid()),
                  FormatTime(dump.started_ns()), FormatBytes(dump.bytes()),
                  dump.pinned() ? "pinned" : "", ArchiveCell(dump)});
  }
  if (!table.empty()) table.Print(context.io.out, context.io.out_color());
  context.io.out << fmt::format("{} by all users; limits: {} by all users, {} by you, pinned {}\n",
                                FormatBytes(list->total_bytes()), Limit(list->max_total_bytes()),
                                Limit(list->max_kept_bytes()), Limit(list->max_pinned_bytes()));
  if (list->incomplete()) {
    context.io.out << "earlier dumps are still being looked through; there may be more\n";
  }
  return kExitOk;
}

}  // namespace profd::client
