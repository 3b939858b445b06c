// Queries hccn_tool about the network ports of all NPUs, over and over: a thread of its own, because
// the tool may take its whole timeout for each question. Consumers attach; while none
// does, the tool is not run. What is known is copied out at any time, without waiting.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/strand.h"
#include "driver/hccn_tool.h"

namespace profd {

enum class HccnCommand : uint8_t { kLink, kSpeed, kLinkStat, kOptical, kPorts };
inline constexpr size_t kHccnCommands = 5;
// The tool's argument, without the dash.
std::string_view NameOf(HccnCommand command);

struct HccnPortValues {
  std::string port;  // "0"; on A5 "DIE/PORT"
  std::optional<bool> link_up;
  std::optional<double> bytes_per_second;
  OpticalValues optical;
};

// What the last pass found of one NPU; what it did not is absent.
struct HccnValues {
  int device = 0;        // logical id
  uint64_t version = 0;  // 0: not read yet; another number with every pass
  int64_t time_ns = 0;   // MONOTONIC_RAW
  std::optional<uint64_t> link_ups;
  std::vector<HccnPortValues> ports;
  Status status;  // of the first question that failed
};

struct HccnCommandCount {
  uint64_t runs = 0;
  uint64_t failures = 0;
  double last_seconds = 0;
};
using HccnCounts = std::array<HccnCommandCount, kHccnCommands>;

// One NPU to ask.
struct HccnTarget {
  int device = 0;  // logical id
  int physical_id = 0;
  bool by_port = false;  // A5: ports by die and number
};

class HccnReader {
 public:
  struct Options {
    HccnToolOptions tool;
    std::vector<HccnTarget> targets;
    int64_t period_ns = 60 * kNsPerSecond;  // from the beginning of a pass to that of the next
    int64_t pause_ns = 5 * kNsPerSecond;    // at least, after the end of one
    Status usable;                          // why the tool is not to be run although it is there
  };
  // `clock` must outlive the reader.
  HccnReader(Options options, const Clock& clock);
  ~HccnReader();
  HccnReader(const HccnReader&) = delete;
  HccnReader& operator=(const HccnReader&) = delete;

  // Ok, or why there will be no values.
  Status Usable() const;
  // The first pass begins with the first Attach. Each wants one Detach.
  void Attach();
  void Detach();

  HccnCounts Counts() const;
  // Copies what has changed since the versions in `*known`, which has one entry for each NPU.
  void Refresh(std::vector<HccnValues>* known) const;
  size_t devices() const { return options_.targets.size(); }

 private:
  class Asker;
  // On the strand.
  void Arm();
  void Pass();
  HccnValues ReadDevice(const HccnTarget& target);
  void Publish(size_t at, HccnValues values) REQUIRES(mutex_);
  void Count(HccnCommand command, bool ok, int64_t took_ns);

  Options options_;
  const Clock& clock_;
  HccnTool tool_;
  mutable Mutex mutex_;
  std::vector<HccnValues> values_ GUARDED_BY(mutex_);
  HccnCounts counts_ GUARDED_BY(mutex_);
  size_t users_ GUARDED_BY(mutex_) = 0;
  bool stop_ GUARDED_BY(mutex_) = false;
  // Made by the first Attach.
  std::optional<Executor> executor_;
  std::optional<Strand> strand_;
  // On the strand.
  std::optional<Timer> next_;
  int64_t due_ns_ = 0;  // when the next pass may begin
};

}  // namespace profd
