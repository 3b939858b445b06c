#include "client/commands/stream.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/text.h"
#include "client/render.h"
#include "client/signals.h"
#include "export/rows/text.h"

namespace profd::client {
namespace {

// A second is complete once a second: requested twice as often, each is shown at most so late.
constexpr int kNaps = 10;
constexpr int kNapMs = 50;

double PerSecond(uint64_t count, const v1::ActivitySpan& span) {
  const auto ns = static_cast<double>(span.end_ns()) - static_cast<double>(span.begin_ns());
  return ns > 0 ? static_cast<double>(count) * 1e9 / ns : 0;
}

std::string Percent(double ratio) { return fmt::format("{:.1f}%", ratio * 100); }

std::string Short(uint64_t ns) {
  const auto value = static_cast<double>(ns);
  if (ns < 1'000'000) return fmt::format("{:.1f}us", value / 1e3);
  if (ns < kNsPerSecond) return fmt::format("{:.2f}ms", value / 1e6);
  return fmt::format("{:.2f}s", value / 1e9);
}

class Printer {
 public:
  Printer(const Context& context, const StreamActivityOptions& options)
      : context_(context), options_(options) {
    if (options_.json) return;
    context_.io.out << fmt::format("{:<20} {:<12} {:>5} {:>8} {:>6} {:>6} {:>6} {:>6} {:>9} {:>7} {:>6} {:>8}  {}\n",
                                   options_.raw_time ? "SECOND" : "TIME", "JOB", "RANK", "PID", "COMP",
                                   "COMM", "ONLY", "FREE", "KERNELS/S", "STEPS/S", "LOST", "LONGEST",
                                   "KERNEL")
                    << std::flush;
  }

  // What has come since the last time. False when nothing more is wanted.
  bool Take(const v1::GetActivityResponse& activity) {
    std::map<int32_t, int64_t> ends;
    for (const v1::ProcessActivity& process : activity.processes()) {
      const auto known = ends_.find(process.pid());
      int64_t end = known == ends_.end() ? 0 : known->second;
      // Of a process that is new here the latest second is enough.
      int i = known == ends_.end() ? std::max(0, process.spans_size() - 1) : 0;
      for (; i < process.spans_size(); ++i) {
        const v1::ActivitySpan& span = process.spans(i);
        if (span.begin_ns() < end) continue;
        end = span.end_ns();
        if (!Print(process, span, activity.wall_offset_ns())) return false;
      }
      ends[process.pid()] = end;
    }
    ends_ = std::move(ends);
    context_.io.out.flush();
    return context_.io.out.good();
  }

  // What is to be requested next.
  int64_t from_ns() const {
    int64_t from = ends_.empty() ? 0 : INT64_MAX;
    for (const auto& [pid, end] : ends_) from = std::min(from, end);
    return from;
  }

  uint64_t printed() const { return printed_; }

 private:
  bool Print(const v1::ProcessActivity& process, const v1::ActivitySpan& span, int64_t wall_offset_ns) {
    int64_t wall_ns = 0;
    if (__builtin_add_overflow(span.begin_ns(), wall_offset_ns, &wall_ns)) wall_ns = span.begin_ns();
    if (options_.json) {
      PrintJsonLine(process, span, wall_ns);
    } else {
      PrintLine(process, span, wall_ns);
    }
    return ++printed_ != options_.count && context_.io.out.good();
  }

  void PrintJsonLine(const v1::ProcessActivity& process, const v1::ActivitySpan& span, int64_t wall_ns) {
    Json json = {{"pid", process.pid()},
                 {"uid", process.uid()},
                 {"job_id", process.job_id()},
                 {"rank", process.has_rank() ? Json(process.rank()) : Json(nullptr)},
                 {"wall_ns", wall_ns}};
    json.update(ToJson(span));
    json["kernels_per_second"] = PerSecond(span.kernels(), span);
    json["steps_per_second"] = PerSecond(span.steps(), span);
    context_.io.out << JsonText(json, /*indent=*/false) << '\n';
  }

  void PrintLine(const v1::ProcessActivity& process, const v1::ActivitySpan& span, int64_t wall_ns) {
    std::string longest = "-";
    std::string kernel = "-";
    if (span.has_longest_kernel_ns()) {
      longest = Short(span.longest_kernel_ns());
      kernel = span.longest_kernel().empty() ? "(no name)" : Printable(span.longest_kernel());
    }
    context_.io.out << fmt::format(
        "{:<20} {:<12} {:>5} {:>8} {:>6} {:>6} {:>6} {:>6} {:>9.0f} {:>7.2f} {:>6} {:>8}  {}\n",
        TimeText(span, wall_ns), process.job_id().empty() ? "-" : Printable(process.job_id()),
        process.has_rank() ? std::to_string(process.rank()) : "-", process.pid(),
        Percent(span.computation_ratio()), Percent(span.communication_ratio()),
        Percent(span.not_overlapped_ratio()), Percent(span.free_ratio()),
        PerSecond(span.kernels(), span), PerSecond(span.steps(), span), span.lost_records(), longest,
        kernel);
  }

  // To the second: spans are full seconds of another clock.
  std::string TimeText(const v1::ActivitySpan& span, int64_t wall_ns) {
    if (options_.raw_time) return std::to_string(span.begin_ns() / kNsPerSecond);
    std::array<char, 40> text{};
    const std::string all(text.data(), utc_.Append(text.data(), wall_ns));
    return all.substr(0, all.find('.')) + "Z";
  }

  const Context& context_;
  const StreamActivityOptions options_;
  exporting::Rfc3339 utc_;
  std::map<int32_t, int64_t> ends_;  // by pid, the end of what was shown last
  uint64_t printed_ = 0;
};

}  // namespace

int RunStreamActivity(const Context& context, const StreamActivityOptions& options) {
  SignalWatch signals({SIGINT, SIGTERM});
  context.api.SetWaitHook(signals.go_on());
  Printer printer(context, options);
  v1::GetActivityRequest request;
  request.set_job_id(options.job);
  Status status;
  bool noted = false;
  uint64_t printed = 0;
  int64_t last_ns = context.clock.SteadyNs();
  const auto silent = [&] { return context.timeout_ms && context.clock.SteadyNs() - last_ns >= *context.timeout_ms * kNsPerMs; };
  for (bool more = true; more && signals.caught() == 0;) {
    request.set_from_ns(printer.from_ns());
    const Result<v1::GetActivityResponse> activity = context.api.GetActivity(request);
    if (!activity.ok()) {
      status = activity.status();
      break;
    }
    if (activity->processes().empty() && !std::exchange(noted, true)) {
      Warn(context, "no process is being collected from; waiting for a session that does, for example "
                    "profctl start --job JOB --task-time l0");
    }
    more = printer.Take(*activity);
    if (std::exchange(printed, printer.printed()) != printer.printed()) last_ns = context.clock.SteadyNs();
    for (int i = 0; more && i < kNaps && !silent() && signals.Poll() == 0; ++i) ::poll(nullptr, 0, kNapMs);
    if (more && silent()) {
      status = NotFound(fmt::format("no {}second of a process came within the time of --timeout; what collects from it is shown by `profctl list --active`",
                                    printed > 0 ? "further " : ""));
      more = false;
    }
  }
  context.api.SetWaitHook(nullptr);
  if (signals.caught() != 0 || status.ok()) return kExitOk;
  return Fail(context, status);
}

}  // namespace profd::client
