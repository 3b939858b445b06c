#include "daemon/web/status_board.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/clock.h"

namespace profd {
namespace {

// Pictures come once a second; a busy machine may be late, a strand that hangs is.
constexpr int64_t kStaleNs = 15 * kNsPerSecond;
// A collector that has not run by then waits for a driver, and must not delay readiness.
constexpr int64_t kWarmUpNs = 30 * kNsPerSecond;
// How old a picture may become without requests.
constexpr int64_t kUnseenNs = 5 * kNsPerSecond;

}  // namespace

void StatusBoard::Pin(NodeView view, int64_t now_ns) {
  auto fresh = std::make_shared<const NodeView>(std::move(view));
  {
    MutexLock lock(mutex_);
    view_.swap(fresh);
  }
  if (first_ns_ == 0) first_ns_ = now_ns;
  pinned_ns_ = drawn_ns_ = now_ns;
  looked_ = false;
}

bool StatusBoard::WantsPicture(int64_t now_ns) const {
  return looked_ || now_ns - drawn_ns_ >= kUnseenNs || now_ns - first_ns_ < kWarmUpNs;
}

std::shared_ptr<const NodeView> StatusBoard::view() const {
  looked_ = true;
  MutexLock lock(mutex_);
  return view_;
}

WebResponse StatusBoard::Health(int64_t now_ns) const {
  WebResponse response;
  int64_t pinned = pinned_ns_;
  if (pinned == 0) {
    response.status = 503;
    response.body = "starting: the control strand has not run yet\n";
  } else if (now_ns - pinned > kStaleNs) {
    response.status = 503;
    response.body = fmt::format("hanging: the control strand last ran {} s ago\n",
                                (now_ns - pinned) / kNsPerSecond);
  } else {
    response.body = "ok\n";
  }
  return response;
}

WebResponse StatusBoard::Readiness(int64_t now_ns) const {
  WebResponse response;
  std::string lines;
  bool ready = true;
  auto line = [&](std::string_view part, bool part_ready, std::string_view what) {
    ready = ready && part_ready;
    lines += fmt::format("{}: {}\n", part, what);
  };
  std::shared_ptr<const NodeView> seen = view();
  line("sockets", listening_, listening_ ? "ready" : "not ready: not listening yet");
  line("dumps", dumps_seen_,
       dumps_seen_ ? "ready" : "not ready: earlier dumps are still being looked through");
  if (seen == nullptr) {
    line("metrics", false, "not ready: no collector has begun");
  } else {
    std::vector<std::string> waiting;
    for (const NodeView::Collector& one : seen->collectors) {
      if (!one.has_run) waiting.push_back(one.name);
    }
    bool warm = waiting.empty() || now_ns - first_ns_ > kWarmUpNs;
    std::string what = waiting.empty() ? fmt::format("ready: {} collectors", seen->collectors.size())
                                       : fmt::format("{}: not run yet: {}",
                                                     warm ? "degraded" : "not ready",
                                                     fmt::join(waiting, ", "));
    line("metrics", warm, what);
    for (const NodeView::Collector& one : seen->collectors) {
      if (one.has_run && !one.error.empty()) {
        line(fmt::format("collector {}", one.name), true, "degraded: " + one.error);
      }
    }
    if (seen->devices.empty()) {
      line("npus", true, "ready: host only (" + seen->driver_problem + ")");
    }
    for (const NodeView::Device& device : seen->devices) {
      line("npu " + device.npu, true,
           device.verdict == "ok" ? "ready"
           : device.reasons.empty()
               ? device.verdict
               : fmt::format("{}: {}", device.verdict, fmt::join(device.reasons, "; ")));
    }
  }
  response.status = ready ? 200 : 503;
  response.body = (ready ? "ready\n" : "not ready\n") + lines;
  return response;
}

}  // namespace profd
