#include <utility>

#include "driver/records/llc.h"
#include "export/decode/decoder_groups.h"
#include "export/decode/record_decoder.h"
#include "export/decode/text_math.h"

namespace profd::exporting {
namespace {

using records::LlcRecord;
using records::LlcRecordV2;

// Slices the vendor's analyser looks at.
size_t SlicesOf(int chip) {
  switch (chip) {
    case 7:
    case 8:
    case 11:
      return 1;
    case 5:
      return 2;
    default:
      return 4;
  }
}

// One row per slice of the cache and instant, of the counts of its eight events; complete when the
// slice's next instant begins. An instant that lacks one of them has no row, as in the daemon's
// stream: a missing record is not traffic of 0. A ratio to no lookups is 0, as in the vendor's tables.
template <class Record>
class LlcDecoder final : public RecordDecoder<LlcDecoder<Record>, Record, TableDecoder> {
 public:
  explicit LlcDecoder(const DecodeContext& context)
      : LlcDecoder::RecordDecoder(context, TableId::kLlc),
        op_(context.place->llc_mode == "write" ? 1 : 0),
        slice_count_(SlicesOf(context.place->chip)),
        timestamps_(context.clock, std::is_same_v<Record, LlcRecordV2>) {
    numbers_.fill(kNoEvent);
    const auto& events = records::kLlcEventCodes[static_cast<size_t>(op_)];
    for (size_t i = 0; i < events.size(); ++i) numbers_[events[i]] = static_cast<uint8_t>(i);
  }

  bool DecodeRecord(const Record& record) {
    const uint32_t code = record.event;
    const uint32_t id = record.slice;
    if (code >= numbers_.size() || numbers_[code] == kNoEvent || id >= slice_count_) return false;
    double t_ns = 0;
    if (!timestamps_.Get(record.timestamp, &t_ns)) return false;
    Slice& slice = slices_[id];
    double elapsed = 0;
    switch (slice.clock.Next(t_ns, &elapsed)) {
      case Step::kBackward:
        return false;
      case Step::kRepeated:
        break;
      case Step::kFirst:
      case Step::kForward:
        Close(id);
        slice.t_ns = t_ns;
        slice.elapsed = elapsed;
        slice.events = 0;
        break;
    }
    slice.counts[numbers_[code]] = static_cast<double>(record.count);
    slice.events |= static_cast<uint8_t>(1u << numbers_[code]);
    return true;
  }
  void FinishRows() {
    for (size_t id = 0; id < slice_count_; ++id) Close(id);
    this->rows_.Flush();
  }

 private:
  using Step = IntervalClock<double>::Step;
  static constexpr uint8_t kNoEvent = 0xFF;
  static constexpr double kLineBytes = 64;
  static constexpr double kMaxExact = 1e30;  // what RoundedQuotient() takes
  static constexpr uint8_t kAllEvents = 0xFF;

  struct Slice {
    IntervalClock<double> clock;
    double t_ns = 0;
    double elapsed = 0;  // 0 = first
    uint8_t events = 0;  // which have a count; 0 = no open instant
    std::array<double, records::kLlcEvents> counts{};
  };

  void Close(size_t id) {
    Slice& slice = slices_[id];
    if (std::exchange(slice.events, uint8_t{0}) != kAllEvents) return;
    const auto& e = slice.counts;
    double hits = e[2] + e[3] + e[5] + e[7];
    double lookups = e[4] + e[6];
    double throughput = 0;
    if (slice.elapsed > 0) {
      throughput = Rounded((e[0] + e[1]) * (kLineBytes * 1e9), slice.elapsed * kMega);
    }
    this->rows_.Add(static_cast<int64_t>(slice.t_ns), static_cast<int64_t>(id), op_, Rounded(hits, lookups), throughput,
              lookups > 0 ? hits / lookups : 0.0);
  }
  // The vendor keeps three decimals of both values, and its averages are of those.
  static double Rounded(double num, double den) {
    if (!(den >= 1)) return 0;
    if (!(num < kMaxExact && den < kMaxExact)) return num / den;
    return RoundedQuotient(static_cast<WideInt>(num), static_cast<WideInt>(den), 3);
  }

  int op_;
  size_t slice_count_;
  SampleTimestamps timestamps_;
  std::array<uint8_t, 64> numbers_;  // by event code
  std::array<Slice, 4> slices_;
};

}  // namespace

std::span<const DecoderSpec> LlcDecoders() {
  static constexpr auto kSpecs = std::to_array<DecoderSpec>({
      ChannelDecoder(records::kLlcFormat, Chips({1, 2, 3, 4, 5, 7, 8, 11, 15, 16}), kTables<TableId::kLlc>,
                     MakeVersioned<LlcDecoder, LlcRecord, LlcRecordV2>),
  });
  return kSpecs;
}

}  // namespace profd::exporting
