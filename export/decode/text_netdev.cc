#include <array>

#include "export/decode/text_parts.h"
#include "export/text_scan.h"

namespace profd::exporting {
namespace {

// dump-format 2.13: the host's clock in ns and 15 counters. One row per line that is later than the
// one before: what was counted in between, 0 where a counter decreased, and four of them per
// second.
class NetdevDecoder final : public LineDecoder {
 public:
  using LineDecoder::LineDecoder;

  bool IsLine(std::string_view line) const override {
    int64_t ns = 0;
    std::array<uint64_t, kCounters> counters;
    return Scan(line, &ns, &counters);
  }

 private:
  static constexpr size_t kCounters = 15;
  // Of these the table also has a rate: MAC tx and rx bytes, NIC tx and rx bytes.
  static constexpr std::array<size_t, 4> kWithRate = {2, 3, 13, 14};

  static bool Scan(std::string_view line, int64_t* ns, std::array<uint64_t, kCounters>* counters) {
    TextScan scan(line);
    bool good = scan.Int(ns) && *ns >= 0;
    for (uint64_t& counter : *counters) good = good && scan.Uint(&counter);
    return good && scan.AtEnd();
  }

  bool Line(std::string_view line) override {
    int64_t ns = 0;
    std::array<uint64_t, kCounters> counters;
    if (!Scan(line, &ns, &counters)) return false;
    if (has_last_ && ns <= last_ns_ && ++not_later_ < kMaxEarlier) return false;
    not_later_ = 0;
    ++stats_.records;
    if (has_last_ && ns > last_ns_) Row(ns, counters);
    last_ns_ = ns;
    last_ = counters;
    has_last_ = true;
    return true;
  }

  void Row(int64_t ns, const std::array<uint64_t, kCounters>& counters) {
    std::array<uint64_t, kCounters + kWithRate.size()> cells;
    for (size_t i = 0; i < kCounters; ++i) {
      cells[i] = counters[i] >= last_[i] ? counters[i] - last_[i] : 0;
    }
    double seconds = static_cast<double>(ns - last_ns_) / 1e9;
    for (size_t i = 0; i < kWithRate.size(); ++i) {
      cells[kCounters + i] =
          BatchBuilder::ToCell(static_cast<double>(cells[kWithRate[i]]) / seconds);
    }
    rows_.AddCells(clock_.HostNs(ns), cells);
  }

  bool has_last_ = false;
  int not_later_ = 0;
  int64_t last_ns_ = 0;
  std::array<uint64_t, kCounters> last_{};
};

}  // namespace

std::span<const DecoderSpec> NetdevDecoders() {
  constexpr uint32_t kChips = Chips({0, 1, 2, 3, 4, 5, 7, 8, 11});
  static constexpr std::array kSpecs = {TextSpec<NetdevDecoder, TableId::kNetdev>("netdev_stats.data", kChips)};
  return kSpecs;
}

}  // namespace profd::exporting
