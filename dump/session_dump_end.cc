// What a dump contains about itself, its way to the disk, and its end.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "dump/session_dump.h"

namespace profd {
namespace {

constexpr uint64_t kBytesPerGap = 192;  // of the manifest
constexpr int64_t kManifestIntervalNs = 10 * kNsPerSecond;
// So much of a file is worth asking the kernel to begin with.
constexpr uint64_t kWritebackBytes = 256u << 10;
// The end of a session does not wait longer for what is still to be compressed.
constexpr int64_t kCompressAtEndNs = kNsPerSecond;

// Remembers the first error of a sequence that continues regardless.
void Keep(Status& first, Status next) {
  if (first.ok() && !next.ok()) first = std::move(next);
}

UniqueFd Copy(const UniqueFd& fd) { return UniqueFd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0)); }

}  // namespace

Status SessionDump::Flush() {
  Status first;
  gap_bytes_ = 0;
  for (const ManifestChannel& channel : manifest_.channels) {
    gap_bytes_ += channel.gaps.size() * kBytesPerGap;
  }
  TakeCompressed();
  for (auto& file : files_) {
    uint64_t before = SizeOf(*file);
    Keep(first, file->writer->Flush());
    if (file->dynamic && file->idle) {
      GiveFdBack(*file);
      file->writer->ReleaseBuffer();
    }
    file->idle = true;
    Account(*file, before);
  }
  Keep(first, slice_index_.Flush());
  Keep(first, CheckStillThere());
  if (const int failed = sync_outcome_->load(); failed != 0) {
    Keep(first, Status::FromErrno(failed, fmt::format("sync {}", name_)));
  }
  StartWriteback();
  return first;
}

// A directory that was removed takes what is written to its open files and keeps none of it.
Status SessionDump::CheckStillThere() const {
  auto gone = [](const UniqueFd& dir) {
    struct stat st {};
    return ::fstat(dir.get(), &st) == 0 && st.st_nlink == 0;
  };
  bool removed = gone(top_);
  for (const DataFolder& place : places_) removed = removed || gone(place.data);
  if (!removed) return {};
  return DataLoss(fmt::format("{} was removed while it was written", name_));
}

void SessionDump::StartWriteback() {
  if (running_sync() == nullptr) return;
  for (auto& file : files_) {
    const uint64_t unsynced = file->writer->unsynced_bytes();
    if (unsynced < file->started) file->started = 0;
    if (unsynced - file->started < kWritebackBytes) continue;
    file->started = unsynced;
    options_.sync->Take(file->writer->CopyFd(), DumpSync::SyncMode::kStart, sync_outcome_);
  }
}

void SessionDump::Sync() {
  DumpSync* sync = running_sync();
  if (sync == nullptr || finished_) return;
  auto take = [&](UniqueFd fd) { return sync->Take(std::move(fd), DumpSync::SyncMode::kSync, sync_outcome_); };
  std::vector<bool> touched(places_.size(), false);
  for (const auto& [place, name] : std::exchange(unsynced_controls_, {})) {
    Result<UniqueFd> fd = OpenFileAt(places_[place].dir.get(), name);
    if (fd.ok()) take(std::move(*fd));
    touched[place] = true;
  }
  for (auto& file : files_) {
    if (file->writer->unsynced_bytes() == 0) continue;
    if (file->place) touched[*file->place] = true;
    if (!take(file->writer->CopyFd())) continue;
    file->writer->MarkSynced();
    file->started = 0;
  }
  // A new file is on the disk once its directory is.
  for (size_t i = 0; i < places_.size(); ++i) {
    if (!touched[i]) continue;
    take(Copy(places_[i].data));
    take(Copy(places_[i].dir));
  }
  take(slice_index_.CopyFd());
  take(Copy(own_dir_));
  if (!manifest_synced_) {
    Result<UniqueFd> fd = OpenFileAt(top_.get(), std::string(kManifestFile));
    if (fd.ok()) manifest_synced_ = take(std::move(*fd));
  }
  take(Copy(top_));
}

void SessionDump::CompleteManifest() {
  const SessionFacts& session = options_.session;
  const NodeFacts& node = options_.node;
  if (manifest_.profd_version.empty()) manifest_.profd_version = node.profd_version;
  if (manifest_.hal_api_version == 0) manifest_.hal_api_version = node.hal_api_version;
  manifest_.state = DumpState::kRunning;
  manifest_.session_id = session.session_id;
  manifest_.uid = options_.owner.uid;
  manifest_.gid = options_.owner.gid;
  if (manifest_.pid == 0) manifest_.pid = session.pid;
  manifest_.job_id = session.job_id;
  if (!manifest_.rank && session.rank >= 0) manifest_.rank = session.rank;
  manifest_.start_wall_ns = session.start_wall_ns;
  manifest_.start_raw_ns = session.start_raw_ns;
  manifest_.hostname = node.hostname;
  manifest_.os = node.os;
  manifest_.machine = node.machine;
  manifest_.host_counter_hz = node.host_counter_hz;
  manifest_.clocks.push_back({-1, "start", options_.host_clocks});
  for (const SessionDumpOptions::Device& device : options_.devices) DescribeDevice(device);
  manifest_.limit_bytes = options_.max_bytes;
  if (options_.max_bytes > 0) {
    manifest_.limit_action = options_.age_at_limit && ages_ ? "age" : "end";
  }
  if (node.net_speed_assumed) {
    manifest_.warnings.emplace_back("the speed of a network card is unknown; 10 Gb/s is assumed");
  }
}

void SessionDump::DescribeDevice(const SessionDumpOptions::Device& device) {
  const DeviceFacts& facts = device.facts;
  if (device.clocks) manifest_.clocks.push_back({facts.id, "start", *device.clocks});
  bool known = std::any_of(manifest_.devices.begin(), manifest_.devices.end(),
                           [&](const ManifestDevice& one) { return one.id == facts.id; });
  if (known) return;
  ManifestDevice one;
  one.id = facts.id;
  one.physical_id = facts.id;
  one.chip_id = facts.chip_id;
  one.counter_hz = facts.counter_hz;
  one.aicore_mhz = facts.aicore_mhz;
  manifest_.devices.push_back(std::move(one));
}

void SessionDump::UpdateManifestCounts() {
  for (ManifestChannel& entry : manifest_.channels) {
    for (const File* file : channels_) {
      if (file->device != entry.device || file->channel_id != entry.channel) continue;
      entry.file = file->writer->options().base;
      const SliceWriter& writer = *file->writer;
      entry.records = writer.records() - writer.lost_records() - entry.aged.records;
      entry.bytes = writer.bytes() - writer.lost_bytes() - entry.aged.bytes -
                    entry.aged.slices * writer.options().header.size();
    }
  }
}

// What is known of a file besides its size.
void SessionDump::DescribeFile(ManifestFile* file) const {
  if (auto whole = control_files_.find(file->path); whole != control_files_.end()) {
    file->crc32c = whole->second.crc32c;
    file->records = whole->second.records;
    file->pid = whole->second.pid;
    file->state = "closed";
    return;
  }
  if (file->path == kJournalFile) {
    file->crc32c = slice_index_.crc32c();
    file->state = "closed";
    return;
  }
  std::string_view path = file->path;
  const bool compressed = path.ends_with(kCompressedSuffix);
  if (compressed) path.remove_suffix(kCompressedSuffix.size());
  const SliceEntry* slice = slice_index_.Find(path);
  if (slice != nullptr) DescribeSlice(*slice, compressed, file);
}

Status SessionDump::ListFiles() {
  manifest_.files.clear();
  manifest_.data_bytes = 0;
  return WalkTree(top_.get(), {}, [this](const TreeEntry& entry) {
    const std::string_view path = entry.path;
    const std::string_view name = path.substr(path.rfind('/') + 1);
    if (entry.is_dir || entry.other || name.ends_with(".done") || name.starts_with(".") ||
        path == kManifestFile) {
      return Status();
    }
    manifest_.data_bytes += entry.bytes;
    ManifestFile file;
    file.path = entry.path;
    file.bytes = entry.bytes;
    DescribeFile(&file);
    manifest_.files.push_back(std::move(file));
    return Status();
  });
}

void SessionDump::NoteLoss(const ManifestChannel& channel, LossReason reason,
                           const ManifestGap& gap) {
  manifest_touched_ = true;
  JournalLoss loss{channel.device, channel.channel, channel.collector, reason, 0, 0,
                   gap.from_ns,    gap.host_ns,     gap.lost_records};
  for (const ManifestLoss& one : channel.dropped) {
    if (one.reason != reason) continue;
    loss.records = one.records;
    loss.bytes = one.bytes;
  }
  // At the limit only the manifest has it: space for the manifest is reserved.
  constexpr uint64_t kMostLineBytes = 256;
  if (options_.max_bytes > 0 && BytesButManifest() + Reserved() + kMostLineBytes > options_.max_bytes) return;
  slice_index_.Lost(loss);
}

Status SessionDump::WriteManifest() { return PutManifest(false); }

Status SessionDump::WriteManifestIfDue() {
  if (!manifest_touched_) return {};
  const int64_t now = clock().SteadyNs();
  if (manifest_written_ns_ != 0 && now - manifest_written_ns_ < kManifestIntervalNs) return {};
  if (pending_manifest_ != nullptr && !pending_manifest_->over()) return {};
  manifest_written_ns_ = now;
  manifest_touched_ = false;
  return PutManifest(running_sync() != nullptr);
}

// `soon`: in place once the sync thread has seen it on the disk.
Status SessionDump::PutManifest(bool soon) {
  UpdateManifestCounts();
  const std::string text = Serialize(manifest_);
  const uint64_t needed = bytes_written() + text.size();
  if (options_.max_bytes > 0 && needed > options_.max_bytes &&
      manifest_.state == DumpState::kRunning) {
    return {};  // the one that is there does
  }
  if (pending_manifest_ != nullptr) std::exchange(pending_manifest_, nullptr)->CallOff();
  manifest_bytes_ = text.size();
  slice_index_.ManifestReplaced();
  if (!soon) {
    manifest_synced_ = false;
    return ReplaceFile(io_, top_.get(), std::string(kManifestFile), text, options_.owner, false);
  }
  const std::string next(kNextManifest);
  io_.Unlink(top_.get(), next);
  RETURN_IF_ERROR(WriteNewFile(io_, top_.get(), next, text, options_.owner));
  Result<UniqueFd> fd = OpenFileAt(top_.get(), next);
  if (!fd.ok()) return fd.status();
  pending_manifest_ =
      std::make_shared<PendingReplacement>(Copy(top_), next, std::string(kManifestFile));
  if (!options_.sync->Replace(std::move(*fd), pending_manifest_, sync_outcome_)) {
    std::exchange(pending_manifest_, nullptr)->CallOff();
    manifest_touched_ = true;
  }
  return {};
}

Status SessionDump::WriteEndInfo(const EndFacts& end) {
  Status first;
  for (DataFolder& place : places_) {
    Keep(first, WriteControl(place, "end_info", EndInfo(end.wall_ns, end.raw_ns)));
  }
  return first;
}

// A device that did not answer at the start may have done so since: WriteClocks took the host's clocks for it.
Status SessionDump::CompleteClocks() {
  Status first;
  for (DataFolder& place : places_) {
    if (place.device == kVendorHostId || !CountClocksBack(place.device, &manifest_)) continue;
    const std::string name = fmt::format("dev_start.log.{}", place.device);
    const std::string text = DevStartLog(manifest_.clocks.back().clocks);
    const std::string done = ControlDone(text.size());
    Keep(first, ReplaceFile(io_, place.dir.get(), name, text, options_.owner, false));
    Keep(first, ReplaceFile(io_, place.dir.get(), name + ".done", done, options_.owner, false));
    control_files_[fmt::format("{}/{}", place.name, name)] = {Crc32c(AsBytes(text))};
    const size_t before = DevStartLog(ClocksOfHost()).size();
    const uint64_t more = text.size() + done.size() - before - ControlDone(before).size();  // may wrap
    taken_bytes_ += more;
    place.bytes += more;
  }
  return first;
}

Status SessionDump::CloseFiles() {
  Status first;
  for (auto& file : files_) {
    uint64_t before = SizeOf(*file);
    Keep(first, file->writer->Close());
    Account(*file, before);
  }
  return first;
}

// What had been taken, and could not be written in the end. Of a channel's files, of which there may be thousands, one
// gap.
void SessionDump::NoteGivenUp(int64_t end_ns) {
  for (ManifestChannel& entry : manifest_.channels) {
    ManifestGap gap{.reason = LossReason::kWriteError};
    uint64_t bytes = 0;
    for (const auto& file : files_) {
      const SliceWriter& writer = *file->writer;
      if (writer.lost_bytes() == 0 || entry.device != file->device || entry.channel != file->channel_id) continue;
      if (file->channel_id == 0 && entry.file != writer.options().base &&
          (file->collector.empty() || entry.collector != file->collector)) {
        continue;
      }
      const int64_t from_ns = writer.written_ns() != 0 ? writer.written_ns() : manifest_.start_raw_ns;
      gap.from_ns = bytes == 0 ? from_ns : std::min(gap.from_ns, from_ns);
      gap.host_ns = std::max(gap.host_ns, writer.lost_until_ns() != 0 ? writer.lost_until_ns() : end_ns);
      gap.lost_records += writer.lost_records();
      bytes += writer.lost_bytes();
    }
    if (bytes == 0) continue;
    entry.AddLoss(gap.reason, gap.lost_records, bytes, gap.host_ns);
    entry.AddLoss(gap.reason, 0, 0, gap.from_ns);
    entry.AddGap(gap);
    NoteLoss(entry, gap.reason, gap);
  }
}

Status SessionDump::Finish(const EndFacts& end) {
  if (finished_) return FailedPrecondition("the dump is finished");
  Status first = CloseFiles();
  NoteGivenUp(end.raw_ns);
  if (compressor_ != nullptr) {
    compressor_->Finish(kCompressAtEndNs);
    TakeCompressed();
  }
  Keep(first, slice_index_.Flush());
  Keep(first, CompleteClocks());
  Keep(first, WriteEndInfo(end));
  manifest_.state = end.state;
  manifest_.reason = end.reason;
  manifest_.end_wall_ns = end.wall_ns;
  manifest_.end_raw_ns = end.raw_ns;
  Keep(first, ListFiles());
  Keep(first, WriteManifest());
  finished_ = true;
  if (options_.sync == nullptr && options_.sync_at_end) {
    if (io_.SyncFileSystem(top_.get()) != 0) {
      Keep(first, Status::FromErrno(errno, fmt::format("sync {}", name_)));
    }
  }
  return first;
}

void SessionDump::SyncAtEnd(std::function<void(const Status&)> done) {
  if (options_.sync == nullptr || !options_.sync_at_end) return done({});
  options_.sync->Then(Copy(top_), sync_outcome_,
                      [done = std::move(done), outcome = sync_outcome_, name = name_] {
                        const int failed = outcome->load();
                        done(failed == 0 ? Status()
                                         : Status::FromErrno(failed, fmt::format("sync {}", name)));
                      });
}

Result<UniqueFd> SessionDump::BeginProcessFiles(ManifestProcessFiles facts) {
  if (finished_) return FailedPrecondition("the dump is complete");
  manifest_touched_ = true;
  return process_folders_.Begin(std::move(facts));
}

void SessionDump::EndProcessFiles(ManifestProcessFiles facts, uint64_t unused, std::vector<ProcessFile> files) {
  taken_bytes_ -= std::min(unused, taken_bytes_);
  manifest_touched_ = true;
  const size_t count = files.size();
  if (process_folders_.End(std::move(facts), std::move(files))) final_entries_ += count;
}

void SessionDump::PlaceProcessFiles(DumpRoot& root) {
  if (finished_ || process_folders_.empty()) return;
  manifest_touched_ = true;
  // A slice is made with its first bytes: all there will be are there then. Finish reports what fails.
  const Status flushed = Flush();
  process_folders_.Place(root, flushed.ok());
}

}  // namespace profd
