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
  // Prints one row; false leaves it out.
  using Print = bool (*)(const PartContext& context, const Batch& batch, size_t row,
                         std::string* out);

  RecordRows(const PartContext& context, Print print)
      : Part(context), print_(print), lines_(*context.spool) {}

  void Take(const Batch& batch) override;
  Status Finish() override { return lines_.Finish(); }
  SpooledText& lines() { return lines_; }

 private:
  Print print_;
  SpooledText lines_;
};

inline constexpr std::string_view kNpuMemColumns =
    "event,ddr(KB),hbm(KB),memory(KB),timestamp(us)";
inline constexpr std::string_view kUbColumns =
    "PortId,TimeStamp,UBRxPortBandWidth(MB/s),UBTxPortBandWidth(MB/s)";

std::unique_ptr<RecordRows> MakeNpuMemRows(const PartContext& context);
// Module memory of chips where it stays in the order of the records.
std::unique_ptr<RecordRows> MakeModuleMemRows(const PartContext& context);
std::unique_ptr<RecordRows> MakeUbRows(const PartContext& context);

// Chips whose memory CSVs the vendor makes in C++: whole KB, nothing before the start of collection,
// module memory sorted over all devices. Where the chip is not known, so do we.
bool IsMadeInCpp(int chip);
// Its CSVs leave out what is earlier than the start of collection.
bool IsBeforeStart(const PartContext& context, int64_t t_ns);

}  // namespace profd::exporting::csv
