// What a channel that reports changes alone (the AI Core's clock and voltages) has reported last. A session that joins
// the running channel gets it first: nothing may change while it runs, and readers take a change from before their
// begin for the value there (dump-format 2.7).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "daemon/data/replay.h"
#include "driver/records/lpm.h"

namespace profd {

class LastChanges {
 public:
  // Whether the channel is such a one.
  static bool Are(uint32_t channel);

  // Complete records.
  void Take(std::span<const std::byte> records);
  void Clear() { kept_.clear(); }
  // As one block of `route` that was read at `host_ns`. Null: there is nothing.
  std::shared_ptr<BlockSource> Source(int64_t host_ns, uint32_t route = 0) const;

 private:
  struct Kept {
    uint32_t kind;
    std::array<std::byte, records::LpmRecord::kSize> record;
  };
  std::vector<Kept> kept_;  // one of a kind, the newest last
};

}  // namespace profd
