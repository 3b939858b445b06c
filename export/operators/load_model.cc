// Reads the files of a dump into a Model.
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "driver/abi/channels.h"
#include "driver/records/lpm.h"
#include "export/file_feeder.h"
#include "export/operators/model.h"

namespace profd::exporting::operators {
namespace {

constexpr std::string_view kStars = "stars_soc.data";
constexpr std::string_view kTsTrack = "ts_track.data";
constexpr std::string_view kProfile = "ffts_profile.data";

// Passes on what it is fed.
class Pipe : public Decoder {
 public:
  explicit Pipe(std::function<void(std::span<const std::byte>)> take) : take_(std::move(take)) {}
  void Feed(std::span<const std::byte> bytes, bool) override { take_(bytes); }
  void Finish() override {}

 private:
  std::function<void(std::span<const std::byte>)> take_;
};

class Loader {
 public:
  Loader(const DumpReader& reader, const std::function<bool(uint64_t)>& progress,
         LoadReport* report)
      : reader_(reader), progress_(progress), report_(report) {}

  // `counts`: of `records` and `bad_records`, what the reader of the file has counted so far.
  template <class Counts>
  void Read(const Place& place, const DataFile& file, size_t record_bytes, const Counts& counts,
            std::function<void(std::span<const std::byte>)> take) {
    const uint64_t records = counts.records;
    const uint64_t bad = counts.bad_records;
    FileFeeder feeder(reader_, record_bytes, &buffer_, progress_);
    Pipe pipe(std::move(take));
    feeder.Run(file, &pipe);
    report_->problems.insert(report_->problems.end(), feeder.problems().begin(), feeder.problems().end());
    LoadReport::File read{&place, &file, feeder.bytes(), counts.records - records, counts.bad_records - bad, 0};
    read.bad_bytes = read.bad_records * record_bytes + feeder.bad_bytes();
    if (feeder.bad_bytes() > 0) ++read.bad_records;
    report_->files.push_back(read);
  }
  // A file that a decoder of its own reads as well, and reports on.
  void Peek(const DataFile& file, size_t record_bytes, std::function<void(std::span<const std::byte>)> take) {
    FileFeeder feeder(reader_, record_bytes, &buffer_, [](uint64_t) { return true; });
    Pipe pipe(std::move(take));
    feeder.Run(file, &pipe);
  }
  void Problem(const Place& place, const DataFile& file, std::string what) {
    report_->problems.push_back({place.dir + "/data/" + file.base, std::move(what), true});
  }

 private:
  const DumpReader& reader_;
  const std::function<bool(uint64_t)>& progress_;
  LoadReport* report_;
  std::vector<std::byte> buffer_;
};

void ReadHost(Loader& loader, const Place& place, Model* model) {
  for (const DataFile& file : place.files) {
    const std::optional<HostFile> known = HostFileOf(file.base);
    if (!known) continue;
    loader.Read(place, file, known->record_bytes, model->host,
                [&](std::span<const std::byte> bytes) { model->host.Feed(*known, bytes); });
  }
  model->host.Finish();
  model->host_tasks = BuildHostTasks(model->host, model->detailed);
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
  made.group = PmuGroupOf(place.aicore_metrics, place.aiv_metrics);
  made.group.aic.events = place.aicore_events;
  made.group.aic.cores = place.ai_cores;
  made.group.aiv.events = place.aiv_events;
  made.group.aiv.cores = place.aiv_cores;
  made.mhz = static_cast<double>(place.aicore_mhz);
  std::ranges::stable_sort(frequencies, {}, &std::pair<uint64_t, double>::first);
  // One that is 0 says that the chip does not report them.
  const bool any_zero = std::ranges::any_of(frequencies, [](const auto& change) { return change.second == 0; });
  if (!any_zero) made.clock = std::move(frequencies);
  return made;
}

void ReadDevice(Loader& loader, const Place& place, const ClockMap& clock, Model* model) {
  DeviceTasks ran(model->host.wide_streams);
  const DataFile* stars = nullptr;
  Frequencies frequencies;
  for (const DataFile& file : place.files) {
    if (file.base == kStars) {
      stars = &file;
      loader.Read(place, file, kStarsRecordBytes, ran, [&](std::span<const std::byte> bytes) { ran.FeedStars(bytes); });
    } else if (file.base == kTsTrack) {
      loader.Read(place, file, kTsTrackRecordBytes, ran,
                  [&](std::span<const std::byte> bytes) { ran.FeedTsTrack(bytes); });
    } else if (file.base == kProfile && IsOperatorFile(place, file.base)) {
      loader.Read(place, file, kProfileRecordBytes, ran,
                  [&](std::span<const std::byte> bytes) { ran.FeedProfile(bytes); });
    } else if (file.base == abi::kLpInfoFile || file.base == records::kLpmFormat.file) {
      ReadFrequencies(loader, file, &frequencies);
    }
  }
  if (stars == nullptr) return;
  ran.Finish();
  const uint64_t ambiguous = model->ambiguous;
  model->Join(place.device, ran, [&clock](uint64_t count) { return clock.DeviceTask(count); },
              clock.facts().begin_us * 1000);
  if (!ran.pmu.empty()) model->JoinPmu(place.device, ran, SetUp(place, std::move(frequencies)));
  if (ran.unpaired > 0) {
    loader.Problem(place, *stars, fmt::format("{} tasks without their start or end", ran.unpaired));
  }
  if (model->ambiguous > ambiguous) {
    loader.Problem(place, *stars, fmt::format("{} tasks with the ids of several launches are left out",
                                              model->ambiguous - ambiguous));
  }
}

}  // namespace

bool IsOperatorFile(const Place& place, std::string_view base) {
  if (place.kind == Place::Kind::kHost) return HostFileOf(base).has_value();
  // Sampled counters are a channel's.
  return place.kind == Place::Kind::kDevice &&
         (base == kStars || (base == kProfile && place.aicore_mode == "task-based"));
}

std::unique_ptr<Model> LoadModel(const DumpReader& reader, const DumpInfo& info,
                                 const std::function<ClockMap(const Place&)>& clock_of,
                                 const std::function<bool(uint64_t)>& progress,
                                 LoadReport* report) {
  const Place* host = info.Find(Place::Kind::kHost, -1);
  if (host == nullptr) return nullptr;
  const auto has_records = [](const Place& place) {
    return std::ranges::any_of(place.files, [&](const DataFile& file) { return IsOperatorFile(place, file.base); });
  };
  if (std::ranges::none_of(info.places, has_records)) return nullptr;
  const ClockMap clock = clock_of(*host);
  auto model = std::make_unique<Model>([clock](uint64_t count) { return clock.HostRecord(count); },
                                       clock.facts().begin_us * 1000,
                                       host->prof_level != "l0" && host->prof_level != "level0");
  Loader loader(reader, progress, report);
  ReadHost(loader, *host, model.get());
  for (const Place& place : info.places) {
    if (place.kind == Place::Kind::kDevice) ReadDevice(loader, place, clock_of(place), model.get());
  }
  return model;
}

}  // namespace profd::exporting::operators
