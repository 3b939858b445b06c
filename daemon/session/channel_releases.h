// Driver channels that are released to other tools for a time (`profctl channels release`): a channel has one user in the
// driver, so the vendor's profiler can have it only while profd does not. Sessions that want a released channel are busy,
// and have a gap in their dump (LossReason::kChannelReleased); the flight recorder too.
//
// A user releases channels that no session of another user has, for an hour at most; an administrator any, for a day.
// Lives on the control strand. Survives the daemon: a restart must not take a channel away from the tool that has it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/strand.h"
#include "daemon/dumps/state_saver.h"
#include "daemon/node/node_access.h"
#include "daemon/session/channel_arbiter.h"
#include "daemon/session/peer.h"
#include "profd/v1/profd.pb.h"

namespace profd {

class ChannelReleases {
 public:
  static constexpr uint64_t kDefaultMs = 10 * 60 * 1000;
  static constexpr uint64_t kLeastMs = 1000;
  static constexpr uint64_t kMostMs = 60 * 60 * 1000;
  static constexpr uint64_t kMostAdminMs = 24 * kMostMs;
  static constexpr int kMostNamed = 256;  // devices, and channels, of a request

  struct Deps {
    Strand& control;
    const Clock& clock;
    ChannelArbiter& arbiter;
    std::span<const DeviceInfo> devices;
    const NodeDevices& node_devices;
    StateSaver& states;  // keeps what Restore takes
    // Whose session it is; empty: it has ended.
    std::function<std::optional<uint32_t>(const std::string& session)> uid_of_session;
  };
  using Finish = std::function<void(const Status&)>;

  explicit ChannelReleases(Deps deps) : deps_(std::move(deps)) {}

  // Answers when the driver has stopped all of them. One that it does not stop is released nevertheless, with the reason.
  void Release(const Peer& peer, const v1::ReleaseChannelsRequest& request_untrusted, v1::ChannelReleases* out,
               const Finish& finish);
  // Without channels: all of the devices that the peer may take back.
  Status Acquire(const Peer& peer, const v1::AcquireChannelsRequest& request_untrusted, v1::ChannelReleases* out);
  // What an earlier daemon saved; before the first session.
  void Restore(std::string_view text);
  // Once a second: ends what has run out.
  void Tick();
  size_t size() const { return released_.size(); }

 private:
  using Key = std::pair<int, uint32_t>;  // logical device, channel
  struct Released {
    uint32_t uid = 0;
    int64_t until_ns = 0;  // wall clock
  };

  const DeviceInfo* Find(uint32_t device) const;
  // The channels that a request means; every problem of it at once.
  template <class Request>
  Result<std::vector<Key>> KeysOf(const Peer& peer, const Request& request) const;
  Status MayRelease(const Peer& peer, const std::vector<Key>& keys) const;
  static std::string WhyOf(const Released& released);
  void Add(const Key& key, const Released& released, v1::ChannelReleases* out) const;
  void Save() const;

  Deps deps_;
  std::map<Key, Released> released_;
};

}  // namespace profd
