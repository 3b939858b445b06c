// The writer of one session's dump. Made when the session starts, fed by the daemon's writer thread
// only, finished when the session ends. At every moment the directory is a dump that the vendor's
// analyser reads up to the last Flush(): control files are there from the beginning, only end_info
// and the last .done files come with Finish(). Destroyed unfinished, it writes what it buffered and
// leaves the manifest saying "running", for recovery to find.
//
// A limit holds at every instant: what an append, a new manifest, the journal and the end of the dump
// will take is set aside before anything is written. docs/dumps.md has what readers rely on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "dump/closed_slices.h"
#include "dump/control_files.h"
#include "dump/dump_files.h"
#include "dump/dump_folders.h"
#include "dump/dump_io.h"
#include "dump/dump_root.h"
#include "dump/dump_space.h"
#include "dump/dump_sync.h"
#include "dump/manifest.h"
#include "dump/manifest_writer.h"
#include "dump/mark_files.h"
#include "dump/process_files.h"
#include "dump/process_folders.h"
#include "dump/slice_writer.h"

namespace profd {

struct SessionDumpOptions {
  struct Device {
    DeviceFacts facts;
    std::optional<DumpClocks> clocks;  // absent: the device's clocks cannot be read
  };
  SessionFacts session;
  NodeFacts node;
  std::vector<Device> devices;
  // The devices' clocks are not known yet: SetClocks brings them, just before the channels start.
  // Until then the dump lacks host_start.log and dev_start.log of its devices.
  bool clocks_later = false;
  DumpClocks host_clocks;  // host_ns and host_count only
  DumpOwner owner;
  // Filled by the daemon (session, outcomes); the dump adds versions, node, devices, clocks, times.
  Manifest manifest;
  uint64_t max_bytes = 0;  // of everything in the dump; 0 = no limit
  // At the limit the oldest closed slices go; without, the limit is an error. Never on Ascend310.
  bool age_at_limit = false;
  uint64_t place_bytes = 0;  // with age_at_limit: of each directory (PlaceLimit); 0 = no limit
  uint64_t slice_bytes = kDefaultSliceBytes;
  int compress = 0;  // closed slices: zstd level 1..3; 0 = as they are
  // Who brings what is written to the disk (Sync, SyncAtEnd); outlives the dump. Null: no thread before
  // the end, and the end waits for it.
  DumpSync* sync = nullptr;
  bool sync_while_running = true;
  const Clock* clock = nullptr;  // outlives the dump; null = the system's
  // Files whose names come with the data (one per process): how many there may be, and how many of
  // them may keep a descriptor between writes. Two for each of the 4,096 processes that are watched
  // at once, and some for those that come and go.
  size_t max_dynamic_files = 9216;
  size_t max_dynamic_fds = 128;
  bool sync_at_end = true;  // Finish() waits until the volume has everything
};

struct EndFacts {
  int64_t wall_ns = 0;
  int64_t raw_ns = 0;
  DumpState state = DumpState::kDone;
  std::string reason = {};
};

class SessionDump {
 public:
  // `io` outlives the dump. On an error nothing is left behind.
  static Result<std::unique_ptr<SessionDump>> Create(DumpRoot& root, SessionDumpOptions options,
                                                     DumpIo& io = SystemDumpIo());
  ~SessionDump();
  SessionDump(const SessionDump&) = delete;
  SessionDump& operator=(const SessionDump&) = delete;

  const std::string& name() const { return folders_.name(); }
  const std::string& path() const { return folders_.path(); }

  // For clocks_later, once for each device; nothing: they cannot be read. Everything relative in the
  // dump counts from `host_ns`, so the nearer to the start of the channels the better.
  Status SetClocks(int device, const std::optional<DumpClocks>& clocks);
  // A device that the session takes while it runs: its directory, as the others'. `sample`: what is
  // collected now. With clocks_later SetClocks follows.
  Status AddDevice(SessionDumpOptions::Device device, const SampleOptions& sample);

  using Channel = uint32_t;
  // The data file of a driver channel of one of the dump's devices. Empty `file` = the one of the
  // format table. Channels may share a device but not a file.
  Result<Channel> OpenChannel(int device, uint32_t channel_id, std::string_view file = {});
  // What accompanies the bytes of an append.
  struct Batch {
    uint64_t records = 1;
    int64_t host_ns = 0;             // when they were read; 0 = unknown
    std::string_view collector = {};  // whose they are, where there is no channel
  };
  // Complete records or lines. AtStorageLimit when the dump would
  // exceed max_bytes; any error refuses the complete block and leaves the dump usable.
  Status Append(Channel channel, std::span<const std::byte> bytes, uint64_t records,
                int64_t host_ns = 0);
  // Complete lines for host/data/<file>.slice_<k>. Files that cost the reader samples when cut are
  // kept in one slice while the limits allow (host_cpu, host_network, host_disk).
  Status AppendHostFile(std::string_view file, std::string_view lines, uint64_t records = 1) {
    return AppendHostFile(file, lines, Batch{records});
  }
  Status AppendHostFile(std::string_view file, std::string_view lines, const Batch& batch);
  // The same for who writes to a file often, without looking its name up: numbers stay valid.
  using HostFile = uint32_t;
  Result<HostFile> OpenHostFile(std::string_view file, std::string_view collector);
  bool IsHostFile(HostFile number, std::string_view file) const;
  Status AppendHostFile(HostFile file, std::string_view lines, const Batch& batch);
  // Complete lines for device_<N>/data/<file>.<N>.slice_<k> that come from no driver channel
  // ("netdev_stats.data").
  Status AppendDeviceFile(int device, std::string_view file, std::string_view lines,
                          uint64_t records = 1) {
    return AppendDeviceFile(device, file, lines, Batch{records});
  }
  Status AppendDeviceFile(int device, std::string_view file, std::string_view lines,
                          const Batch& batch);
  // Lines of one of our own files (mark_files.h). The first call creates it with a heading.
  Status AppendOwn(std::string_view file, std::string_view lines);
  // What the vendor's profiler left in a process is copied to a new folder among our own files
  // (`facts.directory` is its name), by others, who reserve the bytes first. PlaceProcessFiles puts it where the vendor's
  // tools find it.
  Result<UniqueFd> BeginProcessFiles(ManifestProcessFiles facts);
  Status ReserveForFiles(uint64_t bytes);
  // `unused`: of what was reserved.
  void EndProcessFiles(ManifestProcessFiles facts, uint64_t unused, std::vector<ProcessFile> files);
  // ProcessFolders::Place; before Finish.
  void PlaceProcessFiles(DumpRoot& root);

  Status CheckStillThere() const { return folders_.CheckStillThere(); }
  // Hands everything buffered to the kernel. Tries every file; returns the first error, also of the
  // sync thread, and when the dump was removed or moved underneath.
  Status Flush();
  // Has everything flushed so far brought to the disk; returns at once. Nothing without `sync`.
  void Sync();
  // What goes, or may go, when the volume is nearly full.
  ClosedSlices& closed() { return closed_; }
  DumpSpace& space() { return space_; }
  // Bytes of all files of this dump, what is still buffered and the manifest included.
  uint64_t bytes_written() const { return space_.used() + manifest_writer_.bytes(); }
  size_t open_fds() const { return files_.open_fds(); }

  // What the daemon keeps up to date: outcomes, losses, clock pairs, warnings.
  Manifest& manifest() { return manifest_; }
  // Something is missing from a channel of the manifest, for this reason; `gap` is where. Goes into the journal at
  // once, so that a crash before the next manifest does not hide it.
  void NoteLoss(const ManifestChannel& channel, LossReason reason, const ManifestGap& gap);
  // Something in it is worth knowing after a crash; with WriteManifestSoon it is due with the next WriteManifestIfDue.
  void TouchManifest() { manifest_writer_.Touch(); }
  void WriteManifestSoon() { manifest_writer_.TouchNow(); }
  // Replaces profd_manifest.json if it was touched, at most every 10 s; with `sync`, once it is on the
  // disk.
  Status WriteManifestIfDue();
  // Replaces profd_manifest.json with manifest() as it is now.
  Status WriteManifest();
  // Flushes and closes everything, writes end_info and the final manifest, syncs once. Goes through
  // all steps whatever fails; returns the first error. Call once; nothing may be appended
  // afterwards.
  Status Finish(const EndFacts& end);
  // After Finish: `done` runs, at once or on the sync thread, when all of the dump is on the disk.
  // Does nothing but that if not sync_at_end.
  void SyncAtEnd(std::function<void(const Status&)> done);

 private:
  SessionDump(DumpIo& io, SessionDumpOptions options);
  Status Build(DumpRoot& root);
  Status BuildFolder(const SessionDumpOptions::Device* device_or_null);
  Status WriteControls(DataFolder& folder, const SessionDumpOptions::Device* device_or_null);
  DumpClocks ClocksOfHost() const;
  Status WriteClocks(DataFolder& folder, const std::optional<DumpClocks>& known);
  Result<DataFolder*> FindDevice(int device);
  uint64_t ActivitySliceBytes() const;
  Result<DumpFile*> AddFile(DataFolder* folder_or_null, SliceOptions options);
  Status AppendDynamic(int device, std::string_view file, std::string_view lines,
                       const Batch& batch);
  Result<DumpFile*> OpenDynamic(int device, std::string_view file, std::string_view collector);
  Status AppendTo(DumpFile& file, std::span<const std::byte> bytes, const Batch& batch);

  // session_dump_end.cc: manifest, sync, end.
  void CompleteManifest();
  void DescribeDevice(const SessionDumpOptions::Device& device);
  void UpdateManifestCounts();
  void DescribeFile(ManifestFile* file);
  Status ListFiles();
  void NoteGivenUp(int64_t end_ns);
  Status CompleteClocks();
  Status PutManifest(bool soon);
  const Clock& clock() const {
    if (options_.clock != nullptr) return *options_.clock;
    return system_clock_;
  }

  SystemClock system_clock_;
  SessionDumpOptions options_;
  Manifest manifest_;
  // Those below refer to those above them, closed_ to files_ as well.
  const RunningSync sync_;
  DumpFolders folders_;
  ManifestWriter manifest_writer_;
  ClosedSlices closed_;
  DumpFiles files_;
  DumpSpace space_;
  ProcessFolders process_folders_;
  std::vector<DumpFile*> channels_;
  size_t dynamic_files_ = 0;
  bool finished_ = false;
};

}  // namespace profd
