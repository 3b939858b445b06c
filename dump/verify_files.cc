#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "base/text.h"
#include "dump/data_name.h"
#include "dump/mark_files.h"
#include "dump/verify_run.h"

namespace profd {
namespace {

constexpr std::string_view kDone = ".done";

// Of "device_0/data/hbm.data.0.slice_3.zst", with the device its folder names; nothing for other
// paths.
std::optional<DataName> ParseDataPath(std::string_view path) {
  size_t slash = path.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  std::string_view place = path.substr(0, slash);
  std::string_view rest = path.substr(slash + 1);
  if (!rest.starts_with("data/")) return std::nullopt;
  int device = -1;
  if (place.starts_with("device_")) {
    if (!ParseNumber(place.substr(7), &device) || device < 0) return std::nullopt;
  } else if (place != "host") {
    return std::nullopt;
  }
  std::optional<DataName> name = ParseDataName(rest.substr(5));
  if (name) name->device = device;
  return name;
}

void CheckDone(VerifyRun& run, const VerifySlice& slice) {
  std::string name = slice.path;
  if (slice.compressed) name.resize(name.size() - kCompressedSuffix.size());
  std::optional<std::string> text = run.Read(name + std::string(kDone));
  if (!text) {
    if (run.manifest) run.Add(VerifyCheck::kSizes, slice.path, "has no .done file");
    return;
  }
  std::string_view rest = *text;
  if (!rest.starts_with("filesize:")) {
    run.Add(VerifyCheck::kSizes, name + std::string(kDone), "does not begin with filesize:");
    return;
  }
  rest.remove_prefix(9);
  uint64_t said = 0;
  if (!ParseNumber(rest.substr(0, rest.find('\n')), &said) ||
      (!slice.compressed && said != slice.bytes)) {
    run.Add(VerifyCheck::kSizes, slice.path,
            fmt::format("is {} bytes long, its .done says {}", slice.bytes,
                        rest.substr(0, std::min<size_t>(rest.find('\n'), 24))));
  }
}

// Slices that are neither there nor known to have been removed.
void CheckRow(VerifyRun& run, const VerifyFile& file) {
  if (file.own || file.slices.empty()) return;
  const std::string& first = file.slices.front().path;
  std::string stem(FileOfSlice(first));
  uint64_t next = 0;
  if (auto gone = run.journal.forgotten.find(stem); gone != run.journal.forgotten.end()) {
    next = gone->second.slices;
  }
  for (const VerifySlice& slice : file.slices) {
    uint64_t missing = 0;
    for (; next < slice.number && missing <= 1000; ++next) {
      const SliceEntry* entry = run.journal.Find(fmt::format("{}{}{}", stem, kSliceMark, next));
      if (entry == nullptr || !entry->aged) ++missing;
    }
    if (missing > 0 && run.manifest) {
      run.Add(VerifyCheck::kSizes, stem,
              fmt::format("{}{} slices before slice {} are not there and were not aged",
                          missing > 1000 ? "more than " : "", std::min<uint64_t>(missing, 1000),
                          slice.number));
    }
    next = slice.number + 1;
  }
}

// What the vendor's analyser puts into a dump it has read.
bool IsOfTheAnalyser(std::string_view path) {
  for (std::string_view name : {"mindstudio_profiler_output/", "mindstudio_profiler_log/",
                                "summary/", "timeline/", "analyze/", "sqlite/", "msprof_",
                                "msprofDB_"}) {
    if (path.starts_with(name)) return true;
  }
  return path.find("/sqlite/") != std::string_view::npos || path.ends_with(".complete");
}

// The manifest's list against what is there.
void CheckList(VerifyRun& run) {
  if (!run.manifest || run.manifest->state == DumpState::kRunning) return;
  for (const ManifestFile& file : run.manifest->files) {
    auto there = run.sizes.find(file.path);
    if (there == run.sizes.end()) {
      run.Add(VerifyCheck::kSizes, file.path, "is in the manifest and not in the dump");
    } else if (there->second != file.bytes) {
      run.Add(VerifyCheck::kSizes, file.path,
              fmt::format("is {} bytes long, the manifest says {}", there->second, file.bytes));
    }
  }
  for (const auto& [path, bytes] : run.sizes) {
    if (path.ends_with(kDone) || path == kManifestFile || IsOfTheAnalyser(path)) continue;
    if (run.FindListed(path) == nullptr) {
      run.Add(VerifyCheck::kSizes, path, "is in the dump and not in the manifest");
    }
  }
}

}  // namespace

void FindDataFiles(VerifyRun& run) {
  std::map<std::tuple<int, bool, std::string>, size_t> index;
  auto add = [&](int device, bool own, const std::string& base, VerifySlice slice) {
    auto [it, fresh] = index.try_emplace({device, own, base}, run.data.size());
    if (fresh) run.data.push_back({device, base, own, {}});
    run.total_bytes += slice.bytes;
    run.data[it->second].slices.push_back(std::move(slice));
  };
  for (const DumpReader::File& file : run.files) {
    if (IsNoteName(file.path)) continue;
    const std::string own(OwnFileName(file.path));
    if (own.ends_with(".tsv") && own != kJournalName) {
      add(-1, true, own, {file.path, file.bytes, 0, false});
    } else if (std::optional<DataName> name = ParseDataPath(file.path)) {
      add(name->device, false, name->base, {file.path, file.bytes, name->slice, name->compressed});
    }
  }
  for (VerifyFile& file : run.data) {
    std::sort(file.slices.begin(), file.slices.end(),
              [](const VerifySlice& a, const VerifySlice& b) { return a.number < b.number; });
  }
}

void CheckSizes(VerifyRun& run) {
  run.Ran(VerifyCheck::kSizes);
  for (const VerifyFile& file : run.data) {
    if (!file.own) {
      for (const VerifySlice& slice : file.slices) CheckDone(run, slice);
    }
    CheckRow(run, file);
  }
  for (const SliceEntry& entry : run.journal.slices) {
    const std::string stored =
        entry.compressed ? entry.path + std::string(kCompressedSuffix) : entry.path;
    if (!entry.aged && !run.Has(stored)) {
      run.Add(VerifyCheck::kSizes, stored, "was closed and never removed, and is not there");
    }
  }
  if (run.journal.bad_lines > 0) {
    run.Add(VerifyCheck::kSizes, std::string(kJournalFile),
            fmt::format("has {} lines that make no sense", run.journal.bad_lines));
  }
  CheckList(run);
}

}  // namespace profd
