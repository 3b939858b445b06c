#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/text.h"
#include "driver/records/aicore_pmu.h"
#include "driver/records/hbm.h"
#include "dump/data_name.h"
#include "dump/mark_files.h"
#include "dump/slice_journal.h"
#include "dump/verify_run.h"

namespace profd {
namespace {

constexpr uint64_t kMostMissing = 100;  // slices of one file that are listed one by one

// Of "device_0/data/hbm.data.0.slice_3.zst", with the device its folder names; nothing for other
// paths.
std::optional<DataName> ParseDataPath(std::string_view path) {
  size_t slash = path.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  std::string_view place = path.substr(0, slash);
  std::string_view rest = path.substr(slash + 1);
  if (!rest.starts_with("data/")) return std::nullopt;
  const std::optional<int> device = DeviceOfFolder(place);
  std::optional<DataName> name = device ? ParseDataName(rest.substr(5)) : std::nullopt;
  if (name) name->device = *device;
  return name;
}

void CheckDone(VerifyRun& run, const VerifySlice& slice) {
  std::string name = slice.path;
  if (slice.compressed) name.resize(name.size() - kCompressedSuffix.size());
  std::optional<std::string> text = run.Read(name + std::string(kDoneSuffix));
  if (!text) {
    // Without the slice it has gone by now, by a limit.
    if (run.manifest && (!run.running() || run.IsThere(RecordedName(slice.path)))) {
      run.AddOfSlice(VerifyCheck::kSizes, slice.path, "has no .done file");
    }
    return;
  }
  std::string_view rest = *text;
  if (!rest.starts_with("filesize:")) {
    run.Add(VerifyCheck::kSizes, name + std::string(kDoneSuffix), "does not begin with filesize:");
    return;
  }
  rest.remove_prefix(9);
  uint64_t said = 0;
  if (!ParseNumber(rest.substr(0, rest.find('\n')), &said) ||
      (!slice.compressed && said != slice.bytes)) {
    run.AddOfSlice(VerifyCheck::kSizes, slice.path,
                   fmt::format("is {} bytes long, its .done has {}", slice.bytes,
                               rest.substr(0, std::min<size_t>(rest.find('\n'), 24))));
  }
}

// Slices that are neither there nor known to have been removed; CheckJournal has those it lists.
void CheckRow(VerifyRun& run, const VerifyFile& file) {
  if (file.own || file.foreign) return;
  const std::string& first = file.slices.front().path;
  std::string stem(FileOfSlice(first));
  if (stem.empty()) return;
  uint64_t next = 0;
  // A limit of the vendor's collector removes the first slices, but those of "unaging" files never (operator-data a.1).
  if (!run.manifest && !file.base.starts_with("unaging.")) next = file.slices.front().number;
  if (auto gone = run.journal.forgotten.find(stem); gone != run.journal.forgotten.end()) {
    next = gone->second.slices;
  }
  for (const VerifySlice& slice : file.slices) {
    uint64_t missing = 0;
    for (; next < slice.number && missing <= kMostMissing; ++next) {
      const std::string path = fmt::format("{}{}{}", stem, kSliceMark, next);
      if (run.journal.Find(path) != nullptr || (run.running() && run.IsThere(path))) continue;
      if (++missing > kMostMissing) {
        run.Add(VerifyCheck::kSizes, stem,
                fmt::format("more slices before slice {} are not there", slice.number));
      } else {
        run.AddOfSlice(VerifyCheck::kSizes, path, "is not there, and no limit removed it");
      }
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

// The end of a dump lists whatever is in it. Where control files have a state, each file that profd wrote has one, but for
// what a process's profiler left.
bool IsOfAnother(const VerifyRun& run, const ManifestFile& file) {
  const ManifestFile* const control = run.FindListed("host/info.json");
  return control != nullptr && !control->state.empty() && file.state.empty() &&
         OwnFileName(file.path).find('/') == std::string_view::npos && !IsOfTheAnalyser(file.path);
}

// The manifest's list against what is there.
void CheckList(VerifyRun& run) {
  if (!run.manifest || run.manifest->state == DumpState::kRunning) return;
  for (const ManifestFile& file : run.manifest->files) {
    if (IsOfAnother(run, file)) {
      run.AddOfSlice(VerifyCheck::kSizes, file.path, "was in the dump when its session ended, and profd did not write it");
    }
    auto there = run.sizes.find(file.path);
    if (there == run.sizes.end()) {
      run.AddOfSlice(VerifyCheck::kSizes, file.path, "is in the manifest and not in the dump");
    } else if (there->second != file.bytes) {
      run.AddOfSlice(VerifyCheck::kSizes, file.path,
                     fmt::format("is {} bytes long, the manifest has {}", there->second, file.bytes));
    }
  }
  for (const auto& [path, bytes] : run.sizes) {
    if (path.ends_with(kDoneSuffix) || path == kManifestFile || IsOfTheAnalyser(path)) continue;
    if (run.FindListed(path) == nullptr) {
      run.AddOfSlice(VerifyCheck::kSizes, path, "is in the dump and not in the manifest");
    }
  }
}

void CheckStrange(VerifyRun& run, const TreeEntry& entry) {
  if (IsOfTheAnalyser(entry.is_dir ? entry.path + "/" : entry.path)) return;
  if (entry.other) {
    run.Add(VerifyCheck::kSizes, entry.path, "is a symbolic link, pipe, socket or device: not read");
  } else if (!run.manifest) {
    return;  // the vendor's collector may have made it
  } else if (entry.is_dir) {
    run.Add(VerifyCheck::kSizes, entry.path, "is a folder that no dump has; the vendor's analyser may export nothing with it");
  } else {
    run.Add(VerifyCheck::kSizes, entry.path, "is in the dump and not in the manifest");
  }
}

// The journal's slices against what is there. A kill may have come between compressing a slice and
// the journal's line of it.
void CheckJournal(VerifyRun& run) {
  std::vector<std::string> missing;
  for (const SliceEntry& entry : run.journal.slices) {
    if (entry.aged || run.Has(entry.path) || run.Has(entry.path + std::string(kCompressedSuffix))) continue;
    if (!run.running() || !run.IsThere(entry.path)) missing.push_back(entry.path);
  }
  if (run.running() && !missing.empty()) {
    // A limit may remove slices meanwhile. The journal records that first, so what is not there by now is in it.
    run.ReadJournal();
    std::erase_if(missing, [&run](const std::string& path) {
      const SliceEntry* entry = run.journal.Find(path);
      return entry == nullptr || entry->aged;
    });
  }
  for (const std::string& path : missing) run.AddOfSlice(VerifyCheck::kSizes, path, "file is missing");
  if (run.journal.bad_lines > 0) {
    run.Add(VerifyCheck::kSizes, std::string(kJournalFile),
            fmt::format("has {} lines that cannot be parsed", run.journal.bad_lines));
  }
}

// The other PROF directories of a run, each of which has a manifest of its own.
void CheckBeside(VerifyRun& run) {
  if (!run.manifest || run.running()) return;
  for (const ManifestProcessFiles& files : run.manifest->process_files) {
    if (files.layout != "beside" || run.reader.HasBeside(files.directory)) continue;
    run.Add(VerifyCheck::kSizes, files.directory,
            fmt::format("is not beside the dump: the files of process {}", files.pid));
  }
}

// A text of one of the device's control files; empty if it is not there.
std::string ControlText(const VerifyRun& run, int device, const std::string& name, const char* key) {
  const std::optional<std::string> text = run.Read(fmt::format("device_{}/{}", device, name));
  const nlohmann::json json = nlohmann::json::parse(text.value_or(""), nullptr, false);
  auto found = json.is_object() ? json.find(key) : json.end();
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// Samples of the counters or those of single tasks (operator-data a.4): sample.json has which.
SliceShape FftsShape(const VerifyRun& run, int device) {
  const std::string mode = ControlText(run, device, "sample.json", "ai_core_profiling_mode");
  using Kind = SliceShape::Kind;
  if (mode == "task-based") return {Kind::kBinary, records::kTaskPmuRecordBytes, {}};
  if (mode != "sample-based") return {Kind::kUnknown, 0, {}};
  const std::string chip =
      ControlText(run, device, fmt::format("info.json.{}", device), "platform_version");
  const bool v6 = chip == "15" || chip == "16";
  const size_t size = v6 ? sizeof(records::AicoreSampleV6) : sizeof(records::AicoreSample);
  return {Kind::kBinary, static_cast<uint32_t>(size), {}};
}

// Of HBM, LLC and npu_mem, which come with absolute times then (dump-format 2.5, 2.6, 2.9). Ours are "1.0".
bool HasVersion2(const VerifyRun& run, const VerifyFile& file) {
  constexpr std::array<std::string_view, 4> kBases = {"hbm.data", "llc.data", "npu_mem.data", "npu_mem.app"};
  return std::ranges::find(kBases, file.base) != kBases.end() && !run.manifest &&
         ControlText(run, file.device, fmt::format("info.json.{}", file.device), "version") == "2.0";
}

void SetShape(const VerifyRun& run, VerifyFile* file) {
  if (file->own) return;
  if (file->foreign) {
    file->shape.kind = SliceShape::Kind::kUnknown;
    return;
  }
  if (file->device >= 0 && file->base == "ffts_profile.data") {
    file->shape = FftsShape(run, file->device);
    return;
  }
  file->shape = ShapeOf(file->base, file->device < 0);
  if (file->device < 0 || !HasVersion2(run, *file)) return;
  file->other_layout = true;
  if (file->base == "hbm.data") file->shape.record_size = sizeof(records::HbmRecordV2);
}

}  // namespace

void FindDataFiles(VerifyRun& run) {
  // A process's profiler may have slices of a file beside profd's.
  std::map<std::tuple<int, bool, bool, std::string>, size_t> index;
  auto add = [&](int device, bool own, const std::string& base, VerifySlice slice) {
    const ManifestFile* const listed = run.FindListed(slice.path);
    const bool foreign = !own && listed != nullptr && listed->pid != 0;
    auto [it, fresh] = index.try_emplace({device, own, foreign, base}, run.data.size());
    if (fresh) {
      run.data.push_back({.device = device, .base = base, .own = own, .shape = {}, .foreign = foreign, .slices = {}});
    }
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
    } else if (const ManifestFile* listed = run.FindListed(file.path); listed != nullptr && listed->pid != 0) {
      add(-1, false, file.path, {file.path, file.bytes, 0, false});
    }
  }
  for (VerifyFile& file : run.data) {
    // The plain one stays while its compressed one is being made.
    std::ranges::sort(file.slices, [](const VerifySlice& a, const VerifySlice& b) {
      return std::tie(a.number, a.path) < std::tie(b.number, b.path);
    });
    auto same = [](const VerifySlice& a, const VerifySlice& b) {
      return RecordedName(a.path) == RecordedName(b.path);
    };
    file.slices.erase(std::unique(file.slices.begin(), file.slices.end(), same), file.slices.end());
    SetShape(run, &file);
  }
}

void CheckNotRead(VerifyRun& run, const DumpReader::NotRead& not_read) {
  if (not_read.files > 0) run.Add(VerifyCheck::kSizes, not_read.first, not_read.What());
  for (const TreeEntry& entry : not_read.strange) CheckStrange(run, entry);
}

void CheckSizes(VerifyRun& run) {
  run.Ran(VerifyCheck::kSizes);
  CheckBeside(run);
  CheckList(run);
  CheckJournal(run);
  for (const VerifyFile& file : run.data) {
    if (!file.own && !file.foreign) {
      for (const VerifySlice& slice : file.slices) {
        if (!run.running() || &slice != &file.slices.back()) CheckDone(run, slice);
      }
    }
    CheckRow(run, file);
  }
}

}  // namespace profd
