// What a dump contains about itself, its way to the disk, and its end.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/text.h"
#include "dump/session_dump.h"
#include "dump/slice_journal.h"

namespace profd {
namespace {

// Remembers the first error of a sequence that continues regardless.
void Keep(Status& first, Status next) {
  if (first.ok() && !next.ok()) first = std::move(next);
}

Status StatusOf(const DumpSync::Outcome& outcome, const std::string& dump) {
  const int failed = outcome->load();
  return failed == 0 ? Status() : Status::FromErrno(failed, fmt::format("sync {}", dump));
}

}  // namespace

Status SessionDump::Flush() {
  space_.CountGaps();
  closed_.TakeCompressed();
  // Which explains the others.
  Status first = folders_.CheckStillThere();
  Keep(first, files_.FlushAll());
  Keep(first, closed_.index().Flush());
  Keep(first, StatusOf(sync_.outcome(), name()));
  files_.StartWriteback();
  return first;
}

void SessionDump::Sync() {
  if (!sync_.on() || finished_) return;
  folders_.SyncControls();
  files_.Sync();
  // A new file is on the disk once its directory is.
  folders_.SyncTouched();
  sync_.Take(closed_.index().CopyFd());
  sync_.TakeCopy(folders_.own());
  manifest_writer_.Sync();
  sync_.TakeCopy(folders_.top());
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
    manifest_.limit_action = space_.ages() ? "age" : "end";
  }
  if (node.net_speed_assumed) {
    manifest_.warnings.emplace_back("the speed of a network card is unknown; 10 Gb/s is assumed");
  }
}

void SessionDump::DescribeDevice(const SessionDumpOptions::Device& device) {
  const DeviceFacts& facts = device.facts;
  if (device.clocks) manifest_.clocks.push_back({facts.id, "start", *device.clocks});
  bool known = std::ranges::any_of(manifest_.devices, [&](const ManifestDevice& one) { return one.id == facts.id; });
  if (known) return;
  ManifestDevice one{.id = facts.id, .physical_id = facts.id, .chip_id = facts.chip_id, .counter_hz = facts.counter_hz,
                     .aicore_mhz = facts.aicore_mhz};
  manifest_.devices.push_back(std::move(one));
}

void SessionDump::UpdateManifestCounts() {
  for (ManifestChannel& entry : manifest_.channels) {
    for (const DumpFile* file : channels_) {
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
void SessionDump::DescribeFile(ManifestFile* file) {
  if (auto whole = folders_.listed().find(file->path); whole != folders_.listed().end()) {
    file->crc32c = whole->second.crc32c;
    file->records = whole->second.records;
    file->pid = whole->second.pid;
    file->state = "closed";
    return;
  }
  if (file->path == kJournalFile) {
    file->crc32c = closed_.index().crc32c();
    file->state = "closed";
    return;
  }
  std::string_view path = file->path;
  const bool compressed = path.ends_with(kCompressedSuffix);
  if (compressed) path.remove_suffix(kCompressedSuffix.size());
  const SliceEntry* slice = closed_.index().Find(path);
  if (slice != nullptr) DescribeSlice(*slice, compressed, file);
}

Status SessionDump::ListFiles() {
  manifest_.files.clear();
  manifest_.data_bytes = 0;
  return WalkTree(folders_.top(), {}, [this](const TreeEntry& entry) {
    const std::string_view path = entry.path;
    const std::string_view name = BaseName(path);
    if (entry.is_dir || entry.other || name.ends_with(kDoneSuffix) || name.starts_with(".") ||
        path == kManifestFile) {
      return Status();
    }
    manifest_.data_bytes += entry.bytes;
    ManifestFile file{.path = entry.path, .bytes = entry.bytes};
    DescribeFile(&file);
    manifest_.files.push_back(std::move(file));
    return Status();
  });
}

void SessionDump::NoteLoss(const ManifestChannel& channel, LossReason reason,
                           const ManifestGap& gap) {
  manifest_writer_.Touch();
  JournalLoss loss{channel.device, channel.channel, channel.collector, reason, 0, 0,
                   gap.from_ns,    gap.host_ns,     gap.lost_records};
  for (const ManifestLoss& one : channel.dropped) {
    if (one.reason != reason) continue;
    loss.records = one.records;
    loss.bytes = one.bytes;
  }
  // At the limit only the manifest has it: space for the manifest is reserved.
  constexpr uint64_t kMostLineBytes = 256;
  if (space_.Fits(kMostLineBytes)) closed_.index().Lost(loss);
}

Status SessionDump::WriteManifest() { return PutManifest(false); }

Status SessionDump::WriteManifestIfDue() { return manifest_writer_.TakeDue() ? PutManifest(true) : Status(); }

// `soon`: in place once the sync thread has seen it on the disk.
Status SessionDump::PutManifest(bool soon) {
  UpdateManifestCounts();
  const std::string text = Serialize(manifest_);
  const uint64_t needed = bytes_written() + text.size();
  if (options_.max_bytes > 0 && needed > options_.max_bytes &&
      manifest_.state == DumpState::kRunning) {
    return {};  // the one that is there does
  }
  closed_.index().ManifestReplaced();
  return manifest_writer_.Put(text, soon);
}

// A device that did not answer at the start may have done so since: WriteClocks took the host's clocks for it.
Status SessionDump::CompleteClocks() {
  Status first;
  const uint64_t before = DevStartLog(ClocksOfHost()).size();
  for (DataFolder& folder : folders_.all()) {
    if (folder.device == kVendorHostId || !CountClocksBack(folder.device, &manifest_)) continue;
    Keep(first, folders_.ReplaceControl(folder, "dev_start.log", DevStartLog(manifest_.clocks.back().clocks), before));
  }
  return first;
}

// What had been taken, and could not be written in the end. Of a channel's files, of which there may be thousands, one
// gap.
void SessionDump::NoteGivenUp(int64_t end_ns) {
  for (ManifestChannel& entry : manifest_.channels) {
    ManifestGap gap{.reason = LossReason::kWriteError};
    uint64_t bytes = 0;
    for (const auto& file : files_.all()) {
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
  Status first = files_.CloseAll();
  NoteGivenUp(end.raw_ns);
  closed_.FinishCompressing();
  Keep(first, closed_.index().Flush());
  Keep(first, CompleteClocks());
  for (DataFolder& folder : folders_.all()) {
    Keep(first, folders_.WriteControl(folder, "end_info", EndInfo(end.wall_ns, end.raw_ns)));
  }
  manifest_.state = end.state;
  manifest_.reason = end.reason;
  manifest_.end_wall_ns = end.wall_ns;
  manifest_.end_raw_ns = end.raw_ns;
  Keep(first, ListFiles());
  Keep(first, WriteManifest());
  finished_ = true;
  if (options_.sync == nullptr && options_.sync_at_end) {
    if (folders_.io().SyncFileSystem(folders_.top()) != 0) {
      Keep(first, Status::FromErrno(errno, fmt::format("sync {}", name())));
    }
  }
  return first;
}

void SessionDump::SyncAtEnd(std::function<void(const Status&)> done) {
  if (options_.sync == nullptr || !options_.sync_at_end) return done({});
  options_.sync->Then(CopyOf(folders_.top()), sync_.outcome(),
                      [done = std::move(done), outcome = sync_.outcome(), name = name()] { done(StatusOf(outcome, name)); });
}

Result<UniqueFd> SessionDump::BeginProcessFiles(ManifestProcessFiles facts) {
  if (finished_) return FailedPrecondition("the dump is complete");
  manifest_writer_.Touch();
  return process_folders_.Begin(std::move(facts));
}

Status SessionDump::ReserveForFiles(uint64_t bytes) {
  return finished_ ? FailedPrecondition("the dump is complete") : space_.Take(bytes);
}

void SessionDump::EndProcessFiles(ManifestProcessFiles facts, uint64_t unused, std::vector<ProcessFile> files) {
  folders_.Shrink(nullptr, unused);
  manifest_writer_.Touch();
  process_folders_.End(std::move(facts), std::move(files));
}

void SessionDump::PlaceProcessFiles(DumpRoot& root) {
  if (finished_ || process_folders_.empty()) return;
  manifest_writer_.Touch();
  // A slice is made with its first bytes: all there will be are there then. Finish reports what fails.
  const Status flushed = Flush();
  process_folders_.Place(root, flushed.ok());
}

}  // namespace profd
