// What the writer of a dump knows of its closed slices, and the journal it keeps of them
// (slice_journal.h). A line is written when something happens; what cannot be written waits for the
// next time. When the lines of slices that are gone outweigh the others, the journal is rewritten
// without them, in one step. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/status.h"
#include "dump/dump_io.h"
#include "dump/slice_journal.h"

namespace profd {

class SliceIndex {
 public:
  SliceIndex(DumpIo& io, DumpOwner owner) : io_(io), owner_(owner) {}

  // Our folder in the dump; outlives the book. Before anything is closed.
  void SetDir(int dir) { dir_ = dir; }

  void Closed(SliceEntry slice);
  void Compressed(std::string_view path, uint64_t stored_bytes, uint32_t stored_crc32c);
  // `remove` removes the slice, after the journal has it: what a kill in between leaves is removed
  // by the recovery. False: it is still there, and the journal has that, too.
  bool Aged(std::string_view path, int64_t now_ns, const std::function<bool()>& remove);
  void Lost(const JournalLoss& loss);
  void Files(const JournalFiles& files);
  // The manifest was replaced: it has what was lost up to the time before.
  void ManifestReplaced();
  // Null if there is no such slice (any more).
  const SliceEntry* Find(std::string_view path) const;
  size_t size() const { return slices_.size(); }

  // Writes what is still to be written.
  Status Flush();
  UniqueFd CopyFd() const { return CopyOf(fd_.get()); }
  // Of the journal, what waits included; and its check sum.
  uint64_t bytes() const { return written_ + pending_.size(); }
  uint32_t crc32c() const { return crc_; }
  uint64_t lines() const { return lines_; }
  // Leaves out the lines of what is gone although it is not worth the while yet; false: there are none, or the new
  // journal could need more than `most_bytes` beside the old one.
  bool Shrink(uint64_t most_bytes);
  // What rewriting it may take for a moment.
  uint64_t spare_bytes() const;

 private:
  void Add(std::string line);
  uint64_t MostRewritten() const { return (slices_.size() * 2 + gone_.size()) * kLineBytes; }
  void RewriteIfWorth();
  Status Rewrite();
  Status Open();

  static constexpr uint64_t kLineBytes = 256;  // more than any line has

  DumpIo& io_;
  DumpOwner owner_;
  int dir_ = -1;
  UniqueFd fd_;
  std::map<std::string, SliceEntry, std::less<>> slices_;  // that are there
  std::map<std::string, ForgottenSlices, std::less<>> gone_;
  std::map<std::string, std::string> files_;  // the last line of each folder
  // Lines about losses since the manifest was replaced last, and since the time before: that one may not be on the
  // disk yet.
  std::vector<std::string> losses_;
  std::vector<std::string> earlier_losses_;
  std::string pending_;
  uint64_t written_ = 0;
  uint32_t crc_ = 0;
  uint64_t lines_ = 0;
  uint64_t dead_lines_ = 0;
  bool torn_ = false;
};

}  // namespace profd
