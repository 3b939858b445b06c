#include "export/export_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "export/by_rank.h"
#include "export/file_feeder.h"
#include "export/operators/model.h"

namespace profd::exporting {
namespace {

constexpr unsigned kMaxThreads = 64;
// By default: every thread has its buffers.
constexpr unsigned kDefaultThreads = 32;
constexpr auto kProgressPeriod = std::chrono::milliseconds(200);
constexpr size_t kMaxProblems = 10000;
// In a set of devices that shall not mean all of them.
constexpr int kNoDevice = -2;

std::string LocalTimestamp() {
  std::time_t now = std::time(nullptr);
  std::tm local{};
  if (::localtime_r(&now, &local) == nullptr) return "00000000000000";
  char text[32];
  size_t size = std::strftime(text, sizeof text, "%Y%m%d%H%M%S", &local);
  return {text, size};
}

unsigned ThreadCount(unsigned asked, size_t tasks) {
  unsigned count = asked;
  if (count == 0) count = std::min(std::thread::hardware_concurrency(), kDefaultThreads);
  count = std::clamp(count, 1u, kMaxThreads);
  return static_cast<unsigned>(std::min<size_t>(count, std::max<size_t>(tasks, 1)));
}

std::string Canonical(const std::string& path) {
  std::error_code error;
  std::filesystem::path real = std::filesystem::canonical(path, error);
  return error ? path : real.string();
}

uint64_t TablesOf(const DecoderSpec& spec) {
  uint64_t tables = 0;
  for (TableId id : spec.tables) tables |= TableBit(id);
  return tables;
}

}  // namespace

ExportRun::ExportRun(const ExportOptions& options, std::vector<std::unique_ptr<Format>> formats,
                     DecoderFinder find, const ProgressCall& progress)
    : options_(options),
      find_(find),
      progress_(progress),
      started_(std::chrono::steady_clock::now()),
      progress_reported_(started_) {
  for (std::unique_ptr<Format>& format : formats) {
    formats_.push_back(std::make_unique<RunningFormat>(std::move(format)));
  }
}

void ExportRun::Problem(size_t dump, const std::string& file, const std::string& what,
                        bool broken) {
  MutexLock lock(report_mutex_);
  report_.damaged |= broken;
  if (report_.problems.size() >= kMaxProblems) return;
  report_.problems.push_back({dumps_[dump].info().name + "/" + file, what, broken});
}

Status ExportRun::OpenDumps() {
  std::string errors;
  StatusCode code = StatusCode::kOk;
  std::set<std::string> seen;
  for (const std::string& path : options_.dumps) {
    if (!seen.insert(Canonical(path)).second) continue;
    Result<Dump> dump = Dump::Open(path);
    if (dump.ok()) {
      dumps_.push_back(std::move(*dump));
      continue;
    }
    if (code == StatusCode::kOk) code = dump.status().code();
    errors += (errors.empty() ? "" : "; ") + dump.status().message();
  }
  if (code != StatusCode::kOk) return {code, errors};
  if (dumps_.empty()) return InvalidArgument("no dump given");
  if (dumps_.size() > 1) {
    AlignClocks();
    ShareRanks(&dumps_);
  }
  std::erase_if(dumps_, [this](const Dump& dump) { return !dump.info().HasRankOf(options_.ranks); });
  if (dumps_.empty()) return NotFound("no dump is of these ranks");
  return {};
}

// Sessions that were started on many nodes at once know how far their node's clock was ahead of the
// one that started them.
void ExportRun::AlignClocks() {
  for (Dump& dump : dumps_) {
    if (!dump.info().manifest) continue;
    const auto& metadata = dump.info().manifest->metadata;
    const auto found = metadata.find("clock_offset_ns");
    int64_t ahead_ns = 0;
    if (found != metadata.end() && ParseNumber(found->second, &ahead_ns)) dump.MoveClock(ahead_ns);
  }
}

// Of a dump of one rank all; else the devices that some of the ranks have, and what belongs to no device.
void ExportRun::MakeFilterOf(const DumpInfo& dump) {
  RowFilter& filter = filters_.emplace_back(filter_);
  if (options_.ranks.empty()) return;
  filter.ranks = options_.ranks;
  if (dump.RankOf(-1)) return;
  filter.devices.clear();
  if (filter_.HasDevice(-1)) filter.devices.insert(-1);
  for (const Place& place : dump.places) {
    if (place.kind != Place::Kind::kDevice || !filter_.HasDevice(place.device)) continue;
    const std::vector<int> ranks = dump.RanksOf(place.device);
    if (std::ranges::any_of(ranks, [&](int rank) { return filter.HasRank(rank); })) filter.devices.insert(place.device);
  }
  if (filter.devices.empty()) filter.devices.insert(kNoDevice);
}

Status ExportRun::MakeFilter() {
  filter_.devices = options_.devices;
  filter_.window = options_.window;
  if (options_.channels.empty()) return {};
  filter_.tables = 0;
  filter_.events = false;
  for (const std::string& channel : options_.channels) {
    const TableSpec* table = FindTable(channel);
    if (channel == kEventsChannel) {
      filter_.events = true;
    } else if (table == nullptr) {
      return InvalidArgument("no channel is called " + channel);
    } else {
      filter_.tables |= TableBit(table->id);
    }
  }
  return {};
}

ClockMap ExportRun::ClockOf(const Place& place) const {
  return options_.start_clock ? ClockMap(place.clock) : ClockMap(place.clock, place.clock_pairs);
}

void ExportRun::AddTask(size_t dump, const Place& place, const DataFile& file) {
  const DecoderSpec* spec = find_(file.base, place.kind, place.chip);
  const std::string shown = file.slices.empty() ? file.base : file.slices.front().path;
  if (operators::IsOperatorFile(place, file.base)) {
    if (operators_ && !operator_details_ && operators::IsDetailFile(place, file.base)) return;
    if (operators_) {
      total_bytes_ += file.bytes;
      operator_bytes_ += file.bytes;
    } else if (options_.channels.empty()) {
      Problem(dump, shown, "the requested formats do not show it: skipped", false);
    }
    return;
  }
  if (spec == nullptr) return Problem(dump, shown, "nothing here reads it: skipped", false);
  if (place.kind != Place::Kind::kOwn && place.chip >= 0 && (spec->chips >> place.chip & 1) == 0) {
    Problem(dump, shown, fmt::format("unusual for chip {}, exported all the same", place.chip),
            false);
  }
  if (HasTaskCounters(*spec, place)) {
    return Problem(dump, shown, "has counters of tasks that nothing here joins with them: skipped", false);
  }
  const bool of_place = place.kind != Place::Kind::kOwn && !spec->rows_have_devices;
  if (of_place && !filters_[dump].HasDevice(place.device)) return;
  uint64_t tables = TablesOf(*spec) & filter_.tables;
  if (options_.legacy_names && (tables & (TableBit(TableId::kApi) | TableBit(TableId::kKernel))) != 0) {
    Problem(dump, shown, "was recorded through MSPTI, of which --names legacy makes no files: see api, api_statistic, kernel and task_time", false);
  }
  bool events = spec->tables.empty() && filter_.events;
  bool wanted = std::ranges::any_of(formats_, [&](const auto& format) {
    return (format->tables() & tables) != 0 || (events && format->events());
  });
  tasks_.push_back({{dump, &place, &file}, spec, {}, wanted});
}

// Each goes with its channel's file; without one, with the first of the dump.
void ExportRun::AddLosses(size_t dump, size_t first_task) {
  const DumpInfo& info = dumps_[dump].info();
  if (!info.manifest || tasks_.size() == first_task || !filter_.events) return;
  for (const ManifestChannel& channel : info.manifest->channels) {
    if (channel.gaps.empty() || !filters_[dump].HasDevice(channel.device)) continue;
    auto kind = channel.device < 0 ? Place::Kind::kHost : Place::Kind::kDevice;
    auto begin = tasks_.begin() + static_cast<std::ptrdiff_t>(first_task);
    auto it = std::find_if(begin, tasks_.end(), [&](const Task& task) {
      return task.task.file->base == channel.file && task.task.place->kind == kind &&
             (channel.device < 0 || task.task.place->device == channel.device);
    });
    if (it == tasks_.end()) it = begin;
    const ClockMap clock = ClockOf(*it->task.place);
    for (const ManifestGap& gap : channel.gaps) {
      Event event;
      event.kind = EventKind::kLoss;
      int64_t from = gap.from_ns > 0 && gap.from_ns < gap.host_ns ? gap.from_ns : gap.host_ns;
      event.t_ns = clock.HostNs(from);
      event.dur_ns = gap.host_ns - from;
      event.device = channel.device;
      event.name = fmt::format("{}: {}", channel.collector, ToString(gap.reason));
      event.value = static_cast<int64_t>(gap.lost_records);
      it->losses.push_back(std::move(event));
    }
  }
}

void ExportRun::MakeTasks(size_t dump) {
  const DumpInfo& info = dumps_[dump].info();
  if (info.manifest && info.manifest->state == DumpState::kRunning) {
    const MutexLock lock(report_mutex_);
    report_.unfinished.push_back(info.name);
  }
  for (const DumpInfo::Problem& problem : info.problems) {
    Problem(dump, problem.file, problem.what, problem.broken);
  }
  size_t first = tasks_.size();
  for (const Place& place : info.places) {
    for (const DataFile& file : place.files) AddTask(dump, place, file);
  }
  AddLosses(dump, first);
  auto idle = [](const Task& task) { return !task.rows && task.losses.empty(); };
  tasks_.erase(
      std::remove_if(tasks_.begin() + static_cast<std::ptrdiff_t>(first), tasks_.end(), idle),
      tasks_.end());
}

void ExportRun::LoadNames() {
  names_.resize(dumps_.size());
  device_marks_.resize(dumps_.size());
  for (const Task& task : tasks_) {
    auto& names = names_[task.task.dump];
    if (!task.rows || !task.spec->wants_names || names != nullptr) continue;
    const Dump& dump = dumps_[task.task.dump];
    names = operators::LoadNames(dump.reader(), dump.info());
    auto marks = operators::LoadDeviceMarks(dump.reader(), dump.info(), [this](const Place& place) { return ClockOf(place); });
    const RowFilter& filter = filters_[task.task.dump];
    std::erase_if(marks, [&filter](const operators::DeviceMark& mark) { return !filter.HasDevice(mark.device); });
    device_marks_[task.task.dump] = std::make_shared<const std::vector<operators::DeviceMark>>(std::move(marks));
  }
}

Status ExportRun::Begin() {
  plan_.out_dir = options_.out_dir;
  plan_.timestamp = LocalTimestamp();
  plan_.window = options_.window;
  plan_.strings = &strings_;
  plan_.gzip = options_.gzip;
  plan_.steps_of = [this](const DumpInfo& dump) { return StepsOfSession(dump); };
  plan_.compat_msprof = options_.compat_msprof;
  plan_.legacy_names = options_.legacy_names;
  plan_.threads = ThreadCount(options_.threads, kMaxThreads);
  plan_.go_on = [this] { return Progress(0); };
  for (const Dump& dump : dumps_) plan_.dumps.push_back(&dump.info());
  const std::vector<std::string> folders = RankFolders(plan_.dumps);
  for (size_t i = 0; i < folders.size(); ++i) {
    if (options_.out_dir.empty() || dumps_[i].info().RankOf(-1)) continue;
    Problem(i, "host", "no single rank is known of it: in a folder of its name", false);
  }
  if (!options_.out_dir.empty()) {
    std::error_code error;
    std::filesystem::create_directories(options_.out_dir, error);
    if (error) return Status::FromErrno(error.value(), options_.out_dir);
  }
  for (std::unique_ptr<RunningFormat>& format : formats_) {
    ++began_;
    Status begun = format->format().Begin(plan_);
    if (!begun.ok()) format->Fail(begun);
  }
  return {};
}

bool ExportRun::Progress(uint64_t bytes) {
  uint64_t done = bytes_done_.fetch_add(bytes) + bytes;
  if (cancelled_) return false;
  if (!progress_) return true;
  if (!progress_mutex_.TryLock()) return true;
  auto now = std::chrono::steady_clock::now();
  if (now - progress_reported_ >= kProgressPeriod) {
    progress_reported_ = now;
    if (!progress_({done, total_bytes_})) cancelled_ = true;
  }
  progress_mutex_.Unlock();
  return !cancelled_;
}

void ExportRun::RunTask(const Task& task, std::vector<std::byte>* buffer) {
  const ExportTask& part = task.task;
  FanOut fan(filters_[part.dump]);
  uint64_t tables = task.rows ? TablesOf(*task.spec) : 0;
  fan.Open(formats_, part, tables, task.spec->tables.empty() || !task.losses.empty());
  if (fan.empty()) {
    Progress(part.file->bytes);
    return;
  }
  for (const Event& loss : task.losses) fan.TakeEvent(loss);
  ChannelReport channel;
  channel.dump = dumps_[part.dump].info().name;
  channel.device = part.place->device;
  channel.file = part.file->base;
  if (task.rows) {
    DecodeContext context;
    context.dump = &dumps_[part.dump].info();
    context.place = part.place;
    context.file = part.file;
    context.clock = ClockOf(*part.place);
    context.window = options_.window;
    context.ranks = options_.ranks;
    context.strings = &strings_;
    context.rows = &fan;
    context.step_parts = step_parts_[part.dump].get();
    if (const auto& names = names_[part.dump]; names != nullptr) {
      context.name_of = [names](uint64_t hash) { return names->NameOf(hash); };
    }
    if (const auto& marks = device_marks_[part.dump]; marks != nullptr) {
      context.on_device = [marks](uint64_t mark) { return operators::FindMark(*marks, mark); };
    }
    context.event = [&fan](const Event& event) { fan.TakeEvent(event); };
    const DumpReader& reader = dumps_[part.dump].reader();
    context.first_bytes_of = [&](std::string_view base) { return FirstBytes(reader, *part.place, base); };
    std::unique_ptr<Decoder> decoder = task.spec->make(context);
    FileFeeder feeder(reader, RecordSizeOf(*task.spec, *part.place), buffer,
                      [this](uint64_t bytes) { return Progress(bytes); });
    feeder.Run(*part.file, decoder.get());
    channel.bytes = feeder.bytes();
    channel.records = decoder->stats().records;
    channel.bad_records = decoder->stats().bad_records;
    channel.bad_bytes = decoder->stats().bad_bytes + feeder.bad_bytes();
    channel.clipped = decoder->stats().clipped;
    channel.unpaired = decoder->stats().unpaired;
    for (const DumpInfo::Problem& problem : feeder.problems()) {
      Problem(part.dump, problem.file, problem.what, problem.broken);
    }
  } else {
    Progress(part.file->bytes);
  }
  fan.Finish();
  {
    const MutexLock lock(steps_mutex_);
    steps_[part.dump].Merge(fan.TakeSteps());
  }
  // Of a file of which only the losses are wanted nothing was read: it has no counts.
  if (!task.rows) return;
  channel.rows = fan.rows();
  Add(part.dump, std::move(channel));
}

void ExportRun::Add(size_t dump, ChannelReport channel) {
  const std::optional<Manifest>& manifest = dumps_[dump].info().manifest;
  const bool running = manifest && manifest->state == DumpState::kRunning;
  MutexLock lock(report_mutex_);
  report_.damaged |= channel.bad_bytes > 0 && !running;
  report_.input_bytes += channel.bytes;
  report_.channels.push_back(std::move(channel));
}

void ExportRun::Work() {
  std::vector<std::byte> buffer;
  auto live = [](const auto& format) { return !format->failed(); };
  for (size_t i = next_task_++; i < tasks_.size(); i = next_task_++) {
    if (cancelled_ || std::ranges::none_of(formats_, live)) return;
    RunTask(tasks_[i], &buffer);
  }
}

Result<ExportReport> ExportRun::End() {
  ExportReport report;
  {
    MutexLock lock(report_mutex_);
    report = std::move(report_);
  }
  Status first;
  size_t good = 0;
  for (size_t i = 0; i < began_; ++i) {
    RunningFormat& format = *formats_[i];
    Progress(0);
    bool complete = !cancelled_ && !format.failed();
    std::vector<OutputFile> files;
    Status ended = format.format().End(complete, &files);
    if (complete && !ended.ok()) format.Fail(ended);
    if (complete && ended.ok()) {
      report.outputs.insert(report.outputs.end(), files.begin(), files.end());
      ++good;
    }
    if (!format.failed()) continue;
    Status error = format.error().Annotate(format.format().name());
    if (first.ok()) first = error;
    report.failed.push_back({std::string(format.format().name()), format.error()});
  }
  if (cancelled_) {
    for (const OutputFile& file : report.outputs) ::unlink(file.path.c_str());
    return Status(StatusCode::kCancelled, "interrupted");
  }
  if (good == 0 && !first.ok()) return first;
  std::ranges::sort(report.channels, [](const ChannelReport& a, const ChannelReport& b) {
    return std::tie(a.dump, a.device, a.file) < std::tie(b.dump, b.device, b.file);
  });
  report.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  return report;
}

Result<ExportReport> ExportRun::Run() {
  RETURN_IF_ERROR(MakeFilter());
  RETURN_IF_ERROR(OpenDumps());
  // They belong to no channel that could be chosen.
  operators_ = options_.channels.empty() &&
               std::ranges::any_of(formats_, [](const auto& format) { return format->format().wants().operators; });
  operator_details_ = std::ranges::any_of(formats_, [](const auto& format) {
    const FormatWants wants = format->format().wants();
    return wants.operators && wants.operator_details;
  });
  for (const Dump& dump : dumps_) MakeFilterOf(dump.info());
  {
    const MutexLock lock(steps_mutex_);
    steps_.resize(dumps_.size());
  }
  for (size_t i = 0; i < dumps_.size(); ++i) MakeTasks(i);
  std::ranges::stable_sort(
      tasks_, [](const Task& a, const Task& b) { return a.task.file->bytes > b.task.file->bytes; });
  for (const Task& task : tasks_) total_bytes_ += task.task.file->bytes;
  // Before the formats make their files.
  if (!options_.out_dir.empty() && !HasWork()) {
    const MutexLock lock(report_mutex_);
    return NothingToExport(report_, WhyNothing());
  }
  RETURN_IF_ERROR(Begin());
  LookForStepParts();
  LoadNames();
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < ThreadCount(options_.threads, tasks_.size()); ++i) {
    try {
      threads.emplace_back([this] { Work(); });
    } catch (const std::system_error&) {
      break;  // fewer will do
    }
  }
  Work();
  for (std::thread& thread : threads) thread.join();
  RunSpilling([this] { TakeOperators(); });
  if (progress_ && !cancelled_ && !progress_({bytes_done_, total_bytes_})) cancelled_ = true;
  return End();
}

}  // namespace profd::exporting
