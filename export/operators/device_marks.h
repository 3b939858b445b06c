// The device's half of an application's marks: when a stream reached them. Records of the step trace with tags of their
// own in `ts_track.data` (operator-data e), by the number of the mark that the host's half has, too.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "export/decoder.h"
#include "export/operators/numbers.h"

namespace profd::exporting::operators {

struct DeviceMark {
  uint64_t mark = 0;
  int64_t start_ns = 0;  // wall clock
  int64_t end_ns = 0;    // the same of a point
  int16_t device = 0;
  uint16_t stream = 0;
  uint32_t task = 0;  // of the start
  std::string text = kNotKnown;  // of the host's half
};

// Of one device.
class DeviceMarkRecords {
 public:
  // `v6`: chips 15 and 16, whose records have the same in other places (dump-format 2.12).
  explicit DeviceMarkRecords(bool v6) : v6_(v6) {}
  void Feed(std::span<const std::byte> ts_track);
  // By number and start. One record of a number is a point, two are a range.
  std::vector<DeviceMark> Finish(int device, const std::function<int64_t(uint64_t)>& clock);

 private:
  struct Record {
    uint64_t mark = 0;
    uint64_t time = 0;
    uint16_t stream = 0;
    uint32_t task = 0;
  };
  bool v6_;
  std::vector<Record> records_;
};

// Of all devices, by number, device and start; without texts.
std::vector<DeviceMark> LoadDeviceMarks(const DumpReader& reader, const DumpInfo& info,
                                        const std::function<ClockMap(const Place&)>& clock_of);
// On the first device that has it; `marks`: as LoadDeviceMarks.
std::optional<Event::Recorded::OnDevice> FindMark(std::span<const DeviceMark> marks, uint64_t mark);
// Their texts, from the host's marks.
void NameDeviceMarks(const DumpReader& reader, const DumpInfo& info, std::vector<DeviceMark>* marks);

}  // namespace profd::exporting::operators
