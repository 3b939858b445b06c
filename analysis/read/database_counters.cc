// Tables of counters in databases of profilers (analysis 2.5).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "analysis/read/dump_sink.h"
#include "analysis/read/readers.h"
#include "analysis/read/sqlite_file.h"
#include "base/text.h"

namespace profd::analysis {
namespace {

// A counter's table: each of the columns is a series of its own for each value of `key`.
struct CounterTable {
  std::string_view table;
  std::string_view key;  // a column or an expression; empty: none
  std::string_view name;
  std::string_view columns;  // "column name unit" separated by ','; a '-' is not a name; of 1/s the growth
};
constexpr auto kCounterTables = std::to_array<CounterTable>({
    {"AICORE_FREQ", "", "AI Core Freq", "freq - MHz"},
    {"HBM", "hbmId || ' ' || (SELECT value FROM STRING_IDS WHERE id = type)", "HBM", "bandwidth - B/s"},
    {"DDR", "", "DDR", "read Read B/s,write Write B/s"},
    {"LLC", "llcId || ' ' || (SELECT value FROM STRING_IDS WHERE id = mode)", "LLC",
     "hitRate Hit_rate %,throughput Throughput B/s"},
    {"NPU_MEM", "(SELECT value FROM STRING_IDS WHERE id = type)", "NPU MEM", "ddr DDR B,hbm HBM B"},
    {"NPU_MODULE_MEM", "(SELECT name FROM ENUM_MODULE WHERE id = moduleId)", "NPU Module MEM", "totalReserved - B"},
    {"HCCS", "", "HCCS", "txThroughput Tx B/s,rxThroughput Rx B/s"},
    {"PCIE", "", "PCIe",
     "txPostAvg Tx_post B/s,rxPostAvg Rx_post B/s,txNonpostAvg Tx_nonpost B/s,rxNonpostAvg Rx_nonpost B/s,"
     "txCplAvg Tx_cpl B/s,rxCplAvg Rx_cpl B/s,txNonpostLatencyAvg Tx_nonpost_latency ns"},
    {"NIC", "funcId", "NIC", "rxByteRate Rx B/s,txByteRate Tx B/s,rxErrors Rx_errors 1/s,txErrors Tx_errors 1/s,rxDropped Rx_dropped 1/s,txDropped Tx_dropped 1/s"},
    {"ROCE", "funcId", "RoCE", "rxByteRate Rx B/s,txByteRate Tx B/s,rxErrors Rx_errors 1/s,txErrors Tx_errors 1/s,rxDropped Rx_dropped 1/s,txDropped Tx_dropped 1/s"},
    {"NETDEV_STATS", "", "Network Device",
     "macTxBandwidth MAC_Tx B/s,macRxBandwidth MAC_Rx B/s,macTxPfcPkt MAC_Tx_PFC_packets -,macRxPfcPkt MAC_Rx_PFC_packets -,"
     "macTxBadByte MAC_Tx_bad_bytes B,macRxBadByte MAC_Rx_bad_bytes B,roceTxErrPkt RoCE_Tx_errors -,roceRxErrPkt RoCE_Rx_errors -,"
     "roceTxCnpPkt RoCE_Tx_CNP_packets -,roceRxCnpPkt RoCE_Rx_CNP_packets -,roceNewPktRty RoCE_new_packet_retries -,"
     "nicTxBandwidth NIC_Tx B/s,nicRxBandwidth NIC_Rx B/s"},
    {"QOS", "(SELECT replace(value, 'QoS ', '') FROM STRING_IDS WHERE id = eventName)", "QoS", "bandwidth - B/s"},
    {"SIO", "(SELECT value FROM STRING_IDS WHERE id = name)", "SIO",
     "rxReq Rx_req B/s,rxRsp Rx_rsp B/s,rxSnp Rx_snp B/s,rxDat Rx_dat B/s,txReq Tx_req B/s,txRsp Tx_rsp B/s,txSnp Tx_snp B/s,txDat Tx_dat B/s"},
    {"ACC_PMU", "accId", "Acc",
     "readBwLevel Read_bandwidth level,writeBwLevel Write_bandwidth level,readOstLevel Read_outstanding level,writeOstLevel Write_outstanding level"},
    {"SOC_BANDWIDTH_LEVEL", "", "SoC", "l2BufferBwLevel L2_buffer_bandwidth_level level,mataBwLevel Mata_bandwidth_level level"},
    {"SAMPLE_PMU_TIMELINE", "(SELECT value FROM STRING_IDS WHERE id = coreType) || ' ' || coreId", "AI Core Utilization", "usage - %"},
});
constexpr auto kHostTables = std::to_array<CounterTable>({
    {"CPU_USAGE", "cpuId", "Host CPU", "usage - %"},
    {"HOST_MEM_USAGE", "", "Host memory", "usage - %"},
    {"HOST_DISK_USAGE", "", "Host disk", "usage - %,readRate Read B/s,writeRate Write B/s"},
    {"HOST_NETWORK_USAGE", "", "Host network", "usage - %,speed Speed B/s"},
});

std::string Unescaped(std::string_view word) {
  std::string text(word == "-" ? "" : word);
  std::ranges::replace(text, '_', ' ');
  return text;
}

Counter MakeCounter(std::string name, std::string unit, int device, bool grows, Rank* rank) {
  Series& series = *rank->hardware.emplace_back(std::make_shared<Series>());
  series.name = std::move(name);
  series.unit = std::move(unit);
  series.device = device;
  return {&series, grows};
}

constexpr size_t kMaxSeries = 1024;

Status ReadTable(const CounterTable& table, const Database& database, int device, CheckedNumbers* numbers, Rank* rank) {
  if (!database.Has(table.table)) return Status::Ok();
  // Newer writers have dies apart.
  const std::string_view die = database.HasColumn(table.table, "dieId") ? " || CASE WHEN dieId > 0 THEN ' Die ' || dieId ELSE '' END" : "";
  std::string_view rest = table.columns;
  for (std::string_view words; NextPart(&rest, ',', &words);) {
    const size_t first = words.find(' ');
    const size_t last = words.rfind(' ');
    const std::string_view column = words.substr(0, first);
    if (!database.HasColumn(table.table, column)) continue;
    const std::string name = Unescaped(words.substr(first + 1, last - first - 1));
    const std::string_view unit = words.substr(last + 1);
    std::map<std::string, Counter> made;
    RETURN_IF_ERROR(database.Each(
        fmt::format("SELECT timestampNs, {}, trim({}{}) FROM {}{} ORDER BY 1", column, table.key.empty() ? "''" : table.key, die,
                    table.table, device < 0 ? "" : fmt::format(" WHERE deviceId = {}", device)),
        [&](const Row& row) {
          const auto value = numbers->Of(table.table, row, 1);
          if (!value || !numbers->Of(table.table, row, 0) || made.size() > kMaxSeries) return;
          const auto [it, is_new] = made.try_emplace(std::string(row.Text(2)));
          if (is_new) {
            const std::string full = fmt::format("{}{}{}{}{}", table.name, it->first.empty() ? "" : " ", it->first, name.empty() ? "" : " ", name);
            it->second = MakeCounter(full, unit == "-" ? "" : std::string(unit), device, unit == "1/s", rank);
          }
          it->second.Add(row.Time(0), *value);
        }));
  }
  return Status::Ok();
}

// What profd sampled beside the channels, of the device and of the host.
Status ReadSamples(const Database& database, int device, CheckedNumbers* numbers, Rank* rank) {
  constexpr std::string_view kTable = "PROFD_SAMPLE_ROWS";
  if (!database.Has(kTable)) return Status::Ok();
  std::map<std::tuple<int64_t, int64_t, int64_t>, Counter> made;  // by device, metric and labels
  return database.Each(
      fmt::format("SELECT timestampNs, value, deviceId, metric, labels, (SELECT value FROM STRING_IDS WHERE id = t.metric), "
                  "(SELECT value FROM STRING_IDS WHERE id = t.labels) FROM {} t WHERE deviceId IN ({}, -1) ORDER BY 1", kTable, device),
      [&](const Row& row) {
        const auto value = numbers->Of(kTable, row, 1);
        if (!value || !numbers->Of(kTable, row, 0) || made.size() > kMaxSeries) return;
        const auto [it, is_new] = made.try_emplace({row.Int(2), row.Int(3), row.Int(4)});
        if (is_new) {
          const std::string_view metric = row.Text(5);
          it->second = MakeCounter(SeriesNameOf(metric, exporting::ParseLabels(row.Text(6))), SeriesUnitOf(metric), static_cast<int>(row.Int(2)), Grows(metric), rank);
        }
        it->second.Add(row.Time(0), *value);
      });
}

}  // namespace

void ReadDatabaseCounters(const Database& database, const std::string& where, int device, const ReadContext& context,
                          CheckedNumbers* numbers, Rank* rank) {
  for (const CounterTable& table : kCounterTables) context.AddProblem(where, ReadTable(table, database, device, numbers, rank));
  for (const CounterTable& table : kHostTables) context.AddProblem(where, ReadTable(table, database, -1, numbers, rank));
  context.AddProblem(where, ReadSamples(database, device, numbers, rank));
  for (const auto& series : rank->hardware) series->Sort();
}

}  // namespace profd::analysis
