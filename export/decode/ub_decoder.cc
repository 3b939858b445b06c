#include "driver/abi/records.h"
#include "export/decode/device_families.h"
#include "export/decode/record_decoder.h"

namespace profd::exporting {
namespace {

namespace layout = abi::ub_record;

// One row per record.
class UbDecoder final : public RecordDecoder<UbDecoder, layout::kSize> {
 public:
  explicit UbDecoder(const DecodeContext& context)
      : RecordDecoder(layout::kSize),
        clock_(context.clock),
        rows_(TableOf(TableId::kUb), context.place->device, context.window, *context.rows) {}

  bool DecodeRecord(Record record) {
    if (LoadUnchecked<uint16_t>(record, layout::kMagic) != layout::kMagicValue) return false;
    auto us = LoadUnchecked<uint64_t>(record, layout::kMicros);
    if (us > kMaxPlausibleMicros) return false;
    std::array<uint64_t, 1 + layout::kValueCount> cells;
    cells[0] = LoadUnchecked<uint16_t>(record, layout::kPort);
    std::memcpy(cells.data() + 1, record.data() + layout::kValues,
                layout::kValueCount * sizeof(uint64_t));
    if (!std::ranges::all_of(cells, FitsInt64)) return false;
    // Unlike the other stamps in microseconds this one is exact.
    uint64_t device_ns = static_cast<uint64_t>(clock_.facts().device_ns) + us * 1000;
    rows_.AddCells(clock_.DeviceNs(static_cast<int64_t>(device_ns)), cells);
    return true;
  }
  void FinishRows() { rows_.Flush(); }

 private:
  ClockMap clock_;
  BatchBuilder rows_;
};

}  // namespace

std::unique_ptr<Decoder> MakeUbDecoder(const DecodeContext& context) {
  return std::make_unique<UbDecoder>(context);
}

}  // namespace profd::exporting
