#include "client/commands/fetch.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "client/cli_message.h"
#include "client/commands/keep.h"
#include "client/commands/start.h"
#include "client/dump_sink.h"
#include "client/render.h"
#include "client/session_view.h"
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

// One after the other: a session that was interrupted has a dump for each of its segments.
using Sinks = std::vector<std::unique_ptr<DumpSink>>;
// No session has more.
constexpr size_t kMaxDumps = 256;

Status Take(const v1::DumpChunk& chunk, const std::string& out, Sinks* sinks) {
  if (!sinks->empty() && !chunk.dump_name().empty()) {
    if (sinks->size() >= kMaxDumps) return DataLoss("the daemon sent more dumps than make sense");
    RETURN_IF_ERROR(sinks->back()->FinishPart());
    sinks->push_back(std::make_unique<DumpSink>(out));
  }
  if (sinks->empty()) sinks->push_back(std::make_unique<DumpSink>(out));
  return sinks->back()->Write(chunk);
}

// Which error there was: ours, the daemon's, or none.
Status Receive(const Context& context, const std::string& id, const std::string& out,
               const std::function<bool()>& go_on, const std::function<void(size_t)>& received,
               Sinks* sinks) {
  Progress progress(context, "fetching", go_on);
  Status written;
  Status status = context.api.FetchDump(DumpRequest<v1::FetchDumpRequest>(id), [&](const v1::DumpChunk& chunk) {
    written = Take(chunk, out, sinks);
    if (received) received(chunk.data().size());
    progress.SetDetail(Detail(*sinks->back(), progress.elapsed_ns()));
    return written.ok();
  });
  if (!written.ok()) return written;
  if (!status.ok()) return status;
  if (sinks->empty()) return DumpSink(out).Finish();
  return sinks->back()->Finish();
}

// Where the session's own request wanted the dump. Only of the caller's sessions: no other user chooses
// where another one writes.
std::string OutputOf(const Context& context, const std::string& id) {
  if (context.endpoint.remote()) return "";
  auto session = context.api.GetSession(id);
  if (!session.ok() || session->owner().uid() != geteuid()) return "";
  auto output = session->spec().metadata().find(kOutputMetadata);
  if (output != session->spec().metadata().end()) {
    return output->second.starts_with('/') ? output->second : "";
  }
  // A process that started it by PROFILING_OPTIONS named it there, in words of its own folder.
  for (const v1::EffectiveOption& option : session->status().effective_options()) {
    if (option.key() == kOutputMetadata && option.asked().starts_with('/')) return option.asked();
  }
  return "";
}

// How long the daemon may be away, as while it is restarted, and its dump incomplete behind the end of the session.
constexpr int64_t kPatienceNs = 600 * kNsPerSecond;

Status Interrupted() { return {StatusCode::kCancelled, "the fetch was interrupted"}; }

Status WaitForEnd(const Context& context, const std::string& id, const std::function<bool()>& go_on) {
  v1::WatchSessionRequest request;
  request.set_session_id(id);
  int64_t heard_ns = context.clock.SteadyNs();
  for (;;) {
    bool ended = false;
    Status status = context.api.WatchSession(request, [&](const v1::Session& session) {
      heard_ns = context.clock.SteadyNs();
      ended = IsFinal(session.status().state());
      return !ended && go_on();
    });
    if (ended) return Status::Ok();
    if (!go_on()) return Interrupted();
    const bool away = status.ok() || status.code() == StatusCode::kUnavailable ||
                      status.code() == StatusCode::kDeadlineExceeded || status.code() == StatusCode::kCancelled;
    if (!away || context.clock.SteadyNs() - heard_ns > kPatienceNs) return status;
    if (!WaitASecond(go_on)) return Interrupted();
  }
}

}  // namespace

bool WaitASecond(const std::function<bool()>& go_on) {
  for (int i = 0; i < 10 && go_on(); ++i) ::poll(nullptr, 0, 100);
  return go_on();
}

FetchResult FetchInto(const Context& context, const std::string& id, const std::string& out,
                      bool keep, const std::function<bool()>& go_on,
                      const std::function<void(size_t bytes)>& received) {
  FetchResult fetched;
  std::error_code error;
  std::filesystem::create_directories(out, error);
  // Whether it could be used is found out with the first file.
  Sinks sinks;
  fetched.status = Receive(context, id, out, go_on, received, &sinks);
  for (const auto& sink : sinks) {
    if (sink->name().empty()) continue;
    fetched.name = sink->name();
    fetched.path = sink->path();
    fetched.paths.push_back(sink->path());
    fetched.files += sink->files();
    fetched.received_bytes += sink->received_bytes();
    // The first one announced all there is.
    if (fetched.total_bytes == 0) fetched.total_bytes = sink->total_bytes();
  }
  for (const auto& sink : sinks) {
    if (!fetched.status.ok() && !keep) sink->Discard();
  }
  return fetched;
}

int RunFetch(const Context& context, const FetchOptions& options) {
  if (options.id.empty()) {
    return UsageError(context.io, "fetch", {"give a session's id, or --nodes and --job JOB"});
  }
  SignalWatch signals;
  int64_t begin_ns = context.clock.SteadyNs();
  std::string out = options.out_given || options.out != "." ? "" : OutputOf(context, options.id);
  if (out.empty()) out = options.out;
  const auto go_on = signals.go_on();
  const bool waits = options.wait || options.background;
  if (waits) {
    if (Status ended = WaitForEnd(context, options.id, go_on); !ended.ok()) {
      return Fail(context, SeeIfNotFound(ended, kListSessions), signals.caught() != 0 ? kExitPartial : -1);
    }
  }
  FetchResult fetched = FetchInto(context, options.id, out, options.keep, go_on);
  // "done" of the session may come before its dump is complete.
  const int64_t until_ns = context.clock.SteadyNs() + kPatienceNs;
  while (waits && fetched.status.code() == StatusCode::kFailedPrecondition && context.clock.SteadyNs() < until_ns &&
         WaitASecond(go_on)) {
    fetched = FetchInto(context, options.id, out, options.keep, go_on);
  }
  Status status = fetched.status;
  const bool interrupted = signals.caught() != 0 && !status.ok();
  if (interrupted) status = Interrupted();
  if (!status.ok()) {
    if (fetched.name.empty()) return Fail(context, SeeIfNotFound(status, kListDumps), interrupted ? kExitPartial : -1);
    const std::string part = fmt::format("{} of {} bytes", fetched.received_bytes, fetched.total_bytes);
    const std::string fate = options.keep ? fmt::format("{}: {} kept; remove it before the next fetch, or choose another --out", fetched.path, part)
                                          : fmt::format("partial results ({}) were removed; the same command fetches all again", part);
    int exit_code = Fail(context, interrupted ? status : status.Annotate("fetch is incomplete"), kExitPartial);
    context.io.err << "profctl: " << Printable(fate) << std::endl;
    return exit_code;
  }
  if (context.json) {
    PrintJson(context, Json{{"session_id", options.id},
                            {"dump_name", fetched.name},
                            {"path", fetched.path},
                            {"paths", fetched.paths},
                            {"files", fetched.files},
                            {"bytes", fetched.received_bytes}});
  } else {
    for (size_t i = 0; i + 1 < fetched.paths.size(); ++i) {
      context.io.out << Printable(fetched.paths[i]) << '\n';
    }
    context.io.out << fmt::format("{}  {}, {} in {}\n", Printable(fetched.path),
                                  CountText(fetched.files, "file"), FormatBytes(fetched.received_bytes),
                                  FormatSpan(context.clock.SteadyNs() - begin_ns));
  }
  return kExitOk;
}

}  // namespace profd::client
