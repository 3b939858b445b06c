// Devices that are kept for a process that tunes on them: no other user tunes there, and nothing is profiled inside the
// applications of these devices while it does. A lease ends with its process, at its latest end, or when it is released;
// it outlives the daemon. Lives on the control strand; nothing here waits.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "base/strand.h"
#include "daemon/dumps/state_saver.h"
#include "daemon/node/node_access.h"
#include "daemon/session/peer.h"
#include "daemon/session/profiling_gate.h"
#include "profd/v1/profd.pb.h"

namespace profd {

class SelfMetrics;

class TuningLeases final : public ProfilingGate {
 public:
  static constexpr size_t kMaxPerUser = 16;
  static constexpr size_t kMaxPerNode = 64;
  static constexpr uint64_t kDefaultMs = uint64_t{7} * 24 * 3600 * 1000;
  static constexpr uint64_t kMaxMs = uint64_t{30} * 24 * 3600 * 1000;

  struct Deps {
    Strand& control;
    const Clock& clock;
    std::span<const DeviceInfo> devices;
    const NodeProcesses& processes;
    const NodeDevices& node_devices;
    StateSaver& states;  // keeps what Load takes
    // Who profiles inside applications on one of these devices, as far as the peer may see it; empty: nothing does.
    std::function<std::string(const Peer&, std::span<const uint32_t> devices)> profiled_by;
    std::string boot_id;
  };
  explicit TuningLeases(Deps deps) : deps_(std::move(deps)) {}

  using Finish = std::function<void(const Status&)>;
  void Acquire(const Peer& peer, const v1::AcquireTuningLeaseRequest& request_untrusted, v1::TuningLease* out, Finish finish);
  Status Release(const Peer& peer, const std::string& id_untrusted);
  void List(const Peer& peer, google::protobuf::RepeatedPtrField<v1::TuningLease>* out) const;

  // FAILED_PRECONDITION names the user who tunes there.
  Status MayProfile(const Peer& peer, std::span<const int> devices) const override;

  // What was saved by the daemon before this one: leases whose processes still live.
  void Load(std::string_view text);
  // About once a second.
  void Tick();

  void UpdateMetrics(SelfMetrics* self) const;
  size_t active() const { return leases_.size(); }
  uint64_t refused_total() const { return refused_; }

 private:
  struct Lease {
    v1::TuningLease facts;
    uint64_t start_ticks = 0;
  };
  Result<Lease> Admit(const Peer& peer, const v1::AcquireTuningLeaseRequest& request) const;
  Status MayUse(const Peer& peer, uint32_t device) const;
  Result<Lease> Checked(const Peer& peer, const v1::AcquireTuningLeaseRequest& request) const;
  Status CheckConflicts(const Peer& peer, std::span<const uint32_t> devices) const;
  const Lease* HolderOf(std::span<const uint32_t> devices, std::optional<uint32_t> other_than) const;
  std::string Describe(const Peer& peer, const Lease& lease) const;
  static v1::TuningLease Shown(const Peer& peer, const Lease& lease);
  void End(const std::string& id, std::string_view why);
  void Save(std::function<void()> done);

  const Deps deps_;
  std::map<std::string, Lease> leases_;
  uint64_t acquired_ = 0;
  uint64_t refused_ = 0;
};

}  // namespace profd
