// What an attached process may ask of sessions, in the name of its user. Implemented by SessionManager. Control strand.
#pragma once

#include <functional>
#include <string>

#include "base/status.h"
#include "daemon/session/peer.h"

namespace profd {

namespace v1 {
class Session;
class SessionSpec;
class StopSessionRequest;
}  // namespace v1

class SessionCalls {
 public:
  using Reply = std::function<void(const Result<v1::Session>&)>;

  virtual ~SessionCalls() = default;
  virtual void Start(const Peer& peer, const v1::SessionSpec& spec_untrusted, Reply reply) = 0;
  // By id, or the peer's running sessions of a job (answers the last to end).
  virtual void Stop(const Peer& peer, const v1::StopSessionRequest& request_untrusted, Reply reply) = 0;
  virtual Result<v1::Session> Get(const Peer& peer, const std::string& id_untrusted) const = 0;
};

}  // namespace profd
