#include "dump/recovery.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/text.h"
#include "dump/activity_files.h"
#include "dump/control_files.h"
#include "dump/data_name.h"
#include "dump/mark_files.h"
#include "dump/recovery_places.h"
#include "dump/slice_source.h"

namespace profd {
namespace {

// Clocks are set and drift; a boot in between moves the monotonic one by far more.
constexpr int64_t kSameBootNs = 600 * kNsPerSecond;

class Recovery {
 public:
  Recovery(UniqueFd top, const DumpReader& reader, DumpOwner owner, const RecoveryOptions& options)
      : top_(std::move(top)), reader_(reader), owner_(owner), options_(options) {}

  Result<RecoveredDump> Run();

 private:
  Status ReadManifest();
  Status Rebuild();
  void DecideTimes();
  void AddLateChannels();
  std::vector<const RepairedFile*> FilesOf(const ManifestChannel& channel) const;
  void CountPolled(std::span<const RepairedFile* const> files, ManifestChannel* channel);
  int64_t LastBegin(const RepairedFile& file, int64_t written_ns) const;
  int64_t LastLine(const std::string& own_file) const;
  void EndChannels();
  void SumCopied();
  Status Save();

  UniqueFd top_;
  const DumpReader& reader_;
  const DumpOwner owner_;
  const RecoveryOptions& options_;
  Manifest manifest_;
  std::string lost_;  // why there is no manifest; empty: there is one
  bool same_boot_ = true;
  int64_t end_wall_ns_ = 0;
  int64_t end_raw_ns_ = 0;
  std::vector<RepairedPlace> places_;
  OwnFiles own_;
  SliceJournal journal_;
  RecoveredDump result_;
};

Status Recovery::ReadManifest() {
  if (options_.manifest) {
    manifest_ = *options_.manifest;
    manifest_.state = DumpState::kRunning;
    return {};
  }
  Result<UniqueFd> file = OpenOwn(top_.get(), std::string(kManifestFile), owner_.uid, O_RDONLY);
  if (!file.ok()) return file.status();
  Result<std::string> text = ReadWhole(file->get(), kMaxManifestBytes);
  if (!text.ok()) return text.status();
  Result<Manifest> manifest = ParseManifest(*text);
  if (!manifest.ok()) return manifest.status();
  manifest_ = std::move(manifest).value();
  return {};
}

// What the control files still say of a dump whose manifest is gone.
Status Recovery::Rebuild() {
  manifest_ = Manifest();
  manifest_.session_id = options_.session_id;
  manifest_.uid = owner_.uid;
  manifest_.gid = owner_.gid;
  manifest_.warnings.push_back(
      fmt::format("profd_manifest.json could not be read ({}) and was made anew from the files",
                  lost_));
  manifest_.start_wall_ns = options_.now_wall_ns;
  manifest_.start_raw_ns = options_.now_raw_ns;
  Result<UniqueFd> host = OpenDirAt(top_.get(), "host");
  if (!host.ok()) return {};
  Result<UniqueFd> file = OpenOwn(host->get(), "start_info", owner_.uid, O_RDONLY);
  if (!file.ok()) return {};
  Result<std::string> text = ReadWhole(file->get(), 64u << 10);
  if (!text.ok()) return {};
  auto json = nlohmann::json::parse(*text, nullptr, false);
  if (!json.is_object()) return {};
  auto number = [&json](const char* key, int64_t factor, int64_t* out) {
    auto found = json.find(key);
    int64_t value = 0;
    if (found == json.end() || !found->is_string()) return;
    if (!ParseNumber(std::string_view(found->get_ref<const std::string&>()), &value)) return;
    if (value > 0 && value < INT64_MAX / factor) *out = value * factor;
  };
  number("collectionTimeBegin", 1000, &manifest_.start_wall_ns);
  number("clockMonotonicRaw", 1, &manifest_.start_raw_ns);
  return {};
}

void Recovery::DecideTimes() {
  const int64_t wall = options_.now_wall_ns - manifest_.start_wall_ns;
  const int64_t raw = options_.now_raw_ns - manifest_.start_raw_ns;
  same_boot_ = options_.same_boot.value_or(raw >= 0 && std::abs(wall - raw) < kSameBootNs);
}

// The time of the last file that was written to; there is no other source.
int64_t LastWrite(const std::vector<RepairedPlace>& places, int64_t from, int64_t to) {
  int64_t last = from;
  for (const RepairedPlace& place : places) {
    for (const auto& [base, file] : place.files) {
      if (file.modified_ns <= to) last = std::max(last, file.modified_ns);
    }
  }
  return last;
}

// What processes record has channels from its first record on, and the manifest may be older.
void Recovery::AddLateChannels() {
  const auto add = [this](std::string_view collector, std::string_view file) {
    if (std::ranges::find(manifest_.channels, collector, &ManifestChannel::collector) != manifest_.channels.end()) return;
    ManifestChannel& channel = manifest_.channels.emplace_back();
    channel.collector = collector;
    channel.file = file;
    channel.state = "running";
  };
  for (const RepairedPlace& place : places_) {
    if (place.device >= 0) continue;
    for (const auto& [base, file] : place.files) {
      if (const ActivityFile* activity = FindActivityFile(base); activity != nullptr) add(activity->collector, "");
    }
  }
  if (own_.contains(kMarksFile)) add(kMarksCollector, kMarksFile);
  if (own_.contains(kStacksFile)) add(kStacksCollector, kStacksFile);
}

// A collector of the host may have several files, or write to the one of all that have none (`samples.tsv`).
std::vector<const RepairedFile*> Recovery::FilesOf(const ManifestChannel& channel) const {
  std::vector<const RepairedFile*> files;
  for (const RepairedPlace& place : places_) {
    if (place.device != channel.device) continue;
    for (const auto& [base, file] : place.files) {
      const bool is_polled = channel.file.empty() && channel.device < 0;
      if (is_polled ? HostFileOf(base).collector == channel.collector : base == channel.file) files.push_back(&file);
    }
  }
  return files;
}

// The manifest counts what had been written when it was replaced last, which may have been at the start.
void Recovery::CountPolled(std::span<const RepairedFile* const> files, ManifestChannel* channel) {
  RepairedFile all;
  for (const RepairedFile* file : files) {
    all.records += file->records;
    all.bytes += file->bytes;
    all.aged.insert(all.aged.end(), file->aged.begin(), file->aged.end());
    all.forgotten.insert(all.forgotten.end(), file->forgotten.begin(), file->forgotten.end());
  }
  if (all.bytes > 0 || !all.aged.empty() || !all.forgotten.empty()) return CountFile(all, channel);
  const auto samples = own_.find(kOwnSamplesFile);
  if (samples == own_.end()) return;
  const auto shares = std::ranges::count_if(manifest_.channels, [](const ManifestChannel& one) {
    const bool ran = one.state == "running" || one.state == "interrupted";
    return ran && one.device < 0 && one.file.empty() && !HasHostFiles(one.collector);
  });
  if (HasHostFiles(channel->collector)) return;
  if (shares == 1) {
    channel->records = samples->second.records;
    channel->bytes = samples->second.bytes;
    return;
  }
  channel->detail += fmt::format("{}{} has {} samples, of {} collectors together",
                                 channel->detail.empty() ? "" : "; ", kOwnSamplesFile,
                                 samples->second.records, shares);
}

// What processes recorded is written some time after it began: what lies between is lost, too.
int64_t Recovery::LastBegin(const RepairedFile& file, int64_t written_ns) const {
  constexpr size_t kLastRecords = 1024;  // they are nearly in the order of time
  const std::string path = file.slices.empty() ? "" : file.slices.back().file.path;
  const std::string_view base = BaseName(path);
  const ActivityFile* activity = FindActivityFile(base.substr(0, base.find(kSliceMark)));
  if (activity == nullptr || path.ends_with(kCompressedSuffix)) return written_ns;
  const Result<UniqueFd> fd = reader_.OpenFile(path);
  struct stat about = {};
  if (!fd.ok() || ::fstat(fd->get(), &about) != 0) return written_ns;
  const auto size = static_cast<uint64_t>(about.st_size);
  std::vector<std::byte> records(std::min(size / activity->record_bytes, uint64_t{kLastRecords}) * activity->record_bytes);
  if (::pread(fd->get(), records.data(), records.size(), static_cast<off_t>(size - records.size())) != std::ssize(records)) {
    return written_ns;
  }
  int64_t last_ns = 0;
  for (size_t at = 0; at < records.size(); at += activity->record_bytes) {
    const auto begin_ns = LoadUnchecked<int64_t>(records, at);
    if (begin_ns <= written_ns) last_ns = std::max(last_ns, begin_ns);
  }
  return last_ns > 0 ? last_ns : written_ns;
}

// The time of the last line of one of our own files, which begins with it; 0: there is none. Lines are nearly in the
// order of time.
int64_t Recovery::LastLine(const std::string& own_file) const {
  std::string tail(64u << 10, '\0');
  const Result<UniqueFd> fd = reader_.OpenFile(std::string(kOwnPrefix) + own_file);
  struct stat about = {};
  if (!fd.ok() || ::fstat(fd->get(), &about) != 0) return 0;
  const off_t from = std::max<off_t>(about.st_size - std::ssize(tail), 0);
  tail.resize(static_cast<size_t>(std::max<ssize_t>(::pread(fd->get(), tail.data(), tail.size(), from), 0)));
  std::string_view rest = tail;
  std::string_view line;
  if (from > 0) NextLine(&rest, &line);  // the end of one
  int64_t last_ns = 0;
  while (NextLine(&rest, &line)) {
    int64_t time_ns = 0;
    if (ParseNumber(line.substr(0, line.find('\t')), &time_ns)) last_ns = std::max(last_ns, time_ns);
  }
  return last_ns;
}

void Recovery::EndChannels() {
  auto raw_of = [this](int64_t wall_ns) {
    // Wall clock may have been set back since: nothing was written after now all the same.
    int64_t raw = same_boot_ ? options_.now_raw_ns - std::max<int64_t>(options_.now_wall_ns - wall_ns, 0)
                             : manifest_.start_raw_ns + (wall_ns - manifest_.start_wall_ns);
    return std::max(raw, manifest_.start_raw_ns);
  };
  if (auto marks = own_.find(kMarksFile); marks != own_.end()) {
    manifest_.marks = marks->second.records;
  }
  end_wall_ns_ = LastWrite(places_, manifest_.start_wall_ns, options_.now_wall_ns);
  end_raw_ns_ = raw_of(end_wall_ns_);
  const int64_t known_ns = same_boot_ ? std::max(options_.now_raw_ns, end_raw_ns_) : end_raw_ns_;
  AddLateChannels();
  for (ManifestChannel& channel : manifest_.channels) {
    const std::vector<const RepairedFile*> files = FilesOf(channel);
    // The manifest may count what had been taken, and had not been written yet.
    if (!channel.file.empty()) CountFile(files.empty() ? RepairedFile() : *files.back(), &channel);
    const auto own = channel.device < 0 ? own_.find(channel.file) : own_.end();
    if (own != own_.end()) {
      channel.records = own->second.records;
      channel.bytes = own->second.bytes;
    }
    if (channel.file.empty() && channel.device < 0) CountPolled(files, &channel);
    if (channel.state != "running") continue;
    ManifestGap gap{.host_ns = known_ns, .reason = LossReason::kDaemonEnded, .from_ns = manifest_.start_raw_ns};
    for (const RepairedFile* file : files) {
      const int64_t last_ns = file->last_ns != 0 ? file->last_ns : raw_of(std::min(file->modified_ns, end_wall_ns_));
      gap.from_ns = std::max(gap.from_ns, LastBegin(*file, last_ns));
    }
    if (own != own_.end()) gap.from_ns = std::max(gap.from_ns, LastLine(channel.file));
    gap.from_ns = std::min(gap.from_ns, gap.host_ns);
    channel.state = "interrupted";
    channel.AddGap(gap);
  }
}

// What the vendor's profilers had left when the daemon ended has no other check sums.
void Recovery::SumCopied() {
  for (ManifestFile& file : manifest_.files) {
    for (const ManifestProcessFiles& files : manifest_.process_files) {
      if (files.layout == "apart" && file.path.starts_with(files.directory + "/")) file.pid = files.pid;
    }
    Result<UniqueFd> fd = file.pid != 0 && !file.crc32c ? reader_.OpenFile(file.path) : NotFound("not one of them");
    if (!fd.ok()) continue;
    SliceSource source(std::move(*fd), "");
    std::vector<std::byte> chunk(256u << 10);
    Result<size_t> got = source.Read(chunk);
    while (got.ok() && *got > 0) got = source.Read(chunk);
    if (!got.ok()) continue;
    file.crc32c = source.stored_crc32c();
    file.state = "recovered";
  }
}

// The manifest is the last thing that is written: until then all of this is done again.
Status Recovery::Save() {
  manifest_.state = options_.state;
  manifest_.reason = options_.reason;
  manifest_.end_wall_ns = end_wall_ns_;
  manifest_.end_raw_ns = end_raw_ns_;
  if (!same_boot_) {
    manifest_.warnings.emplace_back(
        "the machine was rebooted: records after the last one are missing, for how "
        "long is unknown");
  }
  if (result_.cut_bytes > 0) {
    manifest_.warnings.push_back(fmt::format(
        "{} bytes of incomplete records at the ends of slices were cut off", result_.cut_bytes));
  }
  RETURN_IF_ERROR(ListRepaired(top_.get(), places_, &manifest_));
  SumCopied();
  return ReplaceFile(SystemDumpIo(), top_.get(), std::string(kManifestFile), Serialize(manifest_), owner_, true);
}

Result<RecoveredDump> Recovery::Run() {
  Status read = ReadManifest();
  if (read.ok() && manifest_.state != DumpState::kRunning) {
    result_.manifest = std::move(manifest_);
    return std::move(result_);
  }
  if (!read.ok()) {
    if (read.code() == StatusCode::kUnimplemented) return read;  // of a later version
    lost_ = read.message();
    RETURN_IF_ERROR(Rebuild());
  }
  DecideTimes();
  RepairContext context{owner_, top_.get(), !same_boot_};
  Result<std::vector<RepairedPlace>> places = RepairPlaces(context, &manifest_.warnings, &own_, &journal_);
  if (!places.ok()) return places.status();
  places_ = std::move(places).value();
  const bool any = std::ranges::any_of(places_, [](const RepairedPlace& place) { return !place.files.empty(); });
  if (!lost_.empty() && !any) {
    result_.outcome = RecoveredDump::Outcome::kEmpty;
    return std::move(result_);
  }
  NameChannels(places_, &manifest_);
  for (const RepairedPlace& place : places_) {
    result_.cut_bytes += place.cut_bytes;
    result_.ended_slices += place.ended_slices;
  }
  ApplyLosses(journal_, &manifest_);
  ApplyFiles(journal_, &manifest_);
  EndChannels();
  FindUnnoted(reader_, &manifest_);
  RETURN_IF_ERROR(EndPlaces(context, places_, end_wall_ns_, end_raw_ns_, &manifest_));
  RETURN_IF_ERROR(Save());
  result_.outcome = RecoveredDump::Outcome::kRecovered;
  result_.manifest = std::move(manifest_);
  return std::move(result_);
}

}  // namespace

Result<RecoveredDump> RecoverDump(const DumpRoot& root, const std::string& name, const RecoveryOptions& options) {
  Result<UniqueFd> dir = root.OpenDump(name);
  if (!dir.ok()) return dir.status();
  struct stat st {};
  if (::fstat(dir->get(), &st) != 0) return Status::FromErrno(errno, name);
  DumpOwner owner{st.st_uid, st.st_gid};
  Result<DumpReader> reader = DumpReader::Open(root, name);
  if (!reader.ok()) return reader.status();
  Result<RecoveredDump> recovered = Recovery(std::move(*dir), *reader, owner, options).Run();
  if (!recovered.ok()) return recovered.status().Annotate(name);
  // Who may see it follows from whose directory it is, not from what the file in it claims.
  recovered->manifest.uid = st.st_uid;
  recovered->manifest.gid = st.st_gid;
  return recovered;
}

Status KeepReason(const DumpRoot& root, const std::string& name, const std::string& reason) {
  Result<UniqueFd> dir = root.OpenDump(name);
  if (!dir.ok()) return dir.status();
  struct stat st {};
  if (::fstat(dir->get(), &st) != 0) return Status::FromErrno(errno, name);
  Result<DumpReader> reader = DumpReader::Open(root, name);
  if (!reader.ok()) return reader.status();
  Result<Manifest> manifest = reader->ReadManifest();
  if (!manifest.ok()) return manifest.status();
  if (manifest->state != DumpState::kInterrupted) return {};
  manifest->reason = reason;
  return ReplaceFile(SystemDumpIo(), dir->get(), std::string(kManifestFile), Serialize(*manifest),
                     {st.st_uid, st.st_gid}, true);
}

}  // namespace profd
