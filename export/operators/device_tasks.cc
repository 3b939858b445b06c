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
template <class Records, class Flips, class Time>
void NumberBatches(Records* records, const Flips& all_flips, Time time) {
  for (const auto& [stream, flips] : all_flips) {
    const auto [first, end] = EqualRange(*records, stream, &Records::value_type::stream);
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

template <class Records, class Time>
void SortByStream(Records* records, Time time) {
  SortRecords(records, [time](const auto& a, const auto& b) {
    return std::tie(a.stream, a.*time) < std::tie(b.stream, b.*time);
  });
}

}  // namespace

void PmuCountsTable::Pack(const PmuCounts& counts, PmuRecord* into) {
  uint64_t all = counts.cycles;
  for (const uint64_t counter : counts.counters) all |= counter;
  into->wide = all > UINT32_MAX;
  if (into->wide) {
    into->counts[0] = static_cast<uint32_t>(wide_.size());
    wide_.push_back(counts);
    return;
  }
  into->counts[0] = static_cast<uint32_t>(counts.cycles);
  for (size_t i = 0; i < kPmuCounters; ++i) into->counts[1 + i] = static_cast<uint32_t>(counts.counters[i]);
}

PmuCounts PmuCountsTable::Of(const PmuRecord& record) const {
  if (record.wide) return wide_[record.counts[0]];
  PmuCounts made;
  made.cycles = record.counts[0];
  for (size_t i = 0; i < kPmuCounters; ++i) made.counters[i] = record.counts[1 + i];
  return made;
}

void PmuCountsTable::Append(const PmuCountsTable& other, std::span<PmuRecord> records) {
  const auto before = static_cast<uint32_t>(wide_.size());
  wide_.insert(wide_.end(), other.wide_.begin(), other.wide_.end());
  for (PmuRecord& record : records) {
    if (record.wide) record.counts[0] += before;
  }
}

void DeviceTasks::FeedStars(std::span<const std::byte> bytes) {
  for (; bytes.size() >= StarsRecordBytes(); bytes = bytes.subspan(StarsRecordBytes())) {
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
  if (v6_) {
    if (function != kTaskStart && function != kTaskEnd) return;
    task.task = record.U16(4);
    task.stream = record.U16(6);
    task.type = kSqeV6 + sqe;
    return Take(task, record.U64(8), function == kTaskEnd);
  }
  Decode(record.U16(4), record.U16(6), sqe, wide_streams_, &task);
  task.type = sqe;
  if (function == kContextStart || function == kContextEnd) {
    task.context = record.U16(18);
    task.type = record.U16(16) & 0xFF;
  } else if (function != kTaskStart && function != kTaskEnd) {
    return;
  }
  Take(task, record.U64(8), function == kTaskEnd || function == kContextEnd);
}

void DeviceTasks::Take(const DeviceTask& ids, uint64_t time, bool is_end) {
  DeviceTask task = ids;
  const Key key(task.stream, task.task, task.context);
  if (!odd_.empty() && odd_.contains(key)) return Loosen(key, time, is_end, task.type);
  if (!is_end) {
    task.start = time;
    if (!open_.try_emplace(key, task).second) Loosen(key, time, is_end, task.type);
    return;
  }
  const auto started = open_.find(key);
  if (started == open_.end() || time < started->second.start) return Loosen(key, time, is_end, task.type);
  task = started->second;
  task.end = time;
  open_.erase(started);
  tasks.push_back(task);
}

void DeviceTasks::Loosen(const Key& key, uint64_t time, bool is_end, uint16_t type) {
  odd_.insert(key);
  loose_.push_back({key, time, is_end, type});
}

void DeviceTasks::PairLoose() {
  for (const auto& [key, task] : open_) {
    if (odd_.contains(key)) {
      loose_.push_back({key, task.start, false, task.type});
    } else {
      ++unpaired;
    }
  }
  open_.clear();
  if (odd_.empty()) return;
  std::erase_if(tasks, [this](const DeviceTask& task) {
    const Key key(task.stream, task.task, task.context);
    if (!odd_.contains(key)) return false;
    loose_.push_back({key, task.start, false, task.type});
    loose_.push_back({key, task.end, true, task.type});
    return true;
  });
  std::ranges::sort(loose_, [](const Loose& a, const Loose& b) {
    return std::tie(a.key, a.time, a.is_end) < std::tie(b.key, b.time, b.is_end);
  });
  const std::span<const Loose> all = loose_;
  for (size_t begin = 0; begin < all.size();) {
    size_t end = begin;
    while (end < all.size() && all[end].key == all[begin].key) ++end;
    const auto flips = flips_.find(std::get<0>(all[begin].key));
    PairKey(all.subspan(begin, end - begin), flips == flips_.end() ? nullptr : &flips->second);
    begin = end;
  }
  Release(&loose_);
  odd_.clear();
}

// Within a batch of task ids as many starts as ends belong together in their order; else an end belongs to the start
// right before it. An end is of the batch of that start: the id wraps while the task runs.
void DeviceTasks::PairKey(std::span<const Loose> of_key, const std::vector<Flip>* flips) {
  const auto batch_of = [flips](uint64_t time) {
    return flips == nullptr ? 0 : std::ranges::lower_bound(*flips, time, {}, &Flip::time) - flips->begin();
  };
  const auto add = [this](const Loose& start, const Loose& end) {
    const auto [stream, task, context] = start.key;
    tasks.push_back({start.time, end.time, context, stream, task, 0, start.type});
  };
  while (!of_key.empty()) {
    const auto other = std::ranges::find_if(of_key, [&, batch = batch_of(of_key.front().time)](const Loose& record) {
      return !record.is_end && batch_of(record.time) != batch;
    });
    const auto batch = of_key.first(static_cast<size_t>(other - of_key.begin()));
    of_key = of_key.subspan(batch.size());
    std::vector<const Loose*> starts;
    std::vector<const Loose*> ends;
    for (const Loose& record : batch) (record.is_end ? ends : starts).push_back(&record);
    bool positional = starts.size() == ends.size();
    for (size_t i = 0; positional && i < starts.size(); ++i) positional = starts[i]->time <= ends[i]->time;
    if (positional) {
      for (size_t i = 0; i < starts.size(); ++i) add(*starts[i], *ends[i]);
      continue;
    }
    size_t paired = 0;
    for (size_t i = 1; i < batch.size(); ++i) {
      if (batch[i - 1].is_end || !batch[i].is_end) continue;
      add(batch[i - 1], batch[i]);
      paired += 2;
    }
    unpaired += batch.size() - paired;
  }
}

void DeviceTasks::FeedHwts(std::span<const std::byte> bytes) {
  enum : uint8_t { kStart = 0, kEnd = 1 };
  for (; bytes.size() >= kHwtsRecordBytes; bytes = bytes.subspan(kHwtsRecordBytes)) {
    const RecordView record(bytes);
    ++records;
    const uint8_t function = record.U8(0) & 7;
    if (function != kStart && function != kEnd) continue;
    DeviceTask task;
    task.stream = record.U32(16) & 0x7FF;
    task.task = record.U16(6);
    // AI_CORE and AI_CPU, as with STARS; others are known by what the host calls them.
    task.type = record.U8(1) <= 1 ? record.U8(1) : kUnknownSqe;
    Take(task, record.U64(8), function == kEnd);
  }
}

void DeviceTasks::FeedAicore(std::span<const std::byte> bytes) {
  pmu_has_times = false;
  for (; bytes.size() >= kProfileRecordBytes; bytes = bytes.subspan(kProfileRecordBytes)) {
    const RecordView record(bytes);
    ++records;
    PmuRecord& made = pmu.emplace_back();
    made.stream = record.U32(96) & 0x7FF;
    made.task = record.U16(6);
    PmuCounts counts;
    counts.cycles = record.U64(16);
    for (size_t i = 0; i < kPmuCounters; ++i) counts.counters[i] = record.U64(32 + 8 * i);
    pmu_counts.Pack(counts, &made);
  }
}

void DeviceTasks::FeedTsTrack(std::span<const std::byte> bytes) {
  constexpr uint8_t kFlip = 14;
  const uint16_t stream_bits = wide_streams_ ? 0x7FFF : 0x7FF;
  for (; bytes.size() >= kTsTrackRecordBytes; bytes = bytes.subspan(kTsTrackRecordBytes)) {
    const RecordView record(bytes);
    if (record.U8(1) != kFlip) continue;
    const auto stream = static_cast<uint16_t>(record.U16(16) & stream_bits);
    flips_[stream].push_back({record.U64(8), record.U16(22), record.U16(18)});
  }
}

void DeviceTasks::FeedCache(std::span<const std::byte> bytes) {
  for (; bytes.size() >= kCacheRecordBytes; bytes = bytes.subspan(kCacheRecordBytes)) {
    const RecordView record(bytes);
    ++records;
    DeviceTask ids;
    Decode(record.U16(2), record.U16(4), 0, wide_streams_, &ids);
    CacheRecord& made = cache.emplace_back();
    made.stream = ids.stream;
    made.task = ids.task;
    for (size_t i = 0; i < made.counts.size(); ++i) made.counts[i] = record.U64(8 + 8 * i);
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
    PmuCounts counts;
    counts.cycles = record.U64(32);
    for (size_t i = 0; i < kPmuCounters; ++i) counts.counters[i] = record.U64(48 + 8 * i);
    pmu_counts.Pack(counts, &made);
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
  for (auto& [stream, flips] : flips_) {
    std::ranges::stable_sort(flips, {}, &Flip::time);
    FlipNumbers& numbers = flip_numbers[stream];
    for (const Flip& flip : flips) numbers.Add(flip.number);
  }
  PairLoose();
  SortByStream(&tasks, &DeviceTask::start);
  NumberBatches(&tasks, flips_, &DeviceTask::start);
  if (!pmu_has_times) return;
  for (Large<PmuRecord>* counters : {&pmu, &block_pmu}) {
    SortByStream(counters, &PmuRecord::end);
    NumberBatches(counters, flips_, &PmuRecord::end);
  }
}

}  // namespace profd::exporting::operators
