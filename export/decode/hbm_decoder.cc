#include "driver/records/hbm.h"
#include "export/decode/decoder_groups.h"
#include "export/decode/record_decoder.h"

namespace profd::exporting {
namespace {

using records::HbmRecord;
using records::HbmRecordV2;

// MB/s of one stack and direction since its last record; the first row of each is 0. The vendor's
// analyser takes the time from the row one group (of 8 or 4 rows) before, which is the same as long
// as no record is missing. Its timestamps are doubles, in steps of 256 ns, and so are its intervals.
template <class Record>
class HbmDecoder final : public RecordDecoder<HbmDecoder<Record>, Record, TableDecoder> {
 public:
  explicit HbmDecoder(const DecodeContext& context)
      : HbmDecoder::RecordDecoder(context, TableId::kHbm),
        timestamps_(context.clock, std::is_same_v<Record, HbmRecordV2>) {}

  bool DecodeRecord(const Record& record) {
    const uint32_t event = record.event;
    if (event >= kEvents || record.stack >= kStacks) return false;
    double t_ns = 0;
    if (!timestamps_.Get(record.timestamp, &t_ns)) return false;
    double elapsed = 0;
    auto step = series_[record.stack * kEvents + event].Next(t_ns, &elapsed);
    if (step != Step::kFirst && step != Step::kForward) return false;
    double bandwidth = 0;
    if (step == Step::kForward) {
      bandwidth = static_cast<double>(record.count) * kScale / elapsed * 1e9;
    }
    this->rows_.Add(static_cast<int64_t>(t_ns), record.stack, event, bandwidth);
    return true;
  }

 private:
  using Step = IntervalClock<double>::Step;
  static constexpr uint32_t kEvents = HbmRecord::kEvents;
  static constexpr uint32_t kStacks = HbmRecord::kMaxStacks;
  static constexpr double kScale = 32.0 / kMega;  // accesses of 32 bytes

  SampleTimestamps timestamps_;
  std::array<IntervalClock<double>, kStacks * kEvents> series_;
};

}  // namespace

std::span<const DecoderSpec> HbmDecoders() {
  static constexpr auto kSpecs = std::to_array<DecoderSpec>({
      ChannelDecoder(records::kHbmFormat, Chips({0, 1, 2, 3, 4, 5, 7, 8, 11, 15, 16}), kTables<TableId::kHbm>,
                     MakeVersioned<HbmDecoder, HbmRecord, HbmRecordV2>, sizeof(HbmRecordV2)),
  });
  return kSpecs;
}

}  // namespace profd::exporting
