// What is missing from a dump that was not ended, beyond what its last manifest has.
#include <algorithm>
#include <tuple>
#include <utility>

#include "dump/data_name.h"
#include "dump/recovery_places.h"
#include "dump/verify_run.h"

namespace profd {
namespace {

// The manifest is replaced every 10 seconds and the journal written at once: what neither has is in the last of a file.
constexpr uint64_t kTailBytes = 4u << 20;

// Each line has all there was by then, so that one the manifest has already changes nothing.
void Apply(const JournalLoss& loss, ManifestChannel* channel) {
  auto total = std::ranges::find(channel->dropped, loss.reason, &ManifestLoss::reason);
  const uint64_t records = total == channel->dropped.end() ? 0 : total->records;
  const uint64_t bytes = total == channel->dropped.end() ? 0 : total->bytes;
  if (loss.records > records || loss.bytes > bytes) {
    channel->AddLoss(loss.reason, loss.records - std::min(loss.records, records),
                     loss.bytes - std::min(loss.bytes, bytes), loss.to_ns);
  }
  int64_t newest = 0;
  for (ManifestGap& gap : channel->gaps) {
    if (gap.reason != loss.reason) continue;
    newest = std::max(newest, gap.host_ns);
    if (gap.from_ns != loss.from_ns) continue;
    gap.host_ns = std::max(gap.host_ns, loss.to_ns);
    gap.lost_records = std::max(gap.lost_records, loss.gap_records);
    return;
  }
  // Beyond as many as are listed it has been counted.
  if (loss.to_ns > newest) channel->AddGap({loss.to_ns, loss.gap_records, loss.reason, loss.from_ns});
}

// Of every file only the last slices.
void KeepTails(VerifyRun* run) {
  for (VerifyFile& file : run->data) {
    uint64_t bytes = 0;
    auto first = file.slices.end();
    while (first != file.slices.begin() && bytes < kTailBytes) bytes += (--first)->bytes;
    file.slices.erase(file.slices.begin(), first);
  }
}

}  // namespace

void ApplyFiles(const SliceJournal& journal, Manifest* manifest) {
  for (const auto& [folder, noted] : journal.files) {
    const std::string directory = std::string(kOwnPrefix) + folder;
    auto found = std::ranges::find(manifest->process_files, directory, &ManifestProcessFiles::directory);
    if (found == manifest->process_files.end()) {
      found = manifest->process_files.insert(found, ManifestProcessFiles());
      found->directory = directory;
      found->layout = "apart";
      found->pid = noted.pid;
      if (noted.rank >= 0) found->rank = noted.rank;
    }
    found->state = noted.state;
    found->files = noted.files;
    found->bytes = noted.bytes;
    found->refused = noted.refused;
    if (noted.state == "copying") {
      found->state = "interrupted";
      found->problem = "profd ended while the files were copied";
    }
  }
}

void ApplyLosses(const SliceJournal& journal, Manifest* manifest) {
  for (const JournalLoss& loss : journal.losses) {
    ManifestChannel* channel = manifest->FindChannel(loss.device, loss.channel, loss.collector);
    if (channel != nullptr) Apply(loss, channel);
  }
}

void FindUnnoted(const DumpReader& reader, Manifest* manifest) {
  VerifyReport report;
  const VerifyProgress no_progress;
  VerifyRun run{reader, report, no_progress};
  Result<std::vector<DumpReader::File>> files = reader.Files();
  if (!files.ok()) return;  // what is wrong with them is not checked here
  run.files = std::move(*files);
  for (const DumpReader::File& file : run.files) run.sizes[file.path] = file.bytes;
  run.manifest = *manifest;
  run.manifest->state = DumpState::kInterrupted;  // of one that runs, losses are not judged
  FindDataFiles(run);
  KeepTails(&run);
  CheckData(run);
  auto key = [](const VerifyGap& gap) { return std::tie(gap.device, gap.channel, gap.collector); };
  std::ranges::sort(run.gaps, [&key](const VerifyGap& a, const VerifyGap& b) {
    return key(a) != key(b) ? key(a) < key(b) : a.from_ns < b.from_ns;
  });
  for (size_t i = 0; i < run.gaps.size();) {
    VerifyGap gap = run.gaps[i++];
    // Series of a channel are missing beside each other; a poll of a host collector is in several files.
    for (; i < run.gaps.size() && key(run.gaps[i]) == key(gap) && run.gaps[i].from_ns <= gap.to_ns; ++i) {
      gap.to_ns = std::max(gap.to_ns, run.gaps[i].to_ns);
      gap.missing = gap.channel != 0 ? gap.missing + run.gaps[i].missing
                                       : std::max(gap.missing, run.gaps[i].missing);
    }
    ManifestChannel* channel = manifest->FindChannel(gap.device, gap.channel, gap.collector);
    if (channel == nullptr) continue;
    channel->AddGap({gap.to_ns, gap.missing, LossReason::kNotNoted, gap.from_ns});
    channel->AddLoss(LossReason::kNotNoted, gap.missing, 0, gap.to_ns);
  }
}

}  // namespace profd
