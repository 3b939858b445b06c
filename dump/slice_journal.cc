#include "dump/slice_journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/text.h"
#include "dump/dump_io.h"
#include "dump/manifest.h"

namespace profd {
namespace {

constexpr size_t kMaxFields = 9;
constexpr std::ptrdiff_t kMaxPathParts = 8;

using Fields = std::array<std::string_view, kMaxFields>;

// Number of fields; kMaxFields + 1 if there are more.
size_t Split(std::string_view line, Fields* fields) {
  size_t count = 0;
  for (;;) {
    if (count == kMaxFields) return kMaxFields + 1;
    size_t tab = line.find('\t');
    (*fields)[count++] = line.substr(0, tab);
    if (tab == std::string_view::npos) return count;
    line.remove_prefix(tab + 1);
  }
}

// The fields from `at` on.
template <class... T>
bool Take(const Fields& fields, size_t at, T*... out) {
  return (ParseNumber(fields[at++], out) && ...);
}

bool TakeSum(std::string_view text, uint32_t* out) {
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, *out, 16);
  return text.size() == 8 && parsed.ec == std::errc() && parsed.ptr == end;
}

bool TakePath(std::string_view text, std::string* out) {
  *out = text;
  return IsSafePath(text) && std::ranges::count(text, '/') < kMaxPathParts;
}

bool TakeClosed(const Fields& f, size_t count, SliceJournal* journal) {
  SliceEntry entry;
  if (count != 8 || !TakePath(f[1], &entry.path) || !Take(f, 2, &entry.bytes, &entry.records) ||
      !TakeSum(f[4], &entry.crc32c) || !Take(f, 5, &entry.first_ns, &entry.last_ns, &entry.closed_ns)) {
    return false;
  }
  journal->Put(std::move(entry));
  return true;
}

bool TakeCompressed(const Fields& f, size_t count, SliceJournal* journal) {
  SliceEntry* entry = journal->Find(f[1]);
  uint64_t bytes = 0;
  uint32_t sum = 0;
  if (count != 4 || entry == nullptr || !Take(f, 2, &bytes) || !TakeSum(f[3], &sum)) return false;
  entry->compressed = true;
  entry->stored_bytes = bytes;
  entry->stored_crc32c = sum;
  return true;
}

bool TakeAged(const Fields& f, size_t count, SliceJournal* journal) {
  SliceEntry entry;
  if (count != 7 || !TakePath(f[1], &entry.path) ||
      !Take(f, 2, &entry.bytes, &entry.records, &entry.first_ns, &entry.last_ns, &entry.aged_ns)) {
    return false;
  }
  entry.aged = true;
  if (SliceEntry* before = journal->Find(entry.path); before != nullptr) {
    before->aged = true;
    before->aged_ns = entry.aged_ns;
  } else {
    journal->Put(std::move(entry));
  }
  return true;
}

bool TakeForgotten(const Fields& f, size_t count, SliceJournal* journal) {
  ForgottenSlices gone;
  if (count != 8 || !TakePath(f[1], &gone.file) ||
      !Take(f, 2, &gone.slices, &gone.bytes, &gone.records, &gone.from_ns, &gone.to_ns, &gone.ns)) {
    return false;
  }
  std::string file = gone.file;
  journal->forgotten[file] = std::move(gone);
  return true;
}

bool TakeLost(const Fields& f, size_t count, SliceJournal* journal) {
  JournalLoss loss;
  if (count != 8) return false;
  std::string_view where = f[1];
  const size_t first = where.find('/');
  const size_t second = first == std::string_view::npos ? first : where.find('/', first + 1);
  if (second == std::string_view::npos || !ParseNumber(where.substr(0, first), &loss.device) ||
      !ParseNumber(where.substr(first + 1, second - first - 1), &loss.channel) ||
      !IsSafeName(where.substr(second + 1)) || !IsSafeName(f[2]) ||
      !Take(f, 3, &loss.records, &loss.bytes, &loss.from_ns, &loss.to_ns, &loss.gap_records)) {
    return false;
  }
  loss.collector = where.substr(second + 1);
  loss.reason = LossReasonOf(f[2]);
  journal->losses.push_back(std::move(loss));
  return true;
}

bool TakeFiles(const Fields& f, size_t count, SliceJournal* journal) {
  JournalFiles files;
  if (count != 8 || !IsSafeName(f[1]) || !Take(f, 2, &files.pid, &files.rank) || !IsSafeName(f[4]) ||
      !Take(f, 5, &files.files, &files.bytes, &files.refused)) {
    return false;
  }
  files.folder = f[1];
  files.state = f[4];
  journal->files[files.folder] = std::move(files);
  return true;
}

bool TakeLine(const Fields& fields, size_t count, SliceJournal* journal) {
  if (fields[0] == "closed") return TakeClosed(fields, count, journal);
  if (fields[0] == "compressed") return TakeCompressed(fields, count, journal);
  if (fields[0] == "aged") return TakeAged(fields, count, journal);
  if (fields[0] == "forgotten") return TakeForgotten(fields, count, journal);
  if (fields[0] == "lost") return TakeLost(fields, count, journal);
  if (fields[0] == "files") return TakeFiles(fields, count, journal);
  // A later version's, or what a cut-off write of ours and its continuation make together.
  return !fields[0].empty() && fields[0].size() < 16;
}

}  // namespace

const SliceEntry* SliceJournal::Find(std::string_view path) const {
  auto found = by_path_.find(path);
  return found == by_path_.end() ? nullptr : &slices[found->second];
}

SliceEntry* SliceJournal::Find(std::string_view path) {
  auto found = by_path_.find(path);
  return found == by_path_.end() ? nullptr : &slices[found->second];
}

void SliceJournal::Put(SliceEntry slice) {
  if (SliceEntry* before = Find(slice.path); before != nullptr) {
    *before = std::move(slice);
    return;
  }
  by_path_[slice.path] = slices.size();
  slices.push_back(std::move(slice));
}

SliceJournal ParseSliceJournal(std::string_view text) {
  SliceJournal journal;
  journal.torn = !text.empty() && text.back() != '\n';
  text = text.substr(0, text.rfind('\n') + 1);
  for (std::string_view line; NextLine(&text, &line);) {
    if (line.empty()) continue;
    Fields fields;
    size_t count = Split(line, &fields);
    if (count > kMaxFields || !TakeLine(fields, count, &journal)) ++journal.bad_lines;
  }
  return journal;
}

std::string ClosedLine(const SliceEntry& slice) {
  return fmt::format("closed\t{}\t{}\t{}\t{:08x}\t{}\t{}\t{}\n", slice.path, slice.bytes,
                     slice.records, slice.crc32c, slice.first_ns, slice.last_ns, slice.closed_ns);
}

std::string CompressedLine(const SliceEntry& slice) {
  return fmt::format("compressed\t{}\t{}\t{:08x}\n", slice.path, slice.stored_bytes,
                     slice.stored_crc32c);
}

std::string AgedLine(const SliceEntry& slice) {
  return fmt::format("aged\t{}\t{}\t{}\t{}\t{}\t{}\n", slice.path, slice.bytes, slice.records,
                     slice.first_ns, slice.last_ns, slice.aged_ns);
}

std::string ForgottenLine(const ForgottenSlices& gone) {
  return fmt::format("forgotten\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n", gone.file, gone.slices,
                     gone.bytes, gone.records, gone.from_ns, gone.to_ns, gone.ns);
}

std::string LostLine(const JournalLoss& loss) {
  return fmt::format("lost\t{}/{}/{}\t{}\t{}\t{}\t{}\t{}\t{}\n", loss.device, loss.channel,
                     loss.collector, ToString(loss.reason), loss.records, loss.bytes, loss.from_ns,
                     loss.to_ns, loss.gap_records);
}

std::string FilesLine(const JournalFiles& files) {
  return fmt::format("files\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n", files.folder, files.pid, files.rank, files.state,
                     files.files, files.bytes, files.refused);
}

void DescribeSlice(const SliceEntry& slice, bool compressed, ManifestFile* file) {
  file->records = slice.records;
  file->first_ns = slice.first_ns;
  file->last_ns = slice.last_ns;
  file->crc32c = compressed ? slice.stored_crc32c : slice.crc32c;
  file->state = compressed ? "compressed" : "closed";
  if (!compressed) return;
  file->raw_bytes = slice.bytes;
  file->raw_crc32c = slice.crc32c;
}

std::string_view RecordedName(std::string_view path) {
  if (path.ends_with(kCompressedSuffix)) path.remove_suffix(kCompressedSuffix.size());
  return path;
}

std::string_view FileOfSlice(std::string_view path) {
  path = RecordedName(path);
  size_t at = path.rfind(kSliceMark);
  if (at == std::string_view::npos) return {};
  std::string_view digits = path.substr(at + kSliceMark.size());
  return digits.size() <= 10 && IsDigits(digits) ? path.substr(0, at) : std::string_view();
}

}  // namespace profd
