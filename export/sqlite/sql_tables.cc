#include "export/sqlite/sql_tables.h"

#include <array>

#include "base/text.h"

namespace profd::exporting {
namespace {

using enum SqlType;
using enum SqlValue;

// `cell`: name of the rows' column.
struct Spec {
  std::string_view name;
  SqlType type;
  SqlValue value;
  std::string_view cell = {};
  double factor = 1;
};

constexpr Spec kDeviceId{"deviceId", kInteger, kDevice};
constexpr Spec kTimestamp{"timestampNs", kInteger, kTime};
constexpr Spec kNumericTimestamp{"timestampNs", kNumeric, kTime};

constexpr auto kHccs = std::to_array<Spec>({
    kDeviceId,
    kTimestamp,
    {"txThroughput", kNumeric, kWhole, "tx", kMega},
    {"rxThroughput", kNumeric, kWhole, "rx", kMega},
});

constexpr auto kHbm = std::to_array<Spec>({
    kDeviceId,
    kTimestamp,
    {"bandwidth", kNumeric, kWhole, "bandwidth", kMega},
    {"hbmId", kInteger, kPlain, "hbm"},
    {"type", kInteger, kKeyText, "direction"},
});

constexpr auto kDdr = std::to_array<Spec>({
    kDeviceId,
    kTimestamp,
    {"read", kNumeric, kWhole, "read", kMega},
    {"write", kNumeric, kWhole, "write", kMega},
});

constexpr auto kLlc = std::to_array<Spec>({
    kDeviceId,
    {"llcId", kInteger, kPlain, "llc"},
    kTimestamp,
    {"hitRate", kReal, kPlain, "hit_ratio", 100},
    {"throughput", kInteger, kWhole, "throughput", kMega},
    {"mode", kInteger, kKeyText, "op"},
});

// The bandwidth is in Mb/s but taken for MB/s, as the vendor's analyser does.
constexpr auto kSysIo = std::to_array<Spec>({
    kDeviceId,
    kTimestamp,
    {"bandwidth", kInteger, kPlain, "bandwidth", kMega},
    {"rxPacketRate", kNumeric, kPlain, "rx_packet_rate"},
    {"rxByteRate", kNumeric, kPlain, "rx_byte_rate"},
    {"rxPackets", kInteger, kWhole, "rx_packets"},
    {"rxBytes", kInteger, kWhole, "rx_bytes"},
    {"rxErrors", kInteger, kWhole, "rx_errors"},
    {"rxDropped", kInteger, kWhole, "rx_dropped"},
    {"txPacketRate", kNumeric, kPlain, "tx_packet_rate"},
    {"txByteRate", kNumeric, kPlain, "tx_byte_rate"},
    {"txPackets", kInteger, kWhole, "tx_packets"},
    {"txBytes", kInteger, kWhole, "tx_bytes"},
    {"txErrors", kInteger, kWhole, "tx_errors"},
    {"txDropped", kInteger, kWhole, "tx_dropped"},
    {"funcId", kInteger, kPlain, "port"},
});

constexpr auto kNpuMem = std::to_array<Spec>({
    {"type", kInteger, kKeyText, "kind"},
    {"ddr", kNumeric, kPlain, "ddr"},
    {"hbm", kNumeric, kPlain, "hbm"},
    kTimestamp,
    kDeviceId,
});

constexpr auto kModuleMem = std::to_array<Spec>({
    {"moduleId", kInteger, kPlain, "module"},
    kTimestamp,
    {"totalReserved", kNumeric, kPlain, "reserved"},
    kDeviceId,
});

constexpr auto kQos = std::to_array<Spec>({
    kDeviceId,
    {"eventName", kNumeric, kQosName, "stream"},
    {"bandwidth", kNumeric, kPlain, "bandwidth", kMega},
    kNumericTimestamp,
    {"dieId", kNumeric, kPlain, "die"},
});

constexpr auto kAicoreFreq = std::to_array<Spec>({
    kDeviceId,
    kNumericTimestamp,
    {"freq", kInteger, kPlain, "mhz"},
    {"dieId", kNumeric, kPlain, "die"},
});

constexpr auto kAccPmu = std::to_array<Spec>({
    {"accId", kInteger, kPlain, "acc"},
    {"readBwLevel", kInteger, kPlain, "read_bandwidth"},
    {"writeBwLevel", kInteger, kPlain, "write_bandwidth"},
    {"readOstLevel", kInteger, kPlain, "read_outstanding"},
    {"writeOstLevel", kInteger, kPlain, "write_outstanding"},
    kNumericTimestamp,
    kDeviceId,
});

constexpr auto kSocLevel = std::to_array<Spec>({
    {"l2BufferBwLevel", kInteger, kPlain, "l2_buffer"},
    {"mataBwLevel", kInteger, kPlain, "mata"},
    kNumericTimestamp,
    kDeviceId,
});

constexpr auto kSio = std::to_array<Spec>({
    {"deviceId", kNumeric, kDevice},
    {"name", kNumeric, kDieName, "die"},
    kNumericTimestamp,
    {"rxReq", kNumeric, kPlain, "req_rx", kMega},
    {"rxRsp", kNumeric, kPlain, "rsp_rx", kMega},
    {"rxSnp", kNumeric, kPlain, "snp_rx", kMega},
    {"rxDat", kNumeric, kPlain, "dat_rx", kMega},
    {"txReq", kNumeric, kPlain, "req_tx", kMega},
    {"txRsp", kNumeric, kPlain, "rsp_tx", kMega},
    {"txSnp", kNumeric, kPlain, "snp_tx", kMega},
    {"txDat", kNumeric, kPlain, "dat_tx", kMega},
});

constexpr auto kUb = std::to_array<Spec>({
    {"deviceId", kNumeric, kDevice},
    {"portId", kNumeric, kPlain, "port"},
    kNumericTimestamp,
    {"rxUdmaBind", kNumeric, kPlain, "udma_rx_bind"},
    {"txUdmaBind", kNumeric, kPlain, "udma_tx_bind"},
});

constexpr auto kNetdev = std::to_array<Spec>({
    kDeviceId,
    kTimestamp,
    {"macTxPfcPkt", kInteger, kPlain, "mac_tx_pfc_packets"},
    {"macRxPfcPkt", kInteger, kPlain, "mac_rx_pfc_packets"},
    {"macTxByte", kInteger, kPlain, "mac_tx_bytes"},
    {"macTxBandwidth", kNumeric, kPlain, "mac_tx_bandwidth"},
    {"macRxByte", kInteger, kPlain, "mac_rx_bytes"},
    {"macRxBandwidth", kNumeric, kPlain, "mac_rx_bandwidth"},
    {"macTxBadByte", kInteger, kPlain, "mac_tx_bad_bytes"},
    {"macRxBadByte", kInteger, kPlain, "mac_rx_bad_bytes"},
    {"roceTxPkt", kInteger, kPlain, "roce_tx_packets"},
    {"roceRxPkt", kInteger, kPlain, "roce_rx_packets"},
    {"roceTxErrPkt", kInteger, kPlain, "roce_tx_errors"},
    {"roceRxErrPkt", kInteger, kPlain, "roce_rx_errors"},
    {"roceTxCnpPkt", kInteger, kPlain, "roce_tx_cnp_packets"},
    {"roceRxCnpPkt", kInteger, kPlain, "roce_rx_cnp_packets"},
    {"roceNewPktRty", kInteger, kPlain, "roce_new_packet_retries"},
    {"nicTxByte", kInteger, kPlain, "nic_tx_bytes"},
    {"nicTxBandwidth", kNumeric, kPlain, "nic_tx_bandwidth"},
    {"nicRxByte", kInteger, kPlain, "nic_rx_bytes"},
    {"nicRxBandwidth", kNumeric, kPlain, "nic_rx_bandwidth"},
});

constexpr auto kCpuUsage = std::to_array<Spec>({
    kNumericTimestamp,
    {"cpuId", kNumeric, kPlain, "cpu"},
    {"usage", kNumeric, kPlain, "usage"},
});

constexpr auto kMemUsage = std::to_array<Spec>({
    kNumericTimestamp,
    {"usage", kNumeric, kPlain, "usage"},
});

constexpr auto kDiskUsage = std::to_array<Spec>({
    kNumericTimestamp,
    {"readRate", kNumeric, kPlain, "read", 1024},
    {"writeRate", kNumeric, kPlain, "write", 1024},
    {"usage", kNumeric, kPlain, "usage"},
});

constexpr auto kNetworkUsage = std::to_array<Spec>({
    kNumericTimestamp,
    {"usage", kNumeric, kPlain, "usage"},
    {"speed", kNumeric, kPlain, "speed", 1024},
});

constexpr auto kPmuTimeline = std::to_array<Spec>({
    kDeviceId,
    kTimestamp,
    {"totalCycle", kInteger, kPlain, "cycles"},
    {"usage", kNumeric, kUsage, "cycles"},
    {"freq", kNumeric, kAicoreMhz},
    {"coreId", kInteger, kPlain, "core"},
    {"coreType", kInteger, kCoreType, "type"},
});

struct TableEntry {
  std::string_view name;
  TableId source;
  std::span<const Spec> columns = {};  // empty: all that the rows have, named alike
  bool samples = true;
};

constexpr auto kVendorTables = std::to_array<TableEntry>({
    {"HCCS", TableId::kHccs, kHccs},
    {"PCIE", TableId::kPcie},
    {"HBM", TableId::kHbm, kHbm},
    {"DDR", TableId::kDdr, kDdr},
    {"LLC", TableId::kLlc, kLlc},
    {"NIC", TableId::kNic, kSysIo},
    {"ROCE", TableId::kRoce, kSysIo},
    {"NPU_MEM", TableId::kNpuMem, kNpuMem},
    {"NPU_MODULE_MEM", TableId::kModuleMem, kModuleMem},
    {"QOS", TableId::kQos, kQos},
    {"AICORE_FREQ", TableId::kAicoreFreq, kAicoreFreq},
    {"ACC_PMU", TableId::kAccPmu, kAccPmu},
    {"SOC_BANDWIDTH_LEVEL", TableId::kSocLevel, kSocLevel},
    {"SIO", TableId::kSio, kSio},
    {"UB", TableId::kUb, kUb, false},
    {"NETDEV_STATS", TableId::kNetdev, kNetdev},
    {"CPU_USAGE", TableId::kHostCpu, kCpuUsage},
    {"HOST_MEM_USAGE", TableId::kHostMem, kMemUsage},
    {"HOST_DISK_USAGE", TableId::kHostDisk, kDiskUsage},
    {"HOST_NETWORK_USAGE", TableId::kHostNetwork, kNetworkUsage},
    {"SAMPLE_PMU_TIMELINE", TableId::kAicorePmu, kPmuTimeline, false},
});

// All their columns, named as the vendor would.
struct OwnEntry {
  std::string_view name;
  TableId source;
};
constexpr auto kOwnTables = std::to_array<OwnEntry>({
    {"PROFD_DVPP", TableId::kDvpp},
    {"PROFD_VOLTAGE", TableId::kVoltage},
    {"PROFD_CHIP_TRANS", TableId::kChipTrans},
    {"PROFD_LOW_POWER", TableId::kLowPower},
    {"PROFD_AICORE_PMU", TableId::kAicorePmu},
    {"PROFD_UB_PORT", TableId::kUb},
    {"PROFD_INSTR_CYCLES", TableId::kInstrCycles},
    {"PROFD_INSTR_FLOW", TableId::kInstrFlow},
    {"PROFD_SYS_CPU", TableId::kSysCpu},
    {"PROFD_SYS_MEM", TableId::kSysMem},
    {"PROFD_PROC_CPU", TableId::kProcCpu},
    {"PROFD_PROC_MEM", TableId::kProcMem},
    {"PROFD_SAMPLE_ROWS", TableId::kSample},
    {"PROFD_KERNEL_ROWS", TableId::kKernel},
    {"PROFD_COMMUNICATION_ROWS", TableId::kCommunication},
    {"PROFD_API_ROWS", TableId::kApi},
    {"PROFD_MARKER_ROWS", TableId::kMarker},
    {"PROFD_MEMORY_ROWS", TableId::kMemory},
});

constexpr auto kMstxColumns = std::to_array<std::string_view>(
    {"startNs", "endNs", "eventType", "rangeId", "category", "message", "globalTid", "endGlobalTid",
     "domainId", "connectionId"});
constexpr auto kStepColumns = std::to_array<std::string_view>(
    {"startNs", "endNs", "deviceId", "kind", "name", "step", "pid", "tid", "partial"});
constexpr auto kStepArgColumns =
    std::to_array<std::string_view>({"startNs", "deviceId", "step", "name", "value"});
constexpr auto kGapColumns =
    std::to_array<std::string_view>({"startNs", "endNs", "deviceId", "name", "records"});

constexpr auto kPmuSummaryColumns = std::to_array<std::string_view>(
    {"deviceId", "metric", "value", "coreId", "coreType"});

constexpr std::array<EventTableSpec, kEventTables> kEvents = {{
    {"MSTX_EVENTS", kMstxColumns, true},
    {"PROFD_STEP_ROWS", kStepColumns, true},
    {"PROFD_STEP_ARGS", kStepArgColumns, true},
    {"PROFD_GAP_ROWS", kGapColumns, true},
    {"SAMPLE_PMU_SUMMARY", kPmuSummaryColumns, false},
}};

SqlTable VendorTable(const TableEntry& entry) {
  SqlTable table{std::string(entry.name), entry.source, true, entry.samples, {}};
  const TableSpec& rows = TableOf(entry.source);
  for (const Spec& spec : entry.columns) {
    int cell = spec.cell.empty() ? -1 : ColumnIndex(rows, spec.cell);
    table.columns.push_back({std::string(spec.name), spec.type, spec.value, cell, spec.factor});
  }
  if (!table.columns.empty()) return table;
  table.columns = {{"deviceId", kInteger, kDevice}, {"timestampNs", kInteger, kTime}};
  for (size_t i = 0; i < rows.columns.size(); ++i) {
    const Column& column = rows.columns[i];
    const double factor = column.unit == "ns" ? 1 : column.scale;  // rates are per second, times stay ns
    table.columns.push_back({CamelCase(column.name), kNumeric, kPlain, static_cast<int>(i), factor});
  }
  return table;
}

SqlTable OwnTable(const OwnEntry& entry) {
  SqlTable table{std::string(entry.name), entry.source, false, true, {}};
  table.columns.push_back({"deviceId", kInteger, kDevice});
  table.columns.push_back({"timestampNs", kInteger, kTime});
  const TableSpec& rows = TableOf(entry.source);
  for (size_t i = 0; i < rows.columns.size(); ++i) {
    const Column& column = rows.columns[i];
    SqlColumn& made = table.columns.emplace_back();
    made.name = CamelCase(column.name);
    made.type = IsReal(column.type) ? kReal : kInteger;
    made.value = column.values.empty() ? kPlain : kKeyText;
    made.cell = static_cast<int>(i);
  }
  return table;
}

}  // namespace

std::string_view ToString(SqlType type) {
  switch (type) {
    case kInteger:
      return "INTEGER";
    case kNumeric:
      return "NUMERIC";
    case kReal:
      return "REAL";
  }
  return "NUMERIC";
}

std::vector<SqlTable> SqlRowTables() {
  std::vector<SqlTable> tables;
  tables.reserve(std::size(kVendorTables) + std::size(kOwnTables));
  for (const TableEntry& entry : kVendorTables) tables.push_back(VendorTable(entry));
  for (const OwnEntry& entry : kOwnTables) tables.push_back(OwnTable(entry));
  return tables;
}

const EventTableSpec& EventTableOf(EventTable table) {
  return kEvents[static_cast<size_t>(table)];
}

std::string CamelCase(std::string_view name) {
  std::string out;
  bool up = false;
  for (char c : name) {
    if (c == '_') {
      up = true;
      continue;
    }
    out += up ? ToUpper(c) : c;
    up = false;
  }
  return out;
}

}  // namespace profd::exporting
