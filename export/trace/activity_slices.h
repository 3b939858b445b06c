// What training processes did as both timelines show it: slices on a lane per device and stream, or per
// thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "export/batch.h"
#include "export/dump_info.h"
#include "export/event.h"
#include "export/strings.h"
#include "export/trace/slices.h"

namespace profd::exporting {

// Of one data file; one thread.
class ActivitySlices {
 public:
  // Both outlive it.
  ActivitySlices(const DumpInfo& dump, const Strings& strings) : dump_(dump), strings_(strings) {}

  struct Owned {
    Slice slice;
    Event owner;  // as OwnerOf has it
  };
  // None for the begin of a range, which is shown when it has ended.
  std::optional<Slice> Of(const Batch& batch, size_t row);
  // After the last row: ranges that have not ended, clipped where the recording (`end_us`; 0 = not known) or the window ends,
  // or at the last marker where that is later.
  std::vector<Owned> OpenRanges(int64_t end_us, const TimeWindow& window);
  // Whose row it is: pid, rank and device.
  static Event OwnerOf(const Batch& batch, size_t row);

 private:
  struct Lane {
    int64_t tid = 0;
    std::string thread;
    std::string track;
  };
  struct Marker {
    int64_t t_ns = 0;
    std::string name;
    std::string domain;
    int64_t thread = 0;
  };
  Slice Base(const Batch& batch, size_t row, const ProcessSpec& process, const Lane& lane) const;
  const Lane& StreamLane(int device, int64_t pid, int64_t stream, std::string_view kind, int64_t first_tid);
  const Lane& ThreadLane(int64_t pid, int64_t rank, int64_t thread);
  // With the texts of its range or host half: the vendor's ends and device halves have none.
  Marker MarkerOf(const Batch& batch, size_t row);
  std::optional<Slice> OfMarker(const Batch& batch, size_t row);
  Slice SliceOf(const Batch& batch, size_t row, const Marker& marker);
  // Of a row with a correlation: of an API call, whether its thread launched something in it.
  Slice::FlowEnd FlowEndOf(const Batch& batch, size_t row, const Slice& slice);
  std::string Text(const Batch& batch, size_t column, size_t row) const;

  const DumpInfo& dump_;
  const Strings& strings_;
  // By device, pid, stream and first tid; by pid and thread (device -2).
  std::map<std::tuple<int, int64_t, int64_t, int64_t>, Lane> lanes_;
  // The call that launched what a thread launched last, by pid and thread.
  struct Launch {
    int64_t correlation = 0;
    int64_t begin_ns = 0;
    int64_t end_ns = 0;
  };
  std::map<std::pair<int64_t, int64_t>, Launch> launches_;
  // Ranges that have begun, by pid, id and source; and ends whose begin was not there before them: the vendor's buffers
  // overtake each other (in-application 2.8).
  std::map<std::tuple<int64_t, int64_t, int64_t>, Owned> open_;
  std::map<std::tuple<int64_t, int64_t, int64_t>, int64_t> ended_;
  int64_t last_marker_ns_ = 0;
  // Those with a name by pid and id; and as many before them, since the device's halves come later.
  std::map<std::pair<int64_t, int64_t>, Marker> marked_;
  std::map<std::pair<int64_t, int64_t>, Marker> marked_before_;
};

}  // namespace profd::exporting
