#include "daemon/dumps/dump_quota.h"

#include <algorithm>
#include <tuple>

namespace profd {
namespace {

class Planner {
 public:
  Planner(std::span<const KeptDump> dumps, const QuotaLimits& limits, const Headroom& headroom)
      : limits_(limits), headroom_(headroom) {
    for (const KeptDump& dump : dumps) {
      if (dump.removing) continue;
      total_ += dump.bytes + dump.queued;
      by_uid_[dump.uid] += dump.bytes + dump.queued;
      if (!dump.writing && !dump.pinned) free_to_go_.push_back(&dump);
    }
    std::ranges::sort(free_to_go_, [](const KeptDump* a, const KeptDump* b) {
      return std::tie(a->waiting, a->ended_wall_ns, a->name) < std::tie(b->waiting, b->ended_wall_ns, b->name);
    });
  }

  QuotaPlan Run() {
    // What a user has too much of goes first, and may be enough.
    for (const KeptDump* dump : free_to_go_) {
      if (OverUid(dump->uid, HeadroomFor(*dump, UidHeadroom(dump->uid)))) Remove(*dump, kReasonPerUid);
    }
    for (const KeptDump* dump : free_to_go_) {
      if (OverTotal(HeadroomFor(*dump, headroom_.total))) Remove(*dump, kReasonTotal);
    }
    plan_.over_total = OverTotal(headroom_.margin);
    for (const auto& [uid, bytes] : by_uid_) {
      if (OverUid(uid, headroom_.margin)) plan_.over_uids.insert(uid);
    }
    return std::move(plan_);
  }

 private:
  // What waits for the database does not go for the sake of what may be written, only before a session would end.
  uint64_t HeadroomFor(const KeptDump& dump, uint64_t headroom) const { return dump.waiting ? std::min(headroom, headroom_.margin) : headroom; }
  bool OverTotal(uint64_t more) const { return limits_.total != 0 && total_ + more > limits_.total; }
  bool OverUid(uint32_t uid, uint64_t more) const {
    return limits_.per_uid != 0 && uid != 0 && by_uid_.at(uid) + more > limits_.per_uid;
  }
  uint64_t UidHeadroom(uint32_t uid) const {
    auto found = headroom_.by_uid.find(uid);
    return found == headroom_.by_uid.end() ? 0 : found->second;
  }
  void Remove(const KeptDump& dump, std::string_view reason) {
    if (!gone_.insert(dump.name).second) return;
    plan_.removals.push_back({dump.name, reason});
    total_ -= dump.bytes;
    by_uid_[dump.uid] -= dump.bytes;
  }

  const QuotaLimits& limits_;
  const Headroom& headroom_;
  std::vector<const KeptDump*> free_to_go_;
  std::map<uint32_t, uint64_t> by_uid_;
  std::set<std::string> gone_;
  uint64_t total_ = 0;
  QuotaPlan plan_;
};

}  // namespace

QuotaPlan PlanRemovals(std::span<const KeptDump> dumps, const QuotaLimits& limits,
                       const Headroom& headroom) {
  return Planner(dumps, limits, headroom).Run();
}

}  // namespace profd
