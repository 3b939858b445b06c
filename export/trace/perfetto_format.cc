// Perfetto's native trace, `trace_<stamp>.perfetto-trace` (`.gz`): a sequence of packets per data
// file.
//
// Stamps are deltas of a clock of the sequence's own, which its first packet sets to the begin of
// the collection; that packet also says that trace time (BOOTTIME) is wall clock (REALTIME). A
// stamp before its predecessor is written as it is, in BOOTTIME.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <set>
#include <variant>

#include "export/decoder.h"
#include "export/formats.h"
#include "export/trace/gzip_file.h"
#include "export/trace/json_text.h"
#include "export/trace/process_ids.h"
#include "export/trace/proto_text.h"
#include "export/trace/series.h"
#include "export/trace/slices.h"
#include "export/trace/utilization.h"

namespace profd::exporting {
namespace {

constexpr size_t kBufferSize = 256 * 1024;
// Tracks of processes; those of counters and threads are counted from 1.
constexpr uint64_t kProcessTracks = uint64_t{1} << 32;
constexpr char kPacketTag = static_cast<char>(field::kTracePacket << 3 | 2);
constexpr char kTimestampTag = static_cast<char>(field::kTimestamp << 3);

// One counter of a series: a track.
struct Track {
  std::string packet;  // all of the packet behind the stamp, but for the value at the end
  ArgSource source;
};
using TrackSeries = std::vector<Track>;

struct Shared {
  explicit Shared(const ExportPlan& export_plan) : plan(export_plan), ids(export_plan.dumps) {}

  Status Create() {
    std::string path = fmt::format("{}/trace_{}.perfetto-trace", plan.out_dir, plan.stamp);
    if (!plan.gzip) return file.emplace<SharedFile>().Create(std::move(path));
    return file.emplace<GzipFile>().Create(path + ".gz");
  }
  Status Append(std::string_view packets) {
    return std::visit([&](auto& to) { return to.Append(packets); }, file);
  }

  ExportPlan plan;
  ProcessIds ids;
  std::variant<SharedFile, GzipFile> file;
  uint64_t begin_ns = 0;  // earliest of all dumps; every sequence's clock starts here
  std::atomic<uint32_t> sequences = 0;
  std::atomic<uint64_t> tracks = 0;
  std::atomic<uint64_t> events = 0;
  std::mutex mutex;
  std::set<uint32_t> processes;                              // described
  std::map<std::pair<uint32_t, int64_t>, uint64_t> threads;  // their tracks, by pid and tid
};

struct TableState {
  const TableLayout* layout = nullptr;
  size_t keys = 0;
  uint64_t parent = 0;  // the process's track
  SeriesCache<TrackSeries> series;
};

class PerfettoSink final : public FormatSink {
 public:
  PerfettoSink(Shared* shared, const ExportTask& task)
      : shared_(*shared),
        dump_(task.dump),
        begin_ns_(task.place->clock.begin_us * 1000),
        v6_(IsV6(task.place->chip)),
        sequence_(++shared->sequences),
        utilization_(task.place->aicore_mhz),
        last_ns_(shared->begin_ns),
        buffer_(std::make_unique<char[]>(kBufferSize)) {
    PutFirst();
  }

  void Take(const Batch& batch) override {
    if (!status_.ok()) return;
    if (batch.table->id == TableId::kAicorePmu) {
      device_ = batch.device;
      TakeRows(utilization_.Convert(batch));
    } else {
      TakeRows(batch);
    }
  }

  void TakeEvent(const Event& event) override {
    if (!status_.ok()) return;
    std::vector<Slice> slices = SlicesOf(event);
    std::erase_if(slices, [](const Slice& slice) {
      return slice.kind == Slice::Kind::kFlowStart || slice.kind == Slice::Kind::kFlowStep;
    });
    // Viewers take packets of one stamp in their order: outer slices begin first, and what ends at
    // a stamp does so before the next one begins.
    auto end_of = [](const Slice& slice) { return slice.t_ns + slice.dur_ns; };
    std::ranges::stable_sort(slices, [&](const Slice& a, const Slice& b) {
      return a.t_ns != b.t_ns ? a.t_ns < b.t_ns : end_of(a) > end_of(b);
    });
    std::vector<const Slice*> open;
    for (const Slice& slice : slices) {
      while (!open.empty() && end_of(*open.back()) <= slice.t_ns) {
        End(*open.back(), event.device);
        open.pop_back();
      }
      Begin(slice, event.device);
      if (slice.kind == Slice::Kind::kSlice) open.push_back(&slice);
    }
    for (; !open.empty(); open.pop_back()) End(*open.back(), event.device);
  }

  Status Finish() override {
    TakeRows(utilization_.Finish(device_));
    Flush();
    shared_.events += events_;
    return status_;
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
        double value = ValueOf(track.source, batch, row).Number();
        char bytes[8];
        std::memcpy(bytes, &value, 8);
        PutEvent(batch.t_ns[row], track.packet, {bytes, 8});
      }
    }
  }

  TableState& StateOf(const Batch& batch) {
    constexpr size_t kMaxTables = 4096;  // devices of samples.tsv are untrusted
    if (tables_.size() >= kMaxTables) tables_.clear();
    auto [it, added] = tables_.try_emplace({batch.table->id, batch.device});
    TableState& state = it->second;
    if (!added) return state;
    state.layout = &LayoutOf(batch.table->id, v6_);
    state.keys = std::min(kMaxKeys, KeyCount(*batch.table));
    state.parent = ProcessTrack(state.layout->process, batch.device);
    return state;
  }

  // Args that tell series apart go into the name; each other one is a track.
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
        series.push_back({PacketOf(DescribeCounter(several ? name + " " + arg.key : name, arg.unit,
                                                   state.parent)),
                          arg.source});
      }
    }
    return series;
  }

  uint64_t DescribeCounter(std::string_view name, std::string_view unit, uint64_t parent) {
    uint64_t uuid = ++shared_.tracks;
    ProtoText counter;
    if (!unit.empty()) counter.Bytes(field::kCounterUnitName, unit);
    ProtoText track;
    track.Varint(field::kTrackUuid, uuid)
        .Varint(field::kTrackParent, parent)
        .Bytes(field::kTrackName, RepairedText(name))
        .Message(field::kTrackCounter, counter);
    PutDescriptor(track);
    return uuid;
  }

  // What follows the stamp of a counter's packet, up to the value.
  std::string PacketOf(uint64_t track) const {
    ProtoText event;
    event.Varint(field::kEventType, kTypeCounter).Varint(field::kEventTrack, track);
    event.Double(field::kEventDouble, 0);
    ProtoText packet;
    packet.Varint(field::kSequenceId, sequence_)
        .Varint(field::kSequenceFlags, kSequenceNeedsState)
        .Message(field::kTrackEvent, event);
    std::string text = packet.text();
    text.resize(text.size() - 8);
    return text;
  }

  uint64_t ProcessTrack(const ProcessSpec& process, int device) {
    uint32_t pid = shared_.ids.SmallPid(dump_, device, process);
    uint64_t uuid = kProcessTracks + pid;
    {
      std::lock_guard lock(shared_.mutex);
      if (!shared_.processes.insert(pid).second) return uuid;
    }
    ProtoText descriptor;
    descriptor.Varint(field::kProcessPid, pid)
        .Varint(field::kProcessSortIndex, static_cast<uint64_t>(process.sort_index))
        .Bytes(field::kProcessName, RepairedText(fmt::format("{} ({})", process.name,
                                                             shared_.ids.Label(dump_, device))));
    ProtoText track;
    track.Varint(field::kTrackUuid, uuid).Message(field::kTrackProcess, descriptor);
    PutDescriptor(track);
    return uuid;
  }

  uint64_t ThreadTrack(const Slice& slice, int device) {
    constexpr size_t kMaxThreads = 1'000'000;
    uint32_t pid = shared_.ids.SmallPid(dump_, device, *slice.process);
    uint64_t parent = ProcessTrack(*slice.process, device);
    uint64_t uuid = 0;
    {
      std::lock_guard lock(shared_.mutex);
      if (shared_.threads.size() >= kMaxThreads) return parent;
      auto [it, added] = shared_.threads.try_emplace({pid, slice.tid});
      if (!added) return it->second;
      uuid = it->second = ++shared_.tracks;
    }
    ProtoText track;
    track.Varint(field::kTrackUuid, uuid)
        .Varint(field::kTrackParent, parent)
        .Bytes(field::kTrackName, RepairedText(slice.thread));
    PutDescriptor(track);
    return uuid;
  }

  void Begin(const Slice& slice, int device) {
    bool instant = slice.kind == Slice::Kind::kInstant;
    ProtoText event;
    event.Varint(field::kEventType, instant ? kTypeInstant : kTypeSliceBegin)
        .Varint(field::kEventTrack, ThreadTrack(slice, device))
        .Bytes(field::kEventName, RepairedText(slice.name));
    if (!slice.category.empty()) event.Bytes(field::kEventCategory, slice.category);
    auto named = [](const std::string& name) {
      ProtoText annotation;
      return annotation.Bytes(field::kAnnotationName, RepairedText(name));
    };
    for (const auto& [name, value] : slice.integers) {
      event.Message(field::kEventAnnotation,
                    named(name).Varint(field::kAnnotationInt, static_cast<uint64_t>(value)));
    }
    for (const auto& [name, value] : slice.texts) {
      event.Message(field::kEventAnnotation,
                    named(name).Bytes(field::kAnnotationText, RepairedText(value)));
    }
    for (const auto& [name, value] : slice.numbers) {
      event.Message(field::kEventAnnotation, named(name).Double(field::kAnnotationDouble, value));
    }
    PutTrackEvent(slice.t_ns, event);
  }

  void End(const Slice& slice, int device) {
    ProtoText event;
    event.Varint(field::kEventType, kTypeSliceEnd)
        .Varint(field::kEventTrack, ThreadTrack(slice, device));
    PutTrackEvent(slice.t_ns + slice.dur_ns, event);
  }

  void PutTrackEvent(int64_t t_ns, const ProtoText& event) {
    ProtoText packet;
    packet.Varint(field::kSequenceId, sequence_)
        .Varint(field::kSequenceFlags, kSequenceNeedsState)
        .Message(field::kTrackEvent, event);
    PutEvent(t_ns, packet.text(), {});
  }

  void PutFirst() {
    ProtoText snapshot;
    auto clock = [&](uint64_t id, bool incremental) {
      ProtoText text;
      text.Varint(field::kClockId, id).Varint(field::kClockTimestamp, shared_.begin_ns);
      if (incremental) text.Varint(field::kClockIncremental, 1);
      snapshot.Message(field::kClocks, text);
    };
    clock(kClockBoottime, false);
    clock(kClockRealtime, false);
    clock(kClockSequence, true);
    ProtoText defaults;
    defaults.Varint(field::kTimestampClock, kClockSequence);
    ProtoText packet;
    packet.Varint(field::kTimestamp, shared_.begin_ns)
        .Varint(field::kTimestampClock, kClockBoottime)
        .Varint(field::kSequenceId, sequence_)
        .Varint(field::kSequenceFlags, kSequenceCleared)
        .Message(field::kPacketDefaults, defaults)
        .Message(field::kClockSnapshot, snapshot);
    PutPacket(packet.text());
  }

  void PutDescriptor(const ProtoText& track) {
    ProtoText packet;
    packet.Varint(field::kSequenceId, sequence_).Message(field::kTrackDescriptor, track);
    PutPacket(packet.text());
  }

  void PutPacket(std::string_view packet) {
    char* out = Room(packet.size() + 16);
    if (out == nullptr) return;
    *out++ = kPacketTag;
    out = PutVarint(out, packet.size());
    std::memcpy(out, packet.data(), packet.size());
    used_ = static_cast<size_t>(out + packet.size() - buffer_.get());
  }

  // A packet of a stamp, `body` and `value`.
  void PutEvent(int64_t t_ns, std::string_view body, std::string_view value) {
    auto now = static_cast<uint64_t>(std::max<int64_t>(0, t_ns));
    char stamp[24];
    char* end = stamp;
    *end++ = kTimestampTag;
    if (now >= last_ns_) {
      end = PutVarint(end, now - last_ns_);
      last_ns_ = now;
    } else {
      end = PutVarint(end, now);
      end = PutVarint(end, uint64_t{field::kTimestampClock} << 3);
      end = PutVarint(end, kClockBoottime);
    }
    auto stamp_size = static_cast<size_t>(end - stamp);
    size_t size = stamp_size + body.size() + value.size();
    char* out = Room(size + 16);
    if (out == nullptr) return;
    *out++ = kPacketTag;
    out = PutVarint(out, size);
    std::memcpy(out, stamp, stamp_size);
    std::memcpy(out + stamp_size, body.data(), body.size());
    if (!value.empty()) std::memcpy(out + stamp_size + body.size(), value.data(), value.size());
    used_ = static_cast<size_t>(out + size - buffer_.get());
    ++events_;
  }

  // Null, and the packet left out, when it could never fit: args of an event are untrusted.
  char* Room(size_t size) {
    if (used_ + size > kBufferSize) Flush();
    return size > kBufferSize ? nullptr : buffer_.get() + used_;
  }

  void Flush() {
    if (status_.ok()) status_ = shared_.Append({buffer_.get(), used_});
    used_ = 0;
  }

  Shared& shared_;
  const size_t dump_;
  const int64_t begin_ns_;
  const bool v6_;
  const uint32_t sequence_;
  int device_ = -1;
  Utilization utilization_;
  uint64_t last_ns_;
  std::map<std::pair<TableId, int>, TableState> tables_;
  std::unique_ptr<char[]> buffer_;
  size_t used_ = 0;
  uint64_t events_ = 0;
  Status status_;
};

class PerfettoFormat final : public Format {
 public:
  std::string_view name() const override { return "perfetto"; }
  bool Wants(TableId) const override { return true; }
  bool WantsEvents() const override { return true; }

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
