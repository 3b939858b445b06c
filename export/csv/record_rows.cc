#include "export/csv/record_rows.h"

#include "export/csv/csv_row.h"
#include "export/csv/module_mem.h"

namespace profd::exporting::csv {
namespace {

std::string_view EventName(int64_t event, bool cpp) {
  if (event == 0) return "APP";
  if (event == 1) return "Device";
  return cpp ? "UNKNOWN" : "";
}

bool PrintNpuMem(const PartContext& context, const Batch& batch, size_t row, std::string* out) {
  int64_t ddr = batch.Ints(1)[row];
  int64_t hbm = batch.Ints(2)[row];
  auto memory = static_cast<int64_t>(static_cast<uint64_t>(ddr) + static_cast<uint64_t>(hbm));
  bool cpp = IsMadeInCpp(context.place->chip);
  if (cpp && IsBeforeStart(context, batch.t_ns[row])) return false;
  CsvRow line(*out, *context.place);
  line.Text(EventName(batch.Ints(0)[row], cpp));
  for (int64_t bytes : {ddr, hbm, memory}) {
    if (cpp) {
      line.Int(bytes / 1024);
    } else {
      line.Fixed3(static_cast<double>(bytes) / 1024);
    }
  }
  line.Time(batch.t_ns[row]).End();
  return true;
}

bool PrintModuleMem(const PartContext& context, const Batch& batch, size_t row, std::string* out) {
  int64_t reserved = batch.Ints(1)[row];
  CsvRow line(*out, *context.place);
  line.Text(ModuleName(batch.Ints(0)[row])).Time(batch.t_ns[row]);
  if (reserved > 0) {
    line.Fixed3(static_cast<double>(reserved) / 1024);
  } else {
    line.Int(reserved);
  }
  line.Text("NPU:" + std::to_string(context.place->device)).End();
  return true;
}

bool PrintUb(const PartContext& context, const Batch& batch, size_t row, std::string* out) {
  CsvRow line(*out, *context.place);
  line.Int(batch.Ints(0)[row]).Time(batch.t_ns[row]);
  line.Int(batch.Ints(1)[row]).Int(batch.Ints(2)[row]).End();
  return true;
}

}  // namespace

bool IsMadeInCpp(int chip) { return chip < 0 || chip == 5 || chip == 15 || chip == 16; }

bool IsBeforeStart(const PartContext& context, int64_t t_ns) {
  return t_ns / 1000 < context.place->clock.begin_us;
}

void RecordRows::Take(const Batch& batch) {
  uint64_t printed = 0;
  for (size_t row = 0; row < batch.rows(); ++row) {
    if (print_(context_, batch, row, &lines_.text())) ++printed;
  }
  lines_.Added(printed);
}

std::unique_ptr<RecordRows> MakeNpuMemRows(const PartContext& context) {
  return std::make_unique<RecordRows>(context, PrintNpuMem);
}

std::unique_ptr<RecordRows> MakeModuleMemRows(const PartContext& context) {
  return std::make_unique<RecordRows>(context, PrintModuleMem);
}

std::unique_ptr<RecordRows> MakeUbRows(const PartContext& context) {
  return std::make_unique<RecordRows>(context, PrintUb);
}

}  // namespace profd::exporting::csv
