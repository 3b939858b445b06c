#include "driver/records/pcie.h"
#include "export/decode/decoder_groups.h"
#include "export/decode/record_decoder.h"

namespace profd::exporting {
namespace {

using records::PcieRecord;

// One row per record that has values, also of an idle link.
class PcieDecoder final : public RecordDecoder<PcieDecoder, PcieRecord, TableDecoder> {
 public:
  using RecordDecoder::RecordDecoder;

  bool DecodeRecord(const PcieRecord& record) {
    if (record.timestamp > kMaxPlausibleNs || !record.HasValues()) return false;
    std::array<uint64_t, 3 * std::tuple_size_v<decltype(PcieRecord::groups)>> cells;
    size_t next = 0;
    for (const PcieRecord::Stats& stats : record.groups) {
      cells[next++] = stats.Minimum();
      cells[next++] = stats.max;
      cells[next++] = stats.avg;
    }
    rows_.AddCells(clock_.DeviceNs(static_cast<int64_t>(record.timestamp)), cells);
    return true;
  }
};

}  // namespace

std::span<const DecoderSpec> PcieDecoders() {
  static constexpr auto kSpecs = std::to_array<DecoderSpec>({
      ChannelDecoder(records::kPcieFormat, Chips({0, 1, 2, 3, 4, 5, 15, 16}), kTables<TableId::kPcie>,
                     MakeDecoder<PcieDecoder, TableId::kPcie>),
  });
  return kSpecs;
}

}  // namespace profd::exporting
