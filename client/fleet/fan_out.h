// The same work for many nodes: a bounded number at once, each with a deadline of its own, all of it
// cancelled by a signal.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/status.h"
#include "client/api.h"

namespace profd::client {

// Nodes worked on at the same time. Each costs a thread and a connection.
inline constexpr size_t kNodesAtOnce = 64;

// One node's turn, used by one worker thread.
class NodeCall {
 public:
  // `cancelled` (may be null) and `clock` outlive it; `deadline_ns` on the steady clock, 0 = none.
  // `diagnose` (may be null) returns what is wrong on the way to a node that cannot be reached.
  NodeCall(std::unique_ptr<ProfdApi> api, const Clock& clock, int64_t deadline_ns,
           const std::atomic<bool>* cancelled, std::function<std::string()> diagnose = nullptr);
  // The api's hook points here.
  NodeCall(const NodeCall&) = delete;
  NodeCall& operator=(const NodeCall&) = delete;

  ProfdApi& api() { return *api_; }
  bool cancelled() const { return cancelled_ != nullptr && cancelled_->load(); }
  bool expired() const;
  int64_t elapsed_ns() const { return clock_.SteadyNs() - begin_ns_; }
  // The call's status as people understand it: one that ended because of the node's deadline is
  // kDeadlineExceeded whatever the transport made of it; a node that cannot be reached is diagnosed.
  Status Explain(const Status& status) const;

 private:
  std::unique_ptr<ProfdApi> api_;
  const Clock& clock_;
  int64_t begin_ns_;
  int64_t deadline_ns_;
  const std::atomic<bool>* cancelled_;
  std::function<std::string()> diagnose_;
};

class FanOut {
 public:
  struct Plan {
    size_t nodes = 0;
    size_t at_once = kNodesAtOnce;
    // For a node's complete turn; 0 = none (streams of any length).
    int64_t node_timeout_ns = 0;
    // Called by worker threads, several at once.
    std::function<std::unique_ptr<ProfdApi>(size_t node)> make_api;
    // May be null; see NodeCall.
    std::function<std::string(size_t node)> diagnose = nullptr;
    // One node's turn; called once for each node that was not cancelled before. Several at once.
    std::function<void(size_t node, NodeCall* call)> work;
    // Called by Run's own thread about ten times a second with the number of nodes that are done;
    // false cancels what is under way and what has not begun. May be null.
    std::function<bool(size_t done)> go_on;
  };

  explicit FanOut(const Clock& clock) : clock_(clock) {}

  // Returns when every worker has ended: false when it was cancelled.
  bool Run(const Plan& plan);

 private:
  const Clock& clock_;
};

}  // namespace profd::client
