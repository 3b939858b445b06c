#include "client/commands/top.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <iterator>
#include <string_view>
#include <vector>

#include "client/environment_variable.h"
#include "client/parse.h"
#include "client/render.h"
#include "client/signals.h"
#include "client/top/feed.h"
#include "client/top/screen.h"
#include "client/top/select.h"
#include "client/top/snapshot.h"

namespace profd::client {
namespace {

using top::Feed;
using top::FeedSettings;
using top::Model;
using top::View;

// --once waits so long for devices that say nothing.
constexpr int64_t kOnceMostNs = 3 * kNsPerSecond;

View ParseView(const TopOptions& options, std::vector<std::string>* problems) {
  View view;
  view.job = options.job;
  view.ascii = options.ascii || !IsUtf8Locale();
  if (const auto ms = ReadFlag("--interval", options.interval, ParseDurationMs, problems)) {
    if (*ms < uint64_t{top::kMinIntervalMs} || *ms > uint64_t{top::kMaxIntervalMs}) {
      problems->push_back(
          fmt::format("--interval \"{}\" is not within 100ms..10s", *options.interval));
    } else {
      view.interval_ms = static_cast<int64_t>(*ms);
    }
  }
  if (options.sort) {
    Status status = top::ParseSort(*options.sort, &view);
    if (!status.ok()) problems->push_back("--sort " + status.message());
  }
  if (const auto devices = ReadFlag("--devices", options.devices, ParseDevices, problems)) {
    view.devices.insert(devices->begin(), devices->end());
  }
  return view;
}

int RunOnce(const Context& context, const TopOptions& options, const View& view, Feed* feed,
            Model* model) {
  std::optional<SignalWatch> signals;
  if (!context.go_on) signals.emplace();
  int64_t begin_ns = 0;
  int64_t least_ns = options.interval ? view.interval_ms * kNsPerMs : 0;
  Status status = feed->Run([&] {
    if (signals ? signals->Poll() != 0 : !context.go_on()) return false;
    if (!model->connection().up) return true;
    int64_t now = context.clock.SteadyNs();
    if (begin_ns == 0) begin_ns = now;
    int64_t passed_ns = now - begin_ns;
    return passed_ns < least_ns || (!model->Complete(view.devices) && passed_ns < kOnceMostNs);
  });
  if (signals && signals->caught() != 0) return kExitOk;
  // Not only where none of them is there: a row would be missing from those that are.
  std::vector<uint32_t> missing;
  std::ranges::copy_if(view.devices, std::back_inserter(missing), [model](uint32_t id) { return !model->devices().contains(id); });
  if (model->connection().up && !missing.empty()) {
    return Fail(context, NotFound(fmt::format("this node has no device {}", fmt::join(missing, ","))));
  }
  bool enough = model->connection().up && model->Complete(view.devices);
  if (!status.ok() && !enough) return Fail(context, status);
  model->Roll(context.clock.SteadyNs());
  if (!view.job.empty() && top::SelectDevices(*model, view).empty() && top::SelectProcesses(*model, view).empty() &&
      top::SelectSessions(*model, view).empty()) {
    return Fail(context, NotFound(fmt::format("no device, process or session of job \"{}\" matches", view.job)));
  }
  if (context.json) {
    PrintJson(context, top::SnapshotJson(*model, view, context.clock.WallNs()));
  } else {
    top::PrintSnapshot(*model, view, context.io.out_color() && !options.no_color, context.io.out);
  }
  return kExitOk;
}

int RunJson(const Context& context, const View& view, Feed* feed, Model* model) {
  SignalWatch signals;
  top::Pace pace(context.clock);
  const int64_t begin_ns = context.clock.SteadyNs();
  bool begun = false;
  Status status = feed->Run([&] {
    if (signals.Poll() != 0) return false;
    const top::Connection& connection = model->connection();
    if (!connection.up && connection.losses == 0) return true;
    // The first object has values, unless there are none.
    begun =
        begun || model->Complete(view.devices) || context.clock.SteadyNs() - begin_ns > kOnceMostNs;
    if (!begun || !pace.Due(view.interval_ms)) return true;
    model->Roll(context.clock.SteadyNs());
    context.io.out << JsonText(top::SnapshotJson(*model, view, context.clock.WallNs()),
                               /*indent=*/false)
                   << std::endl;
    return context.io.out.good();
  });
  if (signals.caught() != 0 || status.ok()) return kExitOk;
  return Fail(context, status);
}

int RunScreen(const Context& context, const TopOptions& options, View view, Feed* feed,
              Model* model) {
  const std::string_view term = EnvironmentVariable("TERM");
  auto terminal = top::Terminal::Open(context.io.out_color() && !options.no_color);
  if (!context.io.out_tty || !terminal.ok() || term.empty() || term == "dumb") {
    const std::string_view problem = !context.io.out_tty ? "standard output is not a terminal"
                                     : !terminal.ok()    ? "there is no terminal to read keys from"
                                                         : "TERM is not set, or dumb";
    return UsageError(context.io, "top", {fmt::format("{}; use --once for a snapshot or --json for objects", problem)});
  }
  SignalWatch signals({SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH});
  Status status;
  {
    top::Screen screen(std::move(terminal).value(), &signals, context.clock);
    status = feed->Run([&] { return screen.Tick(model, &view); });
  }
  if (!status.ok()) return Fail(context, status);
  return kExitOk;
}

}  // namespace

int RunTop(const Context& context, const TopOptions& options) {
  std::vector<std::string> problems;
  View view = ParseView(options, &problems);
  if (!problems.empty()) return UsageError(context.io, "top", problems);
  FeedSettings settings;
  settings.make_api = context.make_api;
  settings.devices = view.devices;
  settings.job = view.job;
  settings.reconnect = !options.once;
  Model model;
  Feed feed(std::move(settings), context.clock, &model);
  if (options.once) return RunOnce(context, options, view, &feed, &model);
  if (context.json) return RunJson(context, view, &feed, &model);
  return RunScreen(context, options, std::move(view), &feed, &model);
}

}  // namespace profd::client
