#include "client/commands/fetch.h"

#include <fmt/format.h>

#include "client/dump_sink.h"
#include "client/render.h"
#include "client/signals.h"

namespace profd::client {
namespace {

std::string Detail(const DumpSink& sink, int64_t elapsed_ns) {
  double received = static_cast<double>(sink.received_bytes());
  double percent =
      sink.total_bytes() == 0 ? 100 : 100 * received / static_cast<double>(sink.total_bytes());
  double rate = elapsed_ns <= 0 ? 0 : received / (static_cast<double>(elapsed_ns) / 1e9);
  return fmt::format("{} of {}  {:.0f} %  {}/s", FormatBytes(sink.received_bytes()),
                     FormatBytes(sink.total_bytes()), percent,
                     FormatBytes(static_cast<uint64_t>(rate)));
}

// Which error there was: ours, the daemon's, or none.
Status Receive(const Context& context, const FetchOptions& options, SignalWatch* signals,
               DumpSink* sink) {
  v1::FetchDumpRequest request;
  request.set_session_id(options.id);
  Progress progress(context, "fetching", [signals] { return signals->Poll() == 0; });
  Status written;
  Status status = context.api.FetchDump(request, [&](const v1::DumpChunk& chunk) {
    written = sink->Write(chunk);
    progress.SetDetail(Detail(*sink, progress.elapsed_ns()));
    return written.ok();
  });
  if (!written.ok()) return written;
  if (!status.ok()) return status;
  return sink->Finish();
}

}  // namespace

int RunFetch(const Context& context, const FetchOptions& options) {
  if (options.id.empty()) {
    return UsageError(context, "fetch", {"give a session's id, or --nodes and --job JOB"});
  }
  SignalWatch signals({SIGINT, SIGTERM, SIGHUP});
  DumpSink sink(options.out);
  int64_t begin_ns = context.clock.SteadyNs();
  Status status = Receive(context, options, &signals, &sink);
  if (signals.caught() != 0 && !status.ok()) status = DataLoss("interrupted");
  if (!status.ok()) {
    if (sink.name().empty()) return Fail(context, status);
    std::string fate = fmt::format("{}: {} of {} bytes kept", sink.path(), sink.received_bytes(),
                                   sink.total_bytes());
    if (!options.keep) {
      sink.Discard();
      fate = "what had arrived is removed";
    }
    int exit_code = Fail(context, status.Annotate("fetch is incomplete"), kExitPartial);
    context.io.err << "profctl: " << Printable(fate) << std::endl;
    return exit_code;
  }
  if (context.json) {
    PrintJson(context, Json{{"session_id", options.id},
                            {"dump_name", sink.name()},
                            {"path", sink.path()},
                            {"files", sink.files()},
                            {"bytes", sink.received_bytes()}});
  } else {
    context.io.out << fmt::format("{}  {} files, {} in {}\n", Printable(sink.path()), sink.files(),
                                  FormatBytes(sink.received_bytes()),
                                  FormatSpan(context.clock.SteadyNs() - begin_ns));
  }
  return kExitOk;
}

}  // namespace profd::client
