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

struct StateFile {
  const char* name;
  std::string_view loss;  // what is logged when it cannot be saved
};
inline constexpr StateFile kPinsFile = {"pins.json", "pins not saved"};
inline constexpr StateFile kReleasesFile = {"released_channels.json", "released channels would be taken back by a restart"};
// Dumps that wait for the database, and those that have been loaded.
inline constexpr StateFile kArchiveFile = {"archive.json", "what waits for the database would not survive a crash of profd"};
inline constexpr StateFile kTuningFile = {"tuning.json", "tuning leases would not survive a crash of profd"};

class StateStore {
 public:
  explicit StateStore(std::string path) : path_(std::move(path)) {}

  // Keeps every other daemon from this folder, and so from its dump root, until the process ends.
  // kUnavailable while another has it.
  Status Lock();

  Status SaveSession(const std::string& id, std::string_view text);
  Status DropSession(const std::string& id);
  // By id. What is not a session's file is left alone.
  Result<std::map<std::string, std::string>> LoadSessions();

  // Waits until the disk has it.
  Status Save(const StateFile& file, std::string_view text);
  // Empty if nothing was ever saved.
  Result<std::string> Load(const StateFile& file);

 private:
  // The folder and `sub` in it, made where they are missing, and locked again: the dump root may have been replaced.
  Result<UniqueFd> Open(std::string_view sub);
  Status LockIn(int dir);

  std::string path_;
  UniqueFd lock_;
  uint64_t volume_ = 0;  // of the folder above, once it is locked
};

}  // namespace profd
