#include "daemon/web/connection_limits.h"

namespace profd {

Admission ConnectionLimits::Enter(const std::string& address) {
  auto same = of_address_.find(address);
  bool full_address = same != of_address_.end() && same->second >= per_address_;
  if (!full_address && open_ < total_) {
    ++open_;
    ++of_address_[address];
    return Admission::kServe;
  }
  if (refusals_ >= kMaxRefusals) return full_address ? Admission::kDropAddress : Admission::kDropTotal;
  ++refusals_;
  return full_address ? Admission::kRefuseAddress : Admission::kRefuseTotal;
}

void ConnectionLimits::Leave(const std::string& address, Admission admission) {
  switch (admission) {
    case Admission::kServe: {
      --open_;
      auto same = of_address_.find(address);
      if (same != of_address_.end() && --same->second == 0) of_address_.erase(same);
      return;
    }
    case Admission::kRefuseTotal:
    case Admission::kRefuseAddress:
      --refusals_;
      return;
    case Admission::kDropTotal:
    case Admission::kDropAddress:
      return;
  }
}

}  // namespace profd
