// A sliding account of one process while its activity is collected: what its devices did in each of the
// last seconds, and which kernels took most of their time. Allocates nothing per record once its buffers
// have grown. Lives on the control strand.
//
// Records come late and not in order. A second is closed kLateSeconds after its end; until then its intervals
// are kept, so its shares are exact. Of a record that arrives later (a kernel that ran for longer), seconds
// that it covers completely are exact too; where it covers a part of a closed second, its overlap with what else
// happened there is estimated by their shares. Counts of kernels, steps and losses are exact.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.h"
#include "daemon/jobs/activity_account.h"
#include "daemon/jobs/activity_reader.h"

namespace profd {

class ActivityWindow {
 public:
  static constexpr int64_t kWindowSeconds = 10;
  static constexpr int64_t kLateSeconds = 2;
  // Of further devices of a process only the kernels are counted.
  static constexpr size_t kMaxDevices = 8;
  // Intervals of open seconds, of one device and kind. Where there are more (40,000 kernels a second for
  // three seconds), the shortest gaps between them are taken for busy.
  static constexpr size_t kMaxIntervals = size_t{1} << 17;

  struct HotKernel {
    uint32_t name = 0;  // of the ring; 0 = without one
    uint64_t total_ns = 0;
    uint64_t count = 0;
  };
  struct Hottest {
    std::vector<HotKernel> kernels;  // most time first
    uint64_t total_ns = 0;           // of all kernels
    uint64_t span_ns = 0;            // in which they arrived
  };

  explicit ActivityWindow(int64_t now_ns);

  // At least once a second, and before what follows. `now_ns`: CLOCK_MONOTONIC_RAW.
  void Advance(int64_t now_ns);
  void Take(std::span<const ActivityFrame> frames, uint64_t lost);
  void AddStep(int64_t end_ns);

  // The last closed seconds, kWindowSeconds at most.
  ActivityAccount Last() const;
  // Each closed second that begins at this time or later, of the last kWindowSeconds; oldest first.
  std::vector<ActivityAccount> SecondsFrom(int64_t begin_ns) const;
  // By accumulated time of what arrived in the last 5 to 10 seconds. Exact: a ring has at most
  // attach::kMaxActivityNames names.
  Hottest HottestKernels(size_t most) const;
  size_t memory_bytes() const;

 private:
  static constexpr int64_t kSeconds = 16;  // closed and open ones, a power of two
  static constexpr int64_t kHalfSeconds = 5;
  static_assert(kWindowSeconds + kLateSeconds + 1 <= kSeconds);

  struct Second {
    uint64_t kernels = 0;
    uint64_t steps = 0;
    uint64_t lost = 0;
    uint64_t longest_ns = 0;
    uint32_t longest_name = 0;
  };
  struct Interval {
    int64_t begin_ns;
    int64_t end_ns;
  };
  enum Kind : size_t { kComputation, kCommunication, kBoth };
  struct Device {
    struct Open {
      std::vector<Interval> intervals;
      size_t first = 0;    // those before it are closed
      bool sorted = true;  // by their beginnings; then they do not overlap either
      std::span<Interval> rest() { return std::span(intervals).subspan(first); }
    };
    uint16_t id = 0;
    std::array<Open, 2> open;  // by kind
    // Busy time by kind and second; kBoth: of both at once.
    std::array<std::array<int64_t, kSeconds>, 3> busy_ns{};
  };
  // Two halves that take turns.
  struct NameTimes {
    std::array<uint64_t, 2> total_ns{};
    std::array<uint64_t, 2> count{};
  };

  static size_t Index(int64_t second) { return static_cast<size_t>(second & (kSeconds - 1)); }
  bool Holds(int64_t second) const { return second <= now_second_ && second > now_second_ - kSeconds; }
  ActivityAccount Sum(int64_t from, int64_t to) const;
  Device* DeviceOf(uint16_t id);
  void AddKernel(const attach::KernelRecord& record, int64_t base_ns);
  void AddInterval(Device* device, Kind kind, int64_t begin_ns, int64_t end_ns);
  void AddLate(Device* device, Kind kind, Interval part);
  void AddBusy(Device* device, Kind kind, Interval part);
  static void Join(Device::Open* open, int64_t gap_ns);
  void Close(Device* device, int64_t until_ns);

  int64_t now_ns_;
  int64_t now_second_;
  const int64_t first_;  // the first second that was watched from its beginning
  int64_t closed_;       // seconds before it are closed
  std::array<Second, kSeconds> seconds_{};
  std::vector<Device> devices_;
  Device* last_device_ = nullptr;
  std::vector<NameTimes> names_;  // by id
  size_t half_ = 0;
  int64_t half_second_;  // when the present half began, and the one before
  int64_t half_before_;
};

// What a process does, and what the ids of names in it mean; null while nothing is collected from it.
struct LiveActivity {
  const ActivityWindow* window = nullptr;
  const ActivityNameTable* names = nullptr;
};

}  // namespace profd
