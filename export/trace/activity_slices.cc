#include "export/trace/activity_slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace profd::exporting {
namespace {

// Files are untrusted: when there are more, those before are forgotten.
constexpr size_t kMaxLanes = 65'536;
constexpr size_t kMaxOpen = 65'536;
// Thread ids on a device: the stream as with the vendor, then those of what lies beside kernels.
constexpr int64_t kMemoryTid = 1 << 20;
constexpr int64_t kMarkerTid = 1 << 21;
constexpr int64_t kNextProcess = 1 << 22;
constexpr int64_t kStreamMask = kMemoryTid - 1;

int64_t Cell(const Batch& batch, size_t row, std::string_view column) {
  return batch.Ints(static_cast<size_t>(ColumnIndex(*batch.table, column)))[row];
}

const ProcessSpec& ProcessOf(const Batch& batch) {
  return LayoutOf(batch.device < 0 ? TableId::kApi : batch.table->id, false).process;
}

}  // namespace

Event ActivitySlices::OwnerOf(const Batch& batch, size_t row) {
  Event owner;
  owner.device = batch.device;
  owner.pid = Cell(batch, row, "pid");
  const int64_t rank = Cell(batch, row, "rank");
  if (rank >= 0) owner.rank = static_cast<int>(rank);
  return owner;
}

std::string ActivitySlices::Text(const Batch& batch, size_t column, size_t row) const {
  const Column& spec = batch.table->columns[column];
  const int64_t cell = batch.Ints(column)[row];
  return std::string(spec.type == ColumnType::kName ? strings_.Text(cell) : KeyText(spec, cell));
}

const ActivitySlices::Lane& ActivitySlices::StreamLane(int device, int64_t pid, int64_t stream,
                                                       std::string_view kind, int64_t first_tid) {
  if (lanes_.size() >= kMaxLanes) lanes_.clear();
  Lane& lane = lanes_[{device, pid, stream, first_tid}];
  if (!lane.thread.empty()) return lane;
  // Streams of several processes on one device have the same numbers.
  int64_t number = 0;
  if (dump_.manifest) {
    for (const ManifestProcess& process : dump_.manifest->processes) {
      if (process.pid == pid) break;
      number += std::ranges::find(process.devices, device) != process.devices.end() ? 1 : 0;
    }
  }
  lane.thread = std::string(kind);
  if (stream >= 0) lane.thread += fmt::format("{}Stream {}", kind.empty() ? "" : ", ", stream);
  if (lane.thread.empty()) lane.thread = "No stream";
  if (number > 0 || device < 0) lane.thread += fmt::format(" ({})", dump_.ProcessName(pid, {}));
  lane.track = lane.thread;
  lane.tid = first_tid + (stream & kStreamMask) + number % 256 * kNextProcess;
  return lane;
}

const ActivitySlices::Lane& ActivitySlices::ThreadLane(int64_t pid, int64_t rank, int64_t thread) {
  if (lanes_.size() >= kMaxLanes) lanes_.clear();
  Lane& lane = lanes_[{-2, pid, thread, 0}];
  if (!lane.thread.empty()) return lane;
  lane.track = fmt::format("API calls of thread {}", thread);
  lane.thread = fmt::format("{}: thread {}",
                            dump_.ProcessName(pid, rank < 0 ? std::nullopt : std::optional(static_cast<int>(rank))),
                            thread);
  // Numbers of threads are those of the process's own pid namespace: each for itself.
  const auto mixed = (static_cast<uint64_t>(pid) * 0x9E3779B97F4A7C15U) ^ static_cast<uint64_t>(thread);
  lane.tid = static_cast<int64_t>((mixed ^ mixed >> 32) & 0x3FFFFFFF);
  return lane;
}

Slice ActivitySlices::Base(const Batch& batch, size_t row, const ProcessSpec& process, const Lane& lane) const {
  Slice slice;
  slice.process = &process;
  slice.tid = lane.tid;
  slice.thread = lane.thread;
  slice.track = lane.track;
  slice.track_order = 1;
  slice.name = Text(batch, 0, row);
  slice.t_ns = batch.t_ns[row];
  const int64_t rank = Cell(batch, row, "rank");
  if (rank >= 0) slice.integers.emplace_back("rank", rank);
  slice.integers.emplace_back("pid", Cell(batch, row, "pid"));
  return slice;
}

ActivitySlices::Marker ActivitySlices::MarkerOf(const Batch& batch, size_t row) {
  Marker marker = {batch.t_ns[row], Text(batch, 0, row), Text(batch, 1, row), Cell(batch, row, "thread")};
  const auto key = std::pair(Cell(batch, row, "pid"), Cell(batch, row, "id"));
  if (!marker.name.empty()) {
    if (marked_.size() >= kMaxOpen) marked_before_ = std::exchange(marked_, {});
    marked_[key] = marker;
    return marker;
  }
  for (const auto* marked : {&marked_, &marked_before_}) {
    const auto host = marked->find(key);
    if (host == marked->end()) continue;
    marker.name = host->second.name;
    marker.domain = host->second.domain;
    break;
  }
  return marker;
}

Slice ActivitySlices::SliceOf(const Batch& batch, size_t row, const Marker& marker) {
  const int64_t pid = Cell(batch, row, "pid");
  const Lane& lane = batch.device < 0
                         ? ThreadLane(pid, Cell(batch, row, "rank"), marker.thread)
                         : StreamLane(batch.device, pid, Cell(batch, row, "stream"), "Markers", kMarkerTid);
  Slice slice = Base(batch, row, ProcessOf(batch), lane);
  // Not the row of the calls: markers are of another file, and one file alone knows what is open on a row.
  if (batch.device < 0) slice.track = fmt::format("Markers of thread {}", marker.thread);
  slice.name = marker.name;
  slice.category = marker.domain;
  slice.integers.emplace_back("id", Cell(batch, row, "id"));
  return slice;
}

std::optional<Slice> ActivitySlices::OfMarker(const Batch& batch, size_t row) {
  const int64_t kind = Cell(batch, row, "kind");
  const auto key = std::tuple(Cell(batch, row, "pid"), Cell(batch, row, "id"), Cell(batch, row, "source"));
  const Marker marker = MarkerOf(batch, row);
  last_marker_ns_ = std::max(last_marker_ns_, marker.t_ns);
  if (kind == 1) {
    Slice range = SliceOf(batch, row, marker);
    if (const auto end = ended_.find(key); end != ended_.end() && end->second >= marker.t_ns) {
      range.dur_ns = end->second - marker.t_ns;
      ended_.erase(end);
      return range;
    }
    if (open_.size() >= kMaxOpen) open_.clear();
    open_[key] = {std::move(range), OwnerOf(batch, row)};
    return std::nullopt;
  }
  if (kind != 2) {
    Slice slice = SliceOf(batch, row, marker);
    slice.kind = Slice::Kind::kInstant;
    return slice;
  }
  // A range is of the thread that it began on.
  const auto begin = open_.find(key);
  if (begin == open_.end()) {
    if (ended_.size() >= kMaxOpen) ended_.clear();
    ended_[key] = marker.t_ns;
    return std::nullopt;
  }
  Slice slice = std::move(begin->second.slice);
  open_.erase(begin);
  // The vendor's clock may step back (in-application 2.7).
  slice.dur_ns = std::max<int64_t>(marker.t_ns - slice.t_ns, 0);
  return slice;
}

std::vector<ActivitySlices::Owned> ActivitySlices::OpenRanges(int64_t end_us, const TimeWindow& window) {
  constexpr int64_t kMostUs = std::numeric_limits<int64_t>::max() / 1000;
  const int64_t end_ns = std::max(std::min(std::min(end_us, kMostUs) * 1000, window.to_ns), last_marker_ns_);
  std::vector<Owned> ranges;
  for (auto& [key, open] : std::exchange(open_, {})) {
    open.slice.dur_ns = end_ns - open.slice.t_ns;
    open.slice.name += kPartial;
    ranges.push_back(std::move(open));
  }
  return ranges;
}

// Calls that launch nothing have the number of what their thread launched before. Calls are reported as they end: the
// first one with a number launched it, and so did those around that one.
Slice::FlowEnd ActivitySlices::FlowEndOf(const Batch& batch, size_t row, const Slice& slice) {
  if (batch.table->id != TableId::kApi) return Slice::FlowEnd::kTo;
  const int64_t correlation = Cell(batch, row, "correlation");
  if (launches_.size() >= kMaxLanes) launches_.clear();
  Launch& last = launches_[{Cell(batch, row, "pid"), Cell(batch, row, "thread")}];
  if (last.correlation != correlation) {
    last = {correlation, slice.t_ns, slice.t_ns + slice.dur_ns};
    return Slice::FlowEnd::kFrom;
  }
  const bool around = slice.t_ns <= last.begin_ns && slice.t_ns + slice.dur_ns >= last.end_ns;
  return around ? Slice::FlowEnd::kAround : Slice::FlowEnd::kNone;
}

std::optional<Slice> ActivitySlices::Of(const Batch& batch, size_t row) {
  const TableId table = batch.table->id;
  if (table == TableId::kMarker) return OfMarker(batch, row);
  const int64_t pid = Cell(batch, row, "pid");
  const int64_t correlation = Cell(batch, row, "correlation");
  const bool api = table == TableId::kApi;
  const bool memory = table == TableId::kMemory;
  const int64_t stream = api ? -1 : Cell(batch, row, "stream");
  const Lane& lane = api ? ThreadLane(pid, Cell(batch, row, "rank"), Cell(batch, row, "thread"))
                         : StreamLane(batch.device, pid, stream,
                                      memory                              ? "Memory"
                                      : table == TableId::kCommunication ? "Communication"
                                                                         : "",
                                      memory ? kMemoryTid : 0);
  Slice slice = Base(batch, row, ProcessOf(batch), lane);
  slice.dur_ns = Cell(batch, row, "duration");
  if (stream >= 0) slice.integers.emplace_back("stream", stream);
  if (correlation != 0) slice.integers.emplace_back("correlation", correlation);
  if (table == TableId::kKernel) slice.texts.emplace_back("type", Text(batch, 1, row));
  if (api) slice.texts.emplace_back("level", Text(batch, 1, row));
  if (table == TableId::kCommunication) {
    slice.texts.emplace_back("communicator", Text(batch, 1, row));
    slice.texts.emplace_back("algorithm", Text(batch, 2, row));
    slice.integers.emplace_back("count", Cell(batch, row, "count"));
  }
  if (memory) slice.integers.emplace_back("bytes", Cell(batch, row, "bytes"));
  // A flow begins where the call begins: the kernel may run before it has returned.
  if (correlation != 0 && !memory) {
    slice.flow_end = FlowEndOf(batch, row, slice);
    slice.flow = fmt::format("{}_{}", pid, static_cast<uint64_t>(correlation));
  }
  return slice;
}

}  // namespace profd::exporting
