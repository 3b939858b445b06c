#include "export/dump_info.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/text.h"
#include "dump/activity_files.h"
#include "dump/data_name.h"
#include "dump/dump_io.h"
#include "dump/slice_journal.h"
#include "export/control_reader.h"
#include "export/slice_sizes.h"

namespace profd::exporting {
namespace {

constexpr size_t kMaxControlBytes = 4u << 20;
constexpr size_t kMaxProblems = 1000;

std::string NameOf(const std::string& path) {
  std::error_code error;
  std::filesystem::path real = std::filesystem::canonical(path, error);
  std::string name = (error ? std::filesystem::path(path) : real).filename().string();
  return name.empty() ? path : name;
}

// What the analyser itself puts beside the data.
bool IsProduct(std::string_view path) {
  for (std::string_view dir : {"mindstudio_profiler_output/", "mindstudio_profiler_log/",
                               "summary/", "timeline/", "analyze/", "msprof_", "msprofDB_"}) {
    if (path.starts_with(dir)) return true;
  }
  return path.find("/sqlite/") != std::string_view::npos || path.starts_with("sqlite/");
}

bool IsOfFramework(std::string_view path) {
  return path.substr(0, path.find('/')) == kFrameworkFolder || path == "profiler_metadata.json" ||
         (path.starts_with(kFrameworkInfo) && path.ends_with(".json"));
}

// Fills a DumpInfo from the files of a directory.
class Scan {
 public:
  Scan(const DumpReader& reader, DumpInfo* info) : reader_(reader), info_(*info) {}

  Status Run();

 private:
  using Kind = Place::Kind;

  void Take(const DumpReader::File& file);
  Place* PlaceOf(std::string_view dir);
  void TakeActivityNames(const std::string& path);
  void TakeData(Place* place, std::string_view name, const DumpReader::File& file);
  void TakeControl(Place* place, std::string_view name, const std::string& path);
  void AddSlice(Place* place, std::string base, DataFile::Slice slice);
  void SortSlices(Place* place);
  void Complete(Place* place);
  void FromManifest(Place* place);
  void ClockPairs(Place* place) const;
  void Lacking(const Place& place, bool has_begin, bool has_cpu);
  void Problem(std::string file, std::string what, bool broken);

  const DumpReader& reader_;
  DumpInfo& info_;
};

void Scan::Problem(std::string file, std::string what, bool broken) {
  if (info_.problems.size() < kMaxProblems) {
    info_.problems.push_back({std::move(file), std::move(what), broken});
  }
}

Place* Scan::PlaceOf(std::string_view dir) {
  Place wanted;
  wanted.dir = dir;
  if (dir == kOwnPrefix.substr(0, kOwnPrefix.size() - 1)) {
    wanted.kind = Kind::kOwn;
  } else if (dir.starts_with("device_")) {
    wanted.kind = Kind::kDevice;
    if (!ParseNumber(dir.substr(7), &wanted.device) || wanted.device < 0) return nullptr;
  } else if (dir != "host") {
    return nullptr;
  }
  for (Place& place : info_.places) {
    if (place.dir == dir) return &place;
  }
  return &info_.places.emplace_back(std::move(wanted));
}

void Scan::AddSlice(Place* place, std::string base, DataFile::Slice slice) {
  auto it = std::ranges::find(place->files, base, &DataFile::base);
  if (it == place->files.end()) {
    place->files.push_back({std::move(base), {}, 0});
    it = std::prev(place->files.end());
  }
  it->slices.push_back(std::move(slice));
}

void Scan::TakeData(Place* place, std::string_view name, const DumpReader::File& file) {
  if (IsNoteName(name) || file.bytes == 0) return;
  std::optional<DataName> parsed = ParseDataName(name);
  if (!parsed && place->kind == Kind::kOwn) {
    parsed = DataName{std::string(name), -1, 0, name.ends_with(".zst")};
    if (parsed->compressed) parsed->base.resize(name.size() - 4);
  }
  if (!parsed) return Problem(file.path, "no data file's name", false);
  if (place->kind == Kind::kDevice && parsed->device >= 0 && parsed->device != place->device) {
    return Problem(file.path, fmt::format("of device {}, not {}", parsed->device, place->device),
                   false);
  }
  AddSlice(place, parsed->base, {file.path, file.bytes, parsed->slice, parsed->compressed});
}

void Scan::TakeActivityNames(const std::string& path) {
  Result<UniqueFd> fd = reader_.OpenFile(path);
  Status status = fd.ok() ? info_.activity_names.Load(fd->get()) : fd.status();
  if (!status.ok()) Problem(path, status.message(), true);
}

void Scan::TakeControl(Place* place, std::string_view name, const std::string& path) {
  using Read = void (ControlReader::*)(const std::string&, std::string_view);
  struct Control {
    std::string_view name;
    Read read;
  };
  static constexpr Control kControls[] = {
      {"info.json", &ControlReader::InfoJson},       {"sample.json", &ControlReader::SampleJson},
      {"start_info", &ControlReader::StartInfo},     {"end_info", &ControlReader::EndInfo},
      {"host_start.log", &ControlReader::HostStart}, {"dev_start.log", &ControlReader::DevStart},
  };
  if (IsNoteName(name)) return;
  for (const Control& control : kControls) {
    if (!name.starts_with(control.name)) continue;
    std::string_view rest = name.substr(control.name.size());
    if (!rest.empty() && rest.front() != '.') continue;
    Result<UniqueFd> fd = reader_.OpenFile(path);
    Result<std::string> text =
        fd.ok() ? ReadWhole(fd->get(), kMaxControlBytes) : Result<std::string>(fd.status());
    if (!text.ok()) return Problem(path, text.status().message(), true);
    ControlReader reader{&info_, place, &info_.problems};
    return (reader.*control.read)(path, *text);
  }
  Problem(path, "not known", false);
}

void Scan::Take(const DumpReader::File& file) {
  std::string_view path = file.path;
  if (path == kManifestFile || path == kJournalFile || IsProduct(path) || IsNoteName(path)) return;
  if (IsOfFramework(path)) return;  // read with the operators
  const size_t slash = OwnFileName(path).empty() ? path.find('/') : kOwnPrefix.size() - 1;
  Place* place = slash == std::string_view::npos ? nullptr : PlaceOf(path.substr(0, slash));
  if (place == nullptr) return Problem(file.path, "not known", false);
  std::string_view name = path.substr(slash + 1);
  if (place->kind != Kind::kOwn) {
    if (name.find('/') == std::string_view::npos) return TakeControl(place, name, file.path);
    if (!name.starts_with("data/")) return Problem(file.path, "not known", false);
    name.remove_prefix(5);
  }
  if (name.find('/') != std::string_view::npos) return Problem(file.path, "not known", false);
  if (place->kind == Kind::kOwn && name == kActivityNamesFile) return TakeActivityNames(file.path);
  TakeData(place, name, file);
}

void Scan::SortSlices(Place* place) {
  std::ranges::sort(place->files, {}, &DataFile::base);
  for (DataFile& file : place->files) {
    std::ranges::sort(file.slices, [](const DataFile::Slice& a, const DataFile::Slice& b) {
      return std::tie(a.number, a.compressed, a.path) < std::tie(b.number, b.compressed, b.path);
    });
    // The plain one stays while its compressed one is being made.
    std::vector<DataFile::Slice> once;
    for (DataFile::Slice& slice : file.slices) {
      if (once.empty() || once.back().number != slice.number) {
        file.bytes += slice.bytes;
        once.push_back(std::move(slice));
      } else if (!slice.compressed) {
        Problem(slice.path, "a slice of this number is there already", false);
      }
    }
    file.slices = std::move(once);
    info_.bytes += file.bytes;
  }
}

// The manifest repeats most of the control files.
void Scan::FromManifest(Place* place) {
  if (!info_.manifest) return;
  const Manifest& manifest = *info_.manifest;
  ClockFacts& clock = place->clock;
  if (clock.begin_us == 0) {
    clock.begin_us = manifest.start_wall_ns / 1000;
    clock.begin_raw_ns = manifest.start_raw_ns;
  }
  if (clock.end_us == 0) {
    clock.end_us = manifest.end_wall_ns / 1000;
    clock.end_raw_ns = manifest.end_raw_ns;
  }
  clock.stop_raw_ns = manifest.stop_raw_ns;
  if (!place->has_cpu && manifest.host_counter_hz > 0) {
    clock.host_hz = manifest.host_counter_hz;
    place->has_cpu = true;
  }
  ClockPairs(place);
  if (place->kind != Kind::kDevice) return;
  for (const ManifestDevice& device : manifest.devices) {
    if (device.id != place->device) continue;
    if (place->chip < 0) place->chip = device.chip_id;
    if (clock.device_hz <= 0) clock.device_hz = device.counter_hz;
    if (place->aicore_mhz == 0) place->aicore_mhz = device.aicore_mhz;
  }
  for (const ManifestClock& pair : manifest.clocks) {
    if (pair.device != place->device || pair.when != "start") continue;
    if (clock.host_ns == 0) {
      clock.host_ns = pair.clocks.host_ns;
      clock.host_count = pair.clocks.host_count;
    }
    if (clock.device_ns == 0 && clock.device_count == 0) {
      clock.device_ns = pair.clocks.device_ns;
      clock.device_count = pair.clocks.device_count;
    }
  }
}

// `has_begin`, `has_cpu`: in its own files.
void Scan::Lacking(const Place& place, bool has_begin, bool has_cpu) {
  const ClockFacts& clock = place.clock;
  auto lacks = [&](const char* what) { Problem(place.dir, what, true); };
  if (clock.begin_us == 0) lacks("no start_info: times are since the host's boot");
  if (place.kind == Kind::kOwn || place.files.empty()) return;
  // The start is two clocks read one after the other, by each device for itself.
  auto takes = [&](const char* what) { Problem(place.dir, what, false); };
  if (!has_begin && clock.begin_us != 0) takes("no start_info: that of another place, some us off, is used");
  if (!has_cpu && place.has_cpu) takes("no CPU frequency in info.json: the host counter's frequency of another place is used");
  if (!place.has_cpu && place.kind == Kind::kHost) lacks("no CPU frequency in any info.json: the host's counter is taken for ns");
  if (place.chip < 0) lacks("no info.json: the chip is not known");
  if (clock.host_ns == 0) lacks("no host_start.log: counters have no time");
  if (place.kind != Kind::kDevice) return;
  if (clock.device_ns == 0 && clock.device_count == 0) {
    lacks("no dev_start.log: the device's clock has no time");
  }
  if (clock.device_hz <= 0) lacks("no hwts_frequency: the device's counter has no time");
  constexpr std::array<std::string_view, 4> kCounters = {"ffts_profile.data", "aicore.data", "aiVectorCore.data", "l2_cache.data"};
  const auto counts = [&](const DataFile& file) { return std::ranges::find(kCounters, file.base) != kCounters.end(); };
  if (!place.has_sample && std::ranges::any_of(place.files, counts)) lacks("no sample.json: what its cores counted is not known");
}

void Scan::ClockPairs(Place* place) const {
  for (const ManifestClock& pair : info_.manifest->clocks) {
    DumpClocks clocks = pair.clocks;
    if (place->kind != Kind::kDevice) {
      clocks.device_ns = 0;
      clocks.device_count = 0;
    } else if (pair.device != place->device) {
      continue;
    }
    place->clock_pairs.push_back(clocks);
  }
  std::ranges::stable_sort(place->clock_pairs, {}, &DumpClocks::host_ns);
}

// What a place lacks may be in the manifest or in another place.
void Scan::Complete(Place* place) {
  const bool has_begin = place->clock.begin_us != 0;
  const bool has_cpu = place->has_cpu;
  FromManifest(place);
  for (const Place& other : info_.places) {
    if (place->clock.begin_us == 0 && other.clock.begin_us != 0) {
      place->clock.begin_us = other.clock.begin_us;
      place->clock.begin_raw_ns = other.clock.begin_raw_ns;
    }
    if (place->clock.end_us == 0 && other.clock.end_us != 0) {
      place->clock.end_us = other.clock.end_us;
      place->clock.end_raw_ns = other.clock.end_raw_ns;
    }
    if (!place->has_cpu && other.has_cpu) {
      place->clock.host_hz = other.clock.host_hz;
      place->has_cpu = true;
    }
    // Any pair of the host's clocks does for its own counter; a device's clock needs the one that was read with it.
    if (place->kind == Kind::kHost && place->clock.host_ns == 0 && other.clock.host_ns != 0) {
      place->clock.host_ns = other.clock.host_ns;
      place->clock.host_count = other.clock.host_count;
      place->clock.host_count_diff = other.clock.host_count_diff;
    }
    if (place->chip < 0 && other.chip >= 0 && place->kind != Kind::kOwn) place->chip = other.chip;
  }
  if (place->kind == Kind::kDevice && info_.chip < 0) info_.chip = place->chip;
  if (info_.manifest) {  // without one the arithmetic is the vendor's
    ClockFacts& clock = place->clock;
    auto ns = [](int64_t us) { return static_cast<int64_t>(static_cast<uint64_t>(us) * 1000); };
    clock.end_us = EndByClockOfStart(ns(clock.begin_us), ns(clock.end_us), clock.begin_raw_ns, clock.end_raw_ns) / 1000;
  }
  Lacking(*place, has_begin, has_cpu);
}

Status Scan::Run() {
  DumpReader::NotRead not_read;
  Result<std::vector<DumpReader::File>> files = reader_.Files(&not_read);
  if (!files.ok()) return files.status();
  if (not_read.files > 0) Problem(not_read.first, not_read.What(), true);
  Result<Manifest> manifest = reader_.ReadManifest();
  if (manifest.ok()) {
    info_.manifest = std::move(*manifest);
    info_.job_id = info_.manifest->job_id;
    info_.rank = info_.manifest->rank;
    info_.hostname = info_.manifest->hostname;
    Manifest& times = *info_.manifest;
    times.end_wall_ns = EndByClockOfStart(times.start_wall_ns, times.end_wall_ns, times.start_raw_ns, times.end_raw_ns);
  } else if (manifest.status().code() != StatusCode::kNotFound) {
    Problem(std::string(kManifestFile), manifest.status().message(), true);
  }
  for (const DumpReader::File& file : *files) Take(file);
  if (info_.places.empty()) {
    std::string what = "no dump: it has no file in host/ or device_<N>/";
    if (not_read.files > 0) what += fmt::format("; {}: {}", not_read.first, not_read.What());
    return InvalidArgument(std::move(what));
  }
  if (info_.pid == 0 && info_.manifest) info_.pid = info_.manifest->pid;
  std::ranges::sort(info_.places, [](const Place& a, const Place& b) {
    return std::pair(a.kind, a.device) < std::pair(b.kind, b.device);
  });
  for (Place& place : info_.places) {
    SortSlices(&place);
    Complete(&place);
  }
  for (auto& [channel, what] : CompareSizes(reader_, *files, &info_)) Problem(channel, std::move(what), true);
  if (info_.chip < 0) info_.chip = info_.places.front().chip;
  return Status::Ok();
}

}  // namespace

const Place* DumpInfo::Find(Place::Kind kind, int device) const {
  for (const Place& place : places) {
    if (place.kind == kind && (kind != Place::Kind::kDevice || place.device == device)) {
      return &place;
    }
  }
  return nullptr;
}

const Place* DumpInfo::ClockPlace() const {
  if (const Place* host = Find(Place::Kind::kHost, -1)) return host;
  const auto device = std::ranges::find(places, Place::Kind::kDevice, &Place::kind);
  return device == places.end() ? nullptr : &*device;
}

std::vector<int> DumpInfo::RanksOf(int device) const {
  std::vector<int> ranks;
  if (rank) return {*rank};
  if (!manifest) return ranks;
  for (const ManifestProcess& process : manifest->processes) {
    const bool has = device < 0 || std::ranges::find(process.devices, device) != process.devices.end();
    if (has && process.rank) ranks.push_back(*process.rank);
  }
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

bool AreOfOneSession(const DumpInfo& one, const DumpInfo& other) {
  if (&one == &other) return true;
  return one.manifest && other.manifest && !one.manifest->session_id.empty() &&
         one.manifest->session_id == other.manifest->session_id && one.hostname == other.hostname;
}

std::optional<int> DumpInfo::RankOf(int device) const {
  const std::vector<int> ranks = RanksOf(device);
  return ranks.size() == 1 ? std::optional(ranks.front()) : std::nullopt;
}

bool DumpInfo::HasRankOf(const std::set<int>& wanted) const {
  return wanted.empty() || std::ranges::any_of(RanksOf(-1), [&](int each) { return wanted.contains(each); });
}

std::string DumpInfo::ProcessName(int64_t of, std::optional<int> rank_of) const {
  std::string text;
  if (manifest) {
    auto process = std::ranges::find(manifest->processes, of, &ManifestProcess::pid);
    if (process != manifest->processes.end()) {
      text = process->command.empty() ? "" : process->command + ", ";
      if (!rank_of) rank_of = process->rank;
    }
  }
  if (!rank_of) rank_of = rank;
  if (rank_of) text = fmt::format("rank {}, {}", *rank_of, text);
  return fmt::format("{}pid {}", text, of);
}

namespace {

// torch_npu and MindSpore leave `profiler_info_<rank>.json` beside the vendor's directory. None, or several: not known.
std::optional<int> RankBeside(const std::string& path) {
  namespace fs = std::filesystem;
  constexpr std::string_view kBegin = "profiler_info_";
  constexpr std::string_view kEnd = ".json";
  std::error_code error;
  fs::directory_iterator it(fs::canonical(path, error).parent_path(), error);
  std::optional<int> rank;
  for (const fs::directory_iterator end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with(kBegin) || !name.ends_with(kEnd) || name.size() <= kBegin.size() + kEnd.size()) continue;
    int number = -1;
    if (!ParseNumber(std::string_view(name).substr(kBegin.size(), name.size() - kBegin.size() - kEnd.size()), &number) ||
        number < 0) {
      continue;
    }
    if (rank) return std::nullopt;
    rank = number;
  }
  return rank;
}

}  // namespace

void Dump::TakeRank(int rank) {
  if (info_.RanksOf(-1).empty()) info_.rank = rank;
}

void ShareRanks(std::vector<Dump>* dumps) {
  for (const Dump& from : *dumps) {
    if (!from.info().manifest) continue;
    for (const ManifestProcessFiles& files : from.info().manifest->process_files) {
      if (!files.rank || files.layout != "beside") continue;
      for (Dump& dump : *dumps) {
        if (dump.info().name == files.directory) dump.TakeRank(*files.rank);
      }
    }
  }
}

void Dump::MoveClock(int64_t ahead_ns) {
  for (Place& place : info_.places) {
    for (int64_t* us : {&place.clock.begin_us, &place.clock.end_us}) {
      if (*us != 0) *us -= ahead_ns / 1000;
    }
  }
}

Result<Dump> Dump::Open(const std::string& path) {
  Result<DumpReader> reader = DumpReader::OpenPath(path);
  if (!reader.ok()) return reader.status();
  DumpInfo info;
  info.path = path;
  info.name = NameOf(path);
  Status scanned = Scan(*reader, &info).Run();
  if (!scanned.ok()) return scanned.Annotate(path);
  Dump dump(std::move(*reader), std::move(info));
  if (const std::optional<int> rank = RankBeside(path)) dump.TakeRank(*rank);
  return dump;
}

}  // namespace profd::exporting
