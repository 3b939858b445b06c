#include <array>

#include "export/decode/decoder_groups.h"
#include "export/decode/text_parts.h"

namespace profd::exporting {
namespace {

using Kind = Place::Kind;

constexpr std::array kHccsTables = {TableId::kHccs};
constexpr std::array kNicTables = {TableId::kNic};
constexpr std::array kRoceTables = {TableId::kRoce};
constexpr std::array kDvppTables = {TableId::kDvpp};
constexpr std::array kNetdevTables = {TableId::kNetdev};
constexpr std::array kLlcTables = {TableId::kLlc};

constexpr uint32_t kHccsChips = Chips({0, 1, 2, 3, 4, 5});
constexpr uint32_t kNicChips = Chips({0, 1, 5, 7, 8, 11});
constexpr uint32_t kRoceChips = Chips({0, 1, 5});
constexpr uint32_t kDvppChips = Chips({0, 1, 5, 7, 8, 11, 15, 16});
constexpr uint32_t kDvppExChips = Chips({5, 7, 15, 16});
constexpr uint32_t kNetdevChips = Chips({0, 1, 2, 3, 4, 5, 7, 8, 11});

constexpr DecoderSpec Text(std::string_view base, uint32_t chips, std::span<const TableId> tables,
                           std::unique_ptr<Decoder> (*make)(const DecodeContext&)) {
  return {base, Kind::kDevice, chips, 0, 0, tables, make};
}

// dump-format 2.17. The dvpp.* files have no reader in the vendor's analyser (2.4).
constexpr std::array kSpecs = {
    Text("hccs.data", kHccsChips, kHccsTables, MakeHccsDecoder),
    Text("nic.data", kNicChips, kNicTables, MakeNicDecoder),
    Text("roce.data", kRoceChips, kRoceTables, MakeRoceDecoder),
    Text("dvpp.data", kDvppChips, kDvppTables, MakeDvppDecoder),
    Text("dvpp.vdec", kDvppExChips, kDvppTables, MakeDvppDecoder),
    Text("dvpp.jpegd", kDvppExChips, kDvppTables, MakeDvppDecoder),
    Text("dvpp.jpege", kDvppExChips, kDvppTables, MakeDvppDecoder),
    Text("dvpp.png", kDvppExChips, kDvppTables, MakeDvppDecoder),
    Text("dvpp.scd", kDvppExChips, kDvppTables, MakeDvppDecoder),
    Text("dvpp.venc", kDvppExChips, kDvppTables, MakeDvppDecoder),
    Text("dvpp.vpc", kDvppExChips, kDvppTables, MakeDvppDecoder),
    Text("netdev_stats.data", kNetdevChips, kNetdevTables, MakeNetdevDecoder),
    Text("llc.data", Chips({0}), kLlcTables, MakeLlcTextDecoder),
};

}  // namespace

std::span<const DecoderSpec> TextDecoders() { return kSpecs; }

}  // namespace profd::exporting
