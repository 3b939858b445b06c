#include "driver/abi/hal_abi.h"
#include "driver/records/ddr.h"
#include "driver/records/micros_widener.h"
#include "export/decode/decoder_groups.h"
#include "export/decode/record_decoder.h"

namespace profd::exporting {
namespace {

using records::DdrRecord;

// One row per instant, all controllers together, as the vendor's tables have it; complete when the
// next instant begins. The first row's time began with the session, as the vendor's analyser takes it; but profd's
// sessions share a channel, which was running before or was started later: it is not known since when it counts, and the
// first row is 0.
class DdrDecoder final : public RecordDecoder<DdrDecoder, DdrRecord, TableDecoder> {
 public:
  explicit DdrDecoder(const DecodeContext& context)
      : RecordDecoder(context, TableId::kDdr),
        bit_width_(records::DdrBits(context.place->chip)),
        first_known_(!context.dump->manifest) {}

  bool DecodeRecord(const DdrRecord& record) {
    if (record.event >= DdrRecord::kEvents) return false;
    const uint64_t us = micros_.Widen(record.timestamp);
    int64_t elapsed = 0;
    switch (interval_.Next(static_cast<int64_t>(us) * 1000, &elapsed)) {
      case Step::kBackward:
        return false;
      case Step::kRepeated:
        break;
      case Step::kFirst:
        elapsed = first_known_ ? static_cast<int64_t>(us) * 1000 : 0;
        [[fallthrough]];
      case Step::kForward:
        Close();
        first_known_ = false;
        open_ = true;
        ns_ = static_cast<int64_t>(us) * 1000;
        elapsed_ = elapsed;
        counts_ = {};
        has_total_ = false;
        break;
    }
    // What single masters moved may be reported beside the total, of which it is a part; a channel that was started for
    // single masters (driver-abi, `master_id`) has no total.
    const bool is_total = record.master == abi::kAllMasters;
    if (is_total && !has_total_) counts_ = {};
    has_total_ = has_total_ || is_total;
    if (is_total == has_total_) counts_[record.event] += record.count;
    return true;
  }
  void FinishRows() {
    Close();
    rows_.Flush();
  }

 private:
  using Step = IntervalClock<int64_t>::Step;

  void Close() {
    if (!open_) return;
    open_ = false;
    auto since_start = static_cast<uint64_t>(clock_.facts().device_ns) + static_cast<uint64_t>(ns_);
    rows_.Add(clock_.DeviceNs(static_cast<int64_t>(since_start)), 0, Bandwidth(counts_[0]),
              Bandwidth(counts_[1]));
  }
  // In the vendor's order of operations.
  double Bandwidth(uint64_t count) const {
    if (elapsed_ == 0) return 0;
    double bits = static_cast<double>(count) * bit_width_;
    return bits / (static_cast<double>(elapsed_) * 1024.0 * 1024.0 * 8) * 1e9;
  }

  int bit_width_;
  bool first_known_;  // whether the first instant's counts began with the session
  records::MicrosWidener micros_;
  IntervalClock<int64_t> interval_;
  bool open_ = false;
  bool has_total_ = false;  // of the open instant
  int64_t ns_ = 0;          // of the open instant, since the session's start
  int64_t elapsed_ = 0;
  std::array<uint64_t, DdrRecord::kEvents> counts_{};
};

}  // namespace

std::span<const DecoderSpec> DdrDecoders() {
  static constexpr auto kSpecs = std::to_array<DecoderSpec>({
      ChannelDecoder(records::kDdrFormat, Chips({0, 1, 2, 3, 4, 7, 8, 11}), kTables<TableId::kDdr>,
                     MakeDecoder<DdrDecoder>),
  });
  return kSpecs;
}

}  // namespace profd::exporting
