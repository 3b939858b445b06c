// What profd recorded itself, in tables that `profctl export` made of its dumps (export.md, CSV).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>
#include <utility>

#include "analysis/read/csv_file.h"
#include "analysis/read/each_record.h"
#include "analysis/read/recorded.h"
#include "base/text.h"

namespace profd::analysis {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStart = "Start Time(us)";
constexpr std::string_view kDuration = "Duration(us)";
constexpr std::string_view kCorrelation = "Correlation";
constexpr std::string_view kRank = "Rank";

struct Columns {
  std::string_view name;
  std::string_view other;
  std::string_view place;
};

// Names are texts of the rank.
class TableReader {
 public:
  TableReader(const ReadContext& context, Rank* rank) : context_(context), rank_(*rank) {}

  // `take` gets the device (-1: the host) and the text of the column `other`, too.
  template <class Take>
  void EachRow(const std::vector<fs::path>& files, const Columns& columns, const Take& take) {
    for (const fs::path& path : files) {
      if (!IsRecordedTable(path)) continue;
      EachRecord(path, {{columns.name}, {columns.other}, {columns.place}, {kStart}, {kDuration}, {kCorrelation}, {kRank}}, context_, [&](const CsvFile& header) {
        const auto at = [&header](std::string_view name) { return header.Column({name}); };
        const int device_at = at("Device_id");
        const At columns_at{at(columns.name), at(columns.other), at(columns.place), at(kStart), at(kDuration), at(kCorrelation), at(kRank)};
        return [this, &take, device_at, columns_at](const CsvFile& record) {
          Recorded row;
          if (!RowOf(record, columns_at, &row)) return false;
          int device = -1;
          if (!ParseNumber(record.Field(device_at), &device)) device = -1;
          take(device, row, record.Field(columns_at.other));
          return true;
        };
      });
    }
  }
  const std::set<int>& ranks() const { return ranks_; }

 private:
  struct At {
    int name, other, place, start, duration, correlation, rank;
  };

  bool RowOf(const CsvFile& file, const At& at, Recorded* row) {
    const auto start = file.MicrosAsNs(at.start);
    const auto length = file.MicrosAsNs(at.duration);
    if (!start || !length || *length < 0 || __builtin_add_overflow(*start, *length, &row->end_ns)) return false;
    row->start_ns = *start;
    row->name = rank_.Text(Unquoted(file.Field(at.name)));
    row->other = rank_.Text(Unquoted(file.Field(at.other)));
    row->place = file.Integer(at.place).value_or(-1);
    uint64_t correlation = 0;
    if (ParseNumber(file.Field(at.correlation), &correlation)) row->correlation = static_cast<int64_t>(correlation);
    if (ParseNumber(file.Field(at.rank), &row->rank)) ranks_.insert(row->rank);
    return true;
  }

  const ReadContext& context_;
  Rank& rank_;
  std::set<int> ranks_;
};

}  // namespace

bool IsRecordedTable(const fs::path& file) { return file.stem().native().find('_') != std::string::npos; }

void ReadRecordedTables(const RecordedTables& tables, const ReadContext& context, Rank* rank) {
  TableReader reader(context, rank);
  std::map<int, OfDevice> devices;
  reader.EachRow(tables.kernels, {"Name", "Type", "Stream ID"},
                 [&](int device, const Recorded& row, std::string_view) { devices[device].kernels.push_back(row); });
  reader.EachRow(tables.collectives, {"Name", "Communicator", "Stream ID"},
                 [&](int device, const Recorded& row, std::string_view) { devices[device].collectives.push_back(row); });
  std::vector<Recorded> calls;
  std::vector<bool> are_node;
  reader.EachRow(tables.calls, {"API Name", "Level", "Thread"}, [&](int, const Recorded& row, std::string_view level) {
    calls.push_back(row);
    are_node.push_back(level == "node");
  });
  RecordedOfRank of_rank([rank](int64_t id) { return rank->TextOf(static_cast<TextId>(id)); }, rank);
  Intervals computing;
  Intervals communication;
  std::vector<int> numbers;
  devices.erase(-1);  // of no device that is known
  for (const auto& [number, device] : devices) {
    if (!rank->device) rank->device = number;
    numbers.push_back(number);
    of_rank.AddDevice(device, number, &computing, &communication);
  }
  if (numbers.size() > 1) {
    context.AddProblem(rank->path, fmt::format("has kernels of the devices {}: they are read as one rank", fmt::join(numbers, ", ")));
  }
  const Launchers launchers(calls);
  for (size_t i = 0; i < calls.size(); ++i) of_rank.AddCall(calls[i], are_node[i], launchers);
  if (!rank->rank && reader.ranks().size() == 1) rank->rank = *reader.ranks().begin();
}

}  // namespace profd::analysis
