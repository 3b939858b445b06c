// Where ranks meet: a file in which each rank writes when its device reached a collective
// operation. No rank can be more than one operation ahead of another, so a few places are enough.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace profd::sim::acl {

class Group {
 public:
  // nullptr when the file cannot be made or mapped.
  static std::unique_ptr<Group> Open(const std::string& name, const std::string& path,
                                     uint32_t members, uint32_t rank);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  const std::string& name() const { return name_; }
  uint32_t members() const { return members_; }
  uint32_t rank() const { return rank_; }
  uint64_t NextOperation() { return next_.fetch_add(1, std::memory_order_relaxed); }

  void Arrive(uint64_t operation, int64_t time_ns);
  // When the last rank arrived; empty while one is missing.
  std::optional<int64_t> LastArrival(uint64_t operation) const;

 private:
  static constexpr uint64_t kPlaces = 64;
  struct Place {
    std::atomic<int64_t> time_ns;
    std::atomic<uint64_t> operation;  // + 1; written last
  };
  static_assert(std::atomic<int64_t>::is_always_lock_free);

  Group(std::string name, uint32_t members, uint32_t rank, Place* places)
      : name_(std::move(name)), members_(members), rank_(rank), places_(places) {}
  size_t Bytes() const { return kPlaces * members_ * sizeof(Place); }
  Place& At(uint64_t operation, uint32_t rank) const {
    return places_[operation % kPlaces * members_ + rank];
  }

  std::string name_;
  uint32_t members_;
  uint32_t rank_;
  Place* places_;
  std::atomic<uint64_t> next_{0};
};

}  // namespace profd::sim::acl
