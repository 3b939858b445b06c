// What of root's rights this process holds, and what is lost without the others. docs/security-model.md is
// written from this; tests/e2e/test_privileges.py takes one right away at a time.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace profd {

// What does not work without a capability.
struct RightLoss {
  std::string_view capability;
  std::string_view loss;
};

class Rights {
 public:
  Rights(uint32_t uid, uint64_t capabilities) : uid_(uid), capabilities_(capabilities) {}
  // As they are now; they do not change while profd runs.
  static Rights OfThisProcess();

  // It can do what its users cannot: what it loads and reads must be root's own.
  bool privileged() const { return uid_ == 0 || capabilities_ != 0; }
  // An ordinary user's daemon serves that user and root; it misses nothing.
  std::vector<RightLoss> Losses() const;
  // May a dump be made that belongs to this user?
  Status MayGiveDump(uint32_t uid) const;

 private:
  uint32_t uid_;
  uint64_t capabilities_;
};

}  // namespace profd
