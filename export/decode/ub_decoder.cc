#include "driver/records/ub.h"
#include "export/decode/decoder_groups.h"
#include "export/decode/record_decoder.h"

namespace profd::exporting {
namespace {

using records::UbRecord;

// One row per record.
class UbDecoder final : public RecordDecoder<UbDecoder, UbRecord> {
 public:
  explicit UbDecoder(const DecodeContext& context)
      : clock_(context.clock),
        rows_(TableOf(TableId::kUb), context.place->device, context.window, *context.rows) {}

  bool DecodeRecord(const UbRecord& record) {
    if (!record.IsPlausible() || record.timestamp > kMaxPlausibleMicros) return false;
    std::array<uint64_t, 1 + std::tuple_size_v<decltype(UbRecord::values)>> cells;
    cells[0] = record.port;
    std::ranges::copy(record.values, cells.begin() + 1);
    if (!std::ranges::all_of(cells, FitsInt64)) return false;
    // Unlike the other timestamps in microseconds this one is exact.
    uint64_t device_ns = static_cast<uint64_t>(clock_.facts().device_ns) + record.timestamp * 1000;
    rows_.AddCells(clock_.DeviceNs(static_cast<int64_t>(device_ns)), cells);
    return true;
  }
  void FinishRows() { rows_.Flush(); }

 private:
  ClockMap clock_;
  BatchBuilder rows_;
};

std::unique_ptr<Decoder> MakeUbDecoder(const DecodeContext& context) {
  return std::make_unique<UbDecoder>(context);
}

}  // namespace

std::span<const DecoderSpec> UbDecoders() {
  static constexpr std::array kTables = {TableId::kUb};
  static constexpr auto kSpecs = std::to_array<DecoderSpec>({
      {"ub.data", Place::Kind::kDevice, Chips({15, 16}), sizeof(records::UbRecord), 0, kTables,
       MakeUbDecoder},
  });
  return kSpecs;
}

}  // namespace profd::exporting
