// Keeps a model fed: a live stream, slow polls beside it, and again from the beginning when the
// daemon has gone. One thread; everything happens within Run().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/clock.h"
#include "client/api.h"
#include "client/top/model.h"

namespace profd::client::top {

struct FeedSettings {
  // A new connection; unset = the user's --timeout, or none.
  std::function<std::unique_ptr<ProfdApi>(std::optional<int64_t> timeout_ms)> make_api;
  std::set<uint32_t> devices;
  std::string job;
  // Try again when a connection that once stood is lost.
  bool reconnect = true;
};

class Feed {
 public:
  Feed(FeedSettings settings, const Clock& clock, Model* model)
      : settings_(std::move(settings)), clock_(clock), model_(*model) {}

  // Until `tick`, which is called about ten times a second and after every message, returns false: ok.
  // An error when the daemon cannot be reached at first, or any more without `reconnect`.
  Status Run(const std::function<bool()>& tick);

 private:
  bool Tick();
  void PollWhenDue();
  Status Connect();
  Status Stream();
  v1::StreamSamplesRequest Request(const v1::Node& node) const;
  void PollLists();
  void Nap(int64_t until_ns);

  const FeedSettings settings_;
  const Clock& clock_;
  Model& model_;
  std::function<bool()> tick_;
  bool stopped_ = false;
  bool polling_ = false;
  // Anew for every attempt: gRPC would wait ever longer before it looks at a socket again.
  std::unique_ptr<ProfdApi> stream_;
  std::unique_ptr<ProfdApi> polls_;
  v1::StreamSamplesRequest request_;
  int64_t next_lists_ns_ = 0;
  int64_t next_node_ns_ = 0;
  bool heard_ = false;
};

}  // namespace profd::client::top
