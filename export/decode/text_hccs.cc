#include <array>
#include <utility>

#include "export/decode/text_math.h"
#include "export/decode/text_parts.h"
#include "export/text_scan.h"

namespace profd::exporting {
namespace {

// Lines `sec:ns tx rx` with bytes counted since the device started (dump-format 2.1). The analyser
// also takes the first line as the successor of the last one, leaves out pairs in which a counter
// decreased, and then deletes its last row if it has more than one. So the last real row is shown
// only when that false pair survived (no counter moved), or when it is the only row.
class HccsDecoder final : public TableDecoder {
 public:
  using TableDecoder::TableDecoder;

  void Feed(std::span<const std::byte> bytes, bool slice_start) override {
    ForEachLine(bytes, [this, &slice_start](std::string_view line) {
      Line(line, std::exchange(slice_start, false));
    });
  }

  bool IsLine(std::string_view line) const override {
    Sample sample;
    return IsHeading(line) || Scan(line, &sample);
  }

  void Finish() override {
    bool false_pair = samples_ > 0 && first_.tx >= last_.tx && first_.rx >= last_.rx;
    if (has_row_ && (false_pair || pairs_ == 1)) rows_.Add(row_.t_ns, row_.tx, row_.rx);
    if (samples_ == 1) rows_.Add(clock_.DeviceNs(first_.ns), 0.0, 0.0);
    TableDecoder::Finish();
  }

 private:
  struct Sample {
    int64_t ns = 0;
    uint64_t tx = 0;
    uint64_t rx = 0;
  };
  struct Row {
    int64_t t_ns = 0;
    double tx = 0;
    double rx = 0;
  };

  static bool IsHeading(std::string_view line) { return line.starts_with("time_stamp"); }
  static bool Scan(std::string_view line, Sample* sample) {
    TextScan scan(line);
    return scan.SecondsAndNs(&sample->ns) && scan.Uint(&sample->tx) && scan.Uint(&sample->rx) && scan.AtEnd();
  }

  // The first line of a slice is a heading, whatever is in it, or the rest of a line of a slice that is
  // gone; one that is a sample is taken all the same (the driver sends no heading to a late session).
  void Line(std::string_view line, bool first) {
    Sample sample;
    if (!Scan(line, &sample)) {
      // The header, wherever it is; the driver sends one whenever the channel starts.
      if (!first && !line.empty() && !IsHeading(line)) CountBad(line, &stats_);
      return;
    }
    bool earlier = samples_ > 0 && sample.ns < last_.ns;
    if (earlier && ++earlier_ < kMaxEarlier) {
      CountBad(line, &stats_);
      return;
    }
    earlier_ = 0;
    ++stats_.records;
    if (samples_++ == 0) first_ = sample;
    if (samples_ > 1 && !earlier) Pair(sample);
    last_ = sample;
  }

  void Pair(const Sample& sample) {
    if (sample.tx >= last_.tx && sample.rx >= last_.rx) {
      if (has_row_) rows_.Add(row_.t_ns, row_.tx, row_.rx);
      auto ns = static_cast<uint64_t>(sample.ns - last_.ns);
      row_ = {clock_.DeviceNs(sample.ns), RoundedMegaRate(sample.tx - last_.tx, ns),
              RoundedMegaRate(sample.rx - last_.rx, ns)};
      has_row_ = true;
      ++pairs_;
    }
  }

  uint64_t samples_ = 0;
  int earlier_ = 0;
  uint64_t pairs_ = 0;
  Sample first_;
  Sample last_;
  Row row_;  // of the latest pair, waits for its successor
  bool has_row_ = false;
};

}  // namespace

std::span<const DecoderSpec> HccsDecoders() {
  static constexpr std::array kSpecs = {TextSpec<HccsDecoder, TableId::kHccs>("hccs.data", Chips({0, 1, 2, 3, 4, 5}))};
  return kSpecs;
}

}  // namespace profd::exporting
