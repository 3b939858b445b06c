// The CSVs that have a row for each record: written as text while the records come, put into files
// when all have come.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "export/csv/part.h"
#include "export/csv/spooled_text.h"

namespace profd::exporting::csv {

class RecordRows : public Part {
 public:
  static constexpr size_t kMaxLine = 256;

  // Prints what follows the device into less than kMaxLine bytes and returns its end; null
  // leaves the row out.
  using Print = char* (*)(const PartContext& context, const Batch& batch, size_t row, char* out);

  RecordRows(const PartContext& context, Print print);

  void Take(const Batch& batch) override;
  Status Finish() override { return lines_.Finish(); }
  SpooledText& lines() { return lines_; }

 private:
  Print print_;
  std::string device_;  // and a comma
  SpooledText lines_;
};

inline constexpr std::string_view kNpuMemColumns = "event,ddr(KB),hbm(KB),memory(KB),timestamp(us)";
inline constexpr std::string_view kUbColumns =
    "PortId,TimeStamp,UBRxPortBandWidth(MB/s),UBTxPortBandWidth(MB/s)";

std::unique_ptr<RecordRows> MakeNpuMemRows(const PartContext& context);
// Module memory of chips where it stays in the order of the records.
std::unique_ptr<RecordRows> MakeModuleMemRows(const PartContext& context);
std::unique_ptr<RecordRows> MakeUbRows(const PartContext& context);

// Chips whose memory CSVs the vendor makes in C++: full KB, nothing before the start of
// collection, module memory sorted over all devices. Where the chip is not known, so do we.
bool IsMadeInCpp(int chip);
// Its CSVs leave out what is earlier than the start of collection.
bool IsBeforeStart(const PartContext& context, int64_t t_ns);

}  // namespace profd::exporting::csv
