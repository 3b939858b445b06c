#include "export/table.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace profd::exporting {
namespace {

using enum ColumnType;

constexpr auto kHccsColumns = std::to_array<Column>({
    {"tx", kReal, "MB/s", "atlas_npu_hccs_bandwidth_bytes_per_second", "link=all,direction=tx", kMega},
    {"rx", kReal, "MB/s", "atlas_npu_hccs_bandwidth_bytes_per_second", "link=all,direction=rx", kMega},
});

constexpr auto kPcieColumns = std::to_array<Column>({
    {"tx_post_min", kInt, "B/us", "atlas_npu_pcie_bandwidth_bytes_per_second",
     "direction=tx,type=posted,stat=min", 1000000.0},
    {"tx_post_max", kInt, "B/us", "atlas_npu_pcie_bandwidth_bytes_per_second",
     "direction=tx,type=posted,stat=max", 1000000.0},
    {"tx_post_avg", kInt, "B/us", "atlas_npu_pcie_bandwidth_bytes_per_second",
     "direction=tx,type=posted,stat=avg", 1000000.0},
    {"tx_nonpost_min", kInt, "B/us", "atlas_npu_pcie_bandwidth_bytes_per_second",
     "direction=tx,type=nonposted,stat=min", 1000000.0},
    {"tx_nonpost_max", kInt, "B/us", "atlas_npu_pcie_bandwidth_bytes_per_second",
     "direction=tx,type=nonposted,stat=max", 1000000.0},
    {"tx_nonpost_avg", kInt, "B/us", "atlas_npu_pcie_bandwidth_bytes_per_second",
     "direction=tx,type=nonposted,stat=avg", 1000000.0},
    {"tx_cpl_min", kInt, "B/us", "atlas_npu_pcie_bandwidth_bytes_per_second",
     "direction=tx,type=completion,stat=min", 1000000.0},
    {"tx_cpl_max", kInt, "B/us", "atlas_npu_pcie_bandwidth_bytes_per_second",
     "direction=tx,type=completion,stat=max", 1000000.0},
    {"tx_cpl_avg", kInt, "B/us", "atlas_npu_pcie_bandwidth_bytes_per_second",
     "direction=tx,type=completion,stat=avg", 1000000.0},
    {"tx_nonpost_latency_min", kInt, "ns", "atlas_npu_pcie_read_latency_seconds", "stat=min",
     1e-09},
    {"tx_nonpost_latency_max", kInt, "ns", "atlas_npu_pcie_read_latency_seconds", "stat=max",
     1e-09},
    {"tx_nonpost_latency_avg", kInt, "ns", "atlas_npu_pcie_read_latency_seconds", "stat=avg",
     1e-09},
    {"rx_post_min", kInt, "B/us", "atlas_npu_pcie_bandwidth_bytes_per_second",
     "direction=rx,type=posted,stat=min", 1000000.0},
    {"rx_post_max", kInt, "B/us", "atlas_npu_pcie_bandwidth_bytes_per_second",
     "direction=rx,type=posted,stat=max", 1000000.0},
    {"rx_post_avg", kInt, "B/us", "atlas_npu_pcie_bandwidth_bytes_per_second",
     "direction=rx,type=posted,stat=avg", 1000000.0},
    {"rx_nonpost_min", kInt, "B/us", "atlas_npu_pcie_bandwidth_bytes_per_second",
     "direction=rx,type=nonposted,stat=min", 1000000.0},
    {"rx_nonpost_max", kInt, "B/us", "atlas_npu_pcie_bandwidth_bytes_per_second",
     "direction=rx,type=nonposted,stat=max", 1000000.0},
    {"rx_nonpost_avg", kInt, "B/us", "atlas_npu_pcie_bandwidth_bytes_per_second",
     "direction=rx,type=nonposted,stat=avg", 1000000.0},
    {"rx_cpl_min", kInt, "B/us", "atlas_npu_pcie_bandwidth_bytes_per_second",
     "direction=rx,type=completion,stat=min", 1000000.0},
    {"rx_cpl_max", kInt, "B/us", "atlas_npu_pcie_bandwidth_bytes_per_second",
     "direction=rx,type=completion,stat=max", 1000000.0},
    {"rx_cpl_avg", kInt, "B/us", "atlas_npu_pcie_bandwidth_bytes_per_second",
     "direction=rx,type=completion,stat=avg", 1000000.0},
});

constexpr auto kHbmColumns = std::to_array<Column>({
    {"hbm", kKey},
    {"direction", kKey, "", "", "", 1, "read,write"},
    {"bandwidth", kReal, "MB/s", "atlas_npu_hbm_bandwidth_bytes_per_second", "", kMega},
});

constexpr auto kDdrColumns = std::to_array<Column>({
    {"ddr", kKey},
    {"read", kReal, "MB/s", "atlas_npu_ddr_bandwidth_bytes_per_second", "direction=read", kMega},
    {"write", kReal, "MB/s", "atlas_npu_ddr_bandwidth_bytes_per_second", "direction=write", kMega},
});

constexpr auto kLlcColumns = std::to_array<Column>({
    {"llc", kKey},
    {"op", kKey, "", "", "", 1, "read,write"},
    {"hit_ratio", kReal},  // three decimals, as the vendor's tables have it
    {"throughput", kReal, "MB/s", "atlas_npu_llc_slice_throughput_bytes_per_second", "", kMega},
    {"exact_hit_ratio", kReal, "", "atlas_npu_llc_slice_hit_ratio"},
});

// Of NIC and RoCE, whose tables have the layer's label.
constexpr auto kPortColumns = std::to_array<Column>({
    {"port", kKey},
    {"bandwidth", kInt, "Mb/s", "atlas_npu_network_port_speed_bytes_per_second", "", 125000.0},
    {"rx_packet_rate", kReal, "packets/s", "atlas_npu_network_port_packets_per_second", "direction=rx"},
    {"rx_byte_rate", kReal, "B/s", "atlas_npu_network_port_bandwidth_bytes_per_second", "direction=rx"},
    {"rx_packets", kReal, "", "atlas_npu_network_port_packets_total", "direction=rx"},
    {"rx_bytes", kReal, "B", "atlas_npu_network_port_bytes_total", "direction=rx"},
    {"rx_errors", kReal, "", "atlas_npu_network_port_errors_total", "direction=rx"},
    {"rx_dropped", kReal, "", "atlas_npu_network_port_dropped_total", "direction=rx"},
    {"rx_error_ratio", kReal},
    {"rx_dropped_ratio", kReal},
    {"tx_packet_rate", kReal, "packets/s", "atlas_npu_network_port_packets_per_second", "direction=tx"},
    {"tx_byte_rate", kReal, "B/s", "atlas_npu_network_port_bandwidth_bytes_per_second", "direction=tx"},
    {"tx_packets", kReal, "", "atlas_npu_network_port_packets_total", "direction=tx"},
    {"tx_bytes", kReal, "B", "atlas_npu_network_port_bytes_total", "direction=tx"},
    {"tx_errors", kReal, "", "atlas_npu_network_port_errors_total", "direction=tx"},
    {"tx_dropped", kReal, "", "atlas_npu_network_port_dropped_total", "direction=tx"},
    {"tx_error_ratio", kReal},
    {"tx_dropped_ratio", kReal},
    {"rx_utilization_ratio", kReal, "", "atlas_npu_network_port_utilization_ratio", "direction=rx"},
    {"tx_utilization_ratio", kReal, "", "atlas_npu_network_port_utilization_ratio", "direction=tx"},
});

constexpr auto kDvppColumns = std::to_array<Column>({
    {"dvpp", kKey},
    {"engine", kKey, "", "", "", 1, "vdec,jpegd,pngd,jpege,vpc,venc,scd"},
    {"engine_id", kKey},
    {"all_time", kReal, "us", "atlas_npu_dvpp_engine_busy_seconds", "", 1e-06},
    {"all_frame", kReal, "", "atlas_npu_dvpp_engine_frames"},
    {"all_utilization", kReal, "%", "atlas_npu_dvpp_engine_utilization_ratio", "", 0.01},
    {"proc_time", kReal, "us"},
    {"proc_frame", kReal},
    {"proc_utilization", kReal, "%"},
    {"last_time", kReal, "us"},
    {"last_frame", kReal},
});

constexpr auto kNpuMemColumns = std::to_array<Column>({
    {"kind", kKey, "", "", "", 1, "app,device"},
    {"ddr", kInt, "B", "atlas_npu_memory_used_bytes", "memory=ddr"},
    {"hbm", kInt, "B", "atlas_npu_memory_used_bytes", "memory=hbm"},
});

constexpr auto kNpuModuleMemColumns = std::to_array<Column>({
    {"module", kKey},
    {"reserved", kInt, "B", "atlas_npu_module_memory_reserved_bytes"},
});

constexpr auto kAicoreFreqColumns = std::to_array<Column>({
    {"die", kKey},
    {"mhz", kReal, "MHz", "atlas_npu_frequency_hertz", "domain=aicore", 1000000.0, "", "", "atlas_npu_die_frequency_hertz"},
});

constexpr auto kVoltageColumns = std::to_array<Column>({
    {"rail", kKey, "", "", "", 1, "aicore,bus"},
    {"mv", kReal, "mV", "atlas_npu_voltage_volts", "", 0.001},
});

constexpr auto kQosColumns = std::to_array<Column>({
    {"stream", kName},
    {"die", kKey, "", "", "", 1, "", "all"},
    {"bandwidth", kInt, "MB/s", "atlas_npu_qos_bandwidth_bytes_per_second", "", kMega},
});

constexpr auto kSioColumns = std::to_array<Column>({
    {"die", kKey},
    {"req_rx", kReal, "MB/s", "atlas_npu_sio_bandwidth_bytes_per_second", "kind=req,direction=rx",
     kMega},
    {"rsp_rx", kReal, "MB/s", "atlas_npu_sio_bandwidth_bytes_per_second", "kind=rsp,direction=rx",
     kMega},
    {"snp_rx", kReal, "MB/s", "atlas_npu_sio_bandwidth_bytes_per_second", "kind=snp,direction=rx",
     kMega},
    {"dat_rx", kReal, "MB/s", "atlas_npu_sio_bandwidth_bytes_per_second", "kind=dat,direction=rx",
     kMega},
    {"req_tx", kReal, "MB/s", "atlas_npu_sio_bandwidth_bytes_per_second", "kind=req,direction=tx",
     kMega},
    {"rsp_tx", kReal, "MB/s", "atlas_npu_sio_bandwidth_bytes_per_second", "kind=rsp,direction=tx",
     kMega},
    {"snp_tx", kReal, "MB/s", "atlas_npu_sio_bandwidth_bytes_per_second", "kind=snp,direction=tx",
     kMega},
    {"dat_tx", kReal, "MB/s", "atlas_npu_sio_bandwidth_bytes_per_second", "kind=dat,direction=tx",
     kMega},
});

constexpr auto kAccPmuColumns = std::to_array<Column>({
    {"acc", kKey},
    {"read_bandwidth", kInt, "", "atlas_npu_acc_pmu_bandwidth", "direction=read"},
    {"write_bandwidth", kInt, "", "atlas_npu_acc_pmu_bandwidth", "direction=write"},
    {"read_outstanding", kInt, "", "atlas_npu_acc_pmu_outstanding", "direction=read"},
    {"write_outstanding", kInt, "", "atlas_npu_acc_pmu_outstanding", "direction=write"},
});

constexpr auto kChipTransColumns = std::to_array<Column>({
    {"kind", kKey, "", "", "", 1, "pa,pcie"},
    {"link", kKey},
    {"rx_or_write", kInt, "", "atlas_npu_chip_link_bandwidth", "direction=rx_or_write"},
    {"tx_or_read", kInt, "", "atlas_npu_chip_link_bandwidth", "direction=tx_or_read"},
});

constexpr auto kSocLevelColumns = std::to_array<Column>({
    {"l2_buffer", kInt, "", "atlas_npu_soc_bandwidth_level", "unit=l2_buffer"},
    {"mata", kInt, "", "atlas_npu_soc_bandwidth_level", "unit=mata"},
});

constexpr auto kLowPowerColumns = std::to_array<Column>({
    {"die", kKey}, {"v0", kInt},  {"v1", kInt},  {"v2", kInt},  {"v3", kInt},  {"v4", kInt},
    {"v5", kInt},  {"v6", kInt},  {"v7", kInt},  {"v8", kInt},  {"v9", kInt},  {"v10", kInt},
    {"v11", kInt}, {"v12", kInt}, {"v13", kInt}, {"v14", kInt}, {"v15", kInt}, {"v16", kInt},
    {"v17", kInt}, {"v18", kInt}, {"v19", kInt},
});

constexpr auto kAicorePmuColumns = std::to_array<Column>({
    {"core", kKey},
    {"type", kKey, "", "", "", 1, "aic,aiv"},
    {"event0", kInt},
    {"event1", kInt},
    {"event2", kInt},
    {"event3", kInt},
    {"event4", kInt},
    {"event5", kInt},
    {"event6", kInt},
    {"event7", kInt},
    {"event8", kInt},
    {"event9", kInt},
    {"cycles", kInt, "", "atlas_npu_aicore_cycles"},
    {"count_num", kInt},
});

constexpr auto kUbColumns = std::to_array<Column>({
    {"port", kKey},
    {"udma_rx_bind", kInt},
    {"udma_tx_bind", kInt},
    {"rx_bandwidth", kInt, "MB/s", "atlas_npu_ub_port_bandwidth_bytes_per_second", "direction=rx",
     kMega},
    {"rx_packet_rate", kInt, "packets/s", "atlas_npu_ub_port_packets_per_second", "direction=rx"},
    {"rx_bytes", kInt, "B", "atlas_npu_ub_port_bytes_total", "direction=rx"},
    {"rx_packets", kInt, "", "atlas_npu_ub_port_packets_total", "direction=rx"},
    {"rx_errors", kInt, "", "atlas_npu_ub_port_errors_total", "direction=rx"},
    {"rx_dropped", kInt, "", "atlas_npu_ub_port_dropped_total", "direction=rx"},
    {"tx_bandwidth", kInt, "MB/s", "atlas_npu_ub_port_bandwidth_bytes_per_second", "direction=tx",
     kMega},
    {"tx_packet_rate", kInt, "packets/s", "atlas_npu_ub_port_packets_per_second", "direction=tx"},
    {"tx_bytes", kInt, "B", "atlas_npu_ub_port_bytes_total", "direction=tx"},
    {"tx_packets", kInt, "", "atlas_npu_ub_port_packets_total", "direction=tx"},
    {"tx_errors", kInt, "", "atlas_npu_ub_port_errors_total", "direction=tx"},
    {"tx_dropped", kInt, "", "atlas_npu_ub_port_dropped_total", "direction=tx"},
});

// A unit's busy cycles since the core's record before.
constexpr auto kInstrCyclesColumns = std::to_array<Column>({
    {"core_group", kKey},
    {"core_type", kKey, "", "", "", 1, "aic,aiv0,aiv1"},
    {"vector", kInt, "", "atlas_npu_core_busy_cycles", "unit=vector"},
    {"scalar", kInt, "", "atlas_npu_core_busy_cycles", "unit=scalar"},
    {"cube", kInt, "", "atlas_npu_core_busy_cycles", "unit=cube"},
    {"mte1", kInt, "", "atlas_npu_core_busy_cycles", "unit=mte1"},
    {"mte2", kInt, "", "atlas_npu_core_busy_cycles", "unit=mte2"},
    {"mte3", kInt, "", "atlas_npu_core_busy_cycles", "unit=mte3"},
});

// As recorded, in units that are not known.
constexpr auto kInstrFlowColumns = std::to_array<Column>({
    {"core_group", kKey},
    {"read_bandwidth", kInt, "", "atlas_npu_core_bus_bandwidth", "direction=read"},
    {"write_bandwidth", kInt, "", "atlas_npu_core_bus_bandwidth", "direction=write"},
    {"read_latency", kInt, "", "atlas_npu_core_bus_latency", "direction=read"},
    {"write_latency", kInt, "", "atlas_npu_core_bus_latency", "direction=write"},
    {"read_commands", kInt},
    {"write_commands", kInt},
    {"l2_read_bandwidth", kInt},
    {"l2_write_bandwidth", kInt},
    {"l2_hits", kInt},
});

// Counters are the growth since the line before, as the vendor's database has them; 0 where one decreased.
constexpr auto kNetdevColumns = std::to_array<Column>({
    {"mac_tx_pfc_packets", kInt, "", "atlas_npu_netdev_mac_pfc_packets_delta", "direction=tx"},
    {"mac_rx_pfc_packets", kInt, "", "atlas_npu_netdev_mac_pfc_packets_delta", "direction=rx"},
    {"mac_tx_bytes", kInt, "B", "atlas_npu_netdev_mac_bytes_delta", "direction=tx"},
    {"mac_rx_bytes", kInt, "B", "atlas_npu_netdev_mac_bytes_delta", "direction=rx"},
    {"mac_tx_bad_bytes", kInt, "B", "atlas_npu_netdev_mac_bad_bytes_delta", "direction=tx"},
    {"mac_rx_bad_bytes", kInt, "B", "atlas_npu_netdev_mac_bad_bytes_delta", "direction=rx"},
    {"roce_tx_packets", kInt, "", "atlas_npu_netdev_roce_packets_delta", "direction=tx"},
    {"roce_rx_packets", kInt, "", "atlas_npu_netdev_roce_packets_delta", "direction=rx"},
    {"roce_tx_errors", kInt, "", "atlas_npu_netdev_roce_errors_delta", "direction=tx"},
    {"roce_rx_errors", kInt, "", "atlas_npu_netdev_roce_errors_delta", "direction=rx"},
    {"roce_tx_cnp_packets", kInt, "", "atlas_npu_netdev_roce_cnp_packets_delta", "direction=tx"},
    {"roce_rx_cnp_packets", kInt, "", "atlas_npu_netdev_roce_cnp_packets_delta", "direction=rx"},
    {"roce_new_packet_retries", kInt, "", "atlas_npu_netdev_roce_new_packet_retries_delta"},
    {"nic_tx_bytes", kInt, "B", "atlas_npu_netdev_nic_bytes_delta", "direction=tx"},
    {"nic_rx_bytes", kInt, "B", "atlas_npu_netdev_nic_bytes_delta", "direction=rx"},
    {"mac_tx_bandwidth", kReal, "B/s", "atlas_npu_netdev_bandwidth_bytes_per_second",
     "layer=mac,direction=tx"},
    {"mac_rx_bandwidth", kReal, "B/s", "atlas_npu_netdev_bandwidth_bytes_per_second",
     "layer=mac,direction=rx"},
    {"nic_tx_bandwidth", kReal, "B/s", "atlas_npu_netdev_bandwidth_bytes_per_second",
     "layer=nic,direction=tx"},
    {"nic_rx_bandwidth", kReal, "B/s", "atlas_npu_netdev_bandwidth_bytes_per_second",
     "layer=nic,direction=rx"},
});

constexpr auto kSysCpuColumns = std::to_array<Column>({
    {"cpu", kKey, "", "", "", 1, "", "all"},
    {"user", kInt, "jiffies", "atlas_system_cpu_jiffies_total", "mode=user"},
    {"nice", kInt, "jiffies", "atlas_system_cpu_jiffies_total", "mode=nice"},
    {"system", kInt, "jiffies", "atlas_system_cpu_jiffies_total", "mode=system"},
    {"idle", kInt, "jiffies", "atlas_system_cpu_jiffies_total", "mode=idle"},
    {"iowait", kInt, "jiffies", "atlas_system_cpu_jiffies_total", "mode=iowait"},
    {"irq", kInt, "jiffies", "atlas_system_cpu_jiffies_total", "mode=irq"},
    {"softirq", kInt, "jiffies", "atlas_system_cpu_jiffies_total", "mode=softirq"},
    {"steal", kInt, "jiffies", "atlas_system_cpu_jiffies_total", "mode=steal"},
    {"guest", kInt, "jiffies", "atlas_system_cpu_jiffies_total", "mode=guest"},
    {"guest_nice", kInt, "jiffies", "atlas_system_cpu_jiffies_total", "mode=guest_nice"},
});

constexpr auto kSysMemColumns = std::to_array<Column>({
    {"total", kInt, "kB", "atlas_system_memory_bytes", "kind=total", 1024.0},
    {"free", kInt, "kB", "atlas_system_memory_bytes", "kind=free", 1024.0},
    {"buffers", kInt, "kB", "atlas_system_memory_bytes", "kind=buffers", 1024.0},
    {"cached", kInt, "kB", "atlas_system_memory_bytes", "kind=cached", 1024.0},
    {"shmem", kInt, "kB", "atlas_system_memory_bytes", "kind=shmem", 1024.0},
    {"commit_limit", kInt, "kB", "atlas_system_memory_bytes", "kind=commit_limit", 1024.0},
    {"committed_as", kInt, "kB", "atlas_system_memory_bytes", "kind=committed_as", 1024.0},
    {"huge_pages_total", kInt, "pages", "atlas_system_memory_pages", "kind=huge_pages_total"},
    {"huge_pages_free", kInt, "pages", "atlas_system_memory_pages", "kind=huge_pages_free"},
});

constexpr auto kProcCpuColumns = std::to_array<Column>({
    {"pid", kKey},
    {"process", kName},
    {"process_jiffies", kInt, "jiffies", "atlas_process_cpu_jiffies_total"},
    {"total_jiffies", kInt, "jiffies"},
});

constexpr auto kProcMemColumns = std::to_array<Column>({
    {"pid", kKey},
    {"process", kName},
    {"size", kInt, "pages", "atlas_process_memory_pages", "kind=size"},
    {"resident", kInt, "pages", "atlas_process_memory_pages", "kind=resident"},
    {"shared", kInt, "pages", "atlas_process_memory_pages", "kind=shared"},
});

constexpr auto kHostCpuColumns = std::to_array<Column>({
    {"cpu", kKey, "", "", "", 1, "", "all"},
    {"usage", kReal, "%", "atlas_host_cpu_usage_ratio", "", 0.01},
});

constexpr auto kHostMemColumns = std::to_array<Column>({
    {"usage", kReal, "%", "atlas_host_memory_usage_ratio", "", 0.01},
});

constexpr auto kHostDiskColumns = std::to_array<Column>({
    {"read", kReal, "KB/s", "atlas_host_disk_bytes_per_second", "direction=read", 1024.0},
    {"write", kReal, "KB/s", "atlas_host_disk_bytes_per_second", "direction=write", 1024.0},
    {"usage", kReal, "%", "atlas_host_disk_usage_ratio", "", 0.01},
});

constexpr auto kHostNetworkColumns = std::to_array<Column>({
    {"usage", kReal, "%", "atlas_host_network_usage_ratio", "", 0.01},
    {"speed", kReal, "KB/s", "atlas_host_network_bytes_per_second", "", 1024.0},
});

constexpr auto kSamplesColumns = std::to_array<Column>({
    {"metric", kName},
    {"labels", kName},
    {"value", kReal},
});

// Times are the starts; -1 where something is not known or not there.
constexpr auto kKernelColumns = std::to_array<Column>({
    {"name", kName},
    {"type", kName},
    {"duration", kInt, "ns"},
    {"stream", kInt},
    {"pid", kInt}, {"rank", kInt},
    {"thread", kInt},
    {"correlation", kInt},
});

constexpr auto kCommunicationColumns = std::to_array<Column>({
    {"name", kName},
    {"communicator", kName},
    {"algorithm", kName},
    {"duration", kInt, "ns"},
    {"stream", kInt},
    {"pid", kInt}, {"rank", kInt},
    {"correlation", kInt},
    {"count", kInt},
    {"data_type", kInt},
    {"bandwidth", kReal},
});

constexpr auto kApiColumns = std::to_array<Column>({
    {"name", kName},
    {"level", kKey, "", "", "", 1, "unknown,acl,node,runtime"},
    {"duration", kInt, "ns"},
    {"pid", kInt}, {"rank", kInt},
    {"thread", kInt},
    {"correlation", kInt},
});

constexpr auto kMarkerColumns = std::to_array<Column>({
    {"name", kName},
    {"domain", kName},
    {"source", kKey, "", "", "", 1, "host,device"},
    {"kind", kKey, "", "", "", 1, "instant,start,end"},
    {"id", kInt},
    {"stream", kInt},
    {"pid", kInt}, {"rank", kInt},
    {"thread", kInt},
});

constexpr auto kMemoryColumns = std::to_array<Column>({
    {"operation", kKey, "", "", "", 1, "unknown,allocate,release,set,copy"},
    {"duration", kInt, "ns"},
    {"bytes", kInt, "B"},
    {"address", kInt},
    {"stream", kInt},
    {"pid", kInt}, {"rank", kInt},
    {"correlation", kInt},
    {"is_async", kInt},
    {"detail", kInt},
});

constexpr std::array<TableSpec, kTableCount> kTables = {{
    {TableId::kHccs, "hccs", kHccsColumns},
    {TableId::kPcie, "pcie", kPcieColumns},
    {TableId::kHbm, "hbm", kHbmColumns},
    {TableId::kDdr, "ddr", kDdrColumns},
    {TableId::kLlc, "llc", kLlcColumns},
    {TableId::kNic, "nic", kPortColumns, "layer=nic"},
    {TableId::kRoce, "roce", kPortColumns, "layer=roce"},
    {TableId::kDvpp, "dvpp", kDvppColumns},
    {TableId::kNpuMem, "npu_mem", kNpuMemColumns},
    {TableId::kModuleMem, "npu_module_mem", kNpuModuleMemColumns},
    {TableId::kAicoreFreq, "aicore_freq", kAicoreFreqColumns},
    {TableId::kVoltage, "voltage", kVoltageColumns},
    {TableId::kQos, "qos", kQosColumns},
    {TableId::kSio, "sio", kSioColumns},
    {TableId::kAccPmu, "acc_pmu", kAccPmuColumns},
    {TableId::kChipTrans, "chip_trans", kChipTransColumns},
    {TableId::kSocLevel, "soc_level", kSocLevelColumns},
    {TableId::kLowPower, "low_power", kLowPowerColumns},
    {TableId::kAicorePmu, "aicore_pmu", kAicorePmuColumns},
    {TableId::kUb, "ub", kUbColumns},
    {TableId::kInstrCycles, "instr_cycles", kInstrCyclesColumns},
    {TableId::kInstrFlow, "instr_flow", kInstrFlowColumns},
    {TableId::kNetdev, "netdev", kNetdevColumns},
    {TableId::kSysCpu, "sys_cpu", kSysCpuColumns},
    {TableId::kSysMem, "sys_mem", kSysMemColumns},
    {TableId::kProcCpu, "proc_cpu", kProcCpuColumns},
    {TableId::kProcMem, "proc_mem", kProcMemColumns},
    {TableId::kHostCpu, "host_cpu", kHostCpuColumns},
    {TableId::kHostMem, "host_mem", kHostMemColumns},
    {TableId::kHostDisk, "host_disk", kHostDiskColumns},
    {TableId::kHostNetwork, "host_network", kHostNetworkColumns},
    {TableId::kSample, "samples", kSamplesColumns},
    {TableId::kKernel, "kernel", kKernelColumns},
    {TableId::kCommunication, "communication", kCommunicationColumns},
    {TableId::kApi, "api", kApiColumns},
    {TableId::kMarker, "marker", kMarkerColumns},
    {TableId::kMemory, "memory", kMemoryColumns},
}};

static_assert(AreInOrder(kTables));

}  // namespace

std::span<const TableSpec> Tables() { return kTables; }

const TableSpec& TableOf(TableId id) { return kTables[static_cast<size_t>(id)]; }

const TableSpec* FindTable(std::string_view name) {
  auto it = std::ranges::find(kTables, name, &TableSpec::name);
  return it == kTables.end() ? nullptr : &*it;
}

size_t KeyCount(const TableSpec& table) {
  size_t keys = 0;
  while (keys < table.columns.size() && IsKey(table.columns[keys].type)) ++keys;
  return keys;
}

int ColumnIndex(const TableSpec& table, std::string_view name) {
  for (size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

std::string LabelsOf(const TableSpec& table, const Column& column) {
  const std::string_view comma = table.labels.empty() || column.labels.empty() ? "" : ",";
  return std::string(table.labels).append(comma).append(column.labels);
}

std::string_view KeyText(const Column& column, int64_t value) {
  std::string_view rest = column.values;
  if (rest.empty() || value < 0) return {};
  int64_t i = 0;
  for (std::string_view text; NextPart(&rest, ',', &text); ++i) {
    if (i == value) return text;
  }
  return {};
}

}  // namespace profd::exporting
