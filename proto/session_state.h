// What the contract's states of a session mean.
#pragma once

#include "profd/v1/profd.pb.h"

namespace profd {

// Nothing about the session will change any more.
inline bool IsFinal(v1::Session::State state) {
  return state == v1::Session::STATE_DONE || state == v1::Session::STATE_FAILED || state == v1::Session::STATE_INTERRUPTED;
}
inline bool IsFinal(const v1::Session& session) { return IsFinal(session.status().state()); }

}  // namespace profd
