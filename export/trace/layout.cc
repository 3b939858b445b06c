#include "export/trace/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "driver/records/module_mem.h"

namespace profd::exporting {
namespace {

using enum Show;

// B/us of a PCIe record in the vendor's MB/s.
constexpr double kMicros = 1e6;

constexpr auto kHccs = std::to_array<CounterSpec>({
    {"Rx", {{{"Rx(MB/s)", kReal, "rx"}}}},
    {"Tx", {{{"Tx(MB/s)", kReal, "tx"}}}},
});

constexpr auto kPcie = std::to_array<CounterSpec>({
    {"PCIe_cpl",
     {{{"Tx", kReal, "tx_cpl_avg", kMicros, kMega, {}, "MB/s"},
       {"Rx", kReal, "rx_cpl_avg", kMicros, kMega, {}, "MB/s"}}}},
    {"PCIe_nonpost",
     {{{"Tx", kReal, "tx_nonpost_avg", kMicros, kMega, {}, "MB/s"},
       {"Rx", kReal, "rx_nonpost_avg", kMicros, kMega, {}, "MB/s"}}}},
    {"PCIe_nonpost_latency",
     {{{"Tx", kReal, "tx_nonpost_latency_avg", 1, 1000, {}, "us"}, {"Rx", kConstant, {}, 0}}}},
    {"PCIe_post",
     {{{"Tx", kReal, "tx_post_avg", kMicros, kMega, {}, "MB/s"},
       {"Rx", kReal, "rx_post_avg", kMicros, kMega, {}, "MB/s"}}}},
});

constexpr auto kHbm = std::to_array<CounterSpec>({
    {"HBM {0}/{1:Read,Write}", {{{"{1:Read,Write}(MB/s)", kReal, "bandwidth"}}}},
});

constexpr auto kDdr = std::to_array<CounterSpec>({
    {"DDR{0>0 }/Read", {{{"Read(MB/s)", kReal, "read"}}}},
    {"DDR{0>0 }/Write", {{{"Write(MB/s)", kReal, "write"}}}},
});

// The analyser takes the ratio times 100 and divides by 100 again.
constexpr auto kLlc = std::to_array<CounterSpec>({
    {"LLC {0} {1:Read,Write}/Hit Rate",
     {{{"Hit Rate(%)", kReal, "hit_ratio", 100, 100, {}, "ratio"}}}},
    {"LLC {0} {1:Read,Write}/Throughput", {{{"Throughput(MB/s)", kReal, "throughput"}}}},
});

constexpr auto kNic = std::to_array<CounterSpec>({
    {"Port {0}/Rx",
     {{{"Rx Bandwidth Efficiency", kReal3, "rx_utilization_ratio"},
       {"Rx Packets", kReal, "rx_packet_rate"},
       {"Rx Error Rate", kReal, "rx_error_ratio"},
       {"Rx Dropped Rate", kReal, "rx_dropped_ratio"}}}},
    {"Port {0}/Tx",
     {{{"Tx Bandwidth Efficiency", kReal3, "tx_utilization_ratio"},
       {"Tx Packets", kReal, "tx_packet_rate"},
       {"Tx Error Rate", kReal, "tx_error_ratio"},
       {"Tx Dropped Rate", kReal, "tx_dropped_ratio"}}}},
});

constexpr auto kNpuMem = std::to_array<CounterSpec>({
    {"{0:APP,Device}/DDR", {{{"KB", kReal, "ddr", 1, 1024, {}, "KB"}}}},
    {"{0:APP,Device}/HBM", {{{"KB", kReal, "hbm", 1, 1024, {}, "KB"}}}},
    {"{0:APP,Device}/Memory", {{{"KB", kReal, "ddr", 1, 1024, "hbm", "KB"}}}},
});

// "{0:SLOG,IDEDD,...}"
constexpr auto kModuleMemName = [] {
  std::array<char, records::kModuleNames.size() + 4> text{'{', '0', ':'};
  std::ranges::copy(records::kModuleNames, text.begin() + 3);
  text.back() = '}';
  return text;
}();
constexpr auto kModuleMem = std::to_array<CounterSpec>({
    {std::string_view(kModuleMemName.data(), kModuleMemName.size()), {{{"KB", kReal, "reserved", 1, 1024, {}, "KB"}}}},
});

constexpr auto kAicoreFreq = std::to_array<CounterSpec>({
    {"AI Core Freq{0>-1 Die }", {{{"MHz", kInteger, "mhz"}}}},
});

constexpr auto kVoltage = std::to_array<CounterSpec>({
    {"{0:AI Core,Bus} Voltage", {{{"mV", kReal, "mv"}}}},
});

constexpr auto kQos = std::to_array<CounterSpec>({
    {"QoS {0}{1>0 Die }", {{{"value", kCell, "bandwidth"}}}},
});

constexpr std::array<CounterSpec, 8> SioCounters(std::string_view key) {
  std::array<CounterSpec, 8> counters = {};
  constexpr std::array<std::string_view, 8> kNames = {"req_rx", "rsp_rx", "snp_rx", "dat_rx",
                                                      "req_tx", "rsp_tx", "snp_tx", "dat_tx"};
  for (size_t i = 0; i < kNames.size(); ++i) {
    counters[i].name = kNames[i];
    counters[i].args[0] = {key, kReal, kNames[i]};
  }
  return counters;
}
constexpr auto kSio = SioCounters("die {0}");
constexpr auto kSioV6 = SioCounters("{0:D-DIE0,D-DIE1,U-DIE0,U-DIE1}");

constexpr auto kAccPmu = std::to_array<CounterSpec>({
    {"Acc {0}/read_bandwidth", {{{"value", kCell, "read_bandwidth"}}}},
    {"Acc {0}/read_ost", {{{"value", kCell, "read_outstanding"}}}},
    {"Acc {0}/write_bandwidth", {{{"value", kCell, "write_bandwidth"}}}},
    {"Acc {0}/write_ost", {{{"value", kCell, "write_outstanding"}}}},
});

// Thread ids are the record types in binary digits, read as decimal ones.
constexpr int kPaTid = 111111;
constexpr int kPcieTid = 100010;
constexpr auto kChipTrans = std::to_array<CounterSpec>({
    {"PA Link Rx",
     {{{"PA Link ID", kKey, "link"}, {"PA Link Rx", kCell, "rx_or_write"}}},
     kPaTid,
     0,
     0},
    {"PA Link Tx",
     {{{"PA Link ID", kKey, "link"}, {"PA Link Tx", kCell, "tx_or_read"}}},
     kPaTid,
     0,
     0},
    {"PCIE Read Bandwidth",
     {{{"PCIE ID", kKey, "link"}, {"PCIE Read Bandwidth", kCell, "tx_or_read"}}},
     kPcieTid,
     0,
     1},
    {"PCIE Write Bandwidth",
     {{{"PCIE ID", kKey, "link"}, {"PCIE Write Bandwidth", kCell, "rx_or_write"}}},
     kPcieTid,
     0,
     1},
});
constexpr auto kChipTransV6 = std::to_array<CounterSpec>({
    kChipTrans[0],
    kChipTrans[1],
    {"PCIE Read Bandwidth", {{{"U-Die{1}", kCell, "tx_or_read"}}}, kPcieTid, 0, 1},
    {"PCIE Write Bandwidth", {{{"U-Die{1}", kCell, "rx_or_write"}}}, kPcieTid, 0, 1},
});

constexpr auto kSocLevel = std::to_array<CounterSpec>({
    {"L2 Buffer Bw Level", {{{"L2 Buffer Bw Level", kCell, "l2_buffer"}}}},
    {"Mata Bw Level", {{{"Mata Bw Level", kCell, "mata"}}}},
});

constexpr auto kUtilization = std::to_array<CounterSpec>({
    {"Core {0}", {{{"Utilization(%)", kReal, "utilization"}}}, 0, 1, 0},
    {"Vector Core {0}", {{{"Utilization(%)", kReal, "utilization"}}}, 0, 1, 1},
    {"Average", {{{"Utilization(%)", kReal, "utilization"}}}, 0, 1, 2},
});

constexpr auto kUb = std::to_array<CounterSpec>({
    // The vendor has the first alone.
    {"UB Port{0%3}",
     {{{"bandwidth_rx(MB/s)", kCell, "udma_rx_bind"},
       {"bandwidth_tx(MB/s)", kCell, "udma_tx_bind"}}}},
    {"UNIC-Port{0%3}",
     {{{"bandwidth_rx(MB/s)", kCell, "rx_bandwidth"},
       {"bandwidth_tx(MB/s)", kCell, "tx_bandwidth"}}}},
    {"Port{0%3} packet rate", {{{"rx", kCell, "rx_packet_rate"}, {"tx", kCell, "tx_packet_rate"}}}},
    {"Port{0%3} packets", {{{"rx", kCell, "rx_packets"}, {"tx", kCell, "tx_packets"}}}},
    {"Port{0%3} bytes", {{{"rx", kCell, "rx_bytes"}, {"tx", kCell, "tx_bytes"}}}},
    {"Port{0%3} errors", {{{"rx", kCell, "rx_errors"}, {"tx", kCell, "tx_errors"}}}},
    {"Port{0%3} dropped", {{{"rx", kCell, "rx_dropped"}, {"tx", kCell, "tx_dropped"}}}},
});

// The units that a kind of core has.
constexpr auto kInstrCycles = [] {
  std::array<CounterSpec, 3> counters = {};
  for (int core = 0; core < 3; ++core) {
    CounterSpec& counter = counters[static_cast<size_t>(core)];
    counter = {"Group {0} {1:AIC,AIV0,AIV1} cycles",
               {{{"Cube", kCell, "cube"},
                 {"Scalar", kCell, "scalar"},
                 {"Mte1", kCell, "mte1"},
                 {"Mte2", kCell, "mte2"},
                 {"Mte3", kCell, "mte3"}}},
               0, 1, core};
    if (core > 0) counter.args[0] = {"Vector", kCell, "vector"};
  }
  return counters;
}();
constexpr auto kInstrFlow = std::to_array<CounterSpec>({
    {"Group {0} Bandwidth Read", {{{"flow", kCell, "read_bandwidth"}}}},
    {"Group {0} Bandwidth Write", {{{"flow", kCell, "write_bandwidth"}}}},
    {"Group {0} Latency Read", {{{"flow", kCell, "read_latency"}}}},
    {"Group {0} Latency Write", {{{"flow", kCell, "write_latency"}}}},
});

constexpr auto kDvpp = std::to_array<CounterSpec>({
    {"DVPP {0} {1:VDEC,JPEGD,PNGD,JPEGE,VPC,VENC,SCD} {2}/Utilization",
     {{{"all(%)", kCell, "all_utilization"}, {"proc(%)", kCell, "proc_utilization"}}}},
    {"DVPP {0} {1:VDEC,JPEGD,PNGD,JPEGE,VPC,VENC,SCD} {2}/Frames",
     {{{"all", kCell, "all_frame"}, {"proc", kCell, "proc_frame"}, {"last", kCell, "last_frame"}}}},
    {"DVPP {0} {1:VDEC,JPEGD,PNGD,JPEGE,VPC,VENC,SCD} {2}/Time",
     {{{"all(us)", kCell, "all_time"},
       {"proc(us)", kCell, "proc_time"},
       {"last(us)", kCell, "last_time"}}}},
});

constexpr auto kNetdev = std::to_array<CounterSpec>({
    {"MAC bandwidth",
     {{{"tx(B/s)", kCell, "mac_tx_bandwidth"}, {"rx(B/s)", kCell, "mac_rx_bandwidth"}}}},
    {"NIC bandwidth",
     {{{"tx(B/s)", kCell, "nic_tx_bandwidth"}, {"rx(B/s)", kCell, "nic_rx_bandwidth"}}}},
    {"MAC bytes", {{{"tx", kCell, "mac_tx_bytes"}, {"rx", kCell, "mac_rx_bytes"}}}},
    {"MAC bad bytes", {{{"tx", kCell, "mac_tx_bad_bytes"}, {"rx", kCell, "mac_rx_bad_bytes"}}}},
    {"MAC PFC packets",
     {{{"tx", kCell, "mac_tx_pfc_packets"}, {"rx", kCell, "mac_rx_pfc_packets"}}}},
    {"RoCE packets", {{{"tx", kCell, "roce_tx_packets"}, {"rx", kCell, "roce_rx_packets"}}}},
    {"RoCE errors", {{{"tx", kCell, "roce_tx_errors"}, {"rx", kCell, "roce_rx_errors"}}}},
    {"RoCE CNP packets",
     {{{"tx", kCell, "roce_tx_cnp_packets"}, {"rx", kCell, "roce_rx_cnp_packets"}}}},
    {"RoCE new packet retries", {{{"retries", kCell, "roce_new_packet_retries"}}}},
    {"NIC bytes", {{{"tx", kCell, "nic_tx_bytes"}, {"rx", kCell, "nic_rx_bytes"}}}},
});

constexpr auto kSysCpu = std::to_array<CounterSpec>({
    {"CPU {0-all} jiffies",
     {{{"user", kCell, "user"},
       {"nice", kCell, "nice"},
       {"system", kCell, "system"},
       {"idle", kCell, "idle"},
       {"iowait", kCell, "iowait"},
       {"irq", kCell, "irq"},
       {"softirq", kCell, "softirq"},
       {"steal", kCell, "steal"},
       {"guest", kCell, "guest"},
       {"guest_nice", kCell, "guest_nice"}}}},
});
constexpr auto kSysMem = std::to_array<CounterSpec>({
    {"Memory",
     {{{"total(kB)", kCell, "total"},
       {"free(kB)", kCell, "free"},
       {"buffers(kB)", kCell, "buffers"},
       {"cached(kB)", kCell, "cached"},
       {"shmem(kB)", kCell, "shmem"}}}},
    {"Commit", {{{"limit(kB)", kCell, "commit_limit"}, {"committed(kB)", kCell, "committed_as"}}}},
    {"Huge pages", {{{"total", kCell, "huge_pages_total"}, {"free", kCell, "huge_pages_free"}}}},
});
constexpr auto kProcCpu = std::to_array<CounterSpec>({
    {"{1} ({0}) jiffies",
     {{{"process", kCell, "process_jiffies"}, {"all", kCell, "total_jiffies"}}}},
});
constexpr auto kProcMem = std::to_array<CounterSpec>({
    {"{1} ({0}) pages",
     {{{"size", kCell, "size"}, {"resident", kCell, "resident"}, {"shared", kCell, "shared"}}}},
});

constexpr auto kHostCpu = std::to_array<CounterSpec>({
    {"CPU {0-Avg}", {{{"Usage(%)", kReal, "usage"}}}},
});
constexpr auto kHostMem = std::to_array<CounterSpec>({
    {"Memory Usage", {{{"Usage(%)", kReal, "usage"}}}},
});
constexpr auto kHostDisk = std::to_array<CounterSpec>({
    {"Disk Usage", {{{"Usage(%)", kReal, "usage"}}}},
});
constexpr auto kHostNetwork = std::to_array<CounterSpec>({
    {"Network Usage", {{{"Usage(%)", kReal, "usage"}}}},
});

constexpr auto kSample = std::to_array<CounterSpec>({
    {"{0} {1}", {{{"value", kReal, "value"}}}},
});

constexpr ProcessSpec Vendor(std::string_view name, int sort_index) {
  return {name, sort_index, sort_index, false};
}
// Slots that no process of the vendor's has on a device.
constexpr ProcessSpec Own(std::string_view name, int slot) { return {name, 40 + slot, slot, true}; }
// The slot is that of UB: there is no other, and a chip has one of the two.
constexpr ProcessSpec kInstrProcess = Own("Instruction Profiling", 5);

constexpr std::array<TableLayout, kTableCount> kLayouts = {{
    {TableId::kHccs, Vendor("HCCS", 20), kHccs},
    {TableId::kPcie, Vendor("PCIe", 23), kPcie},
    {TableId::kHbm, Vendor("HBM", 24), kHbm},
    {TableId::kDdr, Vendor("DDR", 18), kDdr},
    {TableId::kLlc, Vendor("LLC", 27), kLlc},
    {TableId::kNic, Vendor("NIC", 21), kNic},
    {TableId::kRoce, Vendor("RoCE", 22), kNic},
    {TableId::kDvpp, Own("DVPP", 0), kDvpp},
    {TableId::kNpuMem, Vendor("NPU MEM", 17), kNpuMem},
    {TableId::kModuleMem, Own("NPU Module MEM", 2), kModuleMem},
    {TableId::kAicoreFreq, Vendor("AI Core Freq", 15), kAicoreFreq},
    {TableId::kVoltage, Own("Voltage", 1), kVoltage},
    {TableId::kQos, Vendor("QoS", 29), kQos},
    {TableId::kSio, Vendor("SIO", 28), kSio, true},
    {TableId::kAccPmu, Vendor("Acc PMU", 19), kAccPmu},
    {TableId::kChipTrans, Vendor("Stars Chip Trans", 26), kChipTrans},
    {TableId::kSocLevel, Vendor("Stars Soc Info", 25), kSocLevel},
    {TableId::kLowPower, Own("Low Power", 3), {}},
    {TableId::kAicorePmu, Own("AI Core Utilization", 4), kUtilization},
    {TableId::kUb, Own("UB", 5), kUb},
    {TableId::kInstrCycles, kInstrProcess, kInstrCycles},
    {TableId::kInstrFlow, kInstrProcess, kInstrFlow},
    {TableId::kNetdev, Own("Network Device", 6), kNetdev},
    {TableId::kSysCpu, Own("System CPU", 7), kSysCpu},
    {TableId::kSysMem, Own("System Memory", 8), kSysMem},
    {TableId::kProcCpu, Own("Process CPU", 9), kProcCpu},
    {TableId::kProcMem, Own("Process Memory", 10), kProcMem},
    {TableId::kHostCpu, Vendor("CPU Usage", 9), kHostCpu},
    {TableId::kHostMem, Vendor("Memory Usage", 10), kHostMem},
    {TableId::kHostDisk, Vendor("Disk Usage", 12), kHostDisk},
    {TableId::kHostNetwork, Vendor("Network Usage", 11), kHostNetwork},
    {TableId::kSample, Own("Samples", 11), kSample},
    {TableId::kKernel, Vendor("Ascend Hardware", 14), {}},
    {TableId::kCommunication, Vendor("Communication", 16), {}},
    {TableId::kApi, {"CANN", 7, 14, true}, {}},
    {TableId::kMarker, Vendor("Ascend Hardware", 14), {}},
    {TableId::kMemory, Vendor("Ascend Hardware", 14), {}},
}};
constexpr TableLayout kSioLayoutV6 = {TableId::kSio, Vendor("SIO", 28), kSioV6, true};
constexpr TableLayout kChipTransLayoutV6 = {TableId::kChipTrans, Vendor("Stars Chip Trans", 26),
                                            kChipTransV6};

static_assert(AreInOrder(kLayouts));

constexpr auto kUtilizationColumns = std::to_array<Column>({
    {"core", ColumnType::kKey},
    {"type", ColumnType::kKey},
    {"utilization", ColumnType::kReal, "%"},
});
constexpr TableSpec kUtilizationSpec = {TableId::kAicorePmu, "aicore_utilization",
                                        kUtilizationColumns};

void AppendKey(std::string* out, const Column& column, int64_t value, const Strings* strings) {
  if (column.type == ColumnType::kName) {
    if (strings != nullptr) out->append(strings->Text(value));
    return;
  }
  std::string_view text = KeyText(column, value);
  if (text.empty()) {
    out->append(std::to_string(value));
  } else {
    out->append(text);
  }
}

// `field` is what stands between the braces.
void AppendField(std::string* out, std::string_view field, const TableSpec& table,
                 std::span<const int64_t> keys, const Strings* strings) {
  size_t place = static_cast<size_t>(field.front() - '0');
  if (place >= keys.size()) return;
  int64_t value = keys[place];
  std::string_view rest = field.substr(1);
  if (rest.empty()) {
    AppendKey(out, table.columns[place], value, strings);
    return;
  }
  char kind = rest.front();
  rest.remove_prefix(1);
  if (kind == ':') {
    Column texts = table.columns[place];
    texts.values = rest;
    AppendKey(out, texts, value, strings);
  } else if (kind == '-') {
    out->append(value < 0 ? std::string(rest) : std::to_string(value));
  } else if (kind == '%') {
    out->append(fmt::format("{:0{}}", value, rest.front() - '0'));
  } else if (kind == '>') {
    int64_t least = 0;
    const char* end = std::from_chars(rest.data(), rest.data() + rest.size(), least).ptr;
    if (value <= least) return;
    out->append(end, static_cast<size_t>(rest.data() + rest.size() - end));
    out->append(std::to_string(value));
  }
}

}  // namespace

constexpr ProcessSpec kMarksProcess = Own("Marks", 12);
constexpr ProcessSpec kStepTraceProcess = Own("Step Trace", 13);
// The vendor's CCU, of chips 15 and 16.
constexpr ProcessSpec kLossProcess = Own("Data Losses", 30);
constexpr ProcessSpec kPythonProcess = Vendor("Python", 0);
constexpr ProcessSpec kCannProcess = Vendor("CANN", 7);
constexpr ProcessSpec kHardwareProcess = Vendor("Ascend Hardware", 14);
constexpr ProcessSpec kCommunicationProcess = Vendor("Communication", 16);
constexpr ProcessSpec kOverlapProcess = Vendor("Overlap Analysis", 31);

const TableLayout& LayoutOf(TableId id, bool v6) {
  if (v6 && id == TableId::kSio) return kSioLayoutV6;
  if (v6 && id == TableId::kChipTrans) return kChipTransLayoutV6;
  return kLayouts[static_cast<size_t>(id)];
}

const TableSpec& UtilizationTable() { return kUtilizationSpec; }

std::string Expand(std::string_view pattern, const TableSpec& table, std::span<const int64_t> keys,
                   const Strings* strings) {
  std::string out;
  while (!pattern.empty()) {
    size_t open = pattern.find('{');
    out.append(pattern.substr(0, open));
    if (open == std::string_view::npos) break;
    size_t close = pattern.find('}', open);
    AppendField(&out, pattern.substr(open + 1, close - open - 1), table, keys, strings);
    pattern.remove_prefix(close + 1);
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

}  // namespace profd::exporting
