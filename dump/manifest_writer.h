// How a dump's manifest gets to its place (profd_manifest.json), and when. It is replaced in one step; while the session
// runs and has a sync thread, only once the new one is on the disk, for which the old one stays. A part of SessionDump,
// on its thread. Destroyed, it leaves the one that is in place.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "dump/dump_folders.h"
#include "dump/dump_sync.h"

namespace profd {

class ManifestWriter {
 public:
  // The references outlive the object.
  ManifestWriter(DumpFolders& folders, const RunningSync& sync, const Clock& clock)
      : folders_(folders), sync_(sync), clock_(clock) {}
  ~ManifestWriter();
  ManifestWriter(const ManifestWriter&) = delete;
  ManifestWriter& operator=(const ManifestWriter&) = delete;

  // Something in the manifest is worth knowing after a crash.
  void Touch() { touched_ = true; }
  // It is touched, and due at once.
  void TouchNow();
  // It was touched, and its replacement is not too near to the last one (10 s): the caller does that now.
  bool TakeDue();
  // `soon`: in place once the sync thread has seen it on the disk; without one, at once.
  Status Put(std::string_view text, bool soon);
  // Of the last one that was put.
  uint64_t bytes() const { return bytes_; }
  // Hands over the one in place, unless it was.
  void Sync();

 private:
  void CallOff();

  DumpFolders& folders_;
  const RunningSync& sync_;
  const Clock& clock_;
  uint64_t bytes_ = 0;
  bool touched_ = false;
  bool synced_ = false;
  int64_t written_ns_ = 0;  // 0: the next one is due
  std::shared_ptr<PendingReplacement> pending_;
};

}  // namespace profd
