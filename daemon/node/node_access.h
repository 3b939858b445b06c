// What sessions, jobs and leases ask of the node: about its processes, and about its devices. Implemented by Node.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "base/status.h"
#include "collectors/collector.h"
#include "daemon/session/peer.h"
#include "dump/control_files.h"

namespace profd {

class DeviceControl;

class NodeProcesses {
 public:
  virtual ~NodeProcesses() = default;
  // The uid that owns a process. kPermissionDenied: it is there, but profd may not see it; another error: there is none.
  virtual Result<uint32_t> OwnerOf(pid_t pid) const = 0;
  // In clock ticks since boot, as long as the process lives; distinguishes it from a later one of the same number.
  virtual std::optional<uint64_t> StartTimeOf(pid_t pid) const = 0;
};

// By logical id.
class NodeDevices {
 public:
  virtual ~NodeDevices() = default;
  // May the peer use the device? Follows the permissions of /dev/davinciN where it exists.
  virtual Status MayUse(const Peer& peer, const DeviceInfo& device) const = 0;
  virtual DeviceFacts FactsOf(int device) const = 0;
  // Null: no thread controls the device.
  virtual DeviceControl* ControlOf(int device) const = 0;
};

}  // namespace profd
