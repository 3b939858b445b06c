#include <array>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "export/decode/text_parts.h"
#include "export/text_scan.h"

namespace profd::exporting {
namespace {

constexpr std::string_view kAllEngines = "dvpp.data";

// dump-format 2.4: `sec:ns [dvpp_id] engine_type engine_id` and eight numbers, one of which may end
// in
// '%'. Whether there is an id follows from the number of words, whatever the chip.
// An engine that also has a file of its own is that of dvpp.data alone: the counters of both need not begin with the
// same value. Each sample of dvpp.data has all engines, so that its first ones show which.
class DvppDecoder final : public LineDecoder {
 public:
  DvppDecoder(const DecodeContext& context, TableId table) : LineDecoder(context, table) {
    if (context.file->base == kAllEngines || !context.first_bytes_of) return;
    const std::string first = context.first_bytes_of(kAllEngines);
    ForEachLine(std::as_bytes(std::span(first)), [this](std::string_view line) {
      Sample sample;
      if (Scan(line, &sample)) elsewhere_.insert(sample.Engine());
    });
  }

  bool IsLine(std::string_view line) const override {
    Sample sample;
    return IsHeading(line) || Scan(line, &sample);
  }

 private:
  static constexpr size_t kMaxWords = 11;  // after the timestamp

  using Key = std::array<uint64_t, 3>;  // dvpp, engine type, instance
  struct Sample {
    int64_t ns = 0;
    std::array<uint64_t, kMaxWords> cells{};

    Key Engine() const { return {cells[0], cells[1], cells[2]}; }
  };

  bool Line(std::string_view line) override {
    Sample sample;
    if (!Scan(line, &sample)) return IsHeading(line);
    ++stats_.records;
    if (!elsewhere_.contains(sample.Engine())) rows_.AddCells(clock_.DeviceNs(sample.ns), sample.cells);
    return true;
  }
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

  std::set<Key> elsewhere_;  // engines of dvpp.data
};

constexpr DecoderSpec Dvpp(std::string_view base, uint32_t chips = Chips({5, 7, 15, 16})) {
  return TextSpec<DvppDecoder, TableId::kDvpp>(base, chips);
}

}  // namespace

// The dvpp.* files have no reader in the vendor's analyser (dump-format 2.4).
std::span<const DecoderSpec> DvppDecoders() {
  static constexpr std::array kSpecs = {
      Dvpp(kAllEngines, Chips({0, 1, 5, 7, 8, 11, 15, 16})),
      Dvpp("dvpp.vdec"),
      Dvpp("dvpp.jpegd"),
      Dvpp("dvpp.jpege"),
      Dvpp("dvpp.png"),
      Dvpp("dvpp.scd"),
      Dvpp("dvpp.venc"),
      Dvpp("dvpp.vpc"),
  };
  return kSpecs;
}

}  // namespace profd::exporting
