#include "driver/records/ub.h"
#include "export/decode/decoder_groups.h"
#include "export/decode/record_decoder.h"

namespace profd::exporting {
namespace {

using records::UbRecord;

// One row per record.
class UbDecoder final : public RecordDecoder<UbDecoder, UbRecord, TableDecoder> {
 public:
  using RecordDecoder::RecordDecoder;

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
};

}  // namespace

std::span<const DecoderSpec> UbDecoders() {
  static constexpr auto kSpecs = std::to_array<DecoderSpec>({
      {"ub.data", Place::Kind::kDevice, Chips({15, 16}), sizeof(records::UbRecord), 0, kTables<TableId::kUb>,
       MakeDecoder<UbDecoder, TableId::kUb>},
  });
  return kSpecs;
}

}  // namespace profd::exporting
