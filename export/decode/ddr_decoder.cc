#include "driver/abi/hal_abi.h"
#include "driver/records/ddr.h"
#include "export/decode/decoder_groups.h"
#include "export/decode/record_decoder.h"

namespace profd::exporting {
namespace {

using records::DdrRecord;

// Rows of one instant, complete when the next begins: that of all controllers together since the instant before, whichever
// controllers either has, as the vendor's tables have it (-1), and that of each controller since its own last record. The
// first row's time began with the session, as the vendor's analyser takes it; but profd's sessions share a channel, which
// was running before or was started later: it is not known since when it counts, and the first row is 0.
class DdrDecoder final : public RecordDecoder<DdrDecoder, DdrRecord> {
 public:
  explicit DdrDecoder(const DecodeContext& context)
      : bit_width_(records::DdrBits(context.place->chip)),
        clock_(context.clock),
        first_known_(!context.dump->manifest),
        rows_(TableOf(TableId::kDdr), context.place->device, context.window, *context.rows) {}

  bool DecodeRecord(const DdrRecord& record) {
    if (record.event >= DdrRecord::kEvents) return false;
    const auto ns = static_cast<int64_t>(micros_.Widen(record.timestamp)) * 1000;
    int64_t elapsed = 0;
    const Step step = interval_.Next(ns, &elapsed);
    if (step == Step::kBackward) return false;
    if (step != Step::kRepeated) {
      Close();
      if (step == Step::kFirst) {
        elapsed = first_known_ ? ns : 0;
        for (Controller& controller : controllers_) controller.last_ns = first_known_ ? 0 : kNotKnown;
      }
      first_known_ = false;
      open_ = true;
      ns_ = ns;
      elapsed_ = elapsed;
      has_total_ = false;
    }
    // What single masters moved may be reported beside the total, of which it is a part; a channel that was started for
    // single masters (driver-abi, `master_id`) has no total.
    const bool is_total = record.master == abi::kAllMasters;
    if (is_total && !has_total_) Clear();
    has_total_ = has_total_ || is_total;
    if (is_total == has_total_) Count(record);
    return true;
  }
  void FinishRows() {
    Close();
    rows_.Flush();
  }

 private:
  using Step = IntervalClock<int64_t>::Step;
  static constexpr int64_t kNotKnown = -1;

  using Counts = std::array<uint64_t, DdrRecord::kEvents>;
  struct Controller {
    bool open = false;  // has records in the open instant
    Counts counts{};
    int64_t last_ns = kNotKnown;  // of its last row
  };

  void Count(const DdrRecord& record) {
    counts_[record.event] += record.count;
    if (record.controller >= controllers_.size()) return;
    Controller& controller = controllers_[record.controller];
    controller.open = true;
    controller.counts[record.event] += record.count;
  }
  void Clear() {
    counts_ = {};
    for (Controller& controller : controllers_) {
      controller.open = false;
      controller.counts = {};
    }
  }
  void Close() {
    if (!open_) return;
    open_ = false;
    auto since_start = static_cast<uint64_t>(clock_.facts().device_ns) + static_cast<uint64_t>(ns_);
    const int64_t t_ns = clock_.DeviceNs(static_cast<int64_t>(since_start));
    rows_.Add(t_ns, -1, Bandwidth(counts_[0], elapsed_), Bandwidth(counts_[1], elapsed_));
    for (size_t id = 0; id < controllers_.size(); ++id) {
      Controller& controller = controllers_[id];
      if (!controller.open) continue;
      const int64_t elapsed = controller.last_ns == kNotKnown ? 0 : ns_ - controller.last_ns;
      rows_.Add(t_ns, static_cast<int64_t>(id), Bandwidth(controller.counts[0], elapsed),
                Bandwidth(controller.counts[1], elapsed));
      controller.last_ns = ns_;
    }
    Clear();
  }
  // In the vendor's order of operations.
  double Bandwidth(uint64_t count, int64_t elapsed) const {
    if (elapsed == 0) return 0;
    double bits = static_cast<double>(count) * bit_width_;
    return bits / (static_cast<double>(elapsed) * 1024.0 * 1024.0 * 8) * 1e9;
  }

  int bit_width_;
  ClockMap clock_;
  bool first_known_;  // whether the first instant's counts began with the session
  BatchBuilder rows_;
  MicrosWidener micros_;
  IntervalClock<int64_t> interval_;
  bool open_ = false;
  bool has_total_ = false;  // of the open instant
  int64_t ns_ = 0;          // of the open instant, since the session's start
  int64_t elapsed_ = 0;
  Counts counts_{};         // of all controllers
  std::array<Controller, DdrRecord::kMaxControllers> controllers_;
};

std::unique_ptr<Decoder> MakeDdrDecoder(const DecodeContext& context) {
  return std::make_unique<DdrDecoder>(context);
}

}  // namespace

std::span<const DecoderSpec> DdrDecoders() {
  static constexpr std::array kTables = {TableId::kDdr};
  static constexpr auto kSpecs = std::to_array<DecoderSpec>({
      ChannelDecoder(records::kDdrFormat, Chips({0, 1, 2, 3, 4, 7, 8, 11}), kTables,
                     MakeDdrDecoder),
  });
  return kSpecs;
}

}  // namespace profd::exporting
