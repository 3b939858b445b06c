#include "dump/verify.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>

#include "dump/data_name.h"
#include "dump/verify_run.h"

namespace profd {
namespace {

// A control file is a few KiB, a .done a line.
constexpr size_t kMaxControlBytes = 2u << 20;

void ReadManifestOf(VerifyRun& run) {
  VerifyReport& report = run.report;
  if (!run.Has(kManifestFile)) {
    report.notes.emplace_back(
        run.HasBelow(kOwnPrefix)
            ? "no profd_manifest.json: profd wrote this dump and its manifest is gone, so there is no account of "
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
    run.Add(VerifyCheck::kManifest, std::string(kManifestFile),
            "says that the session still runs; when no profd writes to this dump, it was "
            "interrupted and will be completed by the next start of profd");
  }
  if (manifest->state == DumpState::kInterrupted) {
    report.notes.push_back("interrupted: " + manifest->reason);
  }
  run.manifest = std::move(*manifest);
  for (const ManifestFile& file : run.manifest->files) run.listed[file.path] = &file;
}

// Channels the manifest knows and that have no file.
void AddChannelsWithoutFiles(VerifyRun& run) {
  if (!run.manifest) return;
  for (const ManifestChannel& channel : run.manifest->channels) {
    if (channel.file.empty() || channel.records == 0) continue;
    bool found = false;
    for (const VerifyChannel& row : run.report.channels) {
      found = found || (row.device == channel.device &&
                        (row.file == channel.file || row.file == "profd/" + channel.file));
    }
    if (!found) {
      run.Add(VerifyCheck::kAccounting,
              channel.device >= 0 ? fmt::format("{} of device {}", channel.file, channel.device)
                                  : channel.file,
              fmt::format("the manifest counts {} records, there is no file", channel.records));
    }
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
  VerifyRun run{reader, report, progress, {}, {}, {}, {}, {}, {}, 0, false};
  Result<std::vector<DumpReader::File>> files = reader.Files();
  if (!files.ok()) return files.status();
  run.files = std::move(*files);
  for (const DumpReader::File& file : run.files) {
    run.sizes.emplace(file.path, file.bytes);
    report.bytes += file.bytes;
  }
  report.files = run.files.size();
  ReadManifestOf(run);
  if (Result<UniqueFd> journal = reader.OpenFile(kJournalFile); journal.ok()) {
    Result<std::string> text = ReadWhole(journal->get(), kMaxJournalBytes);
    if (text.ok()) {
      run.journal = ParseSliceJournal(*text);
    } else {
      run.Add(VerifyCheck::kSizes, std::string(kJournalFile), text.status().message());
    }
  }
  FindDataFiles(run);
  if (run.data.empty() && !run.manifest && !run.Has("host/info.json")) {
    bool device = false;
    for (const auto& [path, bytes] : run.sizes) device = device || path.starts_with("device_");
    if (!device)
      return InvalidArgument("not a profile dump: no manifest, no host/, no device_<N>/");
  }
  CheckSizes(run);
  CheckClocks(run);
  CheckData(run);
  if (run.cancelled) return Status(StatusCode::kCancelled, "given up");
  AddChannelsWithoutFiles(run);
  return report;
}

}  // namespace profd
