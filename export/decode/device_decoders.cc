#include <array>

#include "driver/abi/records.h"
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

}  // namespace

std::span<const DecoderSpec> DeviceDecoders() {
  static constexpr auto kSpecs = std::to_array<DecoderSpec>({
      {"pcie.data", kDevice, kPcieChips, abi::pcie_record::kSize, 0, kPcieTables, MakePcieDecoder},
      {"hbm.data", kDevice, kHbmChips, abi::hbm_record::kSize, 0, kHbmTables, MakeHbmDecoder,
       abi::hbm_record::kSizeV2},
      {"llc.data", kDevice, kLlcChips, abi::llc_record::kSize, 0, kLlcTables, MakeLlcDecoder},
      {"ddr.data", kDevice, kDdrChips, abi::ddr_record::kSize, 0, kDdrTables, MakeDdrDecoder},
      {"npu_mem.data", kDevice, kNpuMemChips, abi::npu_mem_record::kSize, 0, kNpuMemTables,
       MakeNpuMemDecoder},
      {"npu_mem.app", kDevice, kNpuMemChips, abi::npu_mem_record::kSize, 0, kNpuMemTables,
       MakeNpuMemDecoder},
      {"npu_module_mem.data", kDevice, kModuleMemChips, abi::module_mem_record::kSize, 0,
       kModuleMemTables, MakeModuleMemDecoder},
      {"lpmFreqConv.data", kDevice, Chips({5, 7, 15, 16}), abi::lpm_record::kSize, 0, kFreqTables,
       MakeLpmFreqDecoder},
      {"lpmInfoConv.data", kDevice, Chips({5}), abi::lpm_record::kSize, 0, kLpmInfoTables,
       MakeLpmInfoDecoder},
      {"qos.data", kDevice, Chips({5}), abi::qos_record::kSize, 0, kQosTables, MakeQosDecoder},
      {"stars_soc_profile.data", kDevice, kSocChips, abi::soc_record::kSize, 0, kSocTables,
       MakeSocProfileDecoder},
      {"aicore.data", kDevice, Chips({0, 1, 2, 3, 4}), abi::aicore_sample_record::kSize,
       abi::aicore_sample_record::kSizeV6, kAicoreTables, MakeAicoreDecoder,
       0, abi::kTaskPmuRecordBytes},
      {"aiVectorCore.data", kDevice, Chips({2, 3, 4}), abi::aicore_sample_record::kSize,
       abi::aicore_sample_record::kSizeV6, kAicoreTables, MakeAivDecoder,
       0, abi::kTaskPmuRecordBytes},
      {"ffts_profile.data", kDevice, kSocChips, abi::aicore_sample_record::kSize,
       abi::aicore_sample_record::kSizeV6, kAicoreTables, MakeFftsDecoder,
       0, abi::kTaskPmuRecordBytes},
      {"ub.data", kDevice, Chips({15, 16}), abi::ub_record::kSize, 0, kUbTables, MakeUbDecoder},
  });
  return kSpecs;
}

}  // namespace profd::exporting
