// npu_module_mem of chips where it is sorted by module, then by time, over all devices of a dump:
// the rows of each module wait in the spool and are merged at the end.
#pragma once

#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "export/csv/csv_file.h"
#include "export/csv/part.h"

namespace profd::exporting::csv {

inline constexpr std::string_view kModuleMemColumns =
    "Component,Timestamp(us),Total Reserved(KB),Device";

// Of a module id (dump-format 2.10); "UNKNOWN" for one that has none.
std::string_view ModuleName(int64_t module);

class ModuleMem : public Part {
 public:
  struct Row {
    int64_t t_ns;
    int64_t kilobytes;  // -1: the driver's number makes no sense
  };
  struct Block {
    uint64_t offset;
    uint32_t rows;
    int64_t first_ns;
    int64_t last_ns;
  };
  static constexpr size_t kBlockRows = 512;

  using Part::Part;

  void Take(const Batch& batch) override;
  Status Finish() override;
  uint64_t rows() const { return rows_; }
  // By module.
  const std::map<int64_t, std::vector<Block>>& blocks() const { return blocks_; }

 private:
  // Ids are untrusted: of too many different ones all others are one.
  static constexpr int64_t kOthers = INT64_MAX;
  using Rows = std::vector<Row>;

  void Spill(int64_t module, Rows* rows);

  SeriesMap<Rows, 1024> waiting_;
  Rows others_;
  std::map<int64_t, std::vector<Block>> blocks_;
  uint64_t rows_ = 0;
  Status error_;
};

// All rows of the parts, which are in the order of their devices.
Status WriteModuleMem(std::span<const ModuleMem* const> parts, CsvFile* file);

}  // namespace profd::exporting::csv
