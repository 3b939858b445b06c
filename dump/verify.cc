#include "dump/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "dump/data_name.h"
#include "dump/verify_run.h"

namespace profd {
namespace {

// A control file is a few KiB, a .done a line.
constexpr size_t kMaxControlBytes = 2u << 20;

// How many records are missing there is not known, so no count has them. The gaps of several processes overlap.
void NoteOtherProfilers(const Manifest& manifest, VerifyReport* report) {
  for (const ManifestChannel& channel : manifest.channels) {
    std::vector<std::pair<int64_t, int64_t>> gaps;
    for (const ManifestGap& gap : channel.gaps) {
      if (gap.reason == LossReason::kProfilerBusy) gaps.emplace_back(gap.from_ns, gap.host_ns);
    }
    if (gaps.empty()) continue;
    std::ranges::sort(gaps);
    int64_t until_ns = gaps.front().first;
    int64_t missing_ns = 0;
    for (const auto& [from_ns, to_ns] : gaps) {
      missing_ns += std::max<int64_t>(0, to_ns - std::max(from_ns, until_ns));
      until_ns = std::max(until_ns, to_ns);
    }
    report->notes.push_back(fmt::format(
        "{}: {:.3f} s are without the records of a process: another profiler ran in it, its device was kept for "
        "tuning, or the application did not allow it (profiler_busy)",
        channel.collector, static_cast<double>(missing_ns) / 1e9));
  }
}

// Of channels whose timestamps do not show it, or that have no record, and so no file. Some are bytes of an unknown number of records.
void NoteLosses(const Manifest& manifest, VerifyReport* report) {
  if (manifest.state == DumpState::kRunning) return;
  for (const ManifestChannel& channel : manifest.channels) {
    if (channel.hz_effective > 0 && channel.records > 0) continue;
    const std::string of = channel.device < 0 ? "" : fmt::format(" of device {}", channel.device);
    for (const ManifestLoss& loss : channel.dropped) {
      if (!IsDropped(loss) || loss.records + loss.bytes == 0) continue;
      const std::string amount = loss.records > 0 ? fmt::format("{} record{} {}", loss.records, loss.records == 1 ? "" : "s",
                                                                loss.records == 1 ? "is" : "are")
                                                  : fmt::format("{} bytes of an unknown number of records are", loss.bytes);
      report->notes.push_back(fmt::format("{}{}: {} lost ({})", channel.collector, of, amount, ToString(loss.reason)));
    }
  }
}

void ReadManifestOf(VerifyRun& run) {
  VerifyReport& report = run.report;
  if (!run.Has(kManifestFile)) {
    report.notes.emplace_back(
        run.HasBelow(kOwnPrefix)
            ? "no profd_manifest.json: profd wrote this dump, but its manifest is missing; there is no account of "
              "losses to check it by"
            : "no profd_manifest.json: not written by profd, so there are no checksums and no account of "
              "losses to check it by");
    return;
  }
  run.Ran(VerifyCheck::kManifest);
  Result<Manifest> manifest = run.reader.ReadManifest();
  if (!manifest.ok()) {
    run.Add(VerifyCheck::kManifest, std::string(kManifestFile), manifest.status().message());
    return;
  }
  report.has_manifest = true;
  report.state = manifest->state;
  if (manifest->state == DumpState::kRunning) {
    report.notes.emplace_back(
        "the session still runs, so what was lost is not checked yet; if no profd writes to this dump, it was "
        "interrupted, and the next start of profd completes it");
  }
  if (manifest->state == DumpState::kInterrupted) {
    report.notes.push_back("interrupted: " + manifest->reason);
  }
  NoteOtherProfilers(*manifest, &report);
  NoteLosses(*manifest, &report);
  for (const ManifestChannel& channel : manifest->channels) report.removed_records += channel.aged.records;
  // A manifest that an interruption left may be older than its slices.
  report.removed_for_space = std::min(manifest->aged_for_space, report.removed_records);
  for (const ManifestOption& option : manifest->options) {
    if (option.key == "storage_limit") report.storage_limit = option;
  }
  run.manifest = std::move(*manifest);
  for (const ManifestFile& file : run.manifest->files) run.listed[file.path] = &file;
}

// What was not judged.
void NoteUnknownFiles(VerifyRun& run) {
  constexpr size_t kNamed = 8;
  std::set<std::string_view> bases;
  uint64_t files = 0;
  for (const VerifyChannel& row : run.report.channels) {
    if (row.judged) continue;
    ++files;
    bases.insert(row.file);
  }
  if (files == 0) return;
  std::string names;
  size_t named = 0;
  for (std::string_view base : bases) {
    if (++named > kNamed) continue;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", base);
  }
  if (named > kNamed) names += fmt::format(" and {} more", named - kNamed);
  run.report.notes.push_back(fmt::format(
      "{} file{} of a kind that is counted and not checked here (profctl export reads those of operators): {}", files,
      files == 1 ? "" : "s", names));
}

// Channels the manifest knows and that have no file.
void AddChannelsWithoutFiles(VerifyRun& run) {
  if (!run.manifest || run.running()) return;
  for (const ManifestChannel& channel : run.manifest->channels) {
    if (channel.file.empty() || channel.records == 0) continue;
    bool found = false;
    for (const VerifyChannel& row : run.report.channels) {
      found = found || (row.device == channel.device &&
                        (row.file == channel.file || row.file == "profd/" + channel.file));
    }
    if (found) continue;
    std::string what =
        fmt::format("the manifest counts {} records, there is no file", channel.records);
    const bool of_device = channel.device >= 0;
    const std::string_view broken = run.BrokenSliceOf(
        of_device ? fmt::format("device_{0}/data/{1}.{0}", channel.device, channel.file)
                  : fmt::format("{}{}", kOwnPrefix, channel.file));
    if (!broken.empty()) {
      run.AddOfSlice(VerifyCheck::kAccounting, broken, what);
      continue;
    }
    run.Add(VerifyCheck::kAccounting,
            of_device ? fmt::format("{} of device {}", channel.file, channel.device) : channel.file,
            std::move(what));
  }
}

}  // namespace

std::string_view ToString(VerifyCheck check) {
  constexpr std::array<std::string_view, kVerifyChecks> kNames = {
      "manifest", "sizes", "checksums", "framing", "order", "clocks", "accounting"};
  return kNames[static_cast<size_t>(check)];
}

void VerifyReport::Add(VerifyCheck check, std::string where, std::string what) {
  ++problem_count;
  if (problems.size() < kMaxProblems) {
    problems.push_back({check, std::move(where), std::move(what)});
  }
}

void VerifyRun::AddOfSlice(VerifyCheck check, std::string_view path, std::string_view what) {
  const std::string_view slice = RecordedName(path);
  const uint32_t bit = 1u << static_cast<uint32_t>(check);
  auto found = broken.find(slice);
  if (found == broken.end()) {
    broken.emplace(slice, Broken{report.problems.size(), bit});
    Add(check, std::string(path), std::string(what));
    return;
  }
  Broken& known = found->second;
  if ((std::exchange(known.checks, known.checks | bit) & bit) != 0) return;
  if (known.problem >= report.problems.size()) return;
  report.problems[known.problem].what += fmt::format("; {}", what);
}

std::string_view VerifyRun::BrokenSliceOf(std::string_view stem) const {
  for (auto it = broken.lower_bound(stem); it != broken.end() && it->first.starts_with(stem); ++it) {
    if (it->first == stem || FileOfSlice(it->first) == stem) return it->first;
  }
  return {};
}

void VerifyRun::ReadJournal() {
  Result<UniqueFd> file = reader.OpenFile(kJournalFile);
  if (!file.ok()) return;
  Result<std::string> text = ReadWhole(file->get(), kMaxJournalBytes);
  if (text.ok()) {
    journal = ParseSliceJournal(*text);
  } else {
    Add(VerifyCheck::kSizes, std::string(kJournalFile), text.status().message());
  }
}

bool VerifyRun::IsThere(std::string_view slice) const {
  return reader.OpenFile(slice).ok() ||
         reader.OpenFile(fmt::format("{}{}", slice, kCompressedSuffix)).ok();
}

std::optional<std::string> VerifyRun::Read(std::string_view path) const {
  Result<UniqueFd> fd = reader.OpenFile(path);
  if (!fd.ok()) return std::nullopt;
  Result<std::string> text = ReadWhole(fd->get(), kMaxControlBytes);
  if (!text.ok()) return std::nullopt;
  return std::move(*text);
}

Result<VerifyReport> VerifyDump(const DumpReader& reader, std::string_view name,
                                const VerifyProgress& progress) {
  VerifyReport report;
  report.name = name;
  VerifyRun run{reader, report, progress};
  DumpReader::NotRead not_read;
  Result<std::vector<DumpReader::File>> files = reader.Files(&not_read);
  if (!files.ok()) return files.status();
  run.files = std::move(*files);
  for (const DumpReader::File& file : run.files) {
    run.sizes.emplace(file.path, file.bytes);
    report.bytes += file.bytes;
  }
  report.files = run.files.size();
  ReadManifestOf(run);
  run.ReadJournal();
  FindDataFiles(run);
  if (run.data.empty() && !run.manifest && !run.Has("host/info.json")) {
    bool device = false;
    for (const auto& [path, bytes] : run.sizes) device = device || path.starts_with("device_");
    if (!device) {
      std::string what = "not a profile dump: no manifest, no host/, no device_<N>/";
      if (not_read.files > 0) what += fmt::format("; {}: {}", not_read.first, not_read.What());
      return InvalidArgument(std::move(what));
    }
  }
  CheckNotRead(run, not_read);
  CheckSizes(run);
  CheckClocks(run);
  CheckData(run);
  if (run.cancelled) return Status(StatusCode::kCancelled, "given up");
  AddChannelsWithoutFiles(run);
  NoteUnknownFiles(run);
  return report;
}

}  // namespace profd
