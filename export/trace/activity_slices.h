// What training processes did as both timelines show it: slices on a lane per device and stream, or per
// thread.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
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

  // Appends the slices of a row: none for the begin of a range, which is shown when it has ended.
  void Of(const Batch& batch, size_t row, std::vector<Slice>* out);
  // Whose row it is: pid, rank and device.
  static Event OwnerOf(const Batch& batch, size_t row);

 private:
  struct Lane {
    int64_t tid = 0;
    std::string thread;
    std::string track;
  };
  Slice Base(const Batch& batch, size_t row, const ProcessSpec& process, const Lane& lane) const;
  const Lane& StreamLane(int device, int64_t pid, int64_t stream, std::string_view kind, int64_t first_tid);
  const Lane& ThreadLane(int64_t pid, int64_t rank, int64_t thread);
  void OfMarker(const Batch& batch, size_t row, std::vector<Slice>* out);
  std::string Text(const Batch& batch, size_t column, size_t row) const;

  const DumpInfo& dump_;
  const Strings& strings_;
  // By device, pid, stream and first tid; by pid and thread (device -2).
  std::map<std::tuple<int, int64_t, int64_t, int64_t>, Lane> lanes_;
  // Begins of ranges by pid, id and source.
  std::map<std::tuple<int64_t, int64_t, int64_t>, int64_t> open_;
};

}  // namespace profd::exporting
