// What libdcmi.so looks like from outside, as far as our collectors use it: the structs, selectors,
// error codes and function types of dcmi-and-metrics section 1. Our own declarations (LP64); every
// size and offset stated there is asserted. Drivers disagree on some sizes (ECC: 28 or 36 bytes):
// pass zeroed buffers larger than needed. Query calls only: setters, resets and active probes are
// left out on purpose.
#pragma once

#include <cstdint>

#include "driver/abi/dcmi_link_structs.h"
#include "driver/abi/dcmi_structs.h"

namespace profd::abi {

// ---- error codes (1.6) ----
inline constexpr int kDcmiOk = 0;
inline constexpr int kDcmiInvalidParameter = -8001;
inline constexpr int kDcmiNotPermitted = -8002;
inline constexpr int kDcmiMemoryOperation = -8003;
inline constexpr int kDcmiSecureFunction = -8004;
inline constexpr int kDcmiInternal = -8005;
inline constexpr int kDcmiTimeout = -8006;
inline constexpr int kDcmiInvalidDevice = -8007;
inline constexpr int kDcmiDeviceMissing = -8008;
inline constexpr int kDcmiIoctl = -8009;
inline constexpr int kDcmiSend = -8010;
inline constexpr int kDcmiReceive = -8011;
inline constexpr int kDcmiNotReady = -8012;
inline constexpr int kDcmiNotInContainer = -8013;
inline constexpr int kDcmiFileOperation = -8014;
inline constexpr int kDcmiResetFailed = -8015;
inline constexpr int kDcmiAborted = -8016;
inline constexpr int kDcmiUpgrading = -8017;
inline constexpr int kDcmiOccupied = -8020;
inline constexpr int kDcmiPartition = -8022;
inline constexpr int kDcmiConfigMissing = -8023;
inline constexpr int kDcmiNotSupported = -8255;

// ---- limits ----
inline constexpr int kDcmiMaxCards = 64;
inline constexpr int kDcmiMaxDevicesInCard = 4;
inline constexpr unsigned kDcmiMaxErrorCodes = 128;
inline constexpr int kDcmiMaxProcesses = 32;
inline constexpr unsigned kDcmiHealthAbsent = 0xFFFFFFFF;
// 0.1 W; what is negative or more than 10 kW says that there is no value (-1, 0x7FFFFFFF).
constexpr bool IsDcmiPower(int deciwatts) { return deciwatts >= 0 && deciwatts <= 100'000; }
inline constexpr unsigned kHccsFlitBytes = 20;  // 1.7
inline constexpr int kPcieProfilingMaxMs = 2000;
inline constexpr int kHccsProfilingMaxMs = 1000;
inline constexpr unsigned kRdmaProfilingMinMs = 100;
inline constexpr unsigned kRdmaProfilingMaxMs = 10000;
inline constexpr uint32_t kHccsHdlcOk = 0x3;           // row 21
inline constexpr uint8_t kCoreUtilProfilingOn = 0xEF;  // row 37

// ---- enumerations (1.5) ----
enum DcmiUnitType : int { kUnitNpu = 0, kUnitMcu = 1 };
enum DcmiDieType : int { kDieNdie = 0, kDieVdie = 1, kDieDdie = 2 };

enum DcmiUtilizationType : int {
  kUtilMemory = 1,
  kUtilAicore = 2,
  kUtilAicpu = 3,
  kUtilCtrlCpu = 4,
  kUtilMemoryBandwidth = 5,
  kUtilHbm = 6,
  kUtilDdr = 8,
  kUtilHbmBandwidth = 10,
  kUtilVector = 12,
  kUtilNpu = 13,
  kUtilCube = 14,
};

enum DcmiFreqType : int {
  kFreqDdr = 1,
  kFreqCtrlCpu = 2,
  kFreqHbm = 6,
  kFreqAicoreCurrent = 7,
  kFreqAicoreRated = 9,
  kFreqVectorCurrent = 12,
};

enum DcmiDeviceType : int {  // ECC
  kEccDdr = 0,
  kEccHbm = 2,
  kEccHbmRecordedMulti = 5,
  kEccNone = 0xff,
};

enum DcmiSensorId : int {
  kSensorClusterTemp = 0,
  kSensorPeriTemp = 1,
  kSensorThermalThreshold = 9,  // temp[2]
  kSensorNtc = 10,              // ntc_temp[4]
  kSensorSocTemp = 11,
  kSensorFpTemp = 12,
  kSensorNDieTemp = 13,
  kSensorHbmTemp = 14,
};

enum DcmiNetworkHealth : int {  // dcmi_rdfx_detect_result; 0 and 6 count as healthy
  kNetOk = 0,
  kNetUnreach = 3,
  kNetInit = 6,
  kNetIpSet = 8,
};

enum DcmiMainCmd : int {
  kCmdDvpp = 0,
  kCmdLp = 8,
  kCmdTs = 11,
  kCmdChipInf = 12,
  kCmdHccs = 16,
  kCmdTemp = 50,
  kCmdVdevMng = 52,
  kCmdPcie = 55,
  kCmdSio = 56,
};

enum DcmiSubCmd : unsigned {
  kSubDvppVdec = 1,
  kSubDvppVpc = 2,
  kSubDvppJpege = 4,
  kSubDvppJpegd = 5,
  kSubHccsStatus = 0,
  kSubHccsLanes = 1,
  kSubHccsStatistic = 3,
  kSubHccsStatisticU64 = 5,
  kSubLpFreqReductionCause = 9,
  kSubLpPowerInfo = 10,
  kSubTsAicoreUtil = 0,
  kSubTsVectorUtil = 1,
  kSubChipInfSpod = 1,
  kSubPcieErrors = 1,
  kSubSioCrc = 0,
  kSubVdevTotal = 1,
  kSubVdevActivity = 5,
};

inline constexpr unsigned kTsAicoreUtilBytes = 25;
inline constexpr unsigned kTsVectorUtilBytes = 50;

// ---- functions ----
// v1 takes (card_id, device_id, ...), v2 one logic id; the symbols are in dcmi_table.h. Vendor enums
// travel as int. Numbers are the rows of table 1.3.

// Shapes shared by many calls.
template <class T>
using DcmiDeviceQueryFn = int (*)(int card_id, int device_id, T* out);
template <class T>
using DcmiV2DeviceQueryFn = int (*)(int dev_id, T* out);

// dcmi_init, dcmiv2_init
using DcmiInitFn = int (*)();
// dcmi_get_dcmi_version, dcmi_get_driver_version, dcmiv2_get_dcmi_version,
// dcmiv2_get_driver_version
using DcmiGetVersionFn = int (*)(char*, unsigned);
// dcmi_get_card_list(&count, list, list_len)
using DcmiGetCardListFn = int (*)(int*, int*, int);
// dcmi_get_device_num_in_card(card, &count)
using DcmiGetDeviceNumInCardFn = int (*)(int, int*);
// dcmi_get_device_logic_id(&logic_id, card, device)
using DcmiGetDeviceLogicIdFn = int (*)(int*, int, int);
// dcmi_get_device_phyid_from_logicid, dcmiv2_get_chip_phy_id_by_dev_id
using DcmiConvertIdFn = int (*)(unsigned, unsigned*);
// dcmiv2_get_device_list(list, &count, list_len)
using DcmiV2GetDeviceListFn = int (*)(int*, int*, int);
// dcmi_get_device_die_v2(card, device, die type, out)
using DcmiGetDieFn = int (*)(int, int, int, DcmiDieId*);
// dcmi_get_card_elabel_v2(card, out), dcmiv2_get_device_elabel_info(dev, out)
using DcmiGetElabelFn = int (*)(int, DcmiElabelInfo*);
using DcmiGetProductTypeFn = int (*)(int, int, char*, int);
// dcmi_get_topo_info_by_device_id(card1, device1, card2, device2, &type)
using DcmiGetTopoFn = int (*)(int, int, int, int, int*);

// 2: dcmi_get_device_errorcode_v2(card, device, &count, list, list_len);
// dcmiv2_get_device_error_code_list
using DcmiGetErrorCodeFn = int (*)(int, int, int*, unsigned*, unsigned);
// 5: dcmi_mcu_get_power_info(card, out), 0.1 W of the whole card
using DcmiGetBoardPowerFn = int (*)(int, int*);
// 7: dcmi_get_device_frequency(card, device, type, MHz)
using DcmiGetFrequencyFn = int (*)(int, int, int, unsigned*);
// 10: dcmi_get_device_utilization_rate(card, device, type, %)
using DcmiGetUtilizationFn = int (*)(int, int, int, unsigned*);
// 15: dcmi_get_device_ecc_info(card, device, memory, out)
using DcmiGetEccInfoFn = int (*)(int, int, int, DcmiEccInfo*);
// 18, 20-22, 25, 36-38: dcmi_get_device_info(card, device, main_cmd, sub_cmd, buf, &size)
using DcmiGetDeviceInfoFn = int (*)(int, int, int, unsigned, void*, unsigned*);
// 27: dcmi_get_netdev_pkt_stats_info(card, device, port 0, out) / v2 (dev, port 0, out)
using DcmiGetPktStatsFn = int (*)(int, int, int, DcmiNetworkPktStats*);
// 28: dcmi_get_rdma_bandwidth_info(card, device, port, ms, out); blocks for ms
using DcmiGetRdmaBandwidthFn = int (*)(int, int, int, unsigned, DcmiRdmaBandwidthInfo*);
// 31: dcmi_get_extra_statistics_info(card, device, port 0, out)
using DcmiGetExtraStatisticsFn = int (*)(int, int, int, DcmiExtraStatistics*);
// 32: dcmi_get_serdes_quality_info(card, device, macro, out) / v2
using DcmiGetSerdesQualityFn = int (*)(int, int, unsigned, DcmiSerdesQuality*);
// 47: dcmiv2_get_port_pkt_stats_info(dev, port, out)
using DcmiV2GetPortPktStatsFn = int (*)(int, DcmiUbPortInfo*, DcmiPortPktStats*);
// 39: dcmi_get_device_resource_info(card, device, list of 32, &count);
// dcmiv2_get_device_proc_mem_info
using DcmiGetResourceInfoFn = int (*)(int, int, DcmiProcMemInfo*, int*);
// 40: dcmi_get_device_sensor_info(card, device, sensor, out)
using DcmiGetSensorInfoFn = int (*)(int, int, int, DcmiSensorInfo*);
// 44: dcmi_get_device_current_fault_event(card, device, list, list_len, &count) / v2
using DcmiGetCurrentFaultsFn = int (*)(int, int, DcmiEvent*, int, int*);
// 43: dcmi_get_driver_health / v2
using DcmiGetDriverHealthFn = int (*)(unsigned*);

}  // namespace profd::abi
