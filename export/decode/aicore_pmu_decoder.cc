#include "driver/abi/records.h"
#include "export/decode/device_families.h"
#include "export/decode/record_decoder.h"

namespace profd::exporting {
namespace {

namespace layout = abi::aicore_sample_record;

enum class CoreType : uint8_t { kAicore, kVector, kById };

// Sample-based counters: one row per record and core.
class AicoreSampleDecoder final : public RecordDecoder<AicoreSampleDecoder, layout::kSizeV6> {
 public:
  AicoreSampleDecoder(const DecodeContext& context, CoreType type)
      : RecordDecoder(IsV6(context.place->chip) ? layout::kSizeV6 : layout::kSize),
        v6_(IsV6(context.place->chip)),
        type_(type),
        clock_(context.clock),
        counter_clock_(context.clock),
        rows_(TableOf(TableId::kAicorePmu), context.place->device, context.window, *context.rows) {}

  bool DecodeRecord(Record record) {
    size_t events = v6_ ? layout::kEventCountV6 : layout::kEventCount;
    Record rest = record.subspan(layout::kEvents + events * sizeof(uint64_t));
    auto used = LoadUnchecked<uint8_t>(rest, layout::kCountNum);
    auto core = LoadUnchecked<uint8_t>(rest, layout::kCore);
    auto cycles = LoadUnchecked<uint64_t>(rest, layout::kCycles);
    int64_t t_ns = 0;
    if (LoadUnchecked<uint8_t>(record, layout::kMode) == 0 || used > events || !FitsInt64(cycles) ||
        !GetTime(LoadUnchecked<uint64_t>(rest, layout::kStamp), &t_ns)) {
      return false;
    }
    std::array<uint64_t, 2 + layout::kEventCountV6 + 2> cells{};
    cells[0] = core;
    cells[1] = TypeOf(core) == CoreType::kVector ? 1 : 0;
    std::memcpy(cells.data() + 2, record.data() + layout::kEvents, used * sizeof(uint64_t));
    for (size_t i = 0; i < used; ++i) {
      if (!FitsInt64(cells[2 + i])) return false;
    }
    cells[2 + layout::kEventCountV6] = cycles;
    cells[3 + layout::kEventCountV6] = used;
    rows_.AddCells(t_ns, cells);
    return true;
  }
  void FinishRows() { rows_.Flush(); }

 private:
  bool GetTime(uint64_t stamp, int64_t* t_ns) const {
    if (v6_) {
      double ns = 0;
      if (!counter_clock_.Get(stamp, &ns)) return false;
      *t_ns = counter_clock_.Wall(ns);
      return true;
    }
    if (stamp > kMaxPlausibleNs) return false;
    *t_ns = clock_.DeviceNs(static_cast<int64_t>(stamp));
    return true;
  }
  CoreType TypeOf(uint8_t core) const {
    if (type_ != CoreType::kById) return type_;
    uint8_t last = v6_ ? layout::kLastAicoreIdV6 : layout::kLastAicoreId;
    return core > last ? CoreType::kVector : CoreType::kAicore;
  }

  bool v6_;
  CoreType type_;
  ClockMap clock_;
  CounterClock counter_clock_;
  BatchBuilder rows_;
};

// Task-based: counters of single tasks, which nothing here shows.
class TaskPmuDecoder final : public Decoder {
 public:
  void Feed(std::span<const std::byte> bytes, bool /*slice_start*/) override {
    bytes_ += bytes.size();
  }
  void Finish() override { stats_.skipped = bytes_ / abi::kTaskPmuRecordBytes; }

 private:
  uint64_t bytes_ = 0;
};

std::unique_ptr<Decoder> Make(const DecodeContext& context, CoreType type) {
  if (context.place->aicore_mode != "sample-based") return std::make_unique<TaskPmuDecoder>();
  return std::make_unique<AicoreSampleDecoder>(context, type);
}

}  // namespace

std::unique_ptr<Decoder> MakeAicoreDecoder(const DecodeContext& context) {
  return Make(context, CoreType::kAicore);
}

std::unique_ptr<Decoder> MakeAivDecoder(const DecodeContext& context) {
  return Make(context, CoreType::kVector);
}

std::unique_ptr<Decoder> MakeFftsDecoder(const DecodeContext& context) {
  return Make(context, CoreType::kById);
}

}  // namespace profd::exporting
