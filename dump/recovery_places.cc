#include "dump/recovery_places.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/text.h"
#include "dump/control_files.h"
#include "dump/data_name.h"
#include "dump/mark_files.h"
#include "dump/slice_journal.h"
#include "dump/slice_repair.h"
#include "dump/slice_source.h"

namespace profd {
namespace {

constexpr size_t kMaxEntries = 200'000;
constexpr int kMaxDevices = 64;
constexpr size_t kMaxDoneBytes = 4096;
constexpr uint64_t kMostUnpacked = 64;

struct FoundFile {
  uint64_t bytes = 0;
  int64_t modified_ns = 0;
};
using Entries = std::map<std::string, FoundFile>;

// The owner's regular files, and nothing else, in `dir`. Temporary files of ours are removed.
Result<Entries> ListOwn(int dir, uid_t uid) {
  Result<std::vector<std::string>> names = ListNames(dir, kMaxEntries);
  if (!names.ok()) return names.status();
  Entries entries;
  for (const std::string& name : *names) {
    if (!IsSafeName(name)) continue;
    struct stat st {};
    if (::fstatat(dir, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!S_ISREG(st.st_mode) || st.st_uid != uid) continue;
    if (name.starts_with('.') && name.ends_with(".tmp")) {
      ::unlinkat(dir, name.c_str(), 0);
      continue;
    }
    entries[name] = {static_cast<uint64_t>(st.st_size),
                     st.st_mtim.tv_sec * kNsPerSecond + st.st_mtim.tv_nsec};
  }
  return entries;
}

// "hbm.data" and 3 of "hbm.data.0.slice_3"; `base` without the device.
bool SplitSlice(std::string_view name, int device, std::string* base, uint32_t* number) {
  size_t at = name.rfind(kSliceMark);
  if (at == std::string_view::npos) return false;
  if (!ParseNumber(name.substr(at + kSliceMark.size()), number)) return false;
  std::string_view rest = name.substr(0, at);
  if (device >= 0) {
    std::string suffix = fmt::format(".{}", device);
    if (!rest.ends_with(suffix)) return false;
    rest.remove_suffix(suffix.size());
  }
  *base = rest;
  return !base->empty();
}

Result<uint32_t> SumOf(int fd, uint64_t bytes) {
  std::vector<std::byte> chunk(256u << 10);
  uint32_t sum = 0;
  for (uint64_t at = 0; at < bytes;) {
    ssize_t got = ::pread(fd, chunk.data(), std::min<uint64_t>(chunk.size(), bytes - at),
                          static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Status::FromErrno(got < 0 ? errno : EIO, "read a slice");
    sum = Crc32c(std::span(chunk).first(static_cast<size_t>(got)), sum);
    at += static_cast<uint64_t>(got);
  }
  return sum;
}

class PlaceRepair {
 public:
  PlaceRepair(const RepairContext& context, const SliceJournal& journal, RepairedPlace* place,
              std::vector<std::string>* warnings)
      : context_(context), journal_(journal), place_(*place), warnings_(*warnings) {}

  Status Run();

 private:
  std::string PathOf(std::string_view name) const {
    return fmt::format("{}/data/{}", place_.name, name);
  }
  void Unlink(const std::string& name) {
    if (entries_.erase(name) > 0) ::unlinkat(data_.get(), name.c_str(), 0);
  }
  void DropLeftovers();
  Status Slice(const std::string& name);
  Status Compressed(const std::string& name, const SliceEntry* known);
  std::optional<uint32_t> StoredSum(const std::string& stored, const SliceEntry& known);
  Status Closed(const std::string& name, const SliceEntry* known, const SliceShape& shape);
  Status Repair(const std::string& name, const SliceShape& shape);
  Status WriteDone(const std::string& name, uint64_t bytes);
  void Note(const std::string& name, const ManifestFile& file, uint64_t recorded_bytes,
            int64_t modified_ns);
  void NoteAged();

  const RepairContext& context_;
  const SliceJournal& journal_;
  RepairedPlace& place_;
  std::vector<std::string>& warnings_;
  UniqueFd data_;
  Entries entries_;
};

Status PlaceRepair::Run() {
  Result<UniqueFd> data = OpenDirAt(place_.dir.get(), "data");
  if (!data.ok()) {
    return data.status().code() == StatusCode::kNotFound ? Status() : data.status();
  }
  data_ = std::move(*data);
  Result<Entries> entries = ListOwn(data_.get(), context_.owner.uid);
  if (!entries.ok()) return entries.status().Annotate(place_.name);
  entries_ = std::move(entries).value();
  DropLeftovers();
  std::set<std::string> names;
  for (const auto& [name, entry] : entries_) {
    std::string_view slice = name;
    if (slice.ends_with(kCompressedSuffix)) slice.remove_suffix(kCompressedSuffix.size());
    if (!slice.ends_with(kDoneSuffix)) names.emplace(slice);
  }
  for (const std::string& name : names) RETURN_IF_ERROR(Slice(name));
  NoteAged();
  for (auto& [base, file] : place_.files) {
    std::ranges::sort(file.slices, {}, &RepairedFile::Slice::number);
    // Of a slice that was not closed the file's own time is the better source.
    file.last_ns = file.slices.empty() ? 0 : file.slices.back().file.last_ns;
  }
  return {};
}

// Removing by age and compressing were under way.
void PlaceRepair::DropLeftovers() {
  std::vector<std::string> drop;
  for (const auto& [name, entry] : entries_) {
    if (name.ends_with(kDoneSuffix)) {
      std::string slice = name.substr(0, name.size() - kDoneSuffix.size());
      if (!entries_.contains(slice) && !entries_.contains(slice + std::string(kCompressedSuffix))) {
        drop.push_back(name);
      }
      continue;
    }
    const bool zst = name.ends_with(kCompressedSuffix);
    std::string slice = zst ? name.substr(0, name.size() - kCompressedSuffix.size()) : name;
    const SliceEntry* known = journal_.Find(PathOf(slice));
    if (known != nullptr && known->aged) {
      drop.push_back(name);
      drop.push_back(slice + std::string(kDoneSuffix));
    } else if (zst && entries_.contains(slice)) {
      drop.push_back(known != nullptr && known->compressed ? slice : name);
    }
  }
  for (const std::string& name : drop) Unlink(name);
}

Status PlaceRepair::Slice(const std::string& name) {
  std::string base;
  uint32_t number = 0;
  if (!SplitSlice(name, place_.device, &base, &number)) return {};
  const SliceEntry* known = journal_.Find(PathOf(name));
  if (!entries_.contains(name)) return Compressed(name, known);
  const SliceShape shape = ShapeOf(base, place_.device < 0);
  uint64_t reported = 0;
  const bool closed = ReadDone(data_.get(), name + std::string(kDoneSuffix), context_.owner.uid, &reported) &&
                      reported == entries_.at(name).bytes;
  Status done = closed ? Closed(name, known, shape) : Repair(name, shape);
  if (done.code() != StatusCode::kPermissionDenied) return done;
  warnings_.push_back(fmt::format("{} was left as it is: {}", PathOf(name), done.message()));
  return {};
}

// The kill was between compressing a slice and the journal's line of that. Nothing if what is there
// is not the slice that was closed.
std::optional<uint32_t> PlaceRepair::StoredSum(const std::string& stored, const SliceEntry& known) {
  // What unpacks to far more than samples ever do costs more than its sum is worth.
  if (known.bytes / kMostUnpacked > entries_.at(stored).bytes) return std::nullopt;
  Result<UniqueFd> fd = OpenOwn(data_.get(), stored, context_.owner.uid, O_RDONLY);
  if (!fd.ok()) return std::nullopt;
  SliceSource source(std::move(*fd), stored);
  std::vector<std::byte> chunk(256u << 10);
  for (;;) {
    Result<size_t> got = source.Read(chunk);
    if (!got.ok() || source.bytes() > known.bytes) return std::nullopt;
    if (*got == 0) break;
  }
  if (source.bytes() != known.bytes || source.crc32c() != known.crc32c) return std::nullopt;
  return source.stored_crc32c();
}

Status PlaceRepair::Compressed(const std::string& name, const SliceEntry* known) {
  const std::string stored = name + std::string(kCompressedSuffix);
  const FoundFile& entry = entries_.at(stored);
  ManifestFile file{.path = PathOf(stored), .bytes = entry.bytes, .state = "compressed"};
  if (known != nullptr) {
    DescribeSlice(*known, true, &file);
    if (!known->compressed) file.crc32c = StoredSum(stored, *known);
    RETURN_IF_ERROR(WriteDone(name, known->bytes));
  }
  Note(name, file, known != nullptr ? known->bytes : 0, entry.modified_ns);
  return {};
}

Status PlaceRepair::Closed(const std::string& name, const SliceEntry* known,
                           const SliceShape& shape) {
  const FoundFile& entry = entries_.at(name);
  ManifestFile file{.path = PathOf(name), .bytes = entry.bytes, .state = "closed"};
  if (known != nullptr && known->bytes == entry.bytes) {
    DescribeSlice(*known, false, &file);
  } else {
    Result<UniqueFd> fd = OpenOwn(data_.get(), name, context_.owner.uid, O_RDONLY);
    if (!fd.ok()) return fd.status();
    Result<WholePart> whole = FindWholePart(fd->get(), entry.bytes, shape, false);
    if (!whole.ok()) return whole.status().Annotate(name);
    Result<uint32_t> sum = SumOf(fd->get(), entry.bytes);
    if (!sum.ok()) return sum.status().Annotate(name);
    if (shape.kind != SliceShape::Kind::kUnknown) file.records = whole->records;
    file.crc32c = *sum;
  }
  Note(name, file, entry.bytes, entry.modified_ns);
  return {};
}

Status PlaceRepair::Repair(const std::string& name, const SliceShape& shape) {
  const FoundFile entry = entries_.at(name);
  Result<UniqueFd> fd = OpenOwn(data_.get(), name, context_.owner.uid, O_RDWR);
  if (!fd.ok()) return fd.status();
  Result<WholePart> whole =
      FindWholePart(fd->get(), entry.bytes, shape, context_.zeros_untrue);
  if (!whole.ok()) return whole.status().Annotate(name);
  place_.cut_bytes += entry.bytes - whole->bytes;
  if (whole->bytes == 0 || (whole->records == 0 && shape.kind != SliceShape::Kind::kUnknown)) {
    Unlink(name);
    Unlink(name + std::string(kDoneSuffix));
    return {};
  }
  if (whole->bytes < entry.bytes &&
      ::ftruncate(fd->get(), static_cast<off_t>(whole->bytes)) != 0) {
    return Status::FromErrno(errno, fmt::format("cut {}", name));
  }
  // The last write stays what it was: should this be done again, the dump's end is taken from it.
  const timespec modified[2] = {{0, UTIME_OMIT},
                                {entry.modified_ns / kNsPerSecond, entry.modified_ns % kNsPerSecond}};
  ::futimens(fd->get(), modified);
  Result<uint32_t> sum = SumOf(fd->get(), whole->bytes);
  if (!sum.ok()) return sum.status().Annotate(name);
  RETURN_IF_ERROR(WriteDone(name, whole->bytes));
  ++place_.ended_slices;
  ManifestFile file{.path = PathOf(name), .bytes = whole->bytes, .state = "recovered"};
  if (shape.kind != SliceShape::Kind::kUnknown) file.records = whole->records;
  file.crc32c = *sum;
  Note(name, file, whole->bytes, entry.modified_ns);
  return {};
}

Status PlaceRepair::WriteDone(const std::string& name, uint64_t bytes) {
  const std::string done = name + std::string(kDoneSuffix);
  uint64_t reported = 0;
  if (ReadDone(data_.get(), done, context_.owner.uid, &reported) && reported == bytes) return {};
  return ReplaceFile(SystemDumpIo(), data_.get(), done, SliceDone(bytes), context_.owner, false);
}

void PlaceRepair::Note(const std::string& name, const ManifestFile& file, uint64_t recorded_bytes,
                       int64_t modified_ns) {
  std::string base;
  RepairedFile::Slice slice;
  if (!SplitSlice(name, place_.device, &base, &slice.number)) return;
  slice.file = file;
  RepairedFile& all = place_.files[base];
  all.records += file.records.value_or(0);
  all.bytes += recorded_bytes;
  all.modified_ns = std::max(all.modified_ns, modified_ns);
  all.slices.push_back(std::move(slice));
}

void PlaceRepair::NoteAged() {
  const std::string prefix = PathOf("");
  std::string base;
  uint32_t number = 0;
  for (const SliceEntry& slice : journal_.slices) {
    if (!slice.aged || !slice.path.starts_with(prefix)) continue;
    if (!SplitSlice(std::string_view(slice.path).substr(prefix.size()), place_.device, &base,
                    &number)) {
      continue;
    }
    place_.files[base].aged.push_back(slice);
  }
  for (const auto& [path, gone] : journal_.forgotten) {
    if (!path.starts_with(prefix)) continue;
    if (!SplitSlice(path.substr(prefix.size()) + std::string(kSliceMark) + "0", place_.device, &base,
                    &number)) {
      continue;
    }
    place_.files[base].forgotten.push_back(gone);
  }
}

// Dumps of earlier versions: our folder goes where it is today.
void MoveOwnFolder(int top, std::vector<std::string>* warnings) {
  const std::string name(kOwnFolder);
  Result<UniqueFd> host = OpenDirAt(top, std::string(kHostFolder));
  if (!host.ok() || ::renameat(top, name.c_str(), host->get(), name.c_str()) == 0) return;
  if (errno == ENOENT) return;
  warnings->push_back(
      fmt::format("{} could not be moved into {}: {}", name, kHostFolder,
                  Status::FromErrno(errno, "rename").message()));
}

// Our own files are lines, and end where a complete line does.
Status CutOwnFiles(const RepairContext& context, SliceJournal* journal, OwnFiles* own) {
  Result<UniqueFd> host = OpenDirAt(context.top, std::string(kHostFolder));
  Result<UniqueFd> dir = host.ok() ? OpenDirAt(host->get(), std::string(kOwnFolder)) : std::move(host);
  if (!dir.ok()) return dir.status().code() == StatusCode::kNotFound ? Status() : dir.status();
  Result<Entries> entries = ListOwn(dir->get(), context.owner.uid);
  if (!entries.ok()) return entries.status();
  for (const auto& [name, entry] : *entries) {
    if (name != kJournalName && OwnFileHeading(name).empty()) continue;
    Result<UniqueFd> fd = OpenOwn(dir->get(), name, context.owner.uid, O_RDWR);
    if (!fd.ok()) continue;
    Result<WholePart> whole = FindWholePart(fd->get(), entry.bytes, SliceShape(), false);
    if (!whole.ok()) return whole.status().Annotate(name);
    if (whole->bytes < entry.bytes &&
        ::ftruncate(fd->get(), static_cast<off_t>(whole->bytes)) != 0) {
      return Status::FromErrno(errno, fmt::format("cut {}", name));
    }
    (*own)[name] = {whole->bytes, whole->records - std::min<uint64_t>(whole->records, 1)};
    if (name != kJournalName) continue;
    Result<std::string> text = ReadWhole(fd->get(), kMaxJournalBytes);
    if (text.ok()) *journal = ParseSliceJournal(*text);
  }
  return {};
}

}  // namespace

bool ReadDone(int dir, const std::string& name, uid_t uid, uint64_t* bytes) {
  Result<UniqueFd> file = OpenOwn(dir, name, uid, O_RDONLY);
  if (!file.ok()) return false;
  Result<std::string> text = ReadWhole(file->get(), kMaxDoneBytes);
  if (!text.ok()) return false;
  const std::optional<uint64_t> size = SizeOfDone(*text);
  if (size) *bytes = *size;
  return size.has_value();
}

Result<UniqueFd> OpenOwn(int dir, const std::string& name, uid_t uid, int flags) {
  UniqueFd fd(::openat(dir, name.c_str(),
                       flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!fd.valid()) {
    if (errno == ELOOP) return PermissionDenied(fmt::format("{} is a link", name));
    return Status::FromErrno(errno, fmt::format("open {}", name));
  }
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0) return Status::FromErrno(errno, name);
  if (!S_ISREG(st.st_mode) || st.st_uid != uid || st.st_nlink != 1) {
    return PermissionDenied(fmt::format("{} is not the dump's own", name));
  }
  return fd;
}

Result<std::vector<RepairedPlace>> RepairPlaces(const RepairContext& context,
                                                std::vector<std::string>* warnings, OwnFiles* own,
                                                SliceJournal* journal) {
  ::unlinkat(context.top, fmt::format(".{}.tmp", kManifestFile).c_str(), 0);
  ::unlinkat(context.top, std::string(kNextManifest).c_str(), 0);
  MoveOwnFolder(context.top, warnings);
  RETURN_IF_ERROR(CutOwnFiles(context, journal, own));
  std::vector<RepairedPlace> places;
  for (int device = -1; device < kMaxDevices; ++device) {
    RepairedPlace place;
    place.device = device;
    place.name = FolderOf(device);
    Result<UniqueFd> dir = OpenDirAt(context.top, place.name);
    if (!dir.ok()) {
      if (dir.status().code() == StatusCode::kNotFound) continue;
      warnings->push_back(fmt::format("{} was left as it is: {}", place.name, dir.status().message()));
      continue;
    }
    place.dir = std::move(*dir);
    Status repaired = PlaceRepair(context, *journal, &place, warnings).Run();
    if (!repaired.ok()) return repaired.Annotate(place.name);
    places.push_back(std::move(place));
  }
  return places;
}

}  // namespace profd
