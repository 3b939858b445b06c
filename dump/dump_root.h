// The directory below which all dumps live: one PROF_* directory per session, owned by the
// session's owner. The root itself belongs to the daemon and is 0711: every user may pass through to
// a dump whose name they know and whose mode lets them in, and no user can list who profiled
// when.
//
// Not thread-safe; the daemon's writer thread owns it. Removing may be asked of another instance.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/status.h"
#include "dump/dump_io.h"

namespace profd {

// Of the volume that holds `path`, or what there is of it. 0: unknown.
uint64_t VolumeOf(const std::string& path);
// Is `path` still on that volume, or on one that was mounted there since? A volume that was unmounted leaves the
// directory below its mount point, which is not meant for dumps.
Status CheckVolume(const std::string& path, uint64_t volume);

class DumpRoot {
 public:
  // Opens `path`, creating it and missing parents. Refuses (kPermissionDenied) a root that is a
  // symbolic link, belongs to another user, or may be written by its group or by others.
  static Result<DumpRoot> Open(const std::string& path);
  // One that is there and open elsewhere, for reading and removing.
  static Result<DumpRoot> Attach(const std::string& path);

  // The path as given; for showing only.
  const std::string& path() const { return path_; }
  int fd() const { return fd_.get(); }
  // What an unprivileged process could still write on the volume.
  Result<uint64_t> FreeBytes() const;
  // Of the volume, without what only root may fill: FreeBytes of an empty one.
  Result<uint64_t> SizeBytes() const;
  // kResourceExhausted when its volume is mounted read-only, as one is whose device fails.
  Status CheckWritable() const;
  // False when the folder was removed or replaced since it was opened: what is written goes nowhere.
  bool InPlace() const;
  // kFailedPrecondition when its volume was unmounted since it was opened.
  Status CheckMounted() const;

  struct NewDump {
    std::string name;
    UniqueFd dir;
  };
  // Makes PROF_<running number>_<local time with ms>_<16 letters A-R>, as dump-format 1.1 has it.
  // The running number continues from the highest one found; the letters come from the kernel.
  Result<NewDump> CreateDump(DumpOwner owner, int64_t wall_ns);
  // Of a run the parent of all its PROF directories; otherwise the dump itself. kInvalidArgument unless `name` is a
  // dump's name, kNotFound if there is none.
  Result<UniqueFd> OpenFolder(std::string_view name) const;
  // The same, but of a run profd's own PROF directory in it, which has the run's name.
  Result<UniqueFd> OpenDump(std::string_view name) const;
  // Makes a run of a dump, or finds it made: its path becomes the parent of PROF directories, it is one of them. Open
  // descriptors of the dump stay valid.
  Result<UniqueFd> MakeRun(const std::string& name, DumpOwner owner);
  // Removes a dump with everything in it: first out of sight by renaming, then bit by bit.
  Status Remove(std::string_view name);
  // What a crash has left of that; takes its time.
  void RemoveLeftovers();

  // Of all dumps, sorted: by age but for wrapped running numbers.
  Result<std::vector<std::string>> Names() const;
  // Owner and last change (wall clock, ns) of a dump's directory.
  Result<std::pair<uint32_t, int64_t>> FactsOf(std::string_view name) const;

  // The size of a dump: of all its files, manifest included, of a run those of all its PROF directories. Too many or too
  // deep entries: a lower bound, of which the owner gains nothing that counts.
  Result<uint64_t> BytesOf(std::string_view name) const;

  // PROF_<digits>_<digits>_<letters>.
  static bool IsDumpName(std::string_view name);

 private:
  DumpRoot(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  Status Prepare();  // finds the running number, ends what a crash has interrupted
  void EndMakeRun(const std::string& hidden);

  std::string path_;
  UniqueFd fd_;
  uint32_t last_number_ = 0;
};

}  // namespace profd
