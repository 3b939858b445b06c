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
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "dump/ageing.h"
#include "dump/control_files.h"
#include "dump/dump_io.h"
#include "dump/dump_parts.h"
#include "dump/dump_root.h"
#include "dump/dump_sync.h"
#include "dump/manifest.h"
#include "dump/mark_files.h"
#include "dump/process_files.h"
#include "dump/process_folders.h"
#include "dump/slice_index.h"
#include "dump/slice_compressor.h"
#include "dump/slice_writer.h"

namespace profd {

// kResourceExhausted: the dump is as large as it may become (and not: the disk is full).
Status AtStorageLimit(std::string text);
bool IsAtStorageLimit(const Status& status);
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
  std::string reason;
};

// Slices a limit has removed, of one file.
struct AgedCount {
  std::string collector;  // empty: a driver channel's file
  int device = -1;
  uint32_t channel = 0;
  uint64_t records = 0;
  uint64_t bytes = 0;
};

class SessionDump : private SliceObserver {
 public:
  // `io` outlives the dump. On an error nothing is left behind.
  static Result<std::unique_ptr<SessionDump>> Create(DumpRoot& root, SessionDumpOptions options,
                                                     DumpIo& io = SystemDumpIo());
  ~SessionDump() override;
  SessionDump(const SessionDump&) = delete;
  SessionDump& operator=(const SessionDump&) = delete;

  const std::string& name() const { return name_; }
  const std::string& path() const { return path_; }

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
  Status AppendOwn(std::string_view file, std::string_view lines, uint64_t records = 1);
  // What the vendor's profiler left in a process is copied to a new folder among our own files
  // (`facts.directory` is its name), by others, who reserve the bytes first. PlaceProcessFiles puts it where the vendor's
  // tools find it.
  Result<UniqueFd> BeginProcessFiles(ManifestProcessFiles facts);
  Status ReserveForFiles(uint64_t bytes);
  // `unused`: of what was reserved.
  void EndProcessFiles(ManifestProcessFiles facts, uint64_t unused, std::vector<ProcessFile> files);
  // ProcessFolders::Place; before Finish.
  void PlaceProcessFiles(DumpRoot& root);

  // Hands everything buffered to the kernel. Tries every file; returns the first error, also of the
  // sync thread, and when the dump was removed underneath.
  Status Flush();
  // Has everything flushed so far brought to the disk; returns at once. Nothing without `sync`.
  void Sync();
  // Removes the oldest closed slices until `bytes` are free or nothing is left that may go; returns
  // the bytes freed. When they were closed: 0 = there are none.
  uint64_t AgeFor(uint64_t bytes);
  int64_t OldestNs();
  // Closes all open slices that are worth it, so that they may go once more has come. False: none was.
  bool CutAll();
  // Removed since the last call, for metrics.
  std::vector<AgedCount> TakeAged() { return std::exchange(aged_, {}); }
  // Bytes of all files of this dump, what is still buffered and the manifest included.
  uint64_t bytes_written() const { return BytesButManifest() + manifest_bytes_; }
  struct ChannelStats {
    uint64_t records = 0;
    uint64_t bytes = 0;
    uint64_t lost_records = 0;  // taken, but could not be written in the end
    uint64_t lost_bytes = 0;
    uint32_t slices = 0;
  };
  ChannelStats Stats(Channel channel) const;
  size_t open_fds() const;

  // What the daemon keeps up to date: outcomes, losses, clock pairs, warnings.
  Manifest& manifest() { return manifest_; }
  // Something is missing from a channel of the manifest, for this reason; `gap` is where. Goes into the journal at
  // once, so that a crash before the next manifest does not hide it.
  void NoteLoss(const ManifestChannel& channel, LossReason reason, const ManifestGap& gap);
  // Something in it is worth knowing after a crash.
  void TouchManifest() { manifest_touched_ = true; }
  // It is touched, and due with the next WriteManifestIfDue.
  void WriteManifestSoon() {
    manifest_touched_ = true;
    manifest_written_ns_ = 0;
  }
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
  struct File {
    std::unique_ptr<SliceWriter> writer;
    int device = -1;          // -1: the host's or our own
    uint32_t channel_id = 0;  // 0: no driver channel
    std::optional<size_t> place;  // absent: our own
    Ageing::FileId id = 0;        // with a place
    std::string collector;        // of files without a channel, if known
    uint64_t started = 0;         // unsynced bytes whose writing was asked for
    uint32_t number = 0;      // in files_
    bool dynamic = false;     // may be one of very many: its descriptor is not kept at any price
    bool holds_fd = false;    // counted in dynamic_fds_
    bool idle = true;         // nothing was appended since the last Flush
  };

  SessionDump(DumpIo& io, SessionDumpOptions options);
  Status Build(DumpRoot& root);
  DumpClocks ClocksOfHost() const;
  Status WriteClocks(DataFolder& place, const std::optional<DumpClocks>& known);
  Status BuildPlace(const SessionDumpOptions::Device* device_or_null);
  Status WriteControls(DataFolder& place, const SessionDumpOptions::Device* device_or_null);
  Status WriteControl(DataFolder& place, std::string name, std::string_view text);
  DataFolder* FindPlace(int device);
  uint64_t ActivitySliceBytes() const;
  Result<File*> AddFile(DataFolder& place, SliceOptions options);
  Status AppendDynamic(int device, std::string_view file, std::string_view lines,
                       const Batch& batch);
  Result<File*> OpenDynamic(int device, std::string_view file, std::string_view collector);
  Status AppendTo(File& file, std::span<const std::byte> bytes, const Batch& batch);
  uint64_t BytesButManifest() const { return taken_bytes_ + slice_index_.bytes(); }
  // Brings taken_bytes_ and dynamic_fds_ up to date after something was done with `file`.
  void Account(File& file, uint64_t size_before);
  void GiveFdBack(File& file);
  static uint64_t SizeOf(const File& file);
  const std::string& KeyOf(int device, std::string_view base);  // valid until the next call

  // session_dump_space.cc: limits, ageing, compressing.
  uint64_t Reserved() const;
  Status ReserveSpace(uint64_t more);
  Status ReserveSpace(File& file, uint64_t more);
  void FindKnownSpace(uint64_t needed);
  uint64_t CutBytes(const File& file) const;
  bool Cut(File& file, uint64_t least);
  void CutNear(File& file, bool near_limit);
  void AgePlaces();
  bool WriteOpen(File& file);
  bool AgeOne(std::optional<size_t> place);
  void RemoveSlice(const Ageing::Slice& slice);
  void CountAged(const File& file, const SliceEntry& slice);
  ManifestChannel& EntryOf(const File& file);
  std::string PathOf(const File& file, uint32_t slice) const;
  void OnSliceClosed(const SliceWriter& writer, const ClosedSlice& slice, UniqueFd fd) override;
  bool Compress(const File& file, const SliceEntry& slice, uint32_t number);
  void TakeCompressed();

  // session_dump_end.cc: manifest, sync, end.
  void CompleteManifest();
  void DescribeDevice(const SessionDumpOptions::Device& device);
  void UpdateManifestCounts();
  void DescribeFile(ManifestFile* file) const;
  Status ListFiles();
  Status CloseFiles();
  void NoteGivenUp(int64_t end_ns);
  Status CompleteClocks();
  Status WriteEndInfo(const EndFacts& end);
  Status PutManifest(bool soon);
  Status CheckStillThere() const;
  void StartWriteback();
  DumpSync* running_sync() const {
    return options_.sync_while_running ? options_.sync : nullptr;
  }
  const Clock& clock() const { return *options_.clock; }

  DumpIo& io_;
  SessionDumpOptions options_;
  Manifest manifest_;
  std::string name_;
  std::string path_;
  UniqueFd top_;
  UniqueFd own_dir_;
  std::vector<DataFolder> places_;
  std::vector<std::unique_ptr<File>> files_;
  std::vector<File*> channels_;
  std::vector<File*> by_id_;                        // those with a place, by their Ageing id
  std::unordered_map<std::string, File*> by_name_;  // "<device>/<base>"
  std::string key_;
  size_t dynamic_files_ = 0;
  size_t singles_ = 0;
  size_t dynamic_fds_ = 0;
  uint64_t taken_bytes_ = 0;  // of everything but journal and manifest
  uint64_t gap_bytes_ = 0;  // what the manifest's gaps take, as of the last flush
  uint64_t manifest_bytes_ = 0;  // of the last one written
  uint64_t final_entries_ = 0;   // files the last manifest will list besides closed slices
  bool manifest_touched_ = false;
  bool manifest_synced_ = false;
  int64_t manifest_written_ns_ = 0;
  std::shared_ptr<PendingReplacement> pending_manifest_;
  DumpSync::Outcome sync_outcome_;
  std::vector<std::pair<size_t, std::string>> unsynced_controls_;  // place and name
  ListedFiles control_files_;
  SystemClock system_clock_;
  uint64_t space_known_ = 0;  // so much may be appended without a look at the limits
  bool near_limit_ = false;
  bool ages_ = true;  // this chip's dumps may be aged at all
  std::unordered_map<const SliceWriter*, File*> by_writer_;
  SliceIndex slice_index_;
  Ageing ageing_;
  const File* appending_ = nullptr;
  std::vector<AgedCount> aged_;
  bool ages_for_space_ = false;  // what goes now does so because the volume is nearly full
  std::unique_ptr<SliceCompressor> compressor_;
  std::unordered_map<uint64_t, std::pair<const File*, uint32_t>> compressing_;  // by job
  uint64_t next_job_ = 1;
  bool finished_ = false;
  ProcessFolders process_folders_;  // has references to the above
};

}  // namespace profd
