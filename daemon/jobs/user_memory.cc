#include "daemon/jobs/user_memory.h"

namespace profd {

bool UserMemory::Change(uint32_t uid, size_t before, size_t after) {
  MutexLock lock(mutex_);
  size_t& of_user = of_user_[uid];
  const bool fits = after <= before || (of_user - before + after <= per_user_ && of_all_ - before + after <= per_node_);
  if (fits) {
    of_user = of_user - before + after;
    of_all_ = of_all_ - before + after;
  }
  if (of_user == 0) of_user_.erase(uid);
  return fits;
}

bool HeldMemory::Resize(size_t bytes) {
  if (memory_ != nullptr && !memory_->Change(uid_, bytes_, bytes)) return false;
  bytes_ = bytes;
  return true;
}

}  // namespace profd
