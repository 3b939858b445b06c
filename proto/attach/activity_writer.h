// The producer's end of the activity ring (proto/attach/activity_ring.h): gathers records into frames,
// one frame of each type at a time, and publishes them. Never waits. One thread at a time; another
// process reads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

#include "proto/attach/activity_names.h"
#include "proto/attach/activity_ring.h"

namespace profd::attach {

// The power of two that serves a wish for so many bytes; 0 = the default.
constexpr uint64_t ActivityBytesFor(uint64_t bytes) {
  if (bytes == 0) return kDefaultActivityBytes;
  uint64_t size = kMinActivityBytes;
  while (size < bytes && size < kMaxActivityBytes) size *= 2;
  return size;
}

class ActivityWriter {
 public:
  // `memory`: ActivityRingBytes(bytes) zeroed bytes aligned to a page that no process has seen yet
  // and that outlive the writer; `bytes` as ActivityBytesFor gives it.
  ActivityWriter(void* memory, uint64_t bytes, int64_t real_ns, int64_t raw_ns)
      // cppcheck-suppress noDestructor  // the memory is the caller's
      : ring_(new (memory) ActivityRing{}),
        frames_(static_cast<std::byte*>(memory) + kActivityHeaderBytes),
        bytes_(bytes) {
    ring_->version = kActivityVersion;
    ring_->bytes = bytes;
    ring_->made_real_ns = real_ns;
    ring_->made_raw_ns = raw_ns;
    ring_->magic = kActivityMagic;
  }

  ActivityWriter(const ActivityWriter&) = delete;
  ActivityWriter& operator=(const ActivityWriter&) = delete;

  uint32_t Intern(const char* text_or_null) { return names_.Intern(text_or_null); }

  // A record that happened at start_ns (CLOCK_MONOTONIC_RAW); sets its `start`.
  template <class Record>
  void AddAt(int64_t start_ns, Record record) {
    Stage& stage = StageOf<Record>();
    if (stage.count > 0 &&
        (Offset(start_ns, stage.base_ns) > UINT32_MAX || IsFull<Record>(stage))) {
      FlushStage(kTypeOf<Record>);
    }
    // Records come out of order: some of the next may have started before.
    if (stage.count == 0) {
      stage.Begin(start_ns, static_cast<int64_t>(Offset(start_ns, kBeforeFirstNs)));
    }
    record.start = static_cast<uint32_t>(Offset(start_ns, stage.base_ns));
    if (start_ns < stage.from_ns) stage.from_ns = start_ns;
    if (start_ns > stage.to_ns) stage.to_ns = start_ns;
    stage.Append(record);
  }
  // A record without a time of its own.
  template <class Record>
  void Add(const Record& record, int64_t now_ns) {
    Stage& stage = StageOf<Record>();
    if (stage.count > 0 && IsFull<Record>(stage)) FlushStage(kTypeOf<Record>);
    if (stage.count == 0) stage.Begin(now_ns, now_ns);
    stage.to_ns = now_ns;
    stage.Append(record);
  }

  // Bytes of the vendor's records that are none of ours.
  void CountLostBytes(LossReason reason, uint64_t bytes, int64_t now_ns) {
    if (bytes == 0) return;
    ring_->lost_bytes.fetch_add(bytes, std::memory_order_relaxed);
    Note(ActivityType::kPad, reason, bytes, now_ns, now_ns);
  }
  void SetCost(uint64_t cpu_ns) { ring_->cost_ns.store(cpu_ns, std::memory_order_relaxed); }
  void CountClamped() { ring_->clamped.fetch_add(1, std::memory_order_relaxed); }

  // Publishes what was added, and the losses that were not reported yet.
  void Flush() {
    ring_->names_refused.store(names_.refused(), std::memory_order_relaxed);
    // Clocks before what was converted with them.
    FlushStage(ActivityType::kClock);
    for (size_t type = 0; type < kActivityTypes; ++type) {
      FlushStage(static_cast<ActivityType>(type));
    }
    PutNames();
    PutLosses();
  }

  uint64_t published() const { return ring_->records.load(std::memory_order_relaxed); }
  uint64_t dropped() const {
    uint64_t sum = 0;
    for (const auto& count : ring_->dropped) sum += count.load(std::memory_order_relaxed);
    return sum;
  }
  uint64_t lost_bytes() const { return ring_->lost_bytes.load(std::memory_order_relaxed); }
  uint64_t clamped() const { return ring_->clamped.load(std::memory_order_relaxed); }

 private:
  // 400 kernels.
  static constexpr size_t kStageBytes = size_t{16} << 10;
  static constexpr int64_t kBeforeFirstNs = int64_t{1} << 30;
  static_assert(kFrameHeadBytes + kStageBytes <= kMaxFrameBytes);
  static_assert(kFrameHeadBytes + sizeof(NameHead) + kMaxActivityNameBytes <= kStageBytes);

  struct Stage {
    void Begin(int64_t first_ns, int64_t base) {
      from_ns = to_ns = first_ns;
      base_ns = base;
      used = 0;
    }
    template <class Record>
    void Append(const Record& record) {
      std::memcpy(records.data() + used, &record, sizeof record);
      used += sizeof record;
      ++count;
    }
    uint16_t count = 0;
    size_t used = 0;
    int64_t base_ns = 0, from_ns = 0, to_ns = 0;
    std::array<std::byte, kStageBytes> records;
  };
  struct Stages {
    std::array<Stage, kActivityTypes> of;
  };

  template <class Record>
  Stage& StageOf() {
    static_assert(kTypeOf<Record> != ActivityType::kPad);
    static_assert(sizeof(Record) % 8 == 0 && sizeof(Record) <= kStageBytes);
    return stages_->of[static_cast<size_t>(kTypeOf<Record>)];
  }
  template <class Record>
  static bool IsFull(const Stage& stage) {
    return stage.used + sizeof(Record) > kStageBytes;
  }
  // More than 32 bits also for what lies before.
  static uint64_t Offset(int64_t start_ns, int64_t base_ns) {
    return static_cast<uint64_t>(start_ns) - static_cast<uint64_t>(base_ns);
  }

  void FlushStage(ActivityType type) {
    Stage& stage = stages_->of[static_cast<size_t>(type)];
    if (stage.count == 0) return;
    PutNames();
    PutLosses();
    std::byte* at = Reserve(kFrameHeadBytes + stage.used);
    if (at == nullptr) {
      ring_->dropped[static_cast<size_t>(type)].fetch_add(stage.count, std::memory_order_relaxed);
      Note(type, LossReason::kRingFull, stage.count, stage.from_ns, stage.to_ns);
    } else {
      PutHead(at, stage.used, type, stage.count, stage.base_ns);
      std::memcpy(at + kFrameHeadBytes, stage.records.data(), stage.used);
      Publish(kFrameHeadBytes + stage.used, stage.count);
    }
    stage.count = 0;
  }

  void PutNames() {
    const uint64_t generation = ring_->generation.load(std::memory_order_acquire);
    if (std::exchange(generation_, generation) != generation) names_sent_ = 0;
    while (names_sent_ < names_.count()) {
      size_t used = 0;
      uint32_t end = names_sent_;
      while (end < names_.count() && used + BytesOf(end + 1) <= kStageBytes) {
        used += BytesOf(++end);
      }
      std::byte* at = Reserve(kFrameHeadBytes + used);
      if (at == nullptr) return;
      PutHead(at, used, ActivityType::kNames, static_cast<uint16_t>(end - names_sent_), 0);
      std::byte* to = at + kFrameHeadBytes;
      for (uint32_t id = names_sent_ + 1; id <= end; ++id) {
        const std::string_view name = names_.Name(id);
        const NameHead head{id, static_cast<uint16_t>(name.size()), 0};
        std::memset(to + BytesOf(id) - 8, 0, 8);
        std::memcpy(to, &head, sizeof head);
        std::memcpy(to + sizeof head, name.data(), name.size());
        to += BytesOf(id);
      }
      names_sent_ = end;
      Publish(kFrameHeadBytes + used, 0);
    }
  }
  size_t BytesOf(uint32_t id) const { return sizeof(NameHead) + AlignedUp8(names_.Name(id).size()); }

  void PutLosses() {
    if (losses_ == 0) return;
    const size_t used = losses_ * sizeof(LossRecord);
    std::byte* at = Reserve(kFrameHeadBytes + used);
    if (at == nullptr) return;
    PutHead(at, used, ActivityType::kLoss, static_cast<uint16_t>(losses_), 0);
    std::memcpy(at + kFrameHeadBytes, loss_.data(), used);
    Publish(kFrameHeadBytes + used, 0);
    losses_ = 0;
  }

  void Note(ActivityType type, LossReason reason, uint64_t count, int64_t from_ns, int64_t to_ns) {
    const auto number = static_cast<uint16_t>(type);
    const auto why = static_cast<uint16_t>(reason);
    for (size_t i = 0; i < losses_; ++i) {
      LossRecord& loss = loss_[i];
      if (loss.type != number || loss.reason != why) continue;
      loss.count += count;
      if (from_ns < loss.from_ns) loss.from_ns = from_ns;
      if (to_ns > loss.to_ns) loss.to_ns = to_ns;
      return;
    }
    loss_[losses_++] = {number, why, 0, count, from_ns, to_ns};
  }

  static void PutHead(std::byte* at, size_t used, ActivityType type, uint16_t count, int64_t base) {
    const FrameHead head{static_cast<uint32_t>(kFrameHeadBytes + used), static_cast<uint16_t>(type),
                         count, base};
    std::memcpy(at, &head, sizeof head);
  }

  // Space for a frame in one piece, behind a pad if needed; null when there is none. Nothing of it is
  // seen before Publish.
  std::byte* Reserve(size_t length) {
    const uint64_t position = head_ & (bytes_ - 1);
    const uint64_t to_end = bytes_ - position;
    const uint64_t pad = length > to_end ? to_end : 0;
    if (!HasSpace(pad + length)) {
      tail_ = ring_->tail.load(std::memory_order_acquire);
      if (!HasSpace(pad + length)) return nullptr;
    }
    if (pad > 0) {
      const FrameHead head{static_cast<uint32_t>(pad), 0, 0, 0};
      std::memcpy(frames_ + position, &head, kPadHeadBytes);
      head_ += pad;
    }
    return frames_ + (head_ & (bytes_ - 1));
  }
  // A tail that is ahead of us is none: as good as full.
  bool HasSpace(uint64_t length) const {
    const uint64_t used = head_ - tail_;
    return used <= bytes_ && length <= bytes_ - used;
  }

  void Publish(size_t length, size_t records) {
    head_ += length;
    ring_->records.fetch_add(records, std::memory_order_relaxed);
    ring_->head.store(head_, std::memory_order_release);
  }

  ActivityRing* ring_;
  std::byte* frames_;
  uint64_t bytes_;
  uint64_t head_ = 0;
  uint64_t tail_ = 0;  // as last seen
  uint64_t generation_ = 0;
  uint32_t names_sent_ = 0;
  ActivityNames names_;
  std::unique_ptr<Stages> stages_ = std::make_unique<Stages>();
  // One for each type that was dropped and for each reason without a type.
  std::array<LossRecord, kActivityTypes + 4> loss_{};
  size_t losses_ = 0;
};

}  // namespace profd::attach
