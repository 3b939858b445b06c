// Completes a dump that was not ended: the daemon was killed, or the machine. Slices are cut to complete
// records, .done files and end_info written, records counted anew, and the manifest lists
// `interrupted` and what is missing. docs/dumps.md has what can be relied on.
//
// May be cut short at any point and called again. Directories of dumps belong to users: nothing in
// them is believed, no link followed, nothing but the owner's regular files opened, and what cannot
// be repaired is left as it is and reported.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "dump/dump_io.h"
#include "dump/dump_root.h"
#include "dump/manifest.h"

namespace profd {

struct RecoveryOptions {
  int64_t now_wall_ns = 0;
  int64_t now_raw_ns = 0;
  // Did the machine run on since the dump was begun? Absent: concluded from the clocks.
  std::optional<bool> same_boot = {};
  // The owner of the dump, where its manifest has none.
  std::string session_id = {};
  std::string reason = "profd ended before the session did";
  DumpState state = DumpState::kInterrupted;  // that it ends in
  // What its writer knew at the end, and could not write; in place of the manifest on the disk.
  std::optional<Manifest> manifest = {};
};

struct RecoveredDump {
  enum class Outcome : uint8_t {
    kWasComplete,  // nothing to do
    kRecovered,
    kEmpty,  // neither manifest nor data: to be removed
  };
  Outcome outcome = Outcome::kWasComplete;
  Manifest manifest;
  uint64_t cut_bytes = 0;  // of incomplete records
  uint32_t ended_slices = 0;
};

// Nothing is done to a dump whose manifest has an end.
Result<RecoveredDump> RecoverDump(const DumpRoot& root, const std::string& name, const RecoveryOptions& options);
// Of a dump that was completed as interrupted: why its session did not resume, which is known after that. Others stay
// as they are.
Status KeepReason(const DumpRoot& root, const std::string& name, const std::string& reason);

}  // namespace profd
