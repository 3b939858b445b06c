// Which faults are on at a given scenario time. Immutable after construction.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/scenario.h"

namespace profd::sim {

class FaultTable {
 public:
  explicit FaultTable(std::vector<Fault> faults) : faults_(std::move(faults)) {}

  // The first fault of `kind` on `device` (and `channel`, where the kind has one) at `t_ns`, or
  // nullptr.
  const Fault* Find(FaultKind kind, int64_t t_ns, int device,
                    unsigned channel = kAllChannels) const;
  // The card drop of `device` in this mode.
  const Fault* Drop(DropMode mode, int64_t t_ns, int device) const;
  // The next instant after `t_ns` at which any fault begins or ends; kForever if none.
  int64_t NextEdge(int64_t t_ns) const;
  const std::vector<Fault>& all() const { return faults_; }

 private:
  std::vector<Fault> faults_;
};

}  // namespace profd::sim
