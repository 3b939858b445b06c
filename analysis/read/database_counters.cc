// Tables of counters in databases of profilers (analysis 2.5).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>

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
  std::string_view columns;  // "column name unit" separated by ','; a '-' is not a name
};
constexpr auto kCounterTables = std::to_array<CounterTable>({
    {"AICORE_FREQ", "", "AI Core Freq", "freq - MHz"},
    {"HBM", "hbmId || ' ' || (SELECT value FROM STRING_IDS WHERE id = type)", "HBM", "bandwidth - B/s"},
    {"DDR", "", "DDR", "read Read B/s,write Write B/s"},
    {"LLC", "llcId || ' ' || (SELECT value FROM STRING_IDS WHERE id = mode)", "LLC",
     "hitRate Hit_rate %,throughput Throughput B/s"},
    {"NPU_MEM", "(SELECT value FROM STRING_IDS WHERE id = type)", "NPU MEM", "ddr DDR B,hbm HBM B"},
    {"HCCS", "", "HCCS", "txThroughput Tx B/s,rxThroughput Rx B/s"},
    {"PCIE", "", "PCIe", "txPostAvg Tx_post B/s,rxPostAvg Rx_post B/s,txNonpostAvg Tx_nonpost B/s,rxNonpostAvg Rx_nonpost B/s"},
    {"NIC", "funcId", "NIC", "rxByteRate Rx B/s,txByteRate Tx B/s"},
    {"ROCE", "funcId", "RoCE", "rxByteRate Rx B/s,txByteRate Tx B/s"},
    {"QOS", "(SELECT value FROM STRING_IDS WHERE id = eventName)", "QoS", "bandwidth - B/s"},
    {"SOC_BANDWIDTH_LEVEL", "", "SoC", "l2BufferBwLevel L2_buffer_bandwidth_level level,mataBwLevel Mata_bandwidth_level level"},
});
constexpr auto kHostTables = std::to_array<CounterTable>({
    {"CPU_USAGE", "cpuId", "Host CPU", "usage - %"},
    {"HOST_MEM_USAGE", "", "Host memory", "usage - %"},
    {"HOST_DISK_USAGE", "", "Host disk", "usage - %"},
    {"HOST_NETWORK_USAGE", "", "Host network", "usage - %"},
});

std::string Unescaped(std::string_view word) {
  std::string text(word == "-" ? "" : word);
  std::ranges::replace(text, '_', ' ');
  return text;
}

Status ReadTable(const CounterTable& table, const Database& database, int device, CheckedNumbers* numbers, Rank* rank) {
  constexpr size_t kMaxSeries = 1024;
  if (!database.Has(table.table)) return Status::Ok();
  std::string_view rest = table.columns;
  for (std::string_view words; NextPart(&rest, ',', &words);) {
    const size_t first = words.find(' ');
    const size_t last = words.rfind(' ');
    const std::string name = Unescaped(words.substr(first + 1, last - first - 1));
    const std::string unit(words.substr(last + 1));
    std::map<std::string, size_t> made;
    RETURN_IF_ERROR(database.Each(
        fmt::format("SELECT timestampNs, {}, {} FROM {}{} ORDER BY 1", words.substr(0, first), table.key.empty() ? "''" : table.key,
                    table.table, device < 0 ? "" : fmt::format(" WHERE deviceId = {}", device)),
        [&](const Row& row) {
          const auto value = numbers->Of(table.table, row, 1);
          if (!value || !numbers->Of(table.table, row, 0) || made.size() > kMaxSeries) return;
          const auto [it, is_new] = made.try_emplace(std::string(row.Text(2)), rank->hardware.size());
          if (is_new) {
            Series& series = *rank->hardware.emplace_back(std::make_shared<Series>());
            series.name = fmt::format("{}{}{}{}{}", table.name, it->first.empty() ? "" : " ", it->first, name.empty() ? "" : " ", name);
            series.unit = unit;
            series.device = device;
          }
          rank->hardware[it->second]->Add(row.Time(0), *value);
        }));
  }
  return Status::Ok();
}

}  // namespace

void ReadDatabaseCounters(const Database& database, const std::string& where, int device, const ReadContext& context,
                          CheckedNumbers* numbers, Rank* rank) {
  const auto read = [&](const CounterTable& table, int of_device) {
    const Status status = ReadTable(table, database, of_device, numbers, rank);
    if (!status.ok()) context.problems->push_back({where, status.message()});
  };
  for (const CounterTable& table : kCounterTables) read(table, device);
  for (const CounterTable& table : kHostTables) read(table, -1);
  for (const auto& series : rank->hardware) series->Sort();
}

}  // namespace profd::analysis
