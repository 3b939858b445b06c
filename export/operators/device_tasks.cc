#include "export/operators/device_tasks.h"

#include <algorithm>

#include "export/operators/sort_records.h"

namespace profd::exporting::operators {
namespace {

enum : uint16_t { kTaskStart = 0, kTaskEnd = 1, kContextStart = 0b100010, kContextEnd = 0b100011 };
constexpr uint16_t kPlaceHolder = 3;
constexpr uint16_t kEventRecord = 4;

// Stream and task are packed differently where there are many streams.
void Decode(uint16_t s, uint16_t t, uint16_t sqe, bool wide, DeviceTask* out) {
  if (wide) {
    if (sqe == kPlaceHolder || sqe == kEventRecord) {
      out->stream = s & 0x7FFF;
      out->task = t;
    } else if ((s & 0x8000) != 0) {
      out->stream = t & 0x7FFF;
      out->task = static_cast<uint16_t>((t & 0x8000) | (s & 0x7FFF));
    } else {
      out->stream = s;
      out->task = t;
    }
  } else if ((s & 0x1000) != 0) {
    out->stream = s % 2048;
    out->task = static_cast<uint16_t>((t & 0x1FFF) | (s & 0xE000));
  } else if ((s & 0x2000) != 0) {
    out->stream = (t & 0x0FFF) % 2048;
    out->task = static_cast<uint16_t>((s & 0x0FFF) | (t & 0xF000));
  } else {
    out->stream = s % 2048;
    out->task = t;
  }
}

// Numbers the batches of what is sorted by stream and, within it, by `time`: each flip ends one.
template <class Record, class Flips, class Time>
void NumberBatches(std::vector<Record>* records, const Flips& all_flips, Time time) {
  for (const auto& [stream, flips] : all_flips) {
    const auto [first, end] = EqualRange(*records, stream, &Record::stream);
    auto begin = first;
    uint16_t batch = 0;
    for (const auto& flip : flips) {
      // One behind the last that was there by then.
      auto border = std::ranges::upper_bound(first, end, flip.time, {}, time);
      if (flip.task != 0 && flip.task != 0xFFFF) {
        while (border - first > 1 && (border - 1)->task <= flip.task) --border;
      }
      for (; begin < border; ++begin) begin->batch = batch;
      ++batch;
    }
    for (; begin < end; ++begin) begin->batch = batch;
  }
}

template <class Record, class Time>
void SortByStream(std::vector<Record>* records, Time time) {
  SortRecords(records, [time](const Record& a, const Record& b) {
    return std::tie(a.stream, a.*time) < std::tie(b.stream, b.*time);
  });
}

}  // namespace

void DeviceTasks::FeedStars(std::span<const std::byte> bytes) {
  for (; bytes.size() >= kStarsRecordBytes; bytes = bytes.subspan(kStarsRecordBytes)) {
    const RecordView record(bytes);
    if (record.U16(2) != kStarsMagic) {
      ++bad_records;
      continue;
    }
    ++records;
    TakeStars(record);
  }
}

void DeviceTasks::TakeStars(const RecordView& record) {
  const uint16_t function = record.U16(0) & 0x3F;
  const uint16_t sqe = record.U16(0) >> 10;
  DeviceTask task;
  Decode(record.U16(4), record.U16(6), sqe, wide_streams_, &task);
  task.type = sqe;
  if (function == kContextStart || function == kContextEnd) {
    task.context = record.U16(18);
    task.type = record.U16(16) & 0xFF;
  } else if (function != kTaskStart && function != kTaskEnd) {
    return;
  }
  const std::tuple key(task.stream, task.task, task.context);
  if (function == kTaskStart || function == kContextStart) {
    task.start = record.U64(8);
    if (!open_.insert_or_assign(key, task).second) ++unpaired;
    return;
  }
  const auto started = open_.find(key);
  if (started == open_.end()) {
    ++unpaired;
    return;
  }
  task = started->second;
  task.end = record.U64(8);
  open_.erase(started);
  if (task.end < task.start) {
    ++bad_records;
    return;
  }
  tasks.push_back(task);
}

void DeviceTasks::FeedTsTrack(std::span<const std::byte> bytes) {
  constexpr uint8_t kFlip = 14;
  for (; bytes.size() >= kTsTrackRecordBytes; bytes = bytes.subspan(kTsTrackRecordBytes)) {
    const RecordView record(bytes);
    if (record.U8(1) == kFlip) flips_[record.U16(16)].push_back({record.U64(8), record.U16(22)});
  }
}

void DeviceTasks::FeedProfile(std::span<const std::byte> bytes) {
  constexpr uint16_t kContextPmu = 0b101000;
  constexpr uint16_t kBlockPmu = 0b101001;
  constexpr uint16_t kFftsPlus = 4;
  for (; bytes.size() >= kProfileRecordBytes; bytes = bytes.subspan(kProfileRecordBytes)) {
    const RecordView record(bytes);
    const uint16_t function = record.U16(0) & 0x3F;
    if (record.U16(2) != kStarsMagic || (function != kContextPmu && function != kBlockPmu)) {
      ++bad_records;
      continue;
    }
    ++records;
    DeviceTask ids;
    Decode(record.U16(4), record.U16(6), record.U16(0) >> 10, wide_streams_, &ids);
    PmuRecord made;
    made.stream = ids.stream;
    made.task = ids.task;
    made.end = record.U64(120);
    made.counts.cycles = record.U64(32);
    for (size_t i = 0; i < kPmuCounters; ++i) made.counts.counters[i] = record.U64(48 + 8 * i);
    made.sub_type = record.U8(16);
    if (function == kBlockPmu) {
      made.context = record.U16(18);
      made.vector_core = (record.U8(20) & 1) != 0;
      block_pmu.push_back(made);
      continue;
    }
    const uint16_t ffts = record.U16(20) >> 13;
    if (ffts == kFftsPlus) made.context = record.U16(18);
    made.vector_core = ffts == kFftsPlus ? (made.sub_type & 1) != 0 : ffts != 0;
    pmu.push_back(made);
  }
}

void DeviceTasks::Finish() {
  unpaired += open_.size();
  open_.clear();
  for (auto& [stream, flips] : flips_) std::ranges::stable_sort(flips, {}, &Flip::time);
  SortByStream(&tasks, &DeviceTask::start);
  NumberBatches(&tasks, flips_, &DeviceTask::start);
  for (std::vector<PmuRecord>* counters : {&pmu, &block_pmu}) {
    SortByStream(counters, &PmuRecord::end);
    NumberBatches(counters, flips_, &PmuRecord::end);
  }
}

}  // namespace profd::exporting::operators
