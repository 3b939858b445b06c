#include "export/operators/device_marks.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "dump/mark_files.h"
#include "export/decoder.h"
#include "export/file_feeder.h"
#include "export/large.h"
#include "export/operators/device_tasks.h"

namespace profd::exporting::operators {
namespace {

constexpr std::string_view kMarkFile = "additional.msproftx";

// Passes complete records on.
class Taker : public Decoder {
 public:
  explicit Taker(DeviceMarkRecords* into) : into_(into) {}
  void Feed(std::span<const std::byte> bytes, bool) override { into_->Feed(bytes); }
  void Finish() override {}

 private:
  DeviceMarkRecords* into_;
};

// Problems of a file are reported by its own decoder.
void Read(const DumpReader& reader, const DataFile& file, size_t record_bytes, Decoder* decoder) {
  std::vector<std::byte> buffer;
  FileFeeder(reader, record_bytes, &buffer, [](uint64_t) { return true; }).Run(file, decoder);
}

}  // namespace

void DeviceMarkRecords::Feed(std::span<const std::byte> ts_track) {
  constexpr uint8_t kStepTrace = 10;
  // One for both at first; then one of points and one of the ends of ranges.
  constexpr uint16_t kFirstTag = 11;
  constexpr uint16_t kLastTag = 12;
  for (; ts_track.size() >= kTsTrackRecordBytes; ts_track = ts_track.subspan(kTsTrackRecordBytes)) {
    const RecordView record(ts_track);
    const uint16_t tag = record.U16(v6_ ? 32 : 36);
    if (record.U8(1) != kStepTrace || tag < kFirstTag || tag > kLastTag) continue;
    const auto stream = static_cast<uint16_t>(v6_ ? record.U16(34) : record.U16(32) & 0x7FF);
    records_.push_back({record.U64(16), record.U64(8), stream, v6_ ? record.U32(36) : record.U16(34)});
  }
}

std::vector<DeviceMark> DeviceMarkRecords::Finish(int device, const std::function<int64_t(uint64_t)>& clock) {
  std::ranges::stable_sort(records_, [](const Record& a, const Record& b) {
    return std::tie(a.mark, a.time) < std::tie(b.mark, b.time);
  });
  std::vector<DeviceMark> made;
  for (size_t i = 0; i < records_.size(); ++i) {
    const Record& start = records_[i];
    const bool is_range = i + 1 < records_.size() && records_[i + 1].mark == start.mark;
    if (is_range) ++i;
    DeviceMark mark;
    mark.mark = start.mark;
    mark.start_ns = clock(start.time);
    mark.end_ns = clock(records_[i].time);
    mark.device = static_cast<int16_t>(device);
    mark.stream = start.stream;
    mark.task = start.task;
    if (mark.start_ns >= 0 && mark.end_ns >= mark.start_ns) made.push_back(std::move(mark));
  }
  Release(&records_);
  return made;
}

std::vector<DeviceMark> LoadDeviceMarks(const DumpReader& reader, const DumpInfo& info,
                                        const std::function<ClockMap(const Place&)>& clock_of) {
  std::vector<DeviceMark> all;
  for (const Place& place : info.places) {
    if (place.kind != Place::Kind::kDevice) continue;
    const auto file = std::ranges::find(place.files, kStepTraceFile, &DataFile::base);
    if (file == place.files.end()) continue;
    DeviceMarkRecords records(IsV6(place.chip));
    Taker taker(&records);
    Read(reader, *file, kTsTrackRecordBytes, &taker);
    const ClockMap clock = clock_of(place);
    std::ranges::move(records.Finish(place.device, [&clock](uint64_t count) { return clock.DeviceTask(count).ns; }),
                      std::back_inserter(all));
  }
  std::ranges::stable_sort(all, [](const DeviceMark& a, const DeviceMark& b) {
    return std::tie(a.mark, a.device, a.start_ns) < std::tie(b.mark, b.device, b.start_ns);
  });
  return all;
}

std::optional<Event::Recorded::OnDevice> FindMark(std::span<const DeviceMark> marks, uint64_t mark) {
  const auto found = std::ranges::lower_bound(marks, mark, {}, &DeviceMark::mark);
  if (found == marks.end() || found->mark != mark) return std::nullopt;
  return Event::Recorded::OnDevice{found->start_ns, found->end_ns};
}

void NameDeviceMarks(const DumpReader& reader, const DumpInfo& info, std::vector<DeviceMark>* marks) {
  const Place* host = info.Find(Place::Kind::kHost, -1);
  if (host == nullptr || marks->empty()) return;
  DecodeContext context;
  context.event = [marks](const Event& event) {
    if (!event.recorded || !event.recorded->is_ex) return;
    const auto [first, end] = EqualRange(*marks, event.recorded->mark, &DeviceMark::mark);
    for (auto mark = first; mark != end; ++mark) mark->text = event.name;
  };
  for (const DataFile& file : host->files) {
    const DecoderSpec* spec = FindDecoder(file.base, Place::Kind::kHost);
    if (spec == nullptr || !file.base.ends_with(kMarkFile)) continue;
    Read(reader, file, spec->record_size, spec->make(context).get());
  }
}

}  // namespace profd::exporting::operators
