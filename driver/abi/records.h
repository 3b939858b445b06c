// Where the fields of the driver's binary records are (driver-abi 3.6, dump-format 2): offsets in
// bytes, little-endian, packed. Facts without behaviour, for decoders and generators of records.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace profd::abi {

namespace pcie_record {
inline constexpr size_t kSize = 96;
inline constexpr size_t kDeviceNs = 0;  // u64
inline constexpr size_t kGroups = 12;   // 7 x u32 {min, max, avg}
inline constexpr size_t kGroupCount = 7;
inline constexpr uint32_t kNoMinimum = 0xFFFFF;  // nothing was measured
}  // namespace pcie_record

namespace hbm_record {
inline constexpr size_t kSize = 24;
inline constexpr size_t kMicros = 0;  // u64, since the start of the device's session
inline constexpr size_t kCount = 8;   // u64, accesses of 32 bytes since the last record
inline constexpr size_t kEvent = 16;  // u32: 0 read, 1 write
inline constexpr size_t kId = 20;     // u32
// Record version "2.0".
inline constexpr size_t kSizeV2 = 32;
inline constexpr size_t kEventV2 = 8;
inline constexpr size_t kIdV2 = 12;
inline constexpr size_t kCountV2 = 16;
inline constexpr size_t kEpochNsV2 = 24;  // u64
}  // namespace hbm_record

namespace llc_record {
inline constexpr size_t kSize = 24;
inline constexpr size_t kMicros = 0;  // u64
inline constexpr size_t kCount = 8;   // u64
inline constexpr size_t kEvent = 16;  // u32
inline constexpr size_t kId = 20;     // u32
// Record version "2.0".
inline constexpr size_t kSizeV2 = 24;
inline constexpr size_t kCountV2 = 4;  // u32
inline constexpr size_t kEventV2 = 8;
inline constexpr size_t kIdV2 = 12;
inline constexpr size_t kEpochNsV2 = 16;  // u64
// Event codes by their number in the formulas, for llc_profiling = read and write.
inline constexpr size_t kEventCount = 8;
inline constexpr std::array<uint32_t, kEventCount> kReadEvents = {0x00, 0x01, 0x02, 0x13,
                                                                  0x20, 0x22, 0x34, 0x36};
inline constexpr std::array<uint32_t, kEventCount> kWriteEvents = {0x00, 0x01, 0x03, 0x14,
                                                                   0x21, 0x23, 0x35, 0x37};
}  // namespace llc_record

namespace ddr_record {
inline constexpr size_t kSize = 20;
inline constexpr size_t kMicros = 0;  // u32, wraps
inline constexpr size_t kCount = 4;   // u32
inline constexpr size_t kEvent = 8;   // u32: 0 read, 1 write
inline constexpr size_t kId = 12;     // u32
inline constexpr size_t kMaster = 16;
inline constexpr uint32_t kAllMasters = 0xFFFFFFFF;
// Width of the bus of one controller.
constexpr int BitWidth(int chip) { return chip >= 1 && chip <= 4 ? 256 : 128; }
}  // namespace ddr_record

// lpmFreqConv and lpmInfoConv.
namespace lpm_record {
inline constexpr size_t kSize = 888;
inline constexpr size_t kCount = 0;  // u32, valid entries
inline constexpr size_t kType = 4;   // u32, of lpmInfoConv
inline constexpr size_t kEntries = 8;
inline constexpr size_t kEntrySize = 16;  // u64 device counter, u32 value, u32
inline constexpr size_t kEntryValue = 8;
inline constexpr size_t kMaxEntries = 55;
inline constexpr uint32_t kFrequencyMhz = 0;
inline constexpr uint32_t kAicoreMillivolts = 1;
inline constexpr uint32_t kBusMillivolts = 2;
}  // namespace lpm_record

namespace qos_record {
inline constexpr size_t kSize = 64;
inline constexpr size_t kDeviceCount = 16;  // u64
inline constexpr size_t kSlots = 24;        // 10 x u32 MB/s
inline constexpr size_t kSlotCount = 10;
}  // namespace qos_record

// stars_soc_profile. The head is of hal_abi.h; v6 = chips 15 and 16.
namespace soc_record {
inline constexpr size_t kSize = 64;
inline constexpr size_t kMagic = 2;        // u16
inline constexpr size_t kDeviceCount = 8;  // u64
inline constexpr size_t kId = 18;          // u16, of SIO, acc PMU and chip transfer; not v6
inline constexpr size_t kSioRx = 32;       // 4 x u32: req, rsp, snp, dat
inline constexpr size_t kSioTx = 48;
inline constexpr size_t kSioRxV6 = 28;
inline constexpr size_t kSioTxV6 = 48;
inline constexpr size_t kSioKinds = 4;
inline constexpr size_t kAccWriteBandwidth = 32;  // u64 each
inline constexpr size_t kAccReadBandwidth = 40;
inline constexpr size_t kAccWriteOutstanding = 48;
inline constexpr size_t kAccReadOutstanding = 56;
inline constexpr size_t kTrans = 32;    // u64 rx or write, u64 tx or read
inline constexpr size_t kTransV6 = 16;  // u64 write, u64 read
inline constexpr uint16_t kTransIdMask = 0x3F;
inline constexpr uint64_t kNoReading = UINT64_MAX;
inline constexpr size_t kLevels = 32;  // u16: bits 0-2 mata, 3-10 L2 buffer
// 20 u16, neighbours swapped: words 0-9 are hard readings 1, 0, 3, 2 ..., 10-19 soft ones likewise.
inline constexpr size_t kLowPower = 24;
inline constexpr size_t kLowPowerWords = 20;
inline constexpr size_t kLowPowerAicoreMhz = 11;  // which word: soft reading 0
inline constexpr size_t kQos = 24;                // 10 x u32 MB/s
inline constexpr size_t kQosFirstV6 = 2;          // words before the first stream
inline constexpr size_t kQosStreamsV6 = 8;
inline constexpr uint8_t kLastKnownType = 0b011111;  // 011110 and 011111 exist and are not used
}  // namespace soc_record

namespace npu_mem_record {
inline constexpr size_t kSize = 32;
inline constexpr size_t kMicros = 0;     // u32, wraps
inline constexpr size_t kKind = 4;       // u32: 0 app, 1 device
inline constexpr size_t kEpochNsV2 = 8;  // u64, record version "2.0"
inline constexpr size_t kDdr = 16;       // u64 bytes
inline constexpr size_t kHbm = 24;       // u64 bytes
}  // namespace npu_mem_record

namespace module_mem_record {
inline constexpr size_t kSize = 24;
inline constexpr size_t kModule = 0;     // u32
inline constexpr size_t kHostCount = 8;  // u64
inline constexpr size_t kReserved = 16;  // u64 bytes
}  // namespace module_mem_record

// AI Core counters of tasks; and sample-based, in files of the same names: sample.json has which.
inline constexpr uint16_t kTaskPmuRecordBytes = 128;
namespace aicore_sample_record {
inline constexpr size_t kSize = 96;
inline constexpr size_t kSizeV6 = 112;
inline constexpr size_t kMode = 0;  // u8, not 0
inline constexpr size_t kEvents = 8;
inline constexpr size_t kEventCount = 8;
inline constexpr size_t kEventCountV6 = 10;
// Behind the events: u64 cycles, u64 timestamp (device ns; v6 device counter), u8 events, u8 core.
inline constexpr size_t kCycles = 0;
inline constexpr size_t kStamp = 8;
inline constexpr size_t kCountNum = 16;
inline constexpr size_t kCore = 17;
inline constexpr uint8_t kLastAicoreId = 24;  // above: AI Vector cores
inline constexpr uint8_t kLastAicoreIdV6 = 35;
}  // namespace aicore_sample_record

namespace ub_record {
inline constexpr size_t kSize = 128;
inline constexpr size_t kMagic = 0;  // u16
inline constexpr uint16_t kMagicValue = 0x5A5A;
inline constexpr size_t kPort = 4;     // u16
inline constexpr size_t kMicros = 8;   // u64
inline constexpr size_t kValues = 16;  // 14 x u64
inline constexpr size_t kValueCount = 14;
}  // namespace ub_record

}  // namespace profd::abi
