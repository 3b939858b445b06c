#include "client/context.h"

#include <fmt/format.h>

#include "base/text.h"
#include "client/cli_message.h"
#include "client/fleet/clock_offset.h"
#include "client/json.h"
#include "client/render.h"
#include "profd/v1/profd.pb.h"
#include "proto/problems/problem_message.h"

namespace profd::client {
namespace {

constexpr int64_t kRedrawNs = 200 * kNsPerMs;

// Every line of `text` behind "profctl: " or blanks of the same width.
void PrintError(std::ostream& err, std::string_view text) {
  std::string safe = PrintableLines(text);
  std::string_view rest = safe;
  std::string_view line;
  for (bool first = true; NextLine(&rest, &line); first = false) {
    err << (first ? "profctl: " : "         ") << line << '\n';
  }
  err.flush();
}

Json ErrorFacts(const Status& status, std::string_view text, int exit_code) {
  return {{"code", CodeWord(status.code())}, {"message", text}, {"exit_code", exit_code}};
}

}  // namespace

int Fail(const Context& context, const Status& status, int exit_code) {
  return Fail(context, status, nullptr, exit_code);
}

int Fail(const Context& context, const Status& status, const FieldNames& names, int exit_code) {
  if (exit_code < 0) exit_code = ExitCodeFor(status.code());
  const bool listed = !status.problems().empty();
  const std::string text =
      Explain(listed ? Status(status.code(), DescribeForCli(status.problems(), names)) : status, context.endpoint);
  PrintError(context.io.err, text);
  if (context.json) {
    Json error = ErrorFacts(status, text, exit_code);
    for (const Problem& problem : status.problems()) {
      v1::Problem message;
      ToWire(problem, &message);
      error["problems"].push_back(ToJson(message));
    }
    PrintJson(context, Json{{"error", std::move(error)}});
  }
  return exit_code;
}

int64_t DaemonClockOffsetNs(const Context& context) {
  if (!context.endpoint.remote()) return 0;
  const auto offset = MeasureOffset(context.api, context.clock, 1);
  return offset.ok() ? offset->offset_ns : 0;
}

int FailOne(const Context& context, const Status& status, Json which, Json* errors, int exit_code) {
  Context quiet = context;
  quiet.json = false;
  const int code = Fail(quiet, status, exit_code);
  which.update(ErrorFacts(status, status.message(), code));
  errors->push_back(std::move(which));
  return code;
}

int FailWith(const Io& io, const Status& status, int exit_code, bool json) {
  io.err << "profctl: " << PrintableLines(status.message()) << std::endl;
  if (json) io.out << JsonText(Json{{"error", ErrorFacts(status, status.message(), exit_code)}}, true) << std::endl;
  return exit_code;
}

int UsageError(const Io& io, const std::string& command, const std::vector<std::string>& problems) {
  for (const std::string& problem : problems) PrintError(io.err, problem);
  io.err << fmt::format("Try \"profctl {} --help\".\n", command) << std::flush;
  return kExitUsage;
}

void PrintJson(const Context& context, const Json& json) {
  context.io.out << JsonText(json, /*indent=*/true) << std::endl;
}

void Warn(const Context& context, const std::string& text) {
  context.io.err << Paint("profctl: warning: ", Tone::kWarning, context.io.err_color())
                 << PrintableLines(text) << std::endl;
}

Progress::Progress(const Context& context, std::string what, std::function<bool()> go_on)
    : context_(context), what_(std::move(what)), begin_ns_(context.clock.SteadyNs()) {
  before_ = context_.api.SetWaitHook([this, go_on = std::move(go_on)] {
    Show();
    return (!go_on || go_on()) && (!before_ || before_());
  });
}

Progress::~Progress() {
  context_.api.SetWaitHook(std::move(before_));
  if (shown_ns_ != 0) context_.io.err << "\r\033[K" << std::flush;
}

void Progress::Show() {
  if (!context_.io.err_tty) return;
  int64_t now = context_.clock.SteadyNs();
  if (now - begin_ns_ < kNsPerSecond || now - shown_ns_ < kRedrawNs) return;
  shown_ns_ = now;
  context_.io.err << "\r\033[K" << Printable(what_) << "  " << FormatSpan(now - begin_ns_)
                  << (detail_.empty() ? "" : "  ") << Printable(detail_) << std::flush;
}

}  // namespace profd::client
