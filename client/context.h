// What every command gets: the daemon, the streams, the clock; and how it reports.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "client/api.h"
#include "client/connection.h"
#include "client/endpoint.h"
#include "client/json.h"

namespace profd::client {

struct Io {
  std::ostream& out;
  std::ostream& err;
  bool out_tty = false;
  bool err_tty = false;
  // Colours, where the stream is a tty.
  bool color = false;
  // Of the terminal that `out` is; 0 = none, or not known.
  size_t out_columns = 0;

  bool out_color() const { return color && out_tty; }
  bool err_color() const { return color && err_tty; }
};

struct Context {
  ProfdApi& api;
  Io& io;
  const Clock& clock;
  // Where `api` goes; its `tls` is filled for a socket too, for reaching other nodes.
  Endpoint endpoint;
  bool json = false;
  // Another connection to the same daemon, for calls beside each other; unset timeout = the user's.
  std::function<std::unique_ptr<ProfdApi>(std::optional<int64_t> timeout_ms)> make_api = {};
  // --timeout, which the calls of `api` have by themselves.
  std::optional<int64_t> timeout_ms = {};
  // Of one node of many: false when it is given up. Null: the command watches signals by itself.
  std::function<bool()> go_on = {};
};

// Reports the error on stderr (and, with --json, as {"error": ...} on stdout) and returns its exit
// code, or `exit_code` where it is not negative.
int Fail(const Context& context, const Status& status, int exit_code = -1);
// The same, with the fields of the request as the caller wrote them (cli_message.h).
int Fail(const Context& context, const Status& status, const FieldNames& names, int exit_code = -1);

// Of one of several things a command is for: the error on stderr, and behind `which` as one of `errors`; the exit code.
int FailOne(const Context& context, const Status& status, Json which, Json* errors, int exit_code = -1);

// What the daemon's wall clock shows less what ours does: its times are compared with its own now. One on another machine is
// asked; 0 where it does not answer.
int64_t DaemonClockOffsetNs(const Context& context);
inline int64_t DaemonNowNs(const Context& context) { return context.clock.WallNs() + DaemonClockOffsetNs(context); }

// Of a command that calls no daemon, with this exit code.
int FailWith(const Io& io, const Status& status, int exit_code, bool json);
// With the exit code of its status.
inline int FailWith(const Io& io, const Status& status, bool json) { return FailWith(io, status, ExitCodeFor(status.code()), json); }

// Reports every problem of the arguments; kExitUsage.
int UsageError(const Io& io, const std::string& command, const std::vector<std::string>& problems);

// The command's one JSON answer.
void PrintJson(const Context& context, const Json& json);

// "profctl: warning: ..." on stderr.
void Warn(const Context& context, const std::string& text);

// A line on stderr while a call is under way: from the second second on, on a tty only,
// rewritten in place, gone at the end. While it lives it is the api's wait hook.
class Progress {
 public:
  // `go_on` (may be null) returns false to cancel the call.
  Progress(const Context& context, std::string what, std::function<bool()> go_on = nullptr);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // What stands behind the elapsed time, "12.3 MiB".
  void SetDetail(std::string detail) { detail_ = std::move(detail); }
  int64_t elapsed_ns() const { return context_.clock.SteadyNs() - begin_ns_; }

 private:
  void Show();

  const Context& context_;
  ProfdApi::WaitHook before_;
  std::string what_;
  std::string detail_;
  int64_t begin_ns_;
  int64_t shown_ns_ = 0;
};

// `call()` with a progress line that is gone when its result is printed.
template <class Call>
auto WithProgress(const Context& context, std::string what, Call call) {
  Progress progress(context, std::move(what));
  return call();
}

}  // namespace profd::client
