#include "client/commands/dump.h"

#include <fmt/format.h>

#include <vector>

#include "client/cli_message.h"
#include "client/commands/fetch.h"
#include "client/parse.h"
#include "client/render.h"
#include "client/session_view.h"
#include "client/signals.h"

namespace profd::client {

v1::DumpRecorderRequest BuildDumpRequest(const DumpOptions& options,
                                         std::vector<std::string>* problems) {
  v1::DumpRecorderRequest request;
  if (const auto ms = ReadFlag("--last", options.last, ParseDurationMs, problems)) request.set_last_ms(*ms);
  if (const auto devices = ReadFlag("--devices", options.devices, ParseDevices, problems)) {
    request.mutable_devices()->Assign(devices->begin(), devices->end());
  }
  request.set_job_id(options.job.value_or(""));
  request.set_reason(options.reason.value_or(""));
  request.set_label(options.label.value_or(""));
  return request;
}

int RunDump(const Context& context, const DumpOptions& options) {
  std::vector<std::string> problems;
  v1::DumpRecorderRequest request = BuildDumpRequest(options, &problems);
  if (!problems.empty()) return UsageError(context.io, "dump", problems);
  auto session = WithProgress(context, "writing the past",
                              [&] { return context.api.DumpRecorder(request); });
  if (!session.ok()) return Fail(context, session.status(), NamesOf(options));
  std::string fetched;
  if (options.out) {
    SignalWatch signals;
    const FetchResult result = FetchInto(context, session->session_id(), *options.out, /*keep=*/false, signals.go_on());
    if (!result.status.ok()) {
      // The dump exists: its session is the answer.
      Json errors = Json::array();
      const Status status = result.status.Annotate("the dump is on the node, but the fetch is incomplete");
      const int code = FailOne(context, status, Json::object(), &errors, kExitPartial);
      context.io.err << fmt::format("profctl: `profctl fetch {}` fetches the dump\n", Printable(session->session_id())) << std::flush;
      if (!context.json) return code;
      Json json = ToJson(*session);
      json["error"] = std::move(errors[0]);
      PrintJson(context, json);
      return code;
    }
    fetched = result.path;
  }
  if (context.json) {
    Json json = ToJson(*session);
    if (options.out) json["fetched_to"] = fetched;
    PrintJson(context, json);
    return kExitOk;
  }
  std::ostream& out = context.io.out;
  out << fmt::format("session {}  the last {}: {}, {}\n", Printable(session->session_id()),
                     FormatSpan(session->status().ended_ns() - session->status().started_ns()), CountText(session->status().records(), "record"),
                     FormatBytes(session->status().dump_bytes()));
  out << "dump " << Printable(fetched.empty() ? session->status().dump_path() : fetched) << '\n';
  PrintOutcomes(out, *session, /*with_counts=*/true, context.io.out_color());
  PrintWarnings(context.io.err, *session, context.io.err_color());
  return kExitOk;
}

}  // namespace profd::client
