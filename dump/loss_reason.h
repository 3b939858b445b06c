// Why something is missing from a dump: THE list of reasons, as manifests, journals, metrics, exports and
// documents name them (docs/dumps.md, "Losses").
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace profd {

enum class LossReason : uint8_t {
  kUnknown,          // of a version that has more reasons than this one
  kQueueFull,        // the writer's queue
  kNoBuffer,         // the driver had data, and no block was free to read them into
  kRingFull,         // a process' ring of marks or of activity
  kWriteError,       // the disk refused it
  kStorageLimit,     // the dump was as large as it may become
  kFileLimit,        // another file would have been one too many
  kAged,             // recorded, and removed again by a limit
  kLate,             // a polled collector was too late for it
  kDriver,           // the driver left it out
  kChannelRestart,   // between two runs of the channel
  kChannelSilent,    // the channel stopped delivering
  kChannelReleased,  // profd had released the channel to another tool
  kNotFetched,       // the channel's stop failed, or a process did not hand over: what these still held
  kNotRecorded,      // the flight recorder did not hold it
  kRecorderEvicted,  // the flight recorder held it no more
  kDaemonEnded,      // the daemon was killed
  kVendorBuffer,     // the vendor's profiler in the process: no buffer for it, or one that cannot be read
  kProcessEnded,     // the process ended without handing over its last records
  kNotNoted,         // missing by the timestamps, and the killed daemon had not noted why
  kOverBudget,       // left out so that profd stays within its share of the CPU
  kProfilerBusy,     // another profiler ran in the process, its device was kept for tuning, or the application forbade it
};
inline constexpr size_t kLossReasons = static_cast<size_t>(LossReason::kProfilerBusy) + 1;

// "queue_full"
std::string_view ToString(LossReason reason);
// kUnknown for what is none.
LossReason LossReasonOf(std::string_view name);

}  // namespace profd
