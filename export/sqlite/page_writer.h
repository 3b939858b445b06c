// Tables of a SQLite 3 database, written page by page without the library: rows come sorted by rowid
// within one builder, builders run on several threads, and a table's tree is closed at the end. The
// format is SQLite's published one (sqlite.org/fileformat2): table b-trees only, no overflow pages.
// The library itself must not have the file open meanwhile.
//
// Why not the library: of the 600 s of eight devices that bench/tools/make_dump.cc makes (26 million rows,
// 1.1 GiB) an export takes 2.4 s of CPU, decoding included; the library's inserts of the same rows alone
// (prepared statements, one transaction, no journal, 64 KiB pages) take 15 s on the same machine.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "base/fd.h"
#include "base/mutex.h"
#include "base/status.h"
#include "export/shared_file.h"

namespace profd::exporting {

// The page that holds this byte of the file is never used: SQLite's locks are there.
inline constexpr uint64_t kSqliteLockByte = 0x40000000;

// A page in two parts, which lie in different places.
struct PageBytes {
  std::span<const std::byte> front;
  std::span<const std::byte> back = {};
};

// The database file: hands out page numbers and writes pages. Thread-safe but for PatchHeader.
class PageFile {
 public:
  // `pages`: how many the file has. `page_size`: a power of two, 512 to 65536.
  PageFile(UniqueFd fd, uint32_t page_size, uint32_t pages, uint64_t lock_byte = kSqliteLockByte, GoOn go_on = {});

  uint32_t page_size() const { return page_size_; }
  uint64_t pages() const { return next_.load() - 1; }
  // Writes a page behind all others; its number.
  Result<uint32_t> Append(const PageBytes& page);
  Status Write(uint32_t number, const PageBytes& page);
  // Updates the file's size and change counter for readers. After the last page.
  Status PatchHeader();

 private:
  uint32_t Allocate();

  UniqueFd fd_;
  uint32_t page_size_;
  uint64_t lock_page_;
  GoOn go_on_;
  std::atomic<uint64_t> next_;
};

// One table's b-tree: the leaves as builders deliver them, and what is above them at the end. Keeps
// 16 bytes per leaf.
class TableTree {
 public:
  explicit TableTree(PageFile& file) : file_(file) {}

  PageFile& file() { return file_; }
  // A complete leaf whose greatest rowid is `last`. Thread-safe. Rowids of different leaves do not
  // interleave.
  Status AddLeaf(int64_t last, const PageBytes& page);
  bool empty() const {
    MutexLock lock(mutex_);
    return leaves_.empty() && held_.empty();
  }
  // `root`: page of the empty table the library made; `file` is the file as it is by now. Once, after
  // the last leaf.
  Status Finish(PageFile& file, uint32_t root);

 private:
  struct Child {
    int64_t last;  // greatest rowid below it
    uint32_t page;
  };
  Status Write(int64_t last, const PageBytes& page);
  static std::vector<std::byte> Interior(std::span<const Child> children, size_t page_size);

  PageFile& file_;
  mutable Mutex mutex_;
  std::deque<Child> leaves_ GUARDED_BY(mutex_);
  // The first leaf waits for a second one: alone it becomes the root.
  std::vector<std::byte> held_ GUARDED_BY(mutex_);
  int64_t held_last_ GUARDED_BY(mutex_) = 0;
};

// Fills leaves with cells, one after the other. One thread.
class LeafBuilder {
 public:
  static constexpr size_t kMaxCell = 480;  // fits a page of 512 bytes

  explicit LeafBuilder(TableTree& tree);

  // Where the next cell goes: kMaxCell bytes, and 8 more that may be scribbled over.
  std::byte* cell() { return cells_.data() + used_; }
  // Takes the cell at cell(). Rowids ascend.
  Status Commit(int64_t rowid, size_t bytes);
  // The page so far is written, full or not. Before a jump over rowids of another writer, and at the
  // end.
  Status Flush();

 private:
  TableTree& tree_;
  size_t page_size_;
  std::vector<std::byte> cells_;
  std::vector<uint16_t> offsets_;  // of the cells, from the first one
  size_t count_ = 0;
  std::vector<std::byte> page_;  // what is before the cells
  size_t used_ = 0;
  int64_t last_ = 0;
};

// Rowids of one table, so that they ascend by place (device) and, in each place, by time: every place
// has a range of its own, handed out in blocks. Thread-safe.
class RowidBlocks {
 public:
  static constexpr int64_t kBlock = int64_t{1} << 20;
  static constexpr int64_t kBlocksPerPlace = 256;

  explicit RowidBlocks(size_t places) : taken_(places) {}
  // The first rowid of a new block of kBlock ones. A place that is full continues behind all others.
  int64_t Next(size_t place);

 private:
  Mutex mutex_;
  std::vector<int64_t> taken_ GUARDED_BY(mutex_);
  int64_t overflow_ GUARDED_BY(mutex_) = 0;
};

}  // namespace profd::exporting
