#include <array>

#include "driver/abi/channels.h"
#include "driver/records/aicore_pmu.h"
#include "driver/records/ddr.h"
#include "driver/records/hbm.h"
#include "driver/records/llc.h"
#include "driver/records/lpm.h"
#include "driver/records/module_mem.h"
#include "driver/records/npu_mem.h"
#include "driver/records/pcie.h"
#include "driver/records/qos.h"
#include "driver/records/soc_profile.h"
#include "driver/records/ub.h"
#include "export/decode/decoder_groups.h"
#include "export/decode/device_families.h"

namespace profd::exporting {
namespace {

constexpr uint32_t Chips(std::initializer_list<int> chips) {
  uint32_t mask = 0;
  for (int chip : chips) mask |= uint32_t{1} << chip;
  return mask;
}

// dump-format 2.17.
constexpr uint32_t kPcieChips = Chips({0, 1, 2, 3, 4, 5, 15, 16});
constexpr uint32_t kHbmChips = Chips({0, 1, 2, 3, 4, 5, 7, 8, 11, 15, 16});
constexpr uint32_t kLlcChips = Chips({1, 2, 3, 4, 5, 7, 8, 11, 15, 16});
constexpr uint32_t kDdrChips = Chips({0, 1, 2, 3, 4, 7, 8, 11});
constexpr uint32_t kNpuMemChips = Chips({0, 1, 3, 4, 5, 7, 8, 11, 15, 16});
constexpr uint32_t kModuleMemChips = Chips({1, 2, 3, 4, 5, 7, 8, 11, 15, 16});
constexpr uint32_t kSocChips = Chips({5, 7, 8, 11, 15, 16});

constexpr std::array kPcieTables = {TableId::kPcie};
constexpr std::array kHbmTables = {TableId::kHbm};
constexpr std::array kLlcTables = {TableId::kLlc};
constexpr std::array kDdrTables = {TableId::kDdr};
constexpr std::array kNpuMemTables = {TableId::kNpuMem};
constexpr std::array kModuleMemTables = {TableId::kModuleMem};
constexpr std::array kFreqTables = {TableId::kAicoreFreq};
constexpr std::array kLpmInfoTables = {TableId::kAicoreFreq, TableId::kVoltage};
constexpr std::array kQosTables = {TableId::kQos};
constexpr std::array kSocTables = {TableId::kSio,      TableId::kAccPmu,   TableId::kChipTrans,
                                   TableId::kSocLevel, TableId::kLowPower, TableId::kAicoreFreq,
                                   TableId::kQos};
constexpr std::array kAicoreTables = {TableId::kAicorePmu};
constexpr std::array kUbTables = {TableId::kUb};

constexpr auto kDevice = Place::Kind::kDevice;

using Make = std::unique_ptr<Decoder> (*)(const DecodeContext&);

// Of a channel that profd collects, too.
constexpr DecoderSpec Spec(const abi::ChannelFormat& format, uint32_t chips,
                           std::span<const TableId> tables, Make make, uint16_t size_v2 = 0) {
  return {format.file, kDevice, chips, format.record_size, 0, tables, make, size_v2};
}
constexpr DecoderSpec PmuSpec(std::string_view file, uint32_t chips, Make make) {
  return {file, kDevice,       chips, sizeof(records::AicoreSample), sizeof(records::AicoreSampleV6),
          kAicoreTables, make, 0,     records::kTaskPmuRecordBytes};
}

}  // namespace

std::span<const DecoderSpec> DeviceDecoders() {
  static constexpr auto kSpecs = std::to_array<DecoderSpec>({
      Spec(records::kPcieFormat, kPcieChips, kPcieTables, MakePcieDecoder),
      Spec(records::kHbmFormat, kHbmChips, kHbmTables, MakeHbmDecoder,
           sizeof(records::HbmRecordV2)),
      Spec(records::kLlcFormat, kLlcChips, kLlcTables, MakeLlcDecoder),
      Spec(records::kDdrFormat, kDdrChips, kDdrTables, MakeDdrDecoder),
      Spec(records::kNpuMemFormat, kNpuMemChips, kNpuMemTables, MakeNpuMemDecoder),
      Spec(records::kNpuAppMemFormat, kNpuMemChips, kNpuMemTables, MakeNpuMemDecoder),
      Spec(records::kModuleMemFormat, kModuleMemChips, kModuleMemTables, MakeModuleMemDecoder),
      Spec(records::kLpmFormat, Chips({5, 7, 15, 16}), kFreqTables, MakeLpmFreqDecoder),
      {abi::kLpInfoFile, kDevice, Chips({5}), records::LpmRecord::kSize, 0, kLpmInfoTables,
       MakeLpmInfoDecoder},
      Spec(records::kQosFormat, Chips({5}), kQosTables, MakeQosDecoder),
      Spec(records::kSocProfileFormat, kSocChips, kSocTables, MakeSocProfileDecoder),
      PmuSpec("aicore.data", Chips({0, 1, 2, 3, 4}), MakeAicoreDecoder),
      PmuSpec("aiVectorCore.data", Chips({2, 3, 4}), MakeAivDecoder),
      PmuSpec("ffts_profile.data", kSocChips, MakeFftsDecoder),
      {"ub.data", kDevice, Chips({15, 16}), sizeof(records::UbRecord), 0, kUbTables, MakeUbDecoder},
  });
  return kSpecs;
}

}  // namespace profd::exporting
