// Whether anything may be profiled inside applications now. Implemented by TuningLeases: not while another tunes there.
#pragma once

#include <span>

#include "base/status.h"
#include "daemon/session/peer.h"

namespace profd {

class ProfilingGate {
 public:
  virtual ~ProfilingGate() = default;
  // FAILED_PRECONDITION names what keeps these devices, as far as the peer may see it.
  virtual Status MayProfile(const Peer& peer, std::span<const int> devices) const = 0;
};

}  // namespace profd
