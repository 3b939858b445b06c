#include "sim/ascendcl/group.h"

#include <sys/mman.h>

#include <algorithm>

#include "sim/shared_file.h"

namespace profd::sim::acl {

std::unique_ptr<Group> Group::Open(const std::string& name, const std::string& path,
                                   uint32_t members, uint32_t rank) {
  if (members == 0 || members > 4096 || rank >= members) return nullptr;
  const size_t bytes = kPlaces * members * sizeof(Place);
  void* const memory = MapShared(path.c_str(), bytes, 0600);
  if (memory == nullptr) return nullptr;
  return std::unique_ptr<Group>(new Group(name, members, rank, static_cast<Place*>(memory)));
}

Group::~Group() { ::munmap(places_, Bytes()); }

void Group::Arrive(uint64_t operation, int64_t time_ns) {
  Place& place = At(operation, rank_);
  place.time_ns.store(time_ns, std::memory_order_relaxed);
  place.operation.store(operation + 1, std::memory_order_release);
}

std::optional<int64_t> Group::LastArrival(uint64_t operation) const {
  int64_t last = INT64_MIN;
  for (uint32_t rank = 0; rank < members_; ++rank) {
    const Place& place = At(operation, rank);
    if (place.operation.load(std::memory_order_acquire) != operation + 1) return std::nullopt;
    last = std::max(last, place.time_ns.load(std::memory_order_relaxed));
  }
  return last;
}

}  // namespace profd::sim::acl
