#include "export/csv/summaries.h"

#include <array>

namespace profd::exporting::csv {
namespace {

constexpr std::string_view kNetworkColumns =
    "Timestamp(us),Bandwidth(MB/s),Rx Bandwidth efficiency(%),rxPacket/s,rxError rate(%),"
    "rxDropped rate(%),Tx Bandwidth efficiency(%),txPacket/s,txError rate(%),txDropped rate(%),"
    "funcId";

constexpr auto kKinds = std::to_array<SummaryKind>({
    {"hccs", TableId::kHccs, "Mode,Max,Min,Average", MakeHccsSummary},
    {"pcie", TableId::kPcie, "Mode,Min,Max,Avg", MakePcieSummary},
    {"nic", TableId::kNic, kNetworkColumns, MakeNetworkSummary},
    {"roce", TableId::kRoce, kNetworkColumns, MakeNetworkSummary},
    {"dvpp", TableId::kDvpp,
     "Dvpp Id,Engine Type,Engine ID,All Time(us),All Frame,All Utilization(%)", MakeDvppSummary},
    {"llc_read_write", TableId::kLlc, "Mode,Task,Hit Rate(%),Throughput(MB/s)", MakeLlcSummary},
    {"llc_bandwidth", TableId::kLlc, "Metric,l3c_rd,l3c_wr", MakeLlcBandwidthSummary},
    {"hbm", TableId::kHbm, "Metric,Read(MB/s),Write(MB/s)", MakeHbmSummary},
    {"ddr", TableId::kDdr, "Metric,Read(MB/s),Write(MB/s)", MakeDdrSummary},
    {"ai_core_utilization", TableId::kAicorePmu, "Core ID", MakeAicoreSummary},
    {"ai_vector_core_utilization", TableId::kAicorePmu, "Core ID", MakeVectorCoreSummary},
    {"cpu_usage", TableId::kSysCpu, "Cpu Type,User(%),Sys(%),IoWait(%),Irq(%),Soft(%),Idle(%)",
     MakeCpuUsageSummary},
    {"process_cpu_usage", TableId::kProcCpu, "PID,Name,CPU(%)", MakeProcessCpuSummary},
    {"sys_mem", TableId::kSysMem,
     "Memory Total(kB),Memory Free(kB),Buffers(kB),Cached(kB),Share Memory(kB),Commit Limit(kB),"
     "Committed AS(kB),Huge Pages Total(pages),Huge Pages Free(pages)",
     MakeSysMemSummary},
    {"process_mem", TableId::kProcMem, "PID,Name,Size(pages),Resident(pages),Shared(pages)",
     MakeProcessMemSummary},
    {"host_cpu_usage", TableId::kHostCpu,
     "Total Cpu Numbers,Occupied Cpu Numbers,Recommend Cpu Numbers", MakeHostCpuSummary},
    {"host_mem_usage", TableId::kHostMem,
     "Total Memory(KB),Peak Used Memory(KB),Recommend Memory(KB)", MakeHostMemSummary},
    {"host_network_usage", TableId::kHostNetwork,
     "Netcard Speed(KB/s),Peak Used Speed(KB/s),Recommend Speed(KB/s)", MakeHostNetworkSummary},
    {"host_disk_usage", TableId::kHostDisk,
     "Peak Disk Read(KB/s),Recommend Disk Read(KB/s),Peak Disk Write(KB/s),"
     "Recommend Disk Write(KB/s)",
     MakeHostDiskSummary},
    {"op_statistic", TableId::kKernel,
     "OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)", MakeOpSummary},
    {"communication_statistic", TableId::kCommunication,
     "OP Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)", MakeCommunicationSummary},
    {"api_statistic", TableId::kApi, "Level,API Name,Time(us),Count,Avg(us),Min(us),Max(us),Variance",
     MakeApiSummary},
});

}  // namespace

std::span<const SummaryKind> SummaryKinds() { return kKinds; }

}  // namespace profd::exporting::csv
