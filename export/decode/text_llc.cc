#include <array>
#include <cmath>

#include "export/decode/text_parts.h"
#include "export/text_scan.h"

namespace profd::exporting {
namespace {

// llc.data of chip 0 (dump-format 2.5): lines of perf stat, `seconds count hisi_l3c0/event/`, the
// time since the device's start. All events of one timestamp make a row for reading and one for writing. The
// other mode, capacity (events dsid<n>), has no table.
class LlcTextDecoder final : public LineDecoder {
 public:
  using LineDecoder::LineDecoder;

  void Finish() override {
    EndOfTimestamp();
    TableDecoder::Finish();
  }

 private:
  static constexpr double kLineBytes = 64;
  static constexpr std::array<std::string_view, 6> kEvents = {"read_allocate",    "read_noallocate",
                                                              "read_hit",         "write_allocate",
                                                              "write_noallocate", "write_hit"};

  bool Line(std::string_view line) override {
    TextScan scan(line);
    if (scan.AtEnd() || line.starts_with('#')) return true;
    double seconds = 0;
    double count = 0;
    bool good = scan.Real(&seconds) && seconds >= 0 && seconds < 4e9;
    TextScan rest = scan;
    if (good && rest.Word() == "<not" && rest.Word() == "counted>") {
      scan = rest;
    } else {
      good = good && scan.Real(&count);
    }
    std::string_view word = scan.Word();
    while (word.starts_with('(')) word = scan.Word();
    TextScan name(word);
    std::string_view unit = name.Field('/');
    std::string_view event = name.Field('/');
    if (!good || unit.empty() || event.empty()) return false;
    if (event.starts_with("dsid")) {
      ++stats_.skipped;
      return true;
    }
    ++stats_.records;
    if (any_ && seconds != seconds_) EndOfTimestamp();
    seconds_ = seconds;
    any_ = true;
    for (size_t i = 0; i < kEvents.size(); ++i) {
      if (event == kEvents[i]) counts_[i] = count;
    }
    return true;
  }

  void EndOfTimestamp() {
    if (!any_) return;
    double elapsed = seconds_ - last_seconds_;
    int64_t t_ns = clock_.DeviceNs(static_cast<int64_t>(
        static_cast<uint64_t>(clock_.facts().device_ns) + static_cast<uint64_t>(std::llround(seconds_ * 1e9))));
    for (size_t op = 0; op < 2; ++op) {
      double total = counts_[3 * op] + counts_[3 * op + 1];
      double ratio = total != 0 ? counts_[3 * op + 2] / total : 0.0;
      rows_.Add(t_ns, 0, static_cast<int64_t>(op), ratio,
                elapsed > 0 ? total * kLineBytes / elapsed / (1024.0 * 1024.0) : 0.0, ratio);
    }
    last_seconds_ = seconds_;
    counts_ = {};
    any_ = false;
  }

  bool any_ = false;
  double seconds_ = 0;
  double last_seconds_ = 0;  // 0: the start
  std::array<double, 6> counts_{};
};

}  // namespace

std::span<const DecoderSpec> LlcTextDecoders() {
  static constexpr std::array kSpecs = {TextSpec<LlcTextDecoder, TableId::kLlc>("llc.data", Chips({0}))};
  return kSpecs;
}

}  // namespace profd::exporting
