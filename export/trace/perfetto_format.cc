// Perfetto's native trace, `trace_<timestamp>.perfetto-trace` (`.gz`): a sequence of packets per data
// file.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <variant>

#include "base/mutex.h"
#include "export/decoder.h"
#include "export/formats.h"
#include "export/trace/activity_slices.h"
#include "export/trace/gzip_file.h"
#include "export/trace/json_text.h"
#include "export/trace/layer_packet.h"
#include "export/trace/nested_lanes.h"
#include "export/trace/operator_layers.h"
#include "export/trace/packet_writer.h"
#include "export/trace/series.h"
#include "export/trace/slices.h"
#include "export/trace/stacked_rows.h"
#include "export/trace/utilization.h"
#include "perfetto/trace.pb.h"

namespace profd::exporting {
namespace {

// Order of the rows below an NPU: its steps, then the groups of counters as the vendor sorts them,
// what is missing last.
constexpr int kFirstGroup = 2;
constexpr int kLossGroup = 1000;
// Training processes come first, by rank, then the NPUs, then the host.
constexpr uint32_t kDeviceProcesses = 1U << 20;
constexpr uint32_t kDevicesPerDump = 2048;

namespace pb = ::perfetto::protos;

// One counter of a series: a track.
struct Track {
  uint64_t uuid = 0;
  ArgSource source;
};
using TrackSeries = std::vector<Track>;

struct Shared {
  explicit Shared(const ExportPlan& export_plan) : plan(export_plan) {}

  Status Create() {
    std::string path = fmt::format("{}/trace_{}.perfetto-trace", plan.out_dir, plan.timestamp);
    if (!plan.gzip) return file.emplace<SharedFile>().Create(std::move(path), plan.go_on);
    return file.emplace<GzipFile>().Create(path + ".gz", plan.go_on);
  }
  Status Append(std::string_view packets) {
    return std::visit([&](auto& to) { return to.Append(packets); }, file);
  }

  ExportPlan plan;
  std::variant<SharedFile, GzipFile> file;
  uint64_t begin_ns = 0;  // earliest of all dumps; every sequence's clock starts here
  std::atomic<uint32_t> sequences = 0;
  std::atomic<uint64_t> tracks = 0;
  std::atomic<uint64_t> events = 0;
  Mutex mutex;
  // Tracks that were described, by the dump (processes) or the track they are below, and their name.
  std::map<std::pair<uint64_t, std::string>, uint64_t> processes GUARDED_BY(mutex);
  std::map<std::pair<uint64_t, std::string>, uint64_t> rows GUARDED_BY(mutex);
};

// Of what processes did.
struct Lane {
  uint64_t parent = 0;
  std::string name;
  int order = 0;
  std::vector<uint64_t> rows;  // tracks
};

struct TableState {
  const TableLayout* layout = nullptr;
  size_t keys = 0;
  uint64_t parent = 0;  // the group's track
  SeriesCache<TrackSeries> series;
};

class PerfettoSink final : public FormatSink, public LayerSink, private NestedLanes::Events {
 public:
  PerfettoSink(Shared* shared, const ExportTask& task)
      : shared_(*shared),
        dump_(task.dump),
        begin_ns_(task.place->clock.begin_us * 1000),
        end_us_(task.place->clock.RecordedToUs()),
        v6_(IsV6(task.place->chip)),
        utilization_(task.place->aicore_mhz),
        activity_(dump(), *shared->plan.strings),
        writer_(++shared->sequences, shared->begin_ns,
                [shared](std::string_view packets) { return shared->Append(packets); }) {
    for (pb::TracePacket* reused : {&counter_, &event_}) writer_.PrepareEvent(reused);
    sample_ = counter_.mutable_track_event();
    sample_->set_type(pb::TrackEvent::TYPE_COUNTER);
  }

  void Take(const Batch& batch) override {
    if (!writer_.status().ok()) return;
    if (IsActivity(batch.table->id)) {
      TakeActivity(batch);
    } else if (batch.table->id == TableId::kAicorePmu) {
      device_ = batch.device;
      TakeRows(utilization_.Convert(batch));
    } else {
      TakeRows(batch);
    }
  }

  void TakeEvent(const Event& event) override {
    if (!writer_.status().ok()) return;
    for (Slice& slice : SlicesOf(event, *shared_.plan.dumps[dump_])) {
      if (slice.kind == Slice::Kind::kFlowStart || slice.kind == Slice::Kind::kFlowStep) continue;
      // Iterations may overlap, and an all-reduce may last beyond the end of the backward pass.
      if (slice.process == &kStepTraceProcess) {
        const size_t lane = LaneOf(slice, event);
        nested_.Add(lane, std::move(slice));
        continue;
      }
      const uint64_t track = SliceTrack(slice, event);
      PutBegin(slice, track);
      if (slice.kind == Slice::Kind::kSlice) PutEnd(slice.t_ns + slice.dur_ns, track);
    }
  }

  void Enter(const LayerThread& thread) override {
    EndLayer();
    uint64_t parent = DeviceTrack(thread.device);
    // Streams are below the device, as those of recorded kernels.
    if (thread.process != &kHardwareProcess) {
      parent = RowTrack(parent, thread.process->name, kFirstGroup + thread.process->sort_index);
    }
    layer_ = {parent, std::string(thread.name), 1, {}};
  }

  void Take(const LayerEvent& event) override {
    const int64_t end_ns = event.t_ns + event.dur_ns;
    const auto end = [this](int64_t t_ns, size_t of) { PutEnd(t_ns, LayerTrack(of)); };
    const size_t row = layer_rows_.Place(event.t_ns, end_ns, end);
    const bool crowded = row == StackedRows::kRows;
    const uint64_t track = LayerTrack(crowded ? 0 : row);
    bytes_.clear();
    AppendTrackEvent(event, dump_, crowded ? pb::TrackEvent::TYPE_INSTANT : pb::TrackEvent::TYPE_SLICE_BEGIN, track,
                     &bytes_);
    writer_.PutEvent(event.t_ns, bytes_);
  }

  Status Finish() override {
    EndLayer();
    TakeRows(utilization_.Finish(device_));
    for (ActivitySlices::Owned& range : activity_.OpenRanges(end_us_, shared_.plan.window)) {
      const size_t lane = LaneOf(range.slice, range.owner);
      nested_.Add(lane, std::move(range.slice));
    }
    nested_.Finish();
    writer_.Flush();
    shared_.events += writer_.events();
    return writer_.status();
  }

 private:
  void TakeRows(const Batch& batch) {
    if (batch.rows() == 0) return;
    TableState& state = StateOf(batch);
    auto make = [&](std::span<const int64_t> keys) {
      return MakeSeries(state, *batch.table, keys);
    };
    for (size_t row = 0; row < batch.rows(); ++row) {
      if (batch.t_ns[row] < begin_ns_) continue;
      const TrackSeries& series = state.series.Find(batch, row, state.keys, make);
      for (const Track& track : series) {
        sample_->set_track_uuid(track.uuid);
        sample_->set_double_counter_value(ValueOf(track.source, batch, row).Number());
        writer_.PutEvent(batch.t_ns[row], &counter_);
      }
    }
  }

  void TakeActivity(const Batch& batch) {
    for (size_t row = 0; row < batch.rows(); ++row) {
      if (batch.t_ns[row] < begin_ns_) continue;
      std::optional<Slice> slice = activity_.Of(batch, row);
      if (!slice) continue;
      const size_t lane = LaneOf(*slice, ActivitySlices::OwnerOf(batch, row));
      if (slice->kind == Slice::Kind::kInstant) {
        PutBegin(*slice, TrackOf(lane, 0));
      } else {
        nested_.Add(lane, std::move(*slice));
      }
    }
  }

  size_t LaneOf(const Slice& slice, const Event& owner) {
    const bool host = owner.device < 0;
    std::pair key = {host ? owner.pid : -1 - int64_t{owner.device}, slice.track};
    const auto known = lane_numbers_.find(key);
    if (known != lane_numbers_.end()) return known->second;
    // Files are untrusted: when there are more, they share the last one.
    constexpr size_t kMostLanes = 16'384;
    if (lanes_.size() == kMostLanes) return kMostLanes - 1;
    lanes_.push_back({host ? MarkedTrack(owner) : DeviceTrack(owner.device), slice.track, slice.track_order, {}});
    return lane_numbers_[std::move(key)] = lanes_.size() - 1;
  }

  void EndLayer() {
    layer_rows_.Finish([this](int64_t t_ns, size_t row) { PutEnd(t_ns, LayerTrack(row)); });
  }

  uint64_t LayerTrack(size_t row) { return TrackOf(&layer_, row); }
  uint64_t TrackOf(size_t lane, size_t row) { return TrackOf(&lanes_[lane], row); }
  uint64_t TrackOf(Lane* lane, size_t row) {
    Lane& of = *lane;
    while (of.rows.size() <= row) {
      const size_t number = of.rows.size() + 1;
      of.rows.push_back(RowTrack(of.parent, number == 1 ? of.name : fmt::format("{} ({})", of.name, number), of.order));
    }
    return of.rows[row];
  }

  void Begin(const Slice& slice, size_t lane, size_t row) override { PutBegin(slice, TrackOf(lane, row)); }
  void End(int64_t t_ns, size_t lane, size_t row) override { PutEnd(t_ns, TrackOf(lane, row)); }
  void Crowded(const Slice& slice, size_t lane) override { PutBegin(slice, TrackOf(lane, 0), true); }

  TableState& StateOf(const Batch& batch) {
    constexpr size_t kMaxTables = 4096;  // devices of samples.tsv are untrusted
    if (tables_.size() >= kMaxTables) tables_.clear();
    auto [it, added] = tables_.try_emplace({batch.table->id, batch.device});
    TableState& state = it->second;
    if (!added) return state;
    state.layout = &LayoutOf(batch.table->id, v6_);
    state.keys = std::min(kMaxKeys, KeyCount(*batch.table));
    const ProcessSpec& group = state.layout->process;
    state.parent = RowTrack(DeviceTrack(batch.device), group.name, kFirstGroup + group.sort_index);
    return state;
  }

  // Args that distinguish series are part of the name; each other one is a track.
  TrackSeries MakeSeries(const TableState& state, const TableSpec& table,
                         std::span<const int64_t> keys) {
    TrackSeries series;
    for (const NamedCounter& counter :
         CountersOf(*state.layout, table, keys, shared_.plan.strings)) {
      std::string name = counter.name;
      auto value = [](const NamedArg& arg) {
        return arg.source.show != Show::kKey && arg.source.show != Show::kConstant;
      };
      for (const NamedArg& arg : counter.args) {
        if (arg.source.show == Show::kKey) {
          name += fmt::format(" {} {}", arg.key, keys[arg.source.column]);
        }
      }
      // The other args of a row with another key belong to the same counter.
      bool several = state.layout->merge || std::ranges::count_if(counter.args, value) > 1;
      for (const NamedArg& arg : counter.args) {
        if (!value(arg)) continue;
        series.push_back(
            {DescribeCounter(several ? name + " " + arg.key : name, arg.unit, state.parent),
             arg.source});
      }
    }
    return series;
  }

  uint64_t DescribeCounter(std::string_view name, std::string_view unit, uint64_t parent) {
    pb::TracePacket packet;
    pb::TrackDescriptor* track = packet.mutable_track_descriptor();
    track->set_uuid(++shared_.tracks);
    track->set_parent_uuid(parent);
    track->set_name(RepairedText(name));
    pb::CounterDescriptor* counter = track->mutable_counter();
    if (!unit.empty()) counter->set_unit_name(std::string(unit));
    writer_.PutDescriptor(&packet);
    return track->uuid();
  }

  const DumpInfo& dump() const { return *shared_.plan.dumps[dump_]; }

  // An NPU, or the host.
  uint64_t DeviceTrack(int device) {
    uint64_t& known = device_tracks_[device];
    if (known != 0) return known;
    std::string name = device < 0 ? "Host" : fmt::format("NPU {}", device);
    std::string whose;
    if (std::optional<int> rank = dump().RankOf(device)) whose = fmt::format("rank {}", *rank);
    if (shared_.plan.dumps.size() > 1) {
      whose = dump().NodeName() + (whose.empty() ? "" : ", " + whose);
    }
    if (!whose.empty()) name += fmt::format(" ({})", whose);
    // The host behind the NPUs.
    const auto place = static_cast<uint32_t>(device) % kDevicesPerDump;
    const uint32_t order =
        kDeviceProcesses + (static_cast<uint32_t>(dump_) * kDevicesPerDump + place) % (1U << 30);
    return known = ProcessTrack(name, order, order);
  }

  // A process that was marked.
  uint64_t MarkedTrack(const Event& event) {
    if (last_marked_ != 0 && event.pid == last_pid_ && event.rank == last_rank_)
      return last_marked_;
    last_pid_ = event.pid;
    last_rank_ = event.rank;
    std::string name = dump().ProcessName(event.pid, event.rank);
    if (shared_.plan.dumps.size() > 1) name += fmt::format(" ({})", dump().NodeName());
    const int rank = event.rank ? *event.rank : dump().RankOf(-1).value_or(INT32_MAX);
    const uint32_t order = std::min(static_cast<uint32_t>(rank), kDeviceProcesses - 1);
    return last_marked_ = ProcessTrack(name, 0, order);
  }

  // `pid` 0: the next one. 0, the trace itself, when there are too many: a dump is untrusted.
  uint64_t ProcessTrack(const std::string& name, uint32_t pid, uint32_t order) {
    constexpr size_t kMaxProcesses = kDeviceProcesses - 1;
    uint64_t uuid = 0;
    {
      MutexLock lock(shared_.mutex);
      auto known = shared_.processes.find({dump_, name});
      if (known != shared_.processes.end()) return known->second;
      if (shared_.processes.size() >= kMaxProcesses) return 0;
      uuid = shared_.processes[{dump_, name}] = ++shared_.tracks;
      if (pid == 0) pid = static_cast<uint32_t>(shared_.processes.size());
    }
    pb::TracePacket packet;
    pb::TrackDescriptor* track = packet.mutable_track_descriptor();
    track->set_uuid(uuid);
    track->set_child_ordering(pb::TrackDescriptor::EXPLICIT);
    pb::ProcessDescriptor* process = track->mutable_process();
    process->set_pid(static_cast<int32_t>(pid));
    process->set_legacy_sort_index(static_cast<int32_t>(order));
    process->set_process_name(RepairedText(name));
    writer_.PutDescriptor(&packet);
    return uuid;
  }

  // A group of counters, or a row of slices.
  uint64_t RowTrack(uint64_t parent, std::string_view name, int order) {
    constexpr size_t kMaxRows = 1'000'000;
    uint64_t uuid = 0;
    {
      MutexLock lock(shared_.mutex);
      if (shared_.rows.size() >= kMaxRows) return parent;
      auto [it, added] = shared_.rows.try_emplace({parent, std::string(name)});
      if (!added) return it->second;
      uuid = it->second = ++shared_.tracks;
    }
    pb::TracePacket packet;
    pb::TrackDescriptor* track = packet.mutable_track_descriptor();
    track->set_uuid(uuid);
    track->set_parent_uuid(parent);
    track->set_name(RepairedText(name));
    track->set_sibling_order_rank(order);
    writer_.PutDescriptor(&packet);
    return uuid;
  }

  uint64_t SliceTrack(const Slice& slice, const Event& event) {
    if (slice.process == &kMarksProcess) {
      return RowTrack(MarkedTrack(event), slice.track, slice.track_order);
    }
    uint64_t parent = DeviceTrack(event.device);
    if (slice.process == &kLossProcess) {
      parent = RowTrack(parent, kLossProcess.name, kLossGroup);
    }
    return RowTrack(parent, slice.track, slice.track_order);
  }

  void PutBegin(const Slice& slice, uint64_t track, bool crowded = false) {
    const bool instant = crowded || slice.kind == Slice::Kind::kInstant;
    pb::TrackEvent* event =
        NewEvent(instant ? pb::TrackEvent::TYPE_INSTANT : pb::TrackEvent::TYPE_SLICE_BEGIN, track);
    event->set_name(RepairedText(slice.name));
    if (!slice.category.empty()) event->add_categories(std::string(slice.category));
    auto annotation = [event](const std::string& name) {
      pb::DebugAnnotation* added = event->add_debug_annotations();
      added->set_name(RepairedText(name));
      return added;
    };
    for (const auto& [name, value] : slice.integers) annotation(name)->set_int_value(value);
    for (const auto& [name, value] : slice.texts) {
      annotation(name)->set_string_value(RepairedText(value));
    }
    for (const auto& [name, value] : slice.numbers) annotation(name)->set_double_value(value);
    if (crowded) annotation("Duration(ns)")->set_int_value(slice.dur_ns);
    if (slice.flow_end == Slice::FlowEnd::kFrom || slice.flow_end == Slice::FlowEnd::kAround) event->add_flow_ids(FlowId(dump_, slice.flow));
    if (slice.mark) event->add_flow_ids(FlowId(dump_, FlowText(MarkFlow(*slice.mark))));
    if (slice.flow_end == Slice::FlowEnd::kTo) event->add_terminating_flow_ids(FlowId(dump_, slice.flow));
    writer_.PutEvent(slice.t_ns, &event_);
  }

  void PutEnd(int64_t t_ns, uint64_t track) {
    bytes_.clear();
    AppendTrackEvent(pb::TrackEvent::TYPE_SLICE_END, track, &bytes_);
    writer_.PutEvent(t_ns, bytes_);
  }

  // The event of event_, which keeps the memory of those before.
  pb::TrackEvent* NewEvent(pb::TrackEvent::Type type, uint64_t track) {
    pb::TrackEvent* event = event_.mutable_track_event();
    event->Clear();
    event->set_type(type);
    event->set_track_uuid(track);
    return event;
  }

  Shared& shared_;
  const size_t dump_;
  const int64_t begin_ns_;
  const int64_t end_us_;
  const bool v6_;
  int device_ = -1;
  Utilization utilization_;
  ActivitySlices activity_;
  NestedLanes nested_{*this};
  std::map<std::pair<int64_t, std::string>, size_t> lane_numbers_;  // by pid, or -1 - device
  std::vector<Lane> lanes_;
  Lane layer_;  // of operator-level records, the one that is written
  StackedRows layer_rows_;
  PacketWriter writer_;
  std::string bytes_;  // of the event that is written
  std::map<std::pair<TableId, int>, TableState> tables_;
  std::map<int, uint64_t> device_tracks_;
  // Marks of a process mostly follow one another.
  int64_t last_pid_ = 0;
  std::optional<int> last_rank_;
  uint64_t last_marked_ = 0;
  // The packets that are many, made once: those of samples, and of events.
  pb::TracePacket counter_;
  pb::TrackEvent* sample_ = nullptr;  // in counter_
  pb::TracePacket event_;
};

class PerfettoFormat final : public Format {
 public:
  std::string_view name() const override { return "perfetto"; }
  bool Wants(TableId) const override { return true; }
  FormatWants wants() const override { return {.events = true, .step_parts = true, .operators = true, .runtime_apis = true}; }

  Status Begin(const ExportPlan& plan) override {
    shared_ = std::make_unique<Shared>(plan);
    for (const DumpInfo* dump : plan.dumps) {
      for (const Place& place : dump->places) {
        auto begin = static_cast<uint64_t>(std::max<int64_t>(0, place.clock.begin_us)) * 1000;
        if (begin == 0) continue;
        if (shared_->begin_ns == 0 || begin < shared_->begin_ns) shared_->begin_ns = begin;
      }
    }
    return shared_->Create();
  }

  Result<std::unique_ptr<FormatSink>> Open(const ExportTask& task) override {
    return std::unique_ptr<FormatSink>(std::make_unique<PerfettoSink>(shared_.get(), task));
  }

  Status TakeOperators(size_t dump, const operators::Model& model) override {
    const Place* place = shared_->plan.dumps[dump]->ClockPlace();
    if (place == nullptr) return Status::Ok();  // then there is no model
    const auto sink = std::make_unique<PerfettoSink>(shared_.get(), ExportTask{dump, place, nullptr});
    ShowOperators(model, shared_->plan.window, *sink);
    return sink->Finish();
  }

  Status End(bool complete, std::vector<OutputFile>* files) override {
    if (shared_ == nullptr) return Status::Ok();
    std::unique_ptr<Shared> shared = std::move(shared_);
    if (!complete) return Status::Ok();
    return std::visit(
        [&](auto& file) {
          RETURN_IF_ERROR(file.Commit());
          files->push_back({file.path(), file.bytes(), shared->events});
          return Status::Ok();
        },
        shared->file);
  }

 private:
  std::unique_ptr<Shared> shared_;
};

}  // namespace

std::unique_ptr<Format> MakePerfettoFormat() { return std::make_unique<PerfettoFormat>(); }

}  // namespace profd::exporting
