#include "client/commands/sessions.h"

#include <fmt/format.h>

#include "client/cli_message.h"
#include "client/parse.h"
#include "client/render.h"
#include "client/session_view.h"
#include "client/signals.h"

namespace profd::client {
namespace {

std::string Line(const Context& context, int64_t clock_offset_ns, const v1::Session& session) {
  const int64_t now_ns = context.clock.WallNs();
  std::string when = FormatTime(now_ns);
  Cell state = StateCell(session.status().state());
  std::string line = fmt::format(
      "{}  {}  {}  {}  {}", when,
      Paint(fmt::format("{:<11}", Printable(state.text)), state.tone, context.io.out_color()),
      RanFor(session, now_ns + clock_offset_ns), CountText(session.status().records(), "record"), FormatBytes(session.status().dump_bytes()));
  if (session.status().dropped_records() != 0 || session.status().dropped_bytes() != 0) {
    line += "  " + DroppedText(session);
  }
  if (std::string missing = MissingRanks(session); !missing.empty()) line += "  " + missing;
  if (std::string files = CollectingFiles(session); !files.empty()) line += "  collecting files " + files;
  if (!session.status().reason().empty()) line += "  " + Printable(session.status().reason());
  return line;
}

// What makes a new line; the clock alone does not.
std::string Fingerprint(const v1::Session& session) {
  return fmt::format("{} {} {} {} {} {} {} {}", static_cast<int>(session.status().state()), session.status().records(),
                     session.status().dump_bytes(), session.status().dropped_records(), session.status().dropped_bytes(),
                     MissingRanks(session), session.status().reason(), session.status().collecting_files().processes());
}

class Printer {
 public:
  explicit Printer(const Context& context) : context_(context), clock_offset_ns_(DaemonClockOffsetNs(context)) {}
  ~Printer() {
    if (open_line_) context_.io.out << std::endl;
  }

  bool Take(const v1::Session& session) {
    last_ = session;
    std::ostream& out = context_.io.out;
    if (context_.json) {
      out << JsonText(ToJson(session), /*indent=*/false) << std::endl;
    } else if (context_.io.out_tty) {
      // A new state begins a new line; progress rewrites the one it is on.
      bool same_state = open_line_ && session.status().state() == shown_state_;
      out << (same_state   ? "\r\033[K"
              : open_line_ ? "\n"
                           : "")
          << Line(context_, clock_offset_ns_, session) << std::flush;
      open_line_ = true;
      shown_state_ = session.status().state();
    } else if (std::string now = Fingerprint(session); now != fingerprint_) {
      out << Line(context_, clock_offset_ns_, session) << std::endl;
      fingerprint_ = std::move(now);
    }
    return out.good();
  }
  const v1::Session& last() const { return last_; }

 private:
  const Context& context_;
  const int64_t clock_offset_ns_;
  v1::Session last_;
  std::string fingerprint_;
  v1::Session::State shown_state_ = v1::Session::STATE_UNSPECIFIED;
  bool open_line_ = false;
};

}  // namespace

int RunWatch(const Context& context, const WatchOptions& options) {
  v1::WatchSessionRequest request;
  request.set_session_id(options.id);
  if (options.interval) {
    const auto ms = ParseIntervalMs(*options.interval);
    if (!ms.ok()) return UsageError(context.io, "watch", {"--interval " + ms.status().message()});
    request.set_interval_ms(*ms);
  }
  SignalWatch signals({SIGINT, SIGTERM});
  context.api.SetWaitHook(signals.go_on());
  Status status;
  int exit_code = kExitOk;
  {
    Printer printer(context);
    status = context.api.WatchSession(
        request, [&](const v1::Session& session) { return printer.Take(session); });
    exit_code = ExitForEnded(printer.last());
  }
  context.api.SetWaitHook(nullptr);
  if (signals.caught() != 0) return kExitOk;
  if (!status.ok()) {
    return Fail(context, SeeIfNotFound(status, kListSessions), NameOf("interval_ms", "--interval", options.interval));
  }
  return exit_code;
}

}  // namespace profd::client
