#include "driver/abi/records.h"
#include "export/decode/device_families.h"
#include "export/decode/record_decoder.h"

namespace profd::exporting {
namespace {

namespace layout = abi::hbm_record;

// MB/s of one stack and direction since its last record; the first row of each is 0. The vendor's
// analyser takes the time from the row one group (of 8 or 4 rows) before, which is the same as long
// as no record is missing. Its stamps are doubles, in steps of 256 ns, and so are its intervals.
class HbmDecoder final : public RecordDecoder<HbmDecoder, layout::kSizeV2> {
 public:
  HbmDecoder(const DecodeContext& context, bool v2)
      : RecordDecoder(v2 ? layout::kSizeV2 : layout::kSize),
        v2_(v2),
        stamps_(context.clock, v2_),
        rows_(TableOf(TableId::kHbm), context.place->device, context.window, *context.rows) {}

  bool DecodeRecord(Record record) {
    auto event = LoadUnchecked<uint32_t>(record, v2_ ? layout::kEventV2 : layout::kEvent);
    auto id = LoadUnchecked<uint32_t>(record, v2_ ? layout::kIdV2 : layout::kId);
    if (event > 1 || id >= kMaxSeries) return false;
    double t_ns = 0;
    auto stamp = LoadUnchecked<uint64_t>(record, v2_ ? layout::kEpochNsV2 : layout::kMicros);
    if (!stamps_.Get(stamp, &t_ns)) return false;
    double elapsed = 0;
    auto step = series_[id * 2 + event].Next(t_ns, &elapsed);
    if (step != Step::kFirst && step != Step::kForward) return false;
    double bandwidth = 0;
    if (step == Step::kForward) {
      auto count = LoadUnchecked<uint64_t>(record, v2_ ? layout::kCountV2 : layout::kCount);
      bandwidth = static_cast<double>(count) * kScale / elapsed * 1e9;
    }
    rows_.Add(static_cast<int64_t>(t_ns), id, event, bandwidth);
    return true;
  }
  void FinishRows() { rows_.Flush(); }

 private:
  using Step = IntervalClock<double>::Step;
  static constexpr double kScale = 32.0 / kMega;  // accesses of 32 bytes

  bool v2_;
  SampleStamps stamps_;
  BatchBuilder rows_;
  std::array<IntervalClock<double>, kMaxSeries * 2> series_;
};

}  // namespace

std::unique_ptr<Decoder> MakeHbmDecoder(const DecodeContext& context) {
  return std::make_unique<HbmDecoder>(context, context.place->record_version == "2.0");
}

}  // namespace profd::exporting
