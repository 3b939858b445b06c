#include "export/sqlite/page_writer.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "export/sqlite/record.h"

namespace profd::exporting {
namespace {

constexpr std::byte kInteriorTable{0x05};
constexpr std::byte kLeafTable{0x0d};
constexpr size_t kLeafHeader = 8;
constexpr size_t kInteriorHeader = 12;
constexpr size_t kPointer = 2;
constexpr size_t kMaxInteriorCell = 4 + kMaxVarint;
constexpr uint64_t kMaxPages = 4294967294;

// Offsets in the database header.
constexpr off_t kChangeCounter = 24;
constexpr off_t kSizeInPages = 28;
constexpr off_t kVersionValidFor = 92;

void PutBig16(std::byte* out, size_t value) {
  out[0] = static_cast<std::byte>(value >> 8);
  out[1] = static_cast<std::byte>(value);
}

void PutBig32(std::byte* out, uint64_t value) {
  PutBig16(out, value >> 16 & 0xffff);
  PutBig16(out + 2, value & 0xffff);
}

uint32_t GetBig32(const std::byte* in) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | std::to_integer<uint32_t>(in[i]);
  return value;
}

// Both parts, one behind the other.
Status WriteAll(int fd, const PageBytes& bytes, off_t at) {
  PageBytes rest = bytes;
  while (!rest.front.empty() || !rest.back.empty()) {
    std::array<iovec, 2> parts{{{const_cast<std::byte*>(rest.front.data()), rest.front.size()},
                                {const_cast<std::byte*>(rest.back.data()), rest.back.size()}}};
    ssize_t n = ::pwritev(fd, parts.data(), parts.size(), at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Status::FromErrno(errno, "write of the database");
    at += n;
    auto written = static_cast<size_t>(n);
    size_t front = std::min(written, rest.front.size());
    rest.front = rest.front.subspan(front);
    rest.back = rest.back.subspan(written - front);
  }
  return {};
}

// The page header without the right-most child of interior pages. Cells end where the page ends.
void PutHeader(std::span<std::byte> page, std::byte kind, size_t cells, size_t content) {
  page[0] = kind;
  PutBig16(&page[1], 0);        // no freeblocks
  PutBig16(&page[3], cells);
  PutBig16(&page[5], content);  // 65536 is written as 0
  page[7] = std::byte{0};       // no fragments
}

}  // namespace

PageFile::PageFile(UniqueFd fd, uint32_t page_size, uint32_t pages, uint64_t lock_byte, GoOn go_on)
    : fd_(std::move(fd)),
      page_size_(page_size),
      lock_page_(lock_byte / page_size + 1),
      go_on_(std::move(go_on)),
      next_(uint64_t{pages} + 1) {}

uint32_t PageFile::Allocate() {
  uint64_t number = next_.fetch_add(1);
  if (number == lock_page_) number = next_.fetch_add(1);
  return number > kMaxPages ? 0 : static_cast<uint32_t>(number);
}

Result<uint32_t> PageFile::Append(const PageBytes& page) {
  RETURN_IF_ERROR(IsInterrupted(go_on_));
  uint32_t number = Allocate();
  if (number == 0) return ResourceExhausted("a database has at most 4294967294 pages");
  RETURN_IF_ERROR(Write(number, page));
  return number;
}

Status PageFile::Write(uint32_t number, const PageBytes& page) {
  return WriteAll(fd_.get(), page, static_cast<off_t>(uint64_t{number - 1} * page_size_));
}

Status PageFile::PatchHeader() {
  std::array<std::byte, 4> word;
  if (::pread(fd_.get(), word.data(), word.size(), kChangeCounter) != ssize_t{word.size()}) {
    return DataLoss("the database's header cannot be read");
  }
  uint32_t counter = GetBig32(word.data()) + 1;
  PutBig32(word.data(), pages());
  RETURN_IF_ERROR(WriteAll(fd_.get(), {word}, kSizeInPages));
  PutBig32(word.data(), counter);
  RETURN_IF_ERROR(WriteAll(fd_.get(), {word}, kChangeCounter));
  return WriteAll(fd_.get(), {word}, kVersionValidFor);
}

Status TableTree::Write(int64_t last, const PageBytes& page) {
  Result<uint32_t> number = file_.Append(page);
  if (!number.ok()) return number.status();
  MutexLock lock(mutex_);
  leaves_.push_back({last, *number});
  return {};
}

Status TableTree::AddLeaf(int64_t last, const PageBytes& page) {
  std::vector<std::byte> first;
  int64_t first_last = 0;
  {
    MutexLock lock(mutex_);
    if (leaves_.empty() && held_.empty()) {
      held_.assign(page.front.begin(), page.front.end());
      held_.insert(held_.end(), page.back.begin(), page.back.end());
      held_last_ = last;
      return {};
    }
    first.swap(held_);
    first_last = held_last_;
    // No other page may be held back while the first two are on their way.
    if (!first.empty()) leaves_.push_back({first_last, 0});
  }
  if (!first.empty()) {
    Result<uint32_t> number = file_.Append({first});
    if (!number.ok()) return number.status();
    MutexLock lock(mutex_);
    std::ranges::find(leaves_, 0u, &Child::page)->page = *number;
  }
  return Write(last, page);
}

std::vector<std::byte> TableTree::Interior(std::span<const Child> children, size_t page_size) {
  std::vector<std::byte> page(page_size);
  size_t cells = children.size() - 1;
  size_t content = page.size();
  for (size_t i = 0; i < cells; ++i) {
    std::array<std::byte, kMaxInteriorCell> cell;
    PutBig32(cell.data(), children[i].page);
    auto last = static_cast<uint64_t>(children[i].last);
    auto bytes = static_cast<size_t>(PutVarint(cell.data() + 4, last) - cell.data());
    content -= bytes;
    std::memcpy(&page[content], cell.data(), bytes);
    PutBig16(&page[kInteriorHeader + i * kPointer], content);
  }
  PutHeader(page, kInteriorTable, cells, content);
  PutBig32(&page[8], children.back().page);
  return page;
}

Status TableTree::Finish(PageFile& file, uint32_t root) {
  MutexLock lock(mutex_);
  if (!held_.empty()) return file.Write(root, {held_});
  if (leaves_.empty()) return {};
  std::ranges::sort(leaves_, {}, &Child::last);
  std::vector<Child> level(leaves_.begin(), leaves_.end());
  leaves_.clear();
  // Children of a page: one more than cells.
  const size_t most = (file.page_size() - kInteriorHeader) / (kMaxInteriorCell + kPointer) + 1;
  while (level.size() > most) {
    std::vector<Child> above;
    const size_t groups = (level.size() + most - 1) / most;
    for (size_t group = 0; group < groups; ++group) {
      size_t from = level.size() * group / groups;
      size_t to = level.size() * (group + 1) / groups;
      auto page = Interior(std::span(level).subspan(from, to - from), file.page_size());
      Result<uint32_t> number = file.Append({page});
      if (!number.ok()) return number.status();
      above.push_back({level[to - 1].last, *number});
    }
    level.swap(above);
  }
  auto page = Interior(level, file.page_size());
  return file.Write(root, {page});
}

LeafBuilder::LeafBuilder(TableTree& tree)
    : tree_(tree),
      page_size_(tree.file().page_size()),
      cells_(page_size_ + kMaxCell + 8),
      offsets_(page_size_ / (kPointer + 4) + 1),
      page_(page_size_) {}

Status LeafBuilder::Commit(int64_t rowid, size_t bytes) {
  if (kLeafHeader + kPointer * (count_ + 1) + used_ + bytes > page_size_) {
    size_t from = used_;
    RETURN_IF_ERROR(Flush());
    std::memmove(cells_.data(), cells_.data() + from, bytes);
  }
  offsets_[count_++] = static_cast<uint16_t>(used_);
  used_ += bytes;
  last_ = rowid;
  return {};
}

Status LeafBuilder::Flush() {
  if (count_ == 0) return {};
  const size_t content = page_size_ - used_;
  PutHeader(page_, kLeafTable, count_, content);
  std::byte* pointer = &page_[kLeafHeader];
  for (size_t i = 0; i < count_; ++i, pointer += kPointer) {
    auto big = static_cast<uint16_t>(__builtin_bswap16(static_cast<uint16_t>(content + offsets_[i])));
    std::memcpy(pointer, &big, kPointer);
  }
  std::fill(pointer, page_.data() + content, std::byte{0});
  PageBytes page{std::span(page_).first(content), std::span(cells_).first(used_)};
  count_ = 0;
  used_ = 0;
  return tree_.AddLeaf(last_, page);
}

int64_t RowidBlocks::Next(size_t place) {
  MutexLock lock(mutex_);
  auto places = static_cast<int64_t>(taken_.size());
  int64_t block = taken_[place] < kBlocksPerPlace
                      ? static_cast<int64_t>(place) * kBlocksPerPlace + taken_[place]++
                      : places * kBlocksPerPlace + overflow_++;
  return block * kBlock + 1;
}

}  // namespace profd::exporting
