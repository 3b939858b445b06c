// What libascend_hal.so looks like from outside, as far as sampling hardware needs it: structs,
// ids, return codes and function types. Our own declarations of driver-abi sections 1-3; every size
// and offset stated there is asserted. Shared by the loader (driver/) and by the simulator (sim/),
// so it depends on nothing.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace profd::abi {

static_assert(std::endian::native == std::endian::little, "the driver ABI is little-endian");
static_assert(sizeof(void*) == 8 && sizeof(long) == 8, "the driver ABI is LP64");

// ---- limits (1.6) ----
inline constexpr unsigned kMaxChannels = 160;  // also the first invalid channel id
inline constexpr unsigned kChannelNameLength = 32;
inline constexpr unsigned kMaxHalDevices = 64;
inline constexpr unsigned kProfReal = 1;

// ---- return codes (1.4) ----
inline constexpr int kProfOk = 0;
inline constexpr int kProfError = -1;
inline constexpr int kProfTimeout = -2;
inline constexpr int kProfStartedAlready = -3;
inline constexpr int kProfStoppedAlready = -4;  // from poll: nothing is started
inline constexpr int kProfErestartsys = -5;
inline constexpr int kProfNotReadableData = -6;
inline constexpr int kProfNotSupport = -7;
inline constexpr int kProfBusy = -8;
inline constexpr int kProfNotEnoughBuf = -9;
inline constexpr int kProfNotEnoughSubChannel = -10;  // start: another process holds the channel
inline constexpr int kProfVfSubResourceFull = -11;
inline constexpr int kProfContainerSceneNotOpenPhy = -12;
inline constexpr int kProfPhySceneNotOpenContainer = -13;
inline constexpr int kProfPollUninitialised = -14;
inline constexpr int kProfTsNotBound = 115;
inline constexpr int kProfStopDataLoss =
    0x916;  // prof_stop of BIU channels: stopped, but data was lost

// drvError_t (1.4). Only the values the spec names.
inline constexpr int kDrvErrorNone = 0;
inline constexpr int kDrvErrorNoDevice = 1;
inline constexpr int kDrvErrorInvalidDevice = 2;
inline constexpr int kDrvErrorNotSupport = 0xfffe;

// drvStatus_t (1.2).
inline constexpr int kDrvStatusWork = 1;
inline constexpr int kDrvStatusCommunicationLost = 4;

// drvGetPlatformInfo.
inline constexpr uint32_t kPlatformHostSide = 1;

// ---- halGetDeviceInfo selectors (1.5) ----
enum HalModule : int32_t {
  kModuleSystem = 0,
  kModuleAicpu = 1,
  kModuleCcpu = 2,
  kModuleAicore = 4,
  kModuleTscpu = 5,
  kModuleVectorCore = 7,
  kModuleQos = 9,
  kModuleLog = 11,
};

enum HalInfo : int32_t {
  kInfoEnv = 0,  // 0 FPGA, 1 EMU, 2 ESL
  kInfoVersion = 1,
  kInfoCoreNum = 3,
  kInfoFreque = 4,  // MHz
  kInfoOccupy = 8,
  kInfoId = 9,
  kInfoIp = 10,
  kInfoEndian = 11,
  kInfoSysCount = 13,      // device system counter, cycles
  kInfoMonotonicRaw = 14,  // device CLOCK_MONOTONIC_RAW, ns
  kInfoPhyChipId = 18,
  kInfoPhyDieId = 19,
  kInfoHostOscFreque = 24,  // kHz; needs kApiOscFreq
  kInfoDevOscFreque = 25,   // kHz; needs kApiOscFreq
  kInfoCurrentFreq = 32,
  kInfoConfig = 33,
};

// Chip id = ChipIdOf(halGetDeviceInfo(SYSTEM, VERSION)) (2.3).
constexpr uint32_t ChipIdOf(int64_t version) {
  return static_cast<uint32_t>((version >> 8) & 0xff);
}

enum ChipId : uint32_t {
  kChip310 = 0,
  kChip910 = 1,
  kChipMdc = 2,
  kChip310P = 4,
  kChip910B = 5,  // Atlas A2; A3 (910_93) answers 5 as well
  kChip310B = 7,
  kChipTinyV1 = 8,
  kChipNanoV1 = 9,
  kChipMdcMiniV3 = 11,
  kChipMdcLite = 12,
  kChip950 = 15,
  kChip950V121 = 16,
  kChipMdcV2 = 17,
  kChipMdcLiteV2 = 18,
  kChip5162A = 21,
};

// The newest generation ("v6" of records), which lays out some records differently.
constexpr bool Is950Class(uint32_t chip_id) { return chip_id == kChip950 || chip_id == kChip950V121; }

// ---- halGetAPIVersion gates (1.5) ----
inline constexpr int kApiOscFreq = 0x071905;
inline constexpr int kApiCurrent = 0x072419;  // the header this table was read from

// ---- channel ids (2.1) ----
enum ChannelId : unsigned {
  kChannelHbm = 1,
  kChannelBus = 2,
  kChannelPcie = 3,
  kChannelNic = 4,
  kChannelDma = 5,
  kChannelDvpp = 6,
  kChannelDdr = 7,
  kChannelLlc = 8,
  kChannelHccs = 9,
  kChannelTscpu = 10,
  kChannelAicore = 43,
  kChannelTsfw = 44,
  kChannelHwtsLog = 45,
  kChannelKeyPoint = 46,
  kChannelTsfwL2 = 47,
  kChannelHwtsLog1 = 48,
  kChannelTsfw1 = 49,
  kChannelStarsSocLog = 50,
  kChannelStarsBlockLog = 51,
  kChannelStarsSocProfile = 52,
  kChannelFftsProfileTask = 53,
  kChannelFftsProfileSample = 54,
  kChannelAiv = 85,
  kChannelIoStarsStreamLog = 126,
  kChannelAiStarsStreamLog = 127,
  kChannelTscpuMax = 128,
  kChannelRoce = 129,
  kChannelNpuAppMem = 130,
  kChannelNpuMem = 131,
  kChannelLp = 132,
  kChannelQos = 133,
  kChannelSocPmu = 134,
  kChannelDvppVenc = 135,
  kChannelDvppJpege = 136,
  kChannelDvppVdec = 137,
  kChannelDvppJpegd = 138,
  kChannelDvppVpc = 139,
  kChannelDvppPng = 140,
  kChannelDvppScd = 141,
  kChannelNpuModuleMem = 142,
  kChannelAicpu = 143,
  kChannelCusAicpu = 144,
  kChannelAdprof = 145,
  kChannelUb = 146,
  kChannelCcu0Instr = 147,
  kChannelCcu0Stat = 148,
  kChannelCcu1Instr = 149,
  kChannelStarsNanoProfile = 150,
  kChannelCcu1Stat = 151,
  kChannelNtsTask = 152,
  kChannelNtsPmu = 153,
};

// ---- structs (1.6) ----
struct ProfPollInfo {
  uint32_t device_id;
  uint32_t channel_id;
};
static_assert(sizeof(ProfPollInfo) == 8);
static_assert(offsetof(ProfPollInfo, channel_id) == 4);

struct ChannelInfo {
  char channel_name[kChannelNameLength];  // not necessarily NUL-terminated
  uint32_t channel_type;
  uint32_t channel_id;
};
static_assert(sizeof(ChannelInfo) == 40);
static_assert(offsetof(ChannelInfo, channel_type) == 32);
static_assert(offsetof(ChannelInfo, channel_id) == 36);

struct ChannelList {  // channel_list_t
  uint32_t chip_type;
  uint32_t channel_num;
  ChannelInfo channel[kMaxChannels];
};
static_assert(sizeof(ChannelList) == 6408);
static_assert(offsetof(ChannelList, channel_num) == 4);
static_assert(offsetof(ChannelList, channel) == 8);

// ---- struct prof_start_para (3.1) ----
inline constexpr int32_t kProfTsType = 0;
inline constexpr int32_t kProfPeripheralType = 1;

struct ProfStartPara {
  int32_t channel_type;
  uint32_t sample_period;  // ms for peripherals; 0 for event-driven channels
  uint32_t real_time;      // always kProfReal
  void* user_data;         // copied by the driver during the call
  uint32_t user_data_size;
};
static_assert(sizeof(ProfStartPara) == 32);
static_assert(offsetof(ProfStartPara, channel_type) == 0);
static_assert(offsetof(ProfStartPara, sample_period) == 4);
static_assert(offsetof(ProfStartPara, real_time) == 8);
static_assert(offsetof(ProfStartPara, user_data) == 16);
static_assert(offsetof(ProfStartPara, user_data_size) == 24);

// ---- user_data of the peripheral channels (3.3) ----
inline constexpr uint32_t kAllMasters = 0xFFFFFFFF;
inline constexpr uint32_t kMemEventRead = 0;
inline constexpr uint32_t kMemEventWrite = 1;

struct MemEventCfg {  // HBM and DDR, with the two events that are always requested
  uint32_t period;    // ms
  uint32_t master_id;
  uint32_t event_num;
  uint32_t event[2];
};
inline constexpr size_t kMemEventCfgHead = 12;  // the driver takes 12 + 4 * event_num bytes
static_assert(sizeof(MemEventCfg) == 20);
static_assert(offsetof(MemEventCfg, master_id) == 4);
static_assert(offsetof(MemEventCfg, event_num) == 8);
static_assert(offsetof(MemEventCfg, event) == kMemEventCfgHead);

inline constexpr uint32_t kLlcSampleRead = 1;
inline constexpr uint32_t kLlcSampleWrite = 2;

struct LlcCfg {
  uint32_t period;  // ms
  uint32_t sample_type;
};
static_assert(sizeof(LlcCfg) == 8);
static_assert(offsetof(LlcCfg, sample_type) == 4);

inline constexpr uint32_t kMemCfgEventApp = 0;
inline constexpr uint32_t kMemCfgEventDevice = 1;

struct MemCfg {     // channels 130, 131, 142
  uint32_t period;  // ms
  uint32_t res1;    // 142: 1 asks for timestamps in host counter cycles
  uint32_t event;
  uint32_t res2;
};
static_assert(sizeof(MemCfg) == 16);
static_assert(offsetof(MemCfg, res1) == 4);
static_assert(offsetof(MemCfg, event) == 8);
static_assert(offsetof(MemCfg, res2) == 12);

struct LpmCfg {
  uint32_t period;   // 100
  uint32_t version;  // 1
};
static_assert(sizeof(LpmCfg) == 8);
static_assert(offsetof(LpmCfg, version) == 4);

// Channels of InstrChannel (channels.h).
struct InstrProfileCfg {
  uint32_t period;       // AI Core cycles, 300..30000
  uint32_t pc_sampling;  // 0 instructions, 1 program counter
};
static_assert(sizeof(InstrProfileCfg) == 8);
static_assert(offsetof(InstrProfileCfg, pc_sampling) == 4);

inline constexpr unsigned kMaxMpamIds = 20;

struct QosProfileConfig {
  uint32_t period;  // ms in channel 133
  uint16_t stream_num;
  uint16_t res;
  uint8_t mpam_id[kMaxMpamIds];
};
static_assert(sizeof(QosProfileConfig) == 28);
static_assert(offsetof(QosProfileConfig, stream_num) == 4);
static_assert(offsetof(QosProfileConfig, res) == 6);
static_assert(offsetof(QosProfileConfig, mpam_id) == 8);

inline constexpr uint16_t kQosModeListIds = 0;
inline constexpr uint16_t kQosModeIdToName = 1;
inline constexpr uint16_t kQosModeNameToId = 2;

struct QosProfileInfo {  // halGetDeviceInfoByBuff(dev, kModuleQos, kInfoConfig, ...)
  uint32_t dev_id;
  uint16_t stream_num;
  uint16_t mode;
  uint8_t mpam_id[kMaxMpamIds];
  char stream_name[256];
};
static_assert(sizeof(QosProfileInfo) == 284);
static_assert(offsetof(QosProfileInfo, stream_num) == 4);
static_assert(offsetof(QosProfileInfo, mode) == 6);
static_assert(offsetof(QosProfileInfo, mpam_id) == 8);
static_assert(offsetof(QosProfileInfo, stream_name) == 28);

// ---- user_data of channel 52 (3.4) ----
inline constexpr uint32_t kSwitchEnable = 1;
inline constexpr uint32_t kSwitchDisable = 2;

struct CommonSampleSwitch {
  uint32_t inner_switch;
  uint32_t period;  // ms on the chips we support, except `power` (us)
};
static_assert(sizeof(CommonSampleSwitch) == 8);
static_assert(offsetof(CommonSampleSwitch, period) == 4);

struct SocProfileCfg {
  CommonSampleSwitch acc_pmu;
  CommonSampleSwitch on_chip;
  CommonSampleSwitch inter_die;   // SIO
  CommonSampleSwitch inter_chip;  // PCIe and HCCS PA link
  CommonSampleSwitch power;       // us
  CommonSampleSwitch stars_info;
  CommonSampleSwitch ub_bw;
};
static_assert(sizeof(SocProfileCfg) == 56);
static_assert(offsetof(SocProfileCfg, on_chip) == 8);
static_assert(offsetof(SocProfileCfg, inter_die) == 16);
static_assert(offsetof(SocProfileCfg, inter_chip) == 24);
static_assert(offsetof(SocProfileCfg, power) == 32);
static_assert(offsetof(SocProfileCfg, stars_info) == 40);
static_assert(offsetof(SocProfileCfg, ub_bw) == 48);

struct SocProfileQosCfg {  // the longer form, chips with STARS_QOS
  SocProfileCfg soc;
  QosProfileConfig qos_config;
};
static_assert(sizeof(SocProfileQosCfg) == 84);
static_assert(offsetof(SocProfileQosCfg, qos_config) == 56);

// ---- functions (1.2). Exported as plain C symbols under the names beside them. ----
using ProfDrvGetChannelsFn = int (*)(unsigned, ChannelList*);            // prof_drv_get_channels
using ProfDrvStartFn = int (*)(unsigned, unsigned, ProfStartPara*);      // prof_drv_start
using ProfStopFn = int (*)(unsigned, unsigned);                          // prof_stop
using ProfChannelReadFn = int (*)(unsigned, unsigned, char*, unsigned);  // prof_channel_read
using ProfChannelPollFn = int (*)(ProfPollInfo*, int, int);  // prof_channel_poll; timeout in s
using HalProfDataFlushFn = int (*)(unsigned, unsigned, unsigned*);         // halProfDataFlush
using DrvGetDevNumFn = int (*)(uint32_t*);                                 // drvGetDevNum
using DrvGetDevIdsFn = int (*)(uint32_t*, uint32_t);                       // drvGetDevIDs
using DrvDeviceStatusFn = int (*)(uint32_t, int*);                         // drvDeviceStatus
using DrvGetPlatformInfoFn = int (*)(uint32_t*);                           // drvGetPlatformInfo
using HalGetDeviceInfoFn = int (*)(uint32_t, int32_t, int32_t, int64_t*);  // halGetDeviceInfo
// halGetDeviceInfoByBuff
using HalGetDeviceInfoByBuffFn = int (*)(uint32_t, int32_t, int32_t, void*, int32_t*);
using HalGetApiVersionFn = int (*)(int*);                         // halGetAPIVersion
using DrvGetDeviceSplitModeFn = int (*)(unsigned, unsigned*);     // drvGetDeviceSplitMode
using DrvDeviceGetPhyIdByIndexFn = int (*)(uint32_t, uint32_t*);  // drvDeviceGetPhyIdByIndex

}  // namespace profd::abi
