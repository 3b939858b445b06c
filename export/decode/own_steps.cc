#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "dump/mark_files.h"
#include "export/decode/step_trace.h"
#include "export/decode/text_parts.h"

namespace profd::exporting {
namespace {

// ts_track.data: records of 40 bytes, the second one is the type (dump-format 2.12). Only step
// trace is read; the rest is about tasks.
class TsTrackDecoder final : public EventDecoder {
 public:
  explicit TsTrackDecoder(const DecodeContext& context)
      : EventDecoder(context),
        v6_(IsV6(context.place->chip)),
        device_(context.place->device),
        step_parts_(context.step_parts),
        steps_([this](const StepTraceRow& row) { Row(row); }),
        begin_ns_(clock_.HostNs(clock_.facts().begin_raw_ns)),
        end_ns_(clock_.facts().end_us > 0 ? clock_.HostNs(clock_.facts().RecordedToRawNs()) : INT64_MIN) {}

  void Feed(std::span<const std::byte> bytes, bool) override {
    for (; bytes.size() >= kStepRecordBytes; bytes = bytes.subspan(kStepRecordBytes)) {
      Record(bytes.first(kStepRecordBytes));
    }
    stats_.bad_bytes += bytes.size();
  }
  void Finish() override {
    steps_.Finish();
    stats_.unpaired += steps_.dropped();
  }

 private:
  static constexpr std::byte kStepTraceType{10};
  static constexpr int64_t kBorderNs = 1000;

  void Record(std::span<const std::byte> bytes) {
    if (bytes[1] != kStepTraceType) {
      ++stats_.skipped;
      return;
    }
    StepTraceRecord record;
    record.cycles = LoadUnchecked<uint64_t>(bytes, 8);
    record.index = LoadUnchecked<uint64_t>(bytes, 16);
    record.model = LoadUnchecked<uint64_t>(bytes, 24);
    record.stream = LoadUnchecked<uint16_t>(bytes, v6_ ? 34 : 32);
    record.tag = LoadUnchecked<uint16_t>(bytes, v6_ ? 32 : 36);
    ++stats_.records;
    last_ = std::max(last_, record.cycles);
    steps_.Add(record);
  }

  void Row(const StepTraceRow& row) {
    Event event;
    event.kind = row.training_step ? EventKind::kDeviceStep : EventKind::kIteration;
    event.device = device_;
    event.t_ns = row.begun_before ? begin_ns_ : clock_.DeviceCounter(row.start);
    const int64_t last_ns = clock_.DeviceCounter(row.ends_after ? last_ : row.end);
    event.dur_ns = SpanNs(event.t_ns, row.ends_after ? std::max(end_ns_, last_ns) : last_ns);
    // A step that runs when the session starts is recorded as begun at that instant. One that the session waited for
    // begins some time before, and is complete.
    const bool at_begin = row.training_step && SpanNs(begin_ns_, event.t_ns) < kBorderNs && SpanNs(event.t_ns, begin_ns_) < kBorderNs;
    const bool partial = row.ends_after || at_begin;
    if (partial) ++stats_.clipped;
    if (!event_ || !Touches(window_, event)) return;
    event.tid = static_cast<int64_t>(row.model);
    event.value = static_cast<int64_t>(row.iteration);
    event.name = (row.training_step ? "Step " : "Iteration ") + std::to_string(row.iteration);
    if (partial) MarkPartial(&event);
    auto offset = [&](const char* name, uint64_t cycles) {
      event.args.push_back({name, static_cast<double>(Since(event.t_ns, cycles))});
    };
    if (row.training_step && !partial) AddParts(&event);
    if (row.fp_start != 0) offset("FP Start", row.fp_start);
    if (row.bp_end != 0) offset("BP End", row.bp_end);
    if (row.data_aug != 0 && clock_.facts().device_hz > 0) {
      event.args.push_back(
          {"Data Aug Bound", static_cast<double>(row.data_aug) * 1e9 / clock_.facts().device_hz});
    }
    for (const auto& [start, end] : row.reduce) {
      offset("Reduce Start", start);
      offset("Reduce End", end);
    }
    for (const auto& [start, end] : row.get_next) {
      offset("GetNext Start", start);
      offset("GetNext End", end);
    }
    event_(event);
  }
  // Of a training step, whose records say nothing of them.
  void AddParts(Event* event) const {
    const StepParts* const parts = step_parts_ == nullptr ? nullptr : step_parts_->Find(device_, event->t_ns);
    if (parts == nullptr) return;
    auto add = [event](const char* name, int64_t ns) { event->args.push_back({name, static_cast<double>(ns)}); };
    const int64_t begin_ns = event->t_ns;
    if (parts->fp_start_ns != 0) add("FP Start", parts->fp_start_ns - begin_ns);
    if (parts->bp_end_ns != 0) add("BP End", parts->bp_end_ns - begin_ns);
    if (parts->data_aug_ns != 0) add("Data Aug Bound", parts->data_aug_ns);
    for (const auto& [start, end] : parts->reduces) {
      add("Reduce Start", start - begin_ns);
      add("Reduce End", end - begin_ns);
    }
    for (const auto& [start, end] : parts->get_nexts) {
      add("GetNext Start", start - begin_ns);
      add("GetNext End", end - begin_ns);
    }
  }
  int64_t Since(int64_t t_ns, uint64_t cycles) const {
    int64_t then = clock_.DeviceCounter(cycles);
    return static_cast<int64_t>(static_cast<uint64_t>(then) - static_cast<uint64_t>(t_ns));
  }

  bool v6_;
  int device_;
  const StepPartFinder* step_parts_;
  StepTrace steps_;
  int64_t begin_ns_;  // of the session
  int64_t end_ns_;
  uint64_t last_ = 0;  // cycles of the last record
};

}  // namespace

std::span<const DecoderSpec> StepDecoders() {
  constexpr uint32_t kChips = Chips({1, 2, 3, 4, 5, 7, 8, 11, 15, 16});
  static constexpr std::array kSpecs = {DecoderSpec{kStepTraceFile, Place::Kind::kDevice, kChips, kStepRecordBytes, 0, {},
                                                    MakeDecoder<TsTrackDecoder>}};
  return kSpecs;
}

}  // namespace profd::exporting
