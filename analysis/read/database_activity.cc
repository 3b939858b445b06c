// What profd recorded itself, in databases that `profctl export` made of its dumps (export.md, Database).
#include <fmt/format.h>

#include "analysis/read/recorded.h"
#include "analysis/read/sqlite_file.h"

namespace profd::analysis {
namespace {

struct Columns {
  std::string_view table;
  std::string_view other;
  std::string_view place;
};

// `take` gets the text of the column `other`, too.
template <class Take>
Status EachRow(const Database& database, const Columns& columns, std::string_view where, const Take& take) {
  if (!database.Has(columns.table)) return Status::Ok();
  return database.Each(fmt::format("SELECT timestampNs, duration, name, {0}, {1}, correlation, rank, (SELECT value FROM STRING_IDS WHERE id = {0}) "
                                   "FROM {2} WHERE duration >= 0 AND {3} ORDER BY 1", columns.other, columns.place, columns.table, where),
                       [&take](const Row& row) {
                         Recorded made{row.Time(0), 0, row.Int(2), row.Int(3), row.Int(4), row.Int(5), static_cast<int>(row.Int(6))};
                         if (__builtin_add_overflow(made.start_ns, row.Int(1), &made.end_ns)) return;
                         made.end_ns = BoundedTime(made.end_ns);
                         take(made, row.Text(7));
                       });
}

}  // namespace

Status ReadKernelRows(const Database& database, int device, OfDevice* rows) {
  const std::string where = fmt::format("deviceId = {}", device);
  RETURN_IF_ERROR(EachRow(database, {"PROFD_KERNEL_ROWS", "type", "stream"}, where, [rows](const Recorded& row, std::string_view) { rows->kernels.push_back(row); }));
  return EachRow(database, {"PROFD_COMMUNICATION_ROWS", "communicator", "stream"}, where, [rows](const Recorded& row, std::string_view) { rows->collectives.push_back(row); });
}

Status ReadCallRows(const Database& database, std::string_view where, std::vector<Recorded>* calls, std::vector<bool>* are_node) {
  return EachRow(database, {"PROFD_API_ROWS", "level", "thread"}, where, [&](const Recorded& row, std::string_view level) {
    calls->push_back(row);
    are_node->push_back(level == "node");
  });
}

}  // namespace profd::analysis
