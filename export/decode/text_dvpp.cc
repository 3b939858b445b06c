#include <array>

#include "export/decode/text_parts.h"
#include "export/text_scan.h"

namespace profd::exporting {
namespace {

// dump-format 2.4: `sec:ns [dvpp_id] engine_type engine_id` and eight numbers, one of which may end
// in
// '%'. Whether there is an id follows from the number of words, whatever the chip.
class DvppDecoder : public Decoder {
 public:
  explicit DvppDecoder(const DecodeContext& context)
      : clock_(context.clock),
        rows_(TableOf(TableId::kDvpp), context.place->device, context.window, *context.rows) {}

  void Feed(std::span<const std::byte> bytes, bool) override {
    ForEachLine(bytes, [this](std::string_view line) {
      Sample sample;
      if (Scan(line, &sample)) {
        ++stats_.records;
        rows_.AddCells(clock_.DeviceNs(sample.ns), sample.cells);
      } else if (!line.empty() && !IsHeading(line)) {
        CountBad(line, &stats_);
      }
    });
  }
  bool IsLine(std::string_view line) const override {
    Sample sample;
    return IsHeading(line) || Scan(line, &sample);
  }
  void Finish() override { rows_.Flush(); }

 private:
  static constexpr size_t kMaxWords = 11;  // after the timestamp

  struct Sample {
    int64_t ns = 0;
    std::array<uint64_t, kMaxWords> cells{};
  };

  static bool IsHeading(std::string_view line) { return IsHeadingWith("engine_type", line); }

  static bool Number(std::string_view word, double* value) {
    if (word.ends_with('%')) word.remove_suffix(1);
    return TextScan(word).Real(value);
  }

  static bool Scan(std::string_view line, Sample* sample) {
    TextScan scan(line);
    if (!scan.SecondsAndNs(&sample->ns)) return false;
    std::array<std::string_view, kMaxWords> words;
    size_t count = 0;
    while (!scan.AtEnd()) {
      if (count == kMaxWords) return false;
      words[count++] = scan.Word();
    }
    if (count + 1 < kMaxWords) return false;
    size_t skip = count == kMaxWords ? 0 : 1;  // 1: no dvpp id
    for (size_t i = skip; i < kMaxWords; ++i) {
      std::string_view word = words[i - skip];
      int64_t key = 0;
      double value = 0;
      if (i < 3 ? !TextScan(word).Int(&key) : !Number(word, &value)) return false;
      sample->cells[i] = i < 3 ? BatchBuilder::ToCell(key) : BatchBuilder::ToCell(value);
    }
    return true;
  }

  ClockMap clock_;
  BatchBuilder rows_;
};

}  // namespace

std::unique_ptr<Decoder> MakeDvppDecoder(const DecodeContext& context) {
  return std::make_unique<DvppDecoder>(context);
}

}  // namespace profd::exporting
