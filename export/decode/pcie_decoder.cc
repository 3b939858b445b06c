#include "driver/abi/records.h"
#include "export/decode/device_families.h"
#include "export/decode/record_decoder.h"

namespace profd::exporting {
namespace {

namespace layout = abi::pcie_record;

// One row per record, but for those the vendor's analyser passes over: a smallest value above the
// largest one, which is how the first group says that nothing was measured.
class PcieDecoder final : public RecordDecoder<PcieDecoder, layout::kSize> {
 public:
  explicit PcieDecoder(const DecodeContext& context)
      : RecordDecoder(layout::kSize),
        clock_(context.clock),
        rows_(TableOf(TableId::kPcie), context.place->device, context.window, *context.rows) {}

  bool DecodeRecord(Record record) {
    auto ns = LoadUnchecked<uint64_t>(record, layout::kDeviceNs);
    if (ns > kMaxPlausibleNs) return false;
    std::array<uint32_t, kCells> values;
    std::memcpy(values.data(), record.data() + layout::kGroups, sizeof values);
    if (values[kMax] < values[kMin]) return Skip();
    std::array<uint64_t, kCells> cells;
    for (size_t i = 0; i < kCells; ++i) {
      bool none = i % kStats == kMin && values[i] == layout::kNoMinimum;
      cells[i] = none ? 0 : values[i];
    }
    rows_.AddCells(clock_.DeviceNs(static_cast<int64_t>(ns)), cells);
    return true;
  }
  void FinishRows() { rows_.Flush(); }

 private:
  static constexpr size_t kMin = 0;
  static constexpr size_t kMax = 1;
  static constexpr size_t kStats = 3;
  static constexpr size_t kCells = layout::kGroupCount * kStats;

  ClockMap clock_;
  BatchBuilder rows_;
};

}  // namespace

std::unique_ptr<Decoder> MakePcieDecoder(const DecodeContext& context) {
  return std::make_unique<PcieDecoder>(context);
}

}  // namespace profd::exporting
