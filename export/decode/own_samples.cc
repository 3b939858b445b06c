#include <array>

#include "dump/mark_files.h"
#include "export/decode/text_parts.h"
#include "export/text_scan.h"

namespace profd::exporting {
namespace {

// host/profd/samples.tsv: time_ns, metric, device, labels, value.
class SamplesDecoder final : public Decoder {
 public:
  explicit SamplesDecoder(const DecodeContext& context)
      : clock_(context.clock), strings_(*context.strings), rows_(context, TableId::kSample) {}

  void Feed(std::span<const std::byte> bytes, bool) override {
    ForEachOwnLine(bytes, &stats_, [this](std::string_view line) { return Line(line); });
  }
  void Finish() override { rows_.Flush(); }

 private:
  bool Line(std::string_view line) {
    TextScan scan(line);
    TextScan time(scan.Field('\t'));
    std::string_view metric = scan.Field('\t');
    TextScan device_text(scan.Field('\t'));
    std::string_view labels = scan.Field('\t');
    int64_t ns = 0;
    int64_t device = 0;
    double value = 0;
    if (!time.Int(&ns) || metric.empty() || !device_text.Int(&device) || device < -1 ||
        device > 0xffff || !scan.Real(&value) || !scan.AtEnd()) {
      return false;
    }
    BatchBuilder* rows = rows_.Of(static_cast<int>(device));
    if (rows == nullptr) return false;
    rows->Add(clock_.HostNs(ns), strings_.Intern(metric), strings_.Intern(labels), value);
    return true;
  }

  ClockMap clock_;
  Strings& strings_;
  DeviceRows rows_;
};

}  // namespace

std::span<const DecoderSpec> SamplesDecoders() {
  static constexpr std::array kSpecs = {DecoderSpec{kOwnSamplesFile, Place::Kind::kOwn, kAnyChip, 0, 0,
                                                    kTables<TableId::kSample>, MakeDecoder<SamplesDecoder>}};
  return kSpecs;
}

}  // namespace profd::exporting
