// One logical data file of a dump: a sequence of slices `<base>[.<device>].slice_<k>`, each
// followed by `<slice>.done` when it is closed (dump-format 1.1, driver-abi 5.2).
//
// Only complete records or lines come in, and only complete ones ever reach a file: every write ends at
// the end of an Append, and a write that stops half-way is taken back. So a crash of the process
// leaves files without a cut record, and slices are cut at record boundaries only.
//
// One thread. Holds one descriptor while a slice is open, and its buffer once something was
// appended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/status.h"
#include "dump/dump_io.h"

namespace profd {

inline constexpr uint64_t kDefaultSliceBytes = 2u << 20;
inline constexpr size_t kDefaultBufferBytes = 64u << 10;
// Blocks of this size go from where they are to the file, behind what is buffered; smaller ones are
// gathered in the buffer.
inline constexpr size_t kDirectBytes = 8u << 10;

struct SliceOptions {
  std::string base = {};           // "hbm.data"
  int device = -1;            // -1: a host file, no device in its name
  std::string header = {};         // every slice begins with it and holds no other copy of its token
  std::string header_token = {};   // with `header`: input lines containing it are left out
  bool single_slice = false;  // never start a second slice
  bool plain = false;         // one file called `base`: no slices, no .done
  uint64_t slice_bytes = kDefaultSliceBytes;
  size_t buffer_bytes = kDefaultBufferBytes;
};

// A slice that has got its last byte.
struct ClosedSlice {
  uint32_t slice = 0;
  uint64_t bytes = 0;
  uint64_t records = 0;
  uint32_t crc32c = 0;
  int64_t first_ns = 0;  // timestamps given with its first and last records; 0 = none
  int64_t last_ns = 0;
};

class SliceObserver {
 public:
  virtual ~SliceObserver() = default;
  // Before the slice's .done is written. `fd` is the file's, if it was open. Must not change the writer.
  virtual void OnSliceClosed(uint32_t file, const ClosedSlice& slice, UniqueFd fd) = 0;
};

class SliceWriter {
 public:
  // `io` and the directory outlive the writer. Opens nothing yet.
  SliceWriter(DumpIo& io, int dir, DumpOwner owner, SliceOptions options);
  // Closes without a .done and without writing what is buffered; call Close() for that.
  ~SliceWriter() = default;
  SliceWriter(const SliceWriter&) = delete;
  SliceWriter& operator=(const SliceWriter&) = delete;

  // `observer` outlives the writer, which it knows by this number.
  void SetObserver(SliceObserver* observer, uint32_t file) {
    observer_ = observer;
    file_ = file;
  }

  // Takes `block`, `records` complete records or lines that were received at `host_ns` (0 = unknown). On an error
  // the block is refused entirely and nothing that was taken before is lost; the same call may succeed
  // later.
  Status Append(std::span<const std::byte> block, uint64_t records, int64_t host_ns = 0);
  // Hands what is buffered to the kernel.
  Status Flush();
  // Flush, close the slice, write its .done. What cannot be written is given up and counted in
  // lost_*; a slice that has nothing then leaves no file. Returns the first error; the writer is closed in any case and stays so.
  Status Close();
  // Ends the open slice, however short it is; the next Append begins another one, even of a file that
  // is to have only one.
  Status Cut();
  // Removes a closed slice and its .done. Returns the bytes of both.
  uint64_t RemoveSlice(uint32_t slice, uint64_t stored_bytes, bool compressed);
  // Another descriptor of the open slice's file, if it is open.
  UniqueFd CopyFd() const { return CopyOf(fd_.get()); }
  // What was written so far is being synced; unsynced_bytes() counts anew.
  void MarkSynced() { unsynced_ = 0; }

  // Gives the descriptor back until the next write; the slice continues where it was.
  void ReleaseFd();
  // Gives the buffer back if it is empty.
  void ReleaseBuffer();
  bool holds_fd() const { return fd_.valid(); }

  // Taken so far, headers included, whether or not on disk yet.
  uint64_t bytes() const { return bytes_; }
  uint64_t records() const { return records_; }
  uint64_t lost_bytes() const { return lost_bytes_; }
  uint64_t lost_records() const { return lost_records_; }
  // The last timestamp given with what is written, and with what was lost behind it; 0 = none.
  int64_t written_ns() const { return written_ns_; }
  int64_t lost_until_ns() const { return lost_until_ns_; }
  // .done files and the like written beside the data.
  uint64_t overhead_bytes() const { return overhead_bytes_; }
  uint32_t slices() const { return slice_open_ ? slice_ + 1 : slice_; }
  // Of the open slice, what is buffered included; 0 = none is open.
  uint64_t open_bytes() const { return slice_open_ ? slice_size() : 0; }
  // Of them, those in its file.
  uint64_t written_bytes() const { return on_disk_; }
  uint64_t unsynced_bytes() const { return unsynced_; }
  const SliceOptions& options() const { return options_; }
  // Name of slice `k` inside data/.
  std::string SliceName(uint32_t k) const;

 private:
  struct Timestamped {
    uint64_t records = 0;
    int64_t host_ns = 0;
  };
  Status AppendWithoutHeaders(std::span<const std::byte> block, const Timestamped& what);
  Status AppendWhole(std::span<const std::byte> block, const Timestamped& what);
  void BeginSlice();
  // Writes the buffer and `more` behind it: complete records both.
  Status WriteOut(std::span<const std::byte> more);
  Status EnsureFd();
  Status CloseSlice();
  void DropSlice();
  Status WriteDone();
  uint64_t slice_size() const { return on_disk_ + buffer_.size(); }

  DumpIo& io_;
  int dir_;
  DumpOwner owner_;
  SliceOptions options_;
  UniqueFd fd_;
  std::string open_name_;  // of the file behind fd_
  std::vector<std::byte> buffer_;
  std::vector<std::byte> stripped_;  // a block without its header lines
  uint64_t on_disk_ = 0;             // bytes of the open slice known to be in its file
  uint32_t slice_ = 0;
  bool slice_open_ = false;  // something was taken for slice_
  bool created_ = false;     // slice_'s file exists
  bool closed_ = false;
  bool torn_ = false;  // the file is longer than on_disk_ and could not be cut
  uint64_t device_of_file_ =
      0;  // st_dev, st_ino of the open slice: a reopened file must be the same
  uint64_t inode_ = 0;
  // Closed slices and their sizes whose .done could not be written yet.
  std::vector<std::pair<uint32_t, uint64_t>> pending_done_;
  SliceObserver* observer_ = nullptr;
  uint32_t file_ = 0;        // as the observer calls it
  ClosedSlice open_;         // of the open slice, what is buffered included; bytes are in on_disk_
  uint32_t crc_ = 0;         // of on_disk_
  uint64_t unsynced_ = 0;    // bytes written since the last MarkSynced
  uint64_t buffered_records_ = 0;
  uint64_t bytes_ = 0;
  uint64_t records_ = 0;
  uint64_t lost_bytes_ = 0;
  uint64_t lost_records_ = 0;
  int64_t written_ns_ = 0;
  int64_t lost_until_ns_ = 0;
  uint64_t overhead_bytes_ = 0;
};

}  // namespace profd
