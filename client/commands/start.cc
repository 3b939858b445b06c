#include "client/commands/start.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "client/parse.h"
#include "client/render.h"
#include "client/session_view.h"

namespace profd::client {
namespace {

// Reads one option after the other and gathers what is wrong with them.
class Reader {
 public:
  explicit Reader(std::vector<std::string>* problems) : problems_(problems) {}

  // True when `value` was given and `parse` took it.
  template <class T>
  bool Read(std::string_view flag, const std::optional<std::string>& value,
            Result<T> (*parse)(std::string_view), T* out) {
    if (!value) return false;
    return Take(flag, parse(*value), out);
  }
  template <class T>
  bool Take(std::string_view flag, Result<T> result, T* out) {
    if (!result.ok()) {
      problems_->push_back(fmt::format("{} {}", flag, result.status().message()));
      return false;
    }
    *out = std::move(result).value();
    return true;
  }

 private:
  std::vector<std::string>* problems_;
};

// "" on the wire would mean "not asked for".
Result<std::string> ParseText(std::string_view text) {
  if (text.empty()) return InvalidArgument("\"\" is empty; leave the option out instead");
  return std::string(text);
}

Result<int32_t> ParseRank(std::string_view text) {
  int32_t rank = 0;
  if (!ParseNumber(text, &rank)) {
    return InvalidArgument(fmt::format("\"{}\" is not a whole number", text));
  }
  return rank;
}

void ReadRates(const StartOptions& options, Reader* reader, v1::StartSessionRequest* request) {
  uint32_t hz = 0;
  if (reader->Read("--sys-hardware-mem-freq", options.sys_hardware_mem_freq, ParseHz, &hz)) {
    request->mutable_options()->set_sys_hardware_mem_freq(hz);
  }
  if (reader->Read("--sys-io-sampling-freq", options.sys_io_sampling_freq, ParseHz, &hz)) {
    request->mutable_options()->set_sys_io_sampling_freq(hz);
  }
  if (reader->Read("--sys-interconnection-freq", options.sys_interconnection_freq, ParseHz, &hz)) {
    request->mutable_options()->set_sys_interconnection_freq(hz);
  }
  if (reader->Read("--dvpp-freq", options.dvpp_freq, ParseHz, &hz)) request->mutable_options()->set_dvpp_freq(hz);
  if (reader->Read("--host-sys-usage-freq", options.host_sys_usage_freq, ParseHz, &hz)) {
    request->mutable_options()->set_host_sys_usage_freq(hz);
  }
}

void ReadTexts(const StartOptions& options, Reader* reader, v1::StartSessionRequest* request) {
  std::string text;
  if (reader->Read("--job", options.job, ParseText, &text)) request->set_job_id(text);
  if (reader->Read("--label", options.label, ParseText, &text)) request->set_label(text);
  if (reader->Read("--llc-profiling", options.llc_profiling, ParseText, &text)) {
    request->mutable_options()->set_llc_profiling(text);
  }
  if (reader->Read("--host-sys", options.host_sys, ParseText, &text)) request->mutable_options()->set_host_sys(text);
  if (reader->Read("--host-sys-usage", options.host_sys_usage, ParseText, &text)) {
    request->mutable_options()->set_host_sys_usage(text);
  }
  if (reader->Read("--storage-limit", options.storage_limit, ParseText, &text)) {
    request->mutable_options()->set_storage_limit(text);
  }
}

bool WasNamed(const v1::StartSessionRequest& request, const std::string& collector) {
  return std::any_of(request.collectors().begin(), request.collectors().end(),
                     [&](const v1::CollectorOrder& order) { return order.name() == collector; });
}

}  // namespace

v1::StartSessionRequest BuildStartRequest(const StartOptions& options,
                                          std::vector<std::string>* problems) {
  v1::StartSessionRequest request;
  Reader reader(problems);
  ReadTexts(options, &reader, &request);
  ReadRates(options, &reader, &request);
  int32_t number = 0;
  if (reader.Read("--rank", options.rank, ParseRank, &number)) request.set_rank(number);
  std::vector<uint32_t> devices;
  if (reader.Read("--devices", options.devices, ParseDevices, &devices)) {
    request.mutable_devices()->Assign(devices.begin(), devices.end());
  }
  for (const std::string& collector : options.collectors) {
    NamedRate order;
    if (!reader.Take("--collector", ParseNamedRate(collector), &order)) continue;
    v1::CollectorOrder* added = request.add_collectors();
    added->set_name(order.name);
    added->set_hz(order.hz);
  }
  for (const std::string& pid : options.pids) {
    if (reader.Take("--pid", ParsePid(pid), &number)) request.add_pids(number);
  }
  if (reader.Read("--end-with-pid", options.end_with_pid, ParsePid, &number)) {
    request.set_end_with_pid(number);
  }
  uint64_t ms = 0;
  if (reader.Read("--duration", options.duration, ParseDurationMs, &ms)) {
    request.set_duration_ms(ms);
  }
  request.set_require_all(options.require_all);
  request.set_no_dump(options.no_dump);
  return request;
}

int ExitForStarted(const v1::StartSessionRequest& request, const v1::Session& session) {
  if (ExitForEnded(session) != kExitOk) return kExitPartial;
  bool any_runs = false;
  for (const v1::Outcome& outcome : session.outcomes()) {
    switch (outcome.result()) {
      case v1::Outcome::RUNNING:
      case v1::Outcome::FINISHED:
        any_runs = true;
        break;
      case v1::Outcome::UNSUPPORTED:
        if (WasNamed(request, outcome.collector())) return kExitPartial;
        break;
      default:
        return kExitPartial;
    }
  }
  return any_runs || session.outcomes().empty() ? kExitOk : kExitPartial;
}

int RunStart(const Context& context, const StartOptions& options) {
  std::vector<std::string> problems;
  v1::StartSessionRequest request = BuildStartRequest(options, &problems);
  if (!problems.empty()) return UsageError(context, "start", problems);
  auto session =
      WithProgress(context, "starting", [&] { return context.api.StartSession(request); });
  if (!session.ok()) {
    int code = Fail(context, session.status());
    if (session.status().code() == StatusCode::kDeadlineExceeded) {
      Warn(context, "the session may be starting all the same: profctl list");
    }
    return code;
  }
  int exit_code = ExitForStarted(request, *session);
  if (context.json) {
    Json json = ToJson(*session);
    json["partial"] = exit_code == kExitPartial;
    PrintJson(context, json);
    return exit_code;
  }
  std::ostream& out = context.io.out;
  Cell state = StateCell(session->state());
  out << "session " << Printable(session->session_id()) << "  "
      << Paint(state.text, state.tone, context.io.out_color());
  if (!session->reason().empty()) out << "  (" << Printable(session->reason()) << ")";
  out << '\n';
  PrintOutcomes(out, *session, /*with_counts=*/false, context.io.out_color());
  if (!session->dump_path().empty()) out << "dump " << Printable(session->dump_path()) << '\n';
  PrintWarnings(context.io.err, *session, context.io.err_color());
  return exit_code;
}

}  // namespace profd::client
