// What the processes of users make the daemon hold beside their rings: names and accounts of what they do, packets that
// they do not read. Limited per user and node, since one user may attach hundreds of processes. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "base/mutex.h"

namespace profd {

class UserMemory {
 public:
  static constexpr size_t kPerUser = size_t{192} << 20;
  static constexpr size_t kPerNode = size_t{256} << 20;

  explicit UserMemory(size_t per_user = kPerUser, size_t per_node = kPerNode) : per_user_(per_user), per_node_(per_node) {}

 private:
  friend class HeldMemory;
  bool Change(uint32_t uid, size_t before, size_t after);

  const size_t per_user_;
  const size_t per_node_;
  Mutex mutex_;
  std::map<uint32_t, size_t> of_user_ GUARDED_BY(mutex_);
  size_t of_all_ GUARDED_BY(mutex_) = 0;
};

// The part of one process, session or connection.
class HeldMemory {
 public:
  // Null: without limits.
  HeldMemory(std::shared_ptr<UserMemory> memory_or_null, uint32_t uid) : memory_(std::move(memory_or_null)), uid_(uid) {}
  ~HeldMemory() { Resize(0); }
  HeldMemory(const HeldMemory&) = delete;
  HeldMemory& operator=(const HeldMemory&) = delete;

  // False, and nothing changes: the user, or all together, would hold too much.
  bool Resize(size_t bytes);
  bool Grow(size_t bytes) { return Resize(bytes_ + bytes); }
  void Shrink(size_t bytes) { Resize(bytes_ - bytes); }
  size_t bytes() const { return bytes_; }

 private:
  const std::shared_ptr<UserMemory> memory_;
  const uint32_t uid_;
  size_t bytes_ = 0;
};

}  // namespace profd
