// The structs libdcmi.so fills (dcmi-and-metrics 1.4, LP64), declared by ourselves; every size and
// offset stated there is asserted. Use through driver/abi/dcmi_abi.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace profd::abi {

inline constexpr unsigned kHccsLinks = 16;  // array length; links 1..7 are wired (1.7)

struct DcmiChipInfoV2 {
  unsigned char chip_type[32];
  unsigned char chip_name[32];
  unsigned char chip_ver[32];
  uint32_t aicore_cnt;
  unsigned char npu_name[32];
};
static_assert(sizeof(DcmiChipInfoV2) == 132 && alignof(DcmiChipInfoV2) == 4);
static_assert(offsetof(DcmiChipInfoV2, chip_name) == 32);
static_assert(offsetof(DcmiChipInfoV2, chip_ver) == 64);
static_assert(offsetof(DcmiChipInfoV2, aicore_cnt) == 96);
static_assert(offsetof(DcmiChipInfoV2, npu_name) == 100);
inline constexpr size_t kDcmiChipInfoV1Bytes =
    100;  // the older dcmi_chip_info ends before npu_name

struct DcmiPcieInfoAll {
  uint32_t venderid;
  uint32_t subvenderid;
  uint32_t deviceid;
  uint32_t subdeviceid;
  int32_t domain;
  uint32_t bdf_busid;
  uint32_t bdf_deviceid;
  uint32_t bdf_funcid;
  unsigned char reserve[32];
};
static_assert(sizeof(DcmiPcieInfoAll) == 64 && alignof(DcmiPcieInfoAll) == 4);
static_assert(offsetof(DcmiPcieInfoAll, subvenderid) == 4);
static_assert(offsetof(DcmiPcieInfoAll, deviceid) == 8);
static_assert(offsetof(DcmiPcieInfoAll, subdeviceid) == 12);
static_assert(offsetof(DcmiPcieInfoAll, domain) == 16);
static_assert(offsetof(DcmiPcieInfoAll, bdf_busid) == 20);
static_assert(offsetof(DcmiPcieInfoAll, bdf_deviceid) == 24);
static_assert(offsetof(DcmiPcieInfoAll, bdf_funcid) == 28);
static_assert(offsetof(DcmiPcieInfoAll, reserve) == 32);

struct DcmiDieId {
  uint32_t soc_die[5];
};
static_assert(sizeof(DcmiDieId) == 20 && alignof(DcmiDieId) == 4);

struct DcmiBoardInfo {
  uint32_t board_id;
  uint32_t pcb_id;
  uint32_t bom_id;
  uint32_t slot_id;
};
static_assert(sizeof(DcmiBoardInfo) == 16 && alignof(DcmiBoardInfo) == 4);
static_assert(offsetof(DcmiBoardInfo, pcb_id) == 4);
static_assert(offsetof(DcmiBoardInfo, bom_id) == 8);
static_assert(offsetof(DcmiBoardInfo, slot_id) == 12);

struct DcmiElabelInfo {
  char product_name[256];
  char model[256];
  char manufacturer[256];
  char manufacturer_date[256];
  char serial_number[256];
};
static_assert(sizeof(DcmiElabelInfo) == 1280 && alignof(DcmiElabelInfo) == 1);
static_assert(offsetof(DcmiElabelInfo, model) == 256);
static_assert(offsetof(DcmiElabelInfo, manufacturer) == 512);
static_assert(offsetof(DcmiElabelInfo, manufacturer_date) == 768);
static_assert(offsetof(DcmiElabelInfo, serial_number) == 1024);

struct DcmiSpodInfo {
  uint32_t sdid;
  uint32_t scale_type;
  uint32_t super_pod_id;
  uint32_t server_id;
  uint32_t chassis_id;
  uint32_t super_pod_type;
  uint32_t reserve[6];
};
static_assert(sizeof(DcmiSpodInfo) == 48 && alignof(DcmiSpodInfo) == 4);
static_assert(offsetof(DcmiSpodInfo, scale_type) == 4);
static_assert(offsetof(DcmiSpodInfo, super_pod_id) == 8);
static_assert(offsetof(DcmiSpodInfo, server_id) == 12);
static_assert(offsetof(DcmiSpodInfo, chassis_id) == 16);
static_assert(offsetof(DcmiSpodInfo, super_pod_type) == 20);
static_assert(offsetof(DcmiSpodInfo, reserve) == 24);

struct DcmiHbmInfo {
  uint64_t memory_size;         // MB
  uint32_t freq;                // MHz
  uint64_t memory_usage;        // MB
  int32_t temp;                 // degrees C
  uint32_t bandwith_util_rate;  // %; the vendor's spelling
};
static_assert(sizeof(DcmiHbmInfo) == 32 && alignof(DcmiHbmInfo) == 8);
static_assert(offsetof(DcmiHbmInfo, freq) == 8);
static_assert(offsetof(DcmiHbmInfo, memory_usage) == 16);
static_assert(offsetof(DcmiHbmInfo, temp) == 24);
static_assert(offsetof(DcmiHbmInfo, bandwith_util_rate) == 28);

struct DcmiMemoryInfoV3 {     // dcmi_get_memory_info_stru
  uint64_t memory_size;       // MB
  uint64_t memory_available;  // MB
  uint32_t freq;              // MHz
  uint64_t hugepagesize;      // KB
  uint64_t hugepages_total;
  uint64_t hugepages_free;
  uint32_t utiliza;  // %
  unsigned char reserve[60];
};
static_assert(sizeof(DcmiMemoryInfoV3) == 112 && alignof(DcmiMemoryInfoV3) == 8);
static_assert(offsetof(DcmiMemoryInfoV3, memory_available) == 8);
static_assert(offsetof(DcmiMemoryInfoV3, freq) == 16);
static_assert(offsetof(DcmiMemoryInfoV3, hugepagesize) == 24);
static_assert(offsetof(DcmiMemoryInfoV3, hugepages_total) == 32);
static_assert(offsetof(DcmiMemoryInfoV3, hugepages_free) == 40);
static_assert(offsetof(DcmiMemoryInfoV3, utiliza) == 48);
static_assert(offsetof(DcmiMemoryInfoV3, reserve) == 52);

struct DcmiMemoryInfo {  // the older dcmi_memory_info_stru
  uint64_t memory_size;
  uint32_t freq;
  uint32_t utiliza;
};
static_assert(sizeof(DcmiMemoryInfo) == 16 && alignof(DcmiMemoryInfo) == 8);
static_assert(offsetof(DcmiMemoryInfo, freq) == 8);
static_assert(offsetof(DcmiMemoryInfo, utiliza) == 12);

struct DcmiEccInfo {
  int32_t enable_flag;
  uint32_t single_bit_error_cnt;
  uint32_t double_bit_error_cnt;
  uint32_t total_single_bit_error_cnt;
  uint32_t total_double_bit_error_cnt;
  uint32_t single_bit_isolated_pages_cnt;
  uint32_t double_bit_isolated_pages_cnt;
  uint32_t single_bit_next_isolated_pages_cnt;  // newer drivers only, from here
  uint32_t double_bit_next_isolated_pages_cnt;
};
static_assert(sizeof(DcmiEccInfo) == 36 && alignof(DcmiEccInfo) == 4);
static_assert(offsetof(DcmiEccInfo, single_bit_error_cnt) == 4);
static_assert(offsetof(DcmiEccInfo, double_bit_error_cnt) == 8);
static_assert(offsetof(DcmiEccInfo, total_single_bit_error_cnt) == 12);
static_assert(offsetof(DcmiEccInfo, total_double_bit_error_cnt) == 16);
static_assert(offsetof(DcmiEccInfo, single_bit_isolated_pages_cnt) == 20);
static_assert(offsetof(DcmiEccInfo, double_bit_isolated_pages_cnt) == 24);
static_assert(offsetof(DcmiEccInfo, single_bit_next_isolated_pages_cnt) == 28);
static_assert(offsetof(DcmiEccInfo, double_bit_next_isolated_pages_cnt) == 32);

struct DcmiAicoreInfo {
  uint32_t freq;      // rated, MHz
  uint32_t cur_freq;  // MHz
};
static_assert(sizeof(DcmiAicoreInfo) == 8);
static_assert(offsetof(DcmiAicoreInfo, cur_freq) == 4);

struct DcmiAicpuInfo {
  uint32_t max_freq;
  uint32_t cur_freq;
  uint32_t aicpu_num;
  uint32_t util_rate[16];
};
static_assert(sizeof(DcmiAicpuInfo) == 76);
static_assert(offsetof(DcmiAicpuInfo, cur_freq) == 4);
static_assert(offsetof(DcmiAicpuInfo, aicpu_num) == 8);
static_assert(offsetof(DcmiAicpuInfo, util_rate) == 12);

struct DcmiMultiUtilizationInfo {  // %
  uint32_t aic_util;
  uint32_t aiv_util;
  uint32_t aicore_util;
  uint32_t npu_util;
  uint32_t reserved[8];
};
static_assert(sizeof(DcmiMultiUtilizationInfo) == 48 && alignof(DcmiMultiUtilizationInfo) == 4);
static_assert(offsetof(DcmiMultiUtilizationInfo, aiv_util) == 4);
static_assert(offsetof(DcmiMultiUtilizationInfo, aicore_util) == 8);
static_assert(offsetof(DcmiMultiUtilizationInfo, npu_util) == 12);
static_assert(offsetof(DcmiMultiUtilizationInfo, reserved) == 16);

struct DcmiLlcPerf {
  uint32_t wr_hit_rate;  // %
  uint32_t rd_hit_rate;  // %
  uint32_t throughput;   // KB/s
};
static_assert(sizeof(DcmiLlcPerf) == 12);
static_assert(offsetof(DcmiLlcPerf, rd_hit_rate) == 4);
static_assert(offsetof(DcmiLlcPerf, throughput) == 8);

struct DcmiDvppRatio {  // %
  int32_t vdec_ratio;
  int32_t vpc_ratio;
  int32_t venc_ratio;
  int32_t jpege_ratio;
  int32_t jpegd_ratio;
};
static_assert(sizeof(DcmiDvppRatio) == 20);
static_assert(offsetof(DcmiDvppRatio, vpc_ratio) == 4);
static_assert(offsetof(DcmiDvppRatio, venc_ratio) == 8);
static_assert(offsetof(DcmiDvppRatio, jpege_ratio) == 12);
static_assert(offsetof(DcmiDvppRatio, jpegd_ratio) == 16);

struct DcmiCgroupInfo {  // bytes
  uint64_t limit_in_bytes;
  uint64_t max_usage_in_bytes;
  uint64_t usage_in_bytes;
};
static_assert(sizeof(DcmiCgroupInfo) == 24 && alignof(DcmiCgroupInfo) == 8);
static_assert(offsetof(DcmiCgroupInfo, max_usage_in_bytes) == 8);
static_assert(offsetof(DcmiCgroupInfo, usage_in_bytes) == 16);

union DcmiSensorInfo {
  uint8_t uchar_value;
  uint16_t ushort_value;
  uint32_t uint_value;
  int32_t int_value;
  int8_t temp[2];
  int32_t ntc_temp[4];
  uint32_t data[16];
};
static_assert(sizeof(DcmiSensorInfo) == 64);

struct DcmiProcMemInfo {
  int32_t proc_id;
  uint64_t proc_mem_usage;  // bytes
};
static_assert(sizeof(DcmiProcMemInfo) == 16 && alignof(DcmiProcMemInfo) == 8);
static_assert(offsetof(DcmiProcMemInfo, proc_mem_usage) == 8);

// Directions are the device's: tx_p = the device writes to the remote side. [0] min, [1] max, [2]
// average.
struct DcmiPcieLinkBandwidthInfo {
  int32_t profiling_time;  // in: ms, 0..2000; the call blocks that long
  uint32_t tx_p_bw[3];     // MB/ms
  uint32_t tx_np_bw[3];
  uint32_t tx_cpl_bw[3];
  uint32_t tx_np_lantency[3];  // ns; the vendor's spelling
  uint32_t rx_p_bw[3];
  uint32_t rx_np_bw[3];
  uint32_t rx_cpl_bw[3];
};
static_assert(sizeof(DcmiPcieLinkBandwidthInfo) == 88 && alignof(DcmiPcieLinkBandwidthInfo) == 4);
static_assert(offsetof(DcmiPcieLinkBandwidthInfo, tx_p_bw) == 4);
static_assert(offsetof(DcmiPcieLinkBandwidthInfo, tx_np_bw) == 16);
static_assert(offsetof(DcmiPcieLinkBandwidthInfo, tx_cpl_bw) == 28);
static_assert(offsetof(DcmiPcieLinkBandwidthInfo, tx_np_lantency) == 40);
static_assert(offsetof(DcmiPcieLinkBandwidthInfo, rx_p_bw) == 52);
static_assert(offsetof(DcmiPcieLinkBandwidthInfo, rx_np_bw) == 64);
static_assert(offsetof(DcmiPcieLinkBandwidthInfo, rx_cpl_bw) == 76);

struct DcmiChipPcieErrRate {
  uint32_t reg_deskew_fifo_overflow_intr_status;
  uint32_t reg_symbol_unlock_intr_status;
  uint32_t reg_deskew_unlock_intr_status;
  uint32_t reg_phystatus_timeout_intr_status;
  uint32_t symbol_unlock_counter;
  uint32_t pcs_rx_err_cnt;
  uint32_t phy_lane_err_counter;
  uint32_t pcs_rcv_err_status;
  uint32_t symbol_unlock_err_status;
  uint32_t phy_lane_err_status;
  uint32_t dl_lcrc_err_num;
  uint32_t dl_dcrc_err_num;
};
static_assert(sizeof(DcmiChipPcieErrRate) == 48 && alignof(DcmiChipPcieErrRate) == 4);
static_assert(offsetof(DcmiChipPcieErrRate, symbol_unlock_counter) == 16);
static_assert(offsetof(DcmiChipPcieErrRate, pcs_rx_err_cnt) == 20);
static_assert(offsetof(DcmiChipPcieErrRate, phy_lane_err_counter) == 24);
static_assert(offsetof(DcmiChipPcieErrRate, pcs_rcv_err_status) == 28);
static_assert(offsetof(DcmiChipPcieErrRate, symbol_unlock_err_status) == 32);
static_assert(offsetof(DcmiChipPcieErrRate, phy_lane_err_status) == 36);
static_assert(offsetof(DcmiChipPcieErrRate, dl_lcrc_err_num) == 40);
static_assert(offsetof(DcmiChipPcieErrRate, dl_dcrc_err_num) == 44);

struct DcmiPcieErrors {  // dcmi_get_device_info(PCIE 55, sub 1)
  uint32_t tx_err_cnt;
  uint32_t rx_err_cnt;
  uint32_t lcrc_err_cnt;
  uint32_t ecrc_err_cnt;
  uint32_t retry_cnt;
  uint32_t rsv[32];
};
static_assert(sizeof(DcmiPcieErrors) == 148 && alignof(DcmiPcieErrors) == 4);
static_assert(offsetof(DcmiPcieErrors, rx_err_cnt) == 4);
static_assert(offsetof(DcmiPcieErrors, lcrc_err_cnt) == 8);
static_assert(offsetof(DcmiPcieErrors, ecrc_err_cnt) == 12);
static_assert(offsetof(DcmiPcieErrors, retry_cnt) == 16);
static_assert(offsetof(DcmiPcieErrors, rsv) == 20);

// GB/s with GB = 1024^3. The driver adds into the totals: zero the struct before each call.
struct DcmiHccsBandwidthInfo {
  int32_t profiling_time;  // in: ms, 1..1000; the call blocks that long
  double total_txbw;
  double total_rxbw;
  double tx_bandwidth[kHccsLinks];
  double rx_bandwidth[kHccsLinks];
};
static_assert(sizeof(DcmiHccsBandwidthInfo) == 280 && alignof(DcmiHccsBandwidthInfo) == 8);
static_assert(offsetof(DcmiHccsBandwidthInfo, total_txbw) == 8);
static_assert(offsetof(DcmiHccsBandwidthInfo, total_rxbw) == 16);
static_assert(offsetof(DcmiHccsBandwidthInfo, tx_bandwidth) == 24);
static_assert(offsetof(DcmiHccsBandwidthInfo, rx_bandwidth) == 152);

struct DcmiHccsStatisticInfo {  // HCCS 16, sub 3; tx and rx in flits
  uint32_t tx_cnt[kHccsLinks];
  uint32_t rx_cnt[kHccsLinks];
  uint32_t crc_err_cnt[kHccsLinks];
  uint32_t retry_cnt[kHccsLinks];
  uint32_t reserved_field_cnt[64];
};
static_assert(sizeof(DcmiHccsStatisticInfo) == 512 && alignof(DcmiHccsStatisticInfo) == 4);
static_assert(offsetof(DcmiHccsStatisticInfo, rx_cnt) == 64);
static_assert(offsetof(DcmiHccsStatisticInfo, crc_err_cnt) == 128);
static_assert(offsetof(DcmiHccsStatisticInfo, retry_cnt) == 192);
static_assert(offsetof(DcmiHccsStatisticInfo, reserved_field_cnt) == 256);

struct DcmiHccsStatisticInfoU64 {  // HCCS 16, sub 5
  uint64_t tx_cnt[kHccsLinks];
  uint64_t rx_cnt[kHccsLinks];
  uint64_t crc_err_cnt[kHccsLinks];
  uint64_t retry_cnt[kHccsLinks];
  uint64_t reserved_field_cnt[64];
};
static_assert(sizeof(DcmiHccsStatisticInfoU64) == 1024 && alignof(DcmiHccsStatisticInfoU64) == 8);
static_assert(offsetof(DcmiHccsStatisticInfoU64, rx_cnt) == 128);
static_assert(offsetof(DcmiHccsStatisticInfoU64, crc_err_cnt) == 256);
static_assert(offsetof(DcmiHccsStatisticInfoU64, retry_cnt) == 384);
static_assert(offsetof(DcmiHccsStatisticInfoU64, reserved_field_cnt) == 512);

struct DcmiHccsStatus {  // HCCS 16, sub 0
  uint32_t pcs_status;
  uint32_t hdlc_status;  // kHccsHdlcOk when up
  unsigned char reserved[4];
};
static_assert(sizeof(DcmiHccsStatus) == 12 && alignof(DcmiHccsStatus) == 4);
static_assert(offsetof(DcmiHccsStatus, hdlc_status) == 4);
static_assert(offsetof(DcmiHccsStatus, reserved) == 8);

struct DcmiHccsLanes {  // HCCS 16, sub 1
  uint32_t port_bitmap;
  uint32_t lane_bitmap[kHccsLinks];
  uint32_t reserve[16];
};
static_assert(sizeof(DcmiHccsLanes) == 132 && alignof(DcmiHccsLanes) == 4);
static_assert(offsetof(DcmiHccsLanes, lane_bitmap) == 4);
static_assert(offsetof(DcmiHccsLanes, reserve) == 68);

struct DcmiSioCrcErrInfo {  // SIO 56, sub 0; 16-bit counters that wrap
  uint16_t tx_error_count;
  uint16_t rx_error_count;
  unsigned char reserved[8];
};
static_assert(sizeof(DcmiSioCrcErrInfo) == 12 && alignof(DcmiSioCrcErrInfo) == 2);
static_assert(offsetof(DcmiSioCrcErrInfo, rx_error_count) == 2);
static_assert(offsetof(DcmiSioCrcErrInfo, reserved) == 4);

inline constexpr unsigned kLpPowerInfoBytes = 36;

struct DcmiLpPowerInfo {     // LP 8, sub 10
  uint32_t soc_rated_power;  // W
  uint32_t reserved[8];
};
static_assert(sizeof(DcmiLpPowerInfo) == kLpPowerInfoBytes);
static_assert(offsetof(DcmiLpPowerInfo, soc_rated_power) == 0);

struct DcmiRdmaBandwidthInfo {  // MB/s
  uint32_t tx_bandwidth;
  uint32_t rx_bandwidth;
};
static_assert(sizeof(DcmiRdmaBandwidthInfo) == 8);
static_assert(offsetof(DcmiRdmaBandwidthInfo, rx_bandwidth) == 4);

struct DcmiNetworkPktStats {  // dcmi_network_pkt_stats_info
  uint64_t mac_tx_mac_pause_num;
  uint64_t mac_rx_mac_pause_num;
  uint64_t mac_tx_pfc_pkt_num;
  uint64_t mac_tx_pfc_pri_pkt_num[8];  // priorities 0..7
  uint64_t mac_rx_pfc_pkt_num;
  uint64_t mac_rx_pfc_pri_pkt_num[8];
  uint64_t mac_tx_total_pkt_num;
  uint64_t mac_tx_total_oct_num;
  uint64_t mac_tx_bad_pkt_num;
  uint64_t mac_tx_bad_oct_num;
  uint64_t mac_rx_total_pkt_num;
  uint64_t mac_rx_total_oct_num;
  uint64_t mac_rx_bad_pkt_num;
  uint64_t mac_rx_bad_oct_num;
  uint64_t mac_rx_fcs_err_pkt_num;
  uint64_t roce_rx_rc_pkt_num;
  uint64_t roce_rx_all_pkt_num;
  uint64_t roce_rx_err_pkt_num;
  uint64_t roce_tx_rc_pkt_num;
  uint64_t roce_tx_all_pkt_num;
  uint64_t roce_tx_err_pkt_num;
  uint64_t roce_cqe_num;
  uint64_t roce_rx_cnp_pkt_num;
  uint64_t roce_tx_cnp_pkt_num;
  uint64_t roce_err_ack_num;
  uint64_t roce_err_psn_num;
  uint64_t roce_verification_err_num;
  uint64_t roce_err_qp_status_num;
  uint64_t roce_new_pkt_rty_num;
  uint64_t roce_ecn_db_num;
  uint64_t nic_tx_all_pkg_num;
  uint64_t nic_tx_all_oct_num;
  uint64_t nic_rx_all_pkg_num;
  uint64_t nic_rx_all_oct_num;
  int64_t tv_sec;
  int64_t tv_usec;
  unsigned char reserved[64];
};
static_assert(sizeof(DcmiNetworkPktStats) == 464 && alignof(DcmiNetworkPktStats) == 8);
static_assert(offsetof(DcmiNetworkPktStats, mac_rx_mac_pause_num) == 8 * 1);
static_assert(offsetof(DcmiNetworkPktStats, mac_tx_pfc_pkt_num) == 8 * 2);
static_assert(offsetof(DcmiNetworkPktStats, mac_tx_pfc_pri_pkt_num) == 8 * 3);
static_assert(offsetof(DcmiNetworkPktStats, mac_rx_pfc_pkt_num) == 8 * 11);
static_assert(offsetof(DcmiNetworkPktStats, mac_rx_pfc_pri_pkt_num) == 8 * 12);
static_assert(offsetof(DcmiNetworkPktStats, mac_tx_total_pkt_num) == 8 * 20);
static_assert(offsetof(DcmiNetworkPktStats, mac_tx_total_oct_num) == 8 * 21);
static_assert(offsetof(DcmiNetworkPktStats, mac_tx_bad_pkt_num) == 8 * 22);
static_assert(offsetof(DcmiNetworkPktStats, mac_tx_bad_oct_num) == 8 * 23);
static_assert(offsetof(DcmiNetworkPktStats, mac_rx_total_pkt_num) == 8 * 24);
static_assert(offsetof(DcmiNetworkPktStats, mac_rx_total_oct_num) == 8 * 25);
static_assert(offsetof(DcmiNetworkPktStats, mac_rx_bad_pkt_num) == 8 * 26);
static_assert(offsetof(DcmiNetworkPktStats, mac_rx_bad_oct_num) == 8 * 27);
static_assert(offsetof(DcmiNetworkPktStats, mac_rx_fcs_err_pkt_num) == 8 * 28);
static_assert(offsetof(DcmiNetworkPktStats, roce_rx_rc_pkt_num) == 8 * 29);
static_assert(offsetof(DcmiNetworkPktStats, roce_rx_all_pkt_num) == 8 * 30);
static_assert(offsetof(DcmiNetworkPktStats, roce_rx_err_pkt_num) == 8 * 31);
static_assert(offsetof(DcmiNetworkPktStats, roce_tx_rc_pkt_num) == 8 * 32);
static_assert(offsetof(DcmiNetworkPktStats, roce_tx_all_pkt_num) == 8 * 33);
static_assert(offsetof(DcmiNetworkPktStats, roce_tx_err_pkt_num) == 8 * 34);
static_assert(offsetof(DcmiNetworkPktStats, roce_cqe_num) == 8 * 35);
static_assert(offsetof(DcmiNetworkPktStats, roce_rx_cnp_pkt_num) == 8 * 36);
static_assert(offsetof(DcmiNetworkPktStats, roce_tx_cnp_pkt_num) == 8 * 37);
static_assert(offsetof(DcmiNetworkPktStats, roce_err_ack_num) == 8 * 38);
static_assert(offsetof(DcmiNetworkPktStats, roce_err_psn_num) == 8 * 39);
static_assert(offsetof(DcmiNetworkPktStats, roce_verification_err_num) == 8 * 40);
static_assert(offsetof(DcmiNetworkPktStats, roce_err_qp_status_num) == 8 * 41);
static_assert(offsetof(DcmiNetworkPktStats, roce_new_pkt_rty_num) == 8 * 42);
static_assert(offsetof(DcmiNetworkPktStats, roce_ecn_db_num) == 8 * 43);
static_assert(offsetof(DcmiNetworkPktStats, nic_tx_all_pkg_num) == 8 * 44);
static_assert(offsetof(DcmiNetworkPktStats, nic_tx_all_oct_num) == 8 * 45);
static_assert(offsetof(DcmiNetworkPktStats, nic_rx_all_pkg_num) == 8 * 46);
static_assert(offsetof(DcmiNetworkPktStats, nic_rx_all_oct_num) == 8 * 47);
static_assert(offsetof(DcmiNetworkPktStats, tv_sec) == 384);
static_assert(offsetof(DcmiNetworkPktStats, tv_usec) == 392);
static_assert(offsetof(DcmiNetworkPktStats, reserved) == 400);

struct DcmiFaultEvent {  // dcmi_dms_fault_event; the reserved tail differs between drivers
  uint32_t event_id;     // the fault code
  uint16_t deviceid;
  uint8_t node_type;
  uint8_t node_id;
  uint8_t sub_node_type;
  uint8_t sub_node_id;
  uint8_t severity;   // 0 warning, 1 minor, 2 major, 3 critical
  uint8_t assertion;  // 0 recovered, 1 raised, 2 one-off
  int32_t event_serial_num;
  int32_t notify_serial_num;
  uint64_t alarm_raised_time;
  char event_name[256];
  char additional_info[32];
  unsigned char resv[32];
};
static_assert(sizeof(DcmiFaultEvent) == 352 && alignof(DcmiFaultEvent) == 8);
static_assert(offsetof(DcmiFaultEvent, deviceid) == 4);
static_assert(offsetof(DcmiFaultEvent, node_type) == 6);
static_assert(offsetof(DcmiFaultEvent, node_id) == 7);
static_assert(offsetof(DcmiFaultEvent, sub_node_type) == 8);
static_assert(offsetof(DcmiFaultEvent, sub_node_id) == 9);
static_assert(offsetof(DcmiFaultEvent, severity) == 10);
static_assert(offsetof(DcmiFaultEvent, assertion) == 11);
static_assert(offsetof(DcmiFaultEvent, event_serial_num) == 12);
static_assert(offsetof(DcmiFaultEvent, notify_serial_num) == 16);
static_assert(offsetof(DcmiFaultEvent, alarm_raised_time) == 24);
static_assert(offsetof(DcmiFaultEvent, event_name) == 32);
static_assert(offsetof(DcmiFaultEvent, additional_info) == 288);
static_assert(offsetof(DcmiFaultEvent, resv) == 320);

struct DcmiEvent {
  int32_t type;
  DcmiFaultEvent event;
};
static_assert(sizeof(DcmiEvent) == 360 && alignof(DcmiEvent) == 8);
static_assert(offsetof(DcmiEvent, event) == 8);

}  // namespace profd::abi
