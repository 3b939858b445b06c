// What the web page, /healthz and /readyz answer from: the control strand pins a picture of the node
// here once a second while it is requested, every 5 s otherwise, so that a question costs it nothing and gets an answer even when it hangs.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "daemon/web/page_facts.h"
#include "daemon/web/web_server.h"

namespace profd {

struct NodeView {
  struct Device {
    int id = 0;
    std::string npu;  // its label in metrics
    std::string chip;
    std::string verdict;               // "ok", "degraded", "faulty", "down", "unknown"
    std::vector<std::string> reasons;  // of it, a sentence each
  };
  struct Collector {
    std::string name;
    bool has_run = false;
    std::string error;  // of its last poll; empty: it succeeded
  };
  struct Advice {
    std::string check;
    std::string where;  // "job j42, rank 3"
    std::string what;
    std::string advice;  // what to do first
  };
  std::string version = {};
  std::string hostname = {};
  bool simulated = false;
  std::string driver_problem = {};  // why there are no devices
  std::vector<Device> devices = {};
  std::vector<Collector> collectors = {};  // that run without a session
  size_t sessions = 0;
  std::string flight_recorder = {};  // "on" or "off"
  std::vector<Advice> advice = {};   // of the live checks, now
};

// Any thread.
class StatusBoard {
 public:
  void Pin(NodeView view, int64_t now_ns);
  // The strand runs and has nothing new to show: what /healthz goes by.
  void Touch(int64_t now_ns) { pinned_ns_ = now_ns; }
  // Whether a new picture is worth its cost: it was requested since the last one, or it is as old as
  // a first look may be, or the node is still starting.
  bool WantsPicture(int64_t now_ns) const;
  void SetListening() { listening_ = true; }
  void SetDumpsSeen() { dumps_seen_ = true; }

  // Null before the first picture.
  std::shared_ptr<const NodeView> view() const;

  // 200 "ok" while pictures are pinned, 503 with the reason otherwise.
  WebResponse Health(int64_t now_ns) const;
  // 200 when everything has begun, 503 before; a line for each part. What is broken without hope
  // of a soon end (a card that hangs, a node without NPUs) is degraded, not "not ready".
  WebResponse Readiness(int64_t now_ns) const;

 private:
  std::atomic<int64_t> pinned_ns_{0};
  std::atomic<int64_t> first_ns_{0};
  std::atomic<int64_t> drawn_ns_{0};  // the picture
  mutable std::atomic<bool> looked_{false};
  std::atomic<bool> listening_{false};
  std::atomic<bool> dumps_seen_{false};
  mutable Mutex mutex_;
  std::shared_ptr<const NodeView> view_ GUARDED_BY(mutex_);
};

// The page at "/".
std::string RenderPage(const NodeView& view, const PageFacts& facts,
                       const std::vector<std::string>& metric_names);

}  // namespace profd
