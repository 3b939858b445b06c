// Reads the files of a dump into a Model.
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "driver/abi/channels.h"
#include "driver/records/lpm.h"
#include "dump/data_name.h"
#include "dump/mark_files.h"
#include "export/beside.h"
#include "export/fan_out.h"
#include "export/file_feeder.h"
#include "export/operators/framework_files.h"
#include "export/operators/model.h"
#include "export/operators/numbers.h"

namespace profd::exporting::operators {
namespace {

constexpr std::string_view kStars = "stars_soc.data";
constexpr std::string_view kCpu = "aicpu.data";
constexpr std::string_view kWaits = "DATA_PREPROCESS.AICPUMI";  // of earlier releases
constexpr std::string_view kHwts = "hwts.data";
constexpr std::string_view kAicore = "aicore.data";
constexpr std::string_view kCache = "l2_cache.data";
constexpr std::string_view kProfile = "ffts_profile.data";

// Chips with the HWTS scheduler, whose cube and vector units are one core (operator-data a.4).
bool HasHwts(int chip) { return chip >= 1 && chip <= 4; }

// Passes on what it is fed.
class Pipe : public Decoder {
 public:
  explicit Pipe(std::function<void(std::span<const std::byte>)> take) : take_(std::move(take)) {}
  void Feed(std::span<const std::byte> bytes, bool) override { take_(bytes); }
  void Finish() override {}

 private:
  std::function<void(std::span<const std::byte>)> take_;
};

// Reads the files of one place; one thread.
class Loader {
 public:
  Loader(const DumpReader& reader, const std::function<bool(uint64_t)>& progress)
      : reader_(reader), progress_(progress) {}

  // `counts`: of `records` and `bad_records`, what the reader of the file has counted so far.
  template <class Counts>
  void Read(const Place& place, const DataFile& file, size_t record_bytes, const Counts& counts,
            std::function<void(std::span<const std::byte>)> take) {
    const uint64_t records = counts.records;
    const uint64_t bad = counts.bad_records;
    FileFeeder feeder(reader_, record_bytes, &buffer_, progress_);
    Pipe pipe(std::move(take));
    feeder.Run(file, &pipe);
    report_.problems.insert(report_.problems.end(), feeder.problems().begin(), feeder.problems().end());
    LoadReport::File read;
    read.device = place.device;
    read.base = file.base;
    read.bytes = feeder.bytes();
    read.records = counts.records - records;
    read.bad_records = counts.bad_records - bad;
    read.bad_bytes = read.bad_records * record_bytes + feeder.bad_bytes();
    if (feeder.bad_bytes() > 0) ++read.bad_records;
    report_.files.push_back(std::move(read));
  }
  // One of FRAMEWORK, whose records have lengths of their own.
  void Read(const DataFile& file, FrameworkData* into) {
    const uint64_t records = into->records;
    const uint64_t bad = into->bad_records;
    const uint64_t bad_bytes = into->bad_bytes;
    into->Begin(file.base);
    FileFeeder feeder(reader_, 1, &buffer_, progress_);
    Pipe pipe([into](std::span<const std::byte> bytes) { into->Feed(bytes); });
    feeder.Run(file, &pipe);
    into->End();
    for (DumpInfo::Problem problem : feeder.problems()) {
      problem.file = InFramework(problem.file);
      report_.problems.push_back(std::move(problem));
    }
    report_.files.push_back({-1, InFramework(file.base), feeder.bytes(), into->records - records,
                             into->bad_records - bad, into->bad_bytes - bad_bytes});
  }
  // A file that a decoder of its own reads as well, and reports on.
  void Peek(const DataFile& file, size_t record_bytes, std::function<void(std::span<const std::byte>)> take) {
    FileFeeder feeder(reader_, record_bytes, &buffer_, [](uint64_t) { return true; });
    Pipe pipe(std::move(take));
    feeder.Run(file, &pipe);
  }
  void Problem(const Place& place, const DataFile& file, std::string what, bool broken) {
    Problem(place.dir + "/data/" + file.base, std::move(what), broken);
  }
  void Problem(std::string file, std::string what, bool broken) {
    report_.problems.push_back({std::move(file), std::move(what), broken});
  }
  static std::string InFramework(const std::string& file) { return fmt::format("{}/{}", kFrameworkFolder, file); }
  void AddTo(LoadReport* report) const {
    report->files.insert(report->files.end(), report_.files.begin(), report_.files.end());
    report->problems.insert(report->problems.end(), report_.problems.begin(), report_.problems.end());
  }

 private:
  const DumpReader& reader_;
  const std::function<bool(uint64_t)>& progress_;
  LoadReport report_;
  std::vector<std::byte> buffer_;
};

template <class Wants>
void ReadHost(Loader& loader, const Place& place, const Wants& wants, HostData* host) {
  for (const DataFile& file : place.files) {
    const std::optional<HostFile> known = HostFileOf(file.base);
    if (!known || !wants(known->kind)) continue;
    host->Expect(*known, file.bytes);
    std::byte last{'\n'};
    loader.Read(place, file, known->record_bytes, *host, [&](std::span<const std::byte> bytes) {
      host->Feed(*known, bytes);
      if (!bytes.empty()) last = bytes.back();
    });
    const bool has_lines = known->record_bytes == 0;
    if (has_lines && last != std::byte{'\n'}) loader.Problem(place, file, "its last line is cut off: that name may be short", true);
  }
}

void FinishHost(HostData descriptions, Model* model) {
  model->host.TakeDescriptions(std::move(descriptions));
  model->host.Finish();
  model->host_tasks = BuildHostTasks(&model->host, model->detailed);
}

std::unique_ptr<FrameworkData> ReadFramework(Loader& loader, const FrameworkFiles& found, const ClockMap& host,
                                             bool only_operators) {
  auto data = std::make_unique<FrameworkData>();
  for (const DumpInfo::Problem& problem : found.problems) loader.Problem(problem.file, problem.what, problem.broken);
  for (const DataFile& file : found.files) {
    if (only_operators && !FrameworkData::HasOperators(file.base)) continue;
    if (FrameworkData::IsFile(file.base)) {
      loader.Read(file, data.get());
    } else {
      loader.Problem(Loader::InFramework(file.base), "nothing here reads it: skipped", false);
    }
  }
  const auto first = std::ranges::min_element(data->operators, {}, &FrameworkOperator::begin);
  const bool are_counts =
      found.AreCounts(host, first == data->operators.end() ? std::nullopt : std::optional(first->begin));
  if (!found.timestamps && host.facts().host_hz > 0 && data->records > 0) {
    loader.Problem(std::string(kFrameworkFolder),
                   fmt::format("no {}*.json says what its timestamps are: taken for {}, by the begin of the collection",
                               kFrameworkInfo, are_counts ? "counts" : "ns"), false);
  }
  data->Finish(found.ClockOf(host, are_counts));
  const auto report = [&](uint64_t count, std::string_view what, bool broken) {
    if (count > 0) loader.Problem(std::string(kFrameworkFolder), fmt::format("{} {}", count, what), broken);
  };
  report(data->bad_times, "records with times before 1970: skipped", true);
  // Those of tasks on their way when the collection began or ended, too.
  report(data->unpaired_marks, "marks of the task queue without their begin or end: skipped", false);
  report(data->python.unpaired, "ends of Python's calls without their begin: skipped", false);
  report(data->left_out_texts, "strings are left out: there are too many", true);
  return data;
}

bool HasV6(const DumpInfo& info) {
  return std::ranges::any_of(info.places, [](const Place& place) {
    return place.kind == Place::Kind::kDevice && IsV6(place.chip);
  });
}

// The devices' records are packed by it.
bool HasWideStreams(Loader& loader, const Place& host) {
  HostData seen([](uint64_t) { return 0; }, 0, false);
  for (const DataFile& file : host.files) {
    const std::optional<HostFile> known = HostFileOf(file.base);
    if (!known || known->kind != HostFileKind::kStreamWidth) continue;
    loader.Peek(file, known->record_bytes, [&](std::span<const std::byte> bytes) { seen.Feed(*known, bytes); });
  }
  return seen.wide_streams;
}

using Frequencies = std::vector<std::pair<uint64_t, double>>;  // count of the device, MHz

// The channel's own decoder counts what is wrong in it.
void ReadFrequencies(Loader& loader, const DataFile& file, Frequencies* into) {
  const bool has_types = file.base == abi::kLpInfoFile;
  loader.Peek(file, records::LpmRecord::kSize, [&](std::span<const std::byte> bytes) {
    for (; bytes.size() >= records::LpmRecord::kSize; bytes = bytes.subspan(records::LpmRecord::kSize)) {
      const records::LpmRecord record(bytes.first(records::LpmRecord::kSize));
      if (record.count() > records::LpmRecord::kMaxEntries) continue;
      if (has_types && record.type() != records::LpmRecord::kFrequencyMhz) continue;
      for (uint32_t i = 0; i < record.count(); ++i) {
        const records::LpmEntry entry = record.entry(i);
        into->emplace_back(entry.device_count, entry.value);
      }
    }
  });
}

DevicePmu SetUp(const Place& place, Frequencies frequencies) {
  DevicePmu made;
  made.group = HasHwts(place.chip) ? PmuGroupOfOneCore(place.aicore_metrics, place.chip)
                                    : PmuGroupOf(place.aicore_metrics, place.aiv_metrics);
  made.consistent = HasHwts(place.chip) || (IsPmuGroup(place.aicore_metrics) && IsPmuGroup(place.aiv_metrics) &&
                                            place.aicore_events.size() == place.aiv_events.size());
  made.group.aic.SetEvents(place.aicore_events);
  made.group.aic.cores = place.ai_cores;
  made.group.aiv.SetEvents(place.aiv_events);
  made.group.aiv.cores = place.aiv_cores;
  made.mhz = static_cast<double>(place.aicore_mhz);
  std::ranges::stable_sort(frequencies, {}, &std::pair<uint64_t, double>::first);
  // One that is 0 means that the chip does not report them.
  const bool any_zero = std::ranges::any_of(frequencies, [](const auto& change) { return change.second == 0; });
  if (!any_zero) made.clock = std::move(frequencies);
  return made;
}

// What one device has recorded.
struct Device {
  Device(const Place& its_place, bool wide_streams) : place(&its_place), ran(wide_streams, IsV6(its_place.chip)) {}
  const Place* place;
  DeviceTasks ran;
  CpuRecords cpu;
  const DataFile* stars = nullptr;  // or hwts; null: no tasks
  const DataFile* counters = nullptr;
  Frequencies frequencies;
};

void ReadDevice(Loader& loader, bool details, Device* device) {
  DeviceTasks& ran = device->ran;
  for (const DataFile& file : device->place->files) {
    if (!details && IsDetailFile(*device->place, file.base)) continue;
    const auto read = [&](size_t record_bytes, auto& into, auto feed) {
      loader.Read(*device->place, file, record_bytes, into, [&into, feed](std::span<const std::byte> bytes) { (into.*feed)(bytes); });
    };
    if (file.base == kStars || file.base == kHwts) {
      device->stars = &file;
      ran.ExpectStars(file.bytes);
      file.base == kStars ? read(ran.StarsRecordBytes(), ran, &DeviceTasks::FeedStars) : read(kHwtsRecordBytes, ran, &DeviceTasks::FeedHwts);
    } else if (file.base == kStepTraceFile && !IsV6(device->place->chip)) {  // numbers of tasks do not wrap there
      loader.Peek(file, kTsTrackRecordBytes, [&](std::span<const std::byte> bytes) { ran.FeedTsTrack(bytes); });
    } else if (file.base == kProfile && IsOperatorFile(*device->place, file.base) && IsV6(device->place->chip)) {
      loader.Problem(*device->place, file, "counters of this chip's tasks are not read: skipped", false);
    } else if ((file.base == kAicore || file.base == kProfile) && IsOperatorFile(*device->place, file.base)) {
      device->counters = &file;
      ran.ExpectProfile(file.bytes);
      read(kProfileRecordBytes, ran, file.base == kAicore ? &DeviceTasks::FeedAicore : &DeviceTasks::FeedProfile);
    } else if (file.base == kCache) {
      read(kCacheRecordBytes, ran, &DeviceTasks::FeedCache);
    } else if (file.base == kCpu) {
      read(kCpuRecordBytes, device->cpu, &CpuRecords::Feed);
    } else if (file.base == kWaits) {
      loader.Read(*device->place, file, 1, device->cpu, [&](std::span<const std::byte> bytes) {
        device->cpu.FeedWaits({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
      });
      const uint64_t bad = device->cpu.bad_records;
      device->cpu.EndWaits();
      if (device->cpu.bad_records > bad) loader.Problem(*device->place, file, "its last text is cut off: skipped", true);
    } else if (file.base == abi::kLpInfoFile || file.base == records::kLpmFormat.file) {
      ReadFrequencies(loader, file, &device->frequencies);
    }
  }
  if (device->stars != nullptr) ran.Finish();
}

// An operator's row takes a task of the device, of the host and, but at level 0, a description (operator-data b.1). The
// runtime leaves the first two out where another profiler has taken its records or the device's channels.
void ReportMissingParts(Loader& loader, const std::vector<Device>& devices, const Model& model) {
  const Large<HostTask>& tasks = model.host_tasks.tasks;
  const auto host_has_no = [&loader](std::string_view what) {
    loader.Problem(std::string(kHostFolder), fmt::format("has no {}", what), false);
  };
  for (const Device& device : devices) {
    const int number = device.place->device;
    const bool is_launched = std::ranges::find(tasks, number, &HostTask::device) != tasks.end();
    if (is_launched && device.stars == nullptr) {
      loader.Problem(device.place->dir, fmt::format("has no {}: when its tasks ran is not known, and its operators are left out",
                                                    HasHwts(device.place->chip) ? kHwts : kStars), false);
    }
    if (!is_launched && !device.ran.tasks.empty()) {
      host_has_no(fmt::format("compact.task_track of device {}: its tasks have no names, and its operators are left out", number));
    }
  }
  const bool needs_nodes = model.detailed && model.host.RecordsOf(HostFileKind::kNode) == 0 &&
                           std::ranges::any_of(tasks, [&model](const HostTask& task) {
                             return task.launch >= 0 && CoreOfKernel(RuntimeTypeName(model.host, task.type)) >= 0;
                           });
  if (needs_nodes) host_has_no("compact.node_basic_info: operators that calls launched are left out");
}

void JoinDevice(Loader& loader, const ClockMap& clock, Device device, Model* model) {
  if (device.cpu.records > 0) {
    model->cpu[device.place->device] = {std::move(device.cpu),
                                        [clock](uint64_t count) { return clock.DeviceTask(count).ns; },
                                        [clock](uint64_t ns) { return clock.HostNs(static_cast<int64_t>(ns)); }};
  }
  if (!device.ran.cache.empty()) {
    model->cache[device.place->device] = {std::move(device.ran.cache), device.place->l2_events, device.place->chip};
  }
  if (device.stars == nullptr) return;
  const uint64_t ambiguous = model->ambiguous;
  const uint64_t impossible = model->impossible;
  const uint64_t unplaced = model->unplaced;
  const uint64_t stray = model->stray_counters;
  const uint64_t unpaired = device.ran.unpaired;
  model->Join(device.place->device, std::move(device.ran), [&clock](uint64_t count) { return clock.DeviceTask(count); },
              clock.facts().begin_us * 1000, SetUp(*device.place, std::move(device.frequencies)));
  const auto problem = [&](const DataFile* file, uint64_t tasks, std::string_view what, bool broken) {
    if (tasks > 0) loader.Problem(*device.place, *file, fmt::format("{} {}", tasks, what), broken);
  };
  // Those that ran when the collection began or ended, too.
  problem(device.stars, unpaired, "tasks without their start or end: skipped", false);
  problem(device.counters, model->stray_counters - stray, "counters of no known task: skipped", false);
  // No damage where the collection began between the host's flip and the device's.
  problem(device.stars, model->unplaced - unplaced,
          fmt::format("tasks have no launch: flips of their streams' task ids are missing, in {} or the host's task_track", kStepTraceFile), false);
  problem(device.stars, model->impossible - impossible, "tasks with impossible times are left out", true);
  problem(device.stars, model->ambiguous - ambiguous, "tasks with the ids of several launches are left out", true);
}

}  // namespace

bool IsOperatorFile(const Place& place, std::string_view base) {
  if (place.kind == Place::Kind::kHost) return HostFileOf(base).has_value();
  if (place.kind != Place::Kind::kDevice) return false;
  if (base == kStars || base == kHwts || base == kCpu || base == kCache || base == kWaits) return true;
  // Sampled counters are a channel's.
  return place.aicore_mode != "sample-based" && (base == kProfile || (base == kAicore && HasHwts(place.chip)));
}

bool IsDetailFile(const Place& place, std::string_view base) {
  if (place.kind == Place::Kind::kDevice) return base == kProfile || base == kAicore;
  const std::optional<HostFile> file = HostFileOf(base);
  return file && file->kind == HostFileKind::kTensors;
}

std::shared_ptr<const HostData> LoadNames(const DumpReader& reader, const DumpInfo& info) {
  const Place* host = info.Find(Place::Kind::kHost, -1);
  if (host == nullptr) return nullptr;
  const std::function<bool(uint64_t)> on = [](uint64_t) { return true; };
  Loader loader(reader, on);
  auto names = std::make_shared<HostData>([](uint64_t) { return 0; }, 0, false);
  for (const DataFile& file : host->files) {
    const std::optional<HostFile> known = HostFileOf(file.base);
    if (!known || known->kind != HostFileKind::kHashes) continue;
    loader.Peek(file, known->record_bytes, [&](std::span<const std::byte> bytes) { names->Feed(*known, bytes); });
  }
  return names;
}

std::unique_ptr<Model> LoadModel(const LoadRequest& request, LoadReport* report) {
  // What devices ran is there without the host, too.
  const Place* host = request.info.ClockPlace();
  if (host == nullptr) return nullptr;
  const auto has_records = [](const Place& place) {
    return std::ranges::any_of(place.files, [&](const DataFile& file) { return IsOperatorFile(place, file.base); });
  };
  const std::optional<FrameworkFiles> framework = FindFramework(request.info.path);
  if (!framework && (request.only_framework || std::ranges::none_of(request.info.places, has_records))) return nullptr;
  const ClockMap clock = request.clock_of(*host);
  HostData records([clock](uint64_t count) { return clock.HostRecord(count); }, clock.facts().begin_us * 1000,
                   request.runtime_apis);
  auto model = std::make_unique<Model>(std::move(records), host->prof_level != "l0" && host->prof_level != "level0");
  model->host.unique_tasks = HasV6(request.info);
  model->host.counted = request.filter.window;
  Loader host_loader(request.reader, request.progress);
  Loader description_loader(request.reader, request.progress);
  Loader device_loader(request.reader, request.progress);
  // It is not among the bytes that progress is counted in.
  const std::function<bool(uint64_t)> goes_on = [&request](uint64_t) { return request.progress(0); };
  Loader framework_loader(framework ? framework->reader : request.reader, goes_on);
  if (request.only_framework) {
    model->framework = ReadFramework(framework_loader, *framework, clock, true);
    return model;
  }
  const bool wide_streams = HasWideStreams(host_loader, *host);
  std::vector<Device> devices;
  for (const Place& place : request.info.places) {
    if (place.kind != Place::Kind::kDevice || !request.filter.HasDevice(place.device)) continue;
    devices.emplace_back(place, wide_streams);
  }
  HostData descriptions([](uint64_t) { return 0; }, 0, false);
  // Records that stand alone are read beside the others, so that each thread has about as much: tensors are half of all
  // bytes.
  const auto is_beside = [&request](HostFileKind kind) { return kind == (request.details ? HostFileKind::kTensors : HostFileKind::kNode); };
  const auto is_main = [&](HostFileKind kind) { return kind != HostFileKind::kTensors && !is_beside(kind); };
  RunBeside(framework ? 3 : 2, [&](size_t part) {
    if (part == 0) return ReadHost(host_loader, *host, is_main, &model->host);
    if (part == 2) return void(model->framework = ReadFramework(framework_loader, *framework, clock, false));
    for (Device& device : devices) ReadDevice(device_loader, request.details, &device);
    ReadHost(description_loader, *host, is_beside, &descriptions);
  });
  RunBeside(2, [&](size_t part) {
    if (part == 0) return FinishHost(std::move(descriptions), model.get());
    for (Device& device : devices) device.ran.MatchCounters();
  });
  model->TieFramework();
  ReportMissingParts(host_loader, devices, *model);
  for (Device& device : devices) {
    const ClockMap device_clock = request.clock_of(*device.place);
    JoinDevice(device_loader, device_clock, std::move(device), model.get());
  }
  model->marks = LoadDeviceMarks(request.reader, request.info, request.clock_of);
  std::erase_if(model->marks, [&request](const DeviceMark& mark) { return !request.filter.HasDevice(mark.device); });
  NameDeviceMarks(request.reader, request.info, &model->marks);
  for (Loader* loader : {&host_loader, &description_loader, &device_loader, &framework_loader}) loader->AddTo(report);
  model->KeepOnly(request.filter.window);
  if (request.longest > 0) model->KeepLongest(request.longest);
  return model;
}

}  // namespace profd::exporting::operators
