#include <array>

#include "dump/mark_files.h"
#include "export/decode/decoder_groups.h"
#include "export/decode/own_parts.h"
#include "export/decode/text_parts.h"

namespace profd::exporting {
namespace {

using Kind = Place::Kind;

constexpr uint32_t kAnyChip = ~uint32_t{0};
constexpr uint32_t kTsTrackChips = Chips({1, 2, 3, 4, 5, 7, 8, 11, 15, 16});  // dump-format 2.17
constexpr std::array kSampleTables = {TableId::kSample};

constexpr DecoderSpec TxSpec(std::string_view base) {
  return {.base = base, .kind = Kind::kHost, .chips = kAnyChip, .record_size = kTxRecordBytes, .record_size_v6 = 0,
          .tables = {}, .make = MakeTxDecoder, .wants_names = true};
}

constexpr std::array<DecoderSpec, 6> kSpecs = {{
    {kOwnSamplesFile, Kind::kOwn, kAnyChip, 0, 0, kSampleTables, MakeSamplesDecoder},
    {kMarksFile, Kind::kOwn, kAnyChip, 0, 0, {}, MakeMarksDecoder},
    {kStacksFile, Kind::kOwn, kAnyChip, 0, 0, {}, MakeStacksDecoder},
    {kStepTraceFile, Kind::kDevice, kTsTrackChips, kStepRecordBytes, 0, {}, MakeTsTrackDecoder},
    TxSpec("aging.additional.msproftx"),
    TxSpec("unaging.additional.msproftx"),
}};

}  // namespace

std::span<const DecoderSpec> OwnDecoders() { return kSpecs; }

}  // namespace profd::exporting
