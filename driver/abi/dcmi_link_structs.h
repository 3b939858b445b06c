// Structs of libdcmi about links and shared NPUs, beside those of dcmi_structs.h and to the same rules:
// sizes and offsets of dcmi-and-metrics 1.4; what that section leaves out (lists and states of Unified
// Bus ports) is as the vendor's public header declares it. LP64.
#pragma once

#include <cstddef>
#include <cstdint>

namespace profd::abi {

// ---- HCCS credits, row 23 ----
struct DcmiHccsCreditInfo {
  uint32_t credit_num[16];
  uint32_t reserve[64];
};
static_assert(sizeof(DcmiHccsCreditInfo) == 320 && alignof(DcmiHccsCreditInfo) == 4);
static_assert(offsetof(DcmiHccsCreditInfo, reserve) == 64);

// ---- the network port: rows 29 to 31 ----
struct DcmiTcStatData {  // packets by traffic class
  uint64_t tc_tx[8];
  uint64_t tc_rx[8];
  uint64_t reserved[8];
};
static_assert(sizeof(DcmiTcStatData) == 192 && alignof(DcmiTcStatData) == 8);
static_assert(offsetof(DcmiTcStatData, tc_rx) == 64);
static_assert(offsetof(DcmiTcStatData, reserved) == 128);

struct DcmiPfcDurationInfo {  // by priority; the unit is stated nowhere
  uint64_t tx[8];
  uint64_t rx[8];
};
static_assert(sizeof(DcmiPfcDurationInfo) == 128 && alignof(DcmiPfcDurationInfo) == 8);
static_assert(offsetof(DcmiPfcDurationInfo, rx) == 64);

struct DcmiExtraStatistics {  // dcmi_extra_statistics_info: forward error correction
  uint64_t cw_total_cnt;      // code words
  uint64_t cw_before_correct_cnt;
  uint64_t cw_correct_cnt;
  uint64_t cw_uncorrect_cnt;
  uint64_t cw_bad_cnt;
  uint64_t trans_total_bit;
  uint64_t cw_total_correct_bit;
  uint64_t rx_full_drop_cnt;
  uint64_t pcs_err_cnt;
  uint64_t rx_send_app_good_pkts;
  uint64_t rx_send_app_bad_pkts;
  double correcting_bit_rate;  // corrected bits / all bits
};
static_assert(sizeof(DcmiExtraStatistics) == 96 && alignof(DcmiExtraStatistics) == 8);
static_assert(offsetof(DcmiExtraStatistics, cw_before_correct_cnt) == 8);
static_assert(offsetof(DcmiExtraStatistics, cw_correct_cnt) == 16);
static_assert(offsetof(DcmiExtraStatistics, cw_uncorrect_cnt) == 24);
static_assert(offsetof(DcmiExtraStatistics, cw_bad_cnt) == 32);
static_assert(offsetof(DcmiExtraStatistics, trans_total_bit) == 40);
static_assert(offsetof(DcmiExtraStatistics, cw_total_correct_bit) == 48);
static_assert(offsetof(DcmiExtraStatistics, rx_full_drop_cnt) == 56);
static_assert(offsetof(DcmiExtraStatistics, pcs_err_cnt) == 64);
static_assert(offsetof(DcmiExtraStatistics, rx_send_app_good_pkts) == 72);
static_assert(offsetof(DcmiExtraStatistics, rx_send_app_bad_pkts) == 80);
static_assert(offsetof(DcmiExtraStatistics, correcting_bit_rate) == 88);

// ---- SerDes, row 32 ----
// One lane. Macros of one kind fill snr and heh (half the eye's height), those of the other the eye's
// bounds; what a macro does not know, and everything of a lane without a link, is 0.
struct DcmiSerdesLane {
  uint32_t snr;
  uint32_t heh;
  int32_t bottom;
  int32_t top;
  int32_t left;
  int32_t right;
};
static_assert(sizeof(DcmiSerdesLane) == 24);

struct DcmiSerdesQuality {
  uint32_t macro_id;
  uint32_t reserved1;
  DcmiSerdesLane lane[8];
  uint32_t reserved2[64];
};
static_assert(sizeof(DcmiSerdesQuality) == 456 && alignof(DcmiSerdesQuality) == 4);
static_assert(offsetof(DcmiSerdesQuality, lane) == 8);
static_assert(offsetof(DcmiSerdesQuality, reserved2) == 200);

// ---- shared NPUs, row 42: dcmi_get_device_info(VDEV_MNG 52) ----
inline constexpr unsigned kVdevMax = 32;

struct DcmiComputingResource {
  float aic;  // AI Cores
  float aiv;
  uint16_t counts[8];
  uint64_t memory_size;  // MB
  uint32_t ids[4];       // event, notify, stream, model
  uint16_t cpu_counts[5];
  uint16_t pad;
  uint32_t vdev_aicore_utilization;  // %
  uint64_t vdev_memory_total;        // KB
  uint64_t vdev_memory_free;         // KB
  uint8_t reserved[16];
};
static_assert(sizeof(DcmiComputingResource) == 96 && alignof(DcmiComputingResource) == 8);
static_assert(offsetof(DcmiComputingResource, memory_size) == 24);
static_assert(offsetof(DcmiComputingResource, ids) == 32);
static_assert(offsetof(DcmiComputingResource, cpu_counts) == 48);
static_assert(offsetof(DcmiComputingResource, vdev_aicore_utilization) == 60);
static_assert(offsetof(DcmiComputingResource, vdev_memory_total) == 64);
static_assert(offsetof(DcmiComputingResource, vdev_memory_free) == 72);

struct DcmiVdevQuery {  // subs 0 and 5; vdev_id is in and out
  uint32_t vdev_id;
  uint32_t pad;
  char name[16];
  uint32_t status;
  uint32_t is_container_used;
  uint32_t vfid;
  uint32_t vfg_id;
  uint64_t container_id;
  uint64_t base[8];
  DcmiComputingResource computing;
  uint8_t media[56];
};
static_assert(sizeof(DcmiVdevQuery) == 264 && alignof(DcmiVdevQuery) == 8);
static_assert(offsetof(DcmiVdevQuery, name) == 8);
static_assert(offsetof(DcmiVdevQuery, status) == 24);
static_assert(offsetof(DcmiVdevQuery, container_id) == 40);
static_assert(offsetof(DcmiVdevQuery, base) == 48);
static_assert(offsetof(DcmiVdevQuery, computing) == 112);
static_assert(offsetof(DcmiVdevQuery, media) == 208);

struct DcmiSocTotalResource {  // sub 1
  uint32_t vdev_num;
  uint32_t vdev_id[kVdevMax];
  uint32_t vfg_num;
  uint32_t vfg_bitmap;
  uint32_t pad;
  uint64_t base[8];
  DcmiComputingResource computing;
  uint8_t media[56];
};
static_assert(sizeof(DcmiSocTotalResource) == 360 && alignof(DcmiSocTotalResource) == 8);
static_assert(offsetof(DcmiSocTotalResource, vdev_id) == 4);
static_assert(offsetof(DcmiSocTotalResource, vfg_num) == 132);
static_assert(offsetof(DcmiSocTotalResource, vfg_bitmap) == 136);
static_assert(offsetof(DcmiSocTotalResource, base) == 144);
static_assert(offsetof(DcmiSocTotalResource, computing) == 208);
static_assert(offsetof(DcmiSocTotalResource, media) == 304);

// ---- Unified Bus, row 47 ----
inline constexpr int kUbMaxDies = 2;
inline constexpr int kUbMaxPorts = 32;  // of a die
inline constexpr int kUbLinkPorts = 36;
inline constexpr size_t kUbCounters = 48;

enum DcmiUbMode : int { kUbModeUb = 0, kUbModeUboe = 1 };
enum DcmiUbPortStatus : int {
  kUbPortNone = 0,  // the chip has no such port
  kUbPortFull = 1,
  kUbPortPartial = 2,  // linked with some of its lanes
  kUbPortDown = 3,
};

struct DcmiUbPortInfo {
  int32_t udie_id;
  int32_t port_id;
};
static_assert(sizeof(DcmiUbPortInfo) == 8);
static_assert(offsetof(DcmiUbPortInfo, port_id) == 4);

struct DcmiUbDiePorts {
  int32_t die_index;
  int32_t port_nums;
  struct {
    int32_t port_index;
    int32_t mode;
  } port[kUbMaxPorts];
};
static_assert(sizeof(DcmiUbDiePorts) == 264);

struct DcmiUbPortList {
  int32_t die_nums;
  DcmiUbDiePorts die[kUbMaxDies];
};
static_assert(sizeof(DcmiUbPortList) == 532 && alignof(DcmiUbPortList) == 4);
static_assert(offsetof(DcmiUbPortList, die) == 4);

// The first eight bytes differ between headers and are not read. Counters in the order of kUbCounter*;
// the last eight are filled for ports in UBoE mode.
struct DcmiPortPktStats {
  uint32_t head[2];
  uint64_t pkt_num[kUbCounters];
  uint8_t reserved[128];
};
static_assert(sizeof(DcmiPortPktStats) == 520 && alignof(DcmiPortPktStats) == 8);
static_assert(offsetof(DcmiPortPktStats, pkt_num) == 8);
static_assert(offsetof(DcmiPortPktStats, reserved) == 392);

struct DcmiUbPortLinkStatus {
  int32_t ub_link_status;  // of all ports: 0 none, 1 all, 2 some linked, 3 none needed
  int32_t ub_port_status[kUbLinkPorts];
};
static_assert(sizeof(DcmiUbPortLinkStatus) == 148 && alignof(DcmiUbPortLinkStatus) == 4);

}  // namespace profd::abi
