// What must outlive the daemon and is stored nowhere else: sessions that have not ended, pins, released
// channels, tuning leases, what waits for the database. Small files in a folder of the daemon's own (0700), each replaced atomically.
//
// No state but the lock; any one thread at a time.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/status.h"

namespace profd {

class StateStore {
 public:
  explicit StateStore(std::string path) : path_(std::move(path)) {}

  // Keeps every other daemon from this folder, and so from its dump root, until the process ends.
  // kUnavailable while another has it.
  Status Lock();

  // `sync`: wait until the disk has it.
  Status SaveSession(const std::string& id, std::string_view text, bool sync);
  Status DropSession(const std::string& id);
  // By id. What is not a session's file is left alone.
  Result<std::map<std::string, std::string>> LoadSessions() const;

  Status SavePins(std::string_view text);
  // Empty if nothing was ever pinned.
  Result<std::string> LoadPins() const;
  // Channels that are released to other tools.
  Status SaveReleases(std::string_view text);
  Result<std::string> LoadReleases() const;

  // Dumps that wait for the database, and those that have been loaded.
  Status SaveArchive(std::string_view text);
  // Empty if there is none.
  Result<std::string> LoadArchive() const;

  Status SaveTuning(std::string_view text);
  // Empty if nothing was ever tuned.
  Result<std::string> LoadTuning() const;

 private:
  Status SaveFile(std::string_view name, std::string_view text);
  // Empty if there is none.
  Result<std::string> LoadFile(std::string_view name) const;
  // The folder and `sub` in it, made where they are missing: the dump root may have been replaced.
  Result<UniqueFd> Open(std::string_view sub) const;

  std::string path_;
  UniqueFd lock_;
  uint64_t volume_ = 0;  // of the folder above, once it is locked
};

}  // namespace profd
