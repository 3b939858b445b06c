// The writer of one session's dump. Made when the session starts, fed by the daemon's writer thread
// only, finished when the session ends. At every moment the directory is a dump that the vendor's
// analyser reads up to the last Flush(): control files are there from the beginning, only end_info
// and the last .done files come with Finish(). Destroyed unfinished, it writes what it buffered and
// leaves the manifest saying "running", for recovery to find.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/fd.h"
#include "base/status.h"
#include "dump/control_files.h"
#include "dump/dump_io.h"
#include "dump/dump_root.h"
#include "dump/manifest.h"
#include "dump/mark_files.h"
#include "dump/slice_writer.h"

namespace profd {

// The one reason a storage limit ends a session with.
inline constexpr std::string_view kStorageLimit = "storage_limit";

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
  uint64_t slice_bytes = kDefaultSliceBytes;
  // Files whose names come with the data (one per process): how many there may be, and how many of
  // them may keep a descriptor between writes.
  size_t max_dynamic_files = 4096;
  size_t max_dynamic_fds = 128;
  bool sync_at_end = true;  // Finish() waits until the volume has everything
};

struct EndFacts {
  int64_t wall_ns = 0;
  int64_t raw_ns = 0;
  DumpState state = DumpState::kDone;
  std::string reason;
};

class SessionDump {
 public:
  // `io` outlives the dump. On an error nothing is left behind.
  static Result<std::unique_ptr<SessionDump>> Create(DumpRoot& root, SessionDumpOptions options,
                                                     DumpIo& io = SystemDumpIo());
  ~SessionDump();
  SessionDump(const SessionDump&) = delete;
  SessionDump& operator=(const SessionDump&) = delete;

  const std::string& name() const { return name_; }
  const std::string& path() const { return path_; }

  // For clocks_later, once for each device; nothing: they cannot be read. Everything relative in the
  // dump counts from `host_ns`, so the nearer to the start of the channels the better.
  Status SetClocks(int device, const std::optional<DumpClocks>& clocks);

  using Channel = uint32_t;
  // The data file of a driver channel of one of the dump's devices. Empty `file` = the one of the
  // format table. Channels may share a device but not a file.
  Result<Channel> OpenChannel(int device, uint32_t channel_id, std::string_view file = {});
  // Whole records or lines. kResourceExhausted with kStorageLimit in its text when the dump would
  // exceed max_bytes; any error refuses the block whole and leaves the dump usable.
  Status Append(Channel channel, std::span<const std::byte> bytes, uint64_t records);
  // Whole lines for host/data/<file>.slice_<k>. Files that cost the reader samples when cut are
  // kept in one slice (host_cpu, host_network, host_disk).
  Status AppendHostFile(std::string_view file, std::string_view lines, uint64_t records = 1);
  // Whole lines for device_<N>/data/<file>.<N>.slice_<k> that come from no driver channel
  // ("netdev_stats.data").
  Status AppendDeviceFile(int device, std::string_view file, std::string_view lines,
                          uint64_t records = 1);
  // Lines of one of our own files in profd/ (mark_files.h). The first call creates it with a heading.
  Status AppendOwn(std::string_view file, std::string_view lines, uint64_t records = 1);

  // Hands everything buffered to the kernel. Tries every file; returns the first error.
  Status Flush();
  // Bytes taken for this dump, control files included.
  uint64_t bytes_written() const;
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
  // Replaces profd_manifest.json with manifest() as it is now.
  Status WriteManifest();
  // Flushes and closes everything, writes end_info and the final manifest, syncs once. Goes through
  // all steps whatever fails; returns the first error. Call once; nothing may be appended
  // afterwards.
  Status Finish(const EndFacts& end);

 private:
  struct Place {  // host/ or device_N/
    int device = kVendorHostId;
    UniqueFd dir;
    UniqueFd data;
  };
  struct File {
    std::unique_ptr<SliceWriter> writer;
    int device = -1;          // -1: the host's or our own
    uint32_t channel_id = 0;  // 0: no driver channel
    bool dynamic = false;     // may be one of very many: its descriptor is not kept at any price
    bool holds_fd = false;    // counted in dynamic_fds_
    bool idle = true;         // nothing came since the last Flush
  };

  SessionDump(DumpIo& io, SessionDumpOptions options);
  Status Build(DumpRoot& root);
  Status WriteClocks(const Place& place, const std::optional<DumpClocks>& known);
  Status BuildPlace(const SessionDumpOptions::Device* device_or_null);
  Status WriteControl(const Place& place, std::string name, std::string_view text);
  Place* FindPlace(int device);
  Result<File*> AddFile(Place& place, SliceOptions options);
  Status AppendDynamic(int device, std::string_view file, std::string_view lines, uint64_t records);
  Status AppendTo(File& file, std::span<const std::byte> bytes, uint64_t records);
  // Brings taken_bytes_ and dynamic_fds_ up to date after something was done with `file`.
  void Account(File& file, uint64_t size_before);
  static uint64_t SizeOf(const File& file);
  Status CheckLimit(uint64_t more) const;
  void CompleteManifest();
  void UpdateManifestCounts();
  const std::string& KeyOf(int device, std::string_view base);  // valid until the next call
  Status ListFiles();
  Status WriteEndInfo(const EndFacts& end);

  DumpIo& io_;
  SessionDumpOptions options_;
  Manifest manifest_;
  std::string name_;
  std::string path_;
  UniqueFd top_;
  UniqueFd own_dir_;
  std::vector<Place> places_;
  std::vector<std::unique_ptr<File>> files_;
  std::vector<File*> channels_;
  std::unordered_map<std::string, File*> by_name_;  // "<device>/<base>"
  std::string key_;
  size_t dynamic_files_ = 0;
  size_t dynamic_fds_ = 0;
  uint64_t taken_bytes_ = 0;
  uint64_t gap_bytes_ = 0;  // what the manifest's gaps take, as of the last flush
  bool finished_ = false;
};

}  // namespace profd
