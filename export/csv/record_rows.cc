#include "export/csv/record_rows.h"

#include <array>
#include <cstring>

#include "export/csv/csv_row.h"
#include "export/csv/module_mem.h"

namespace profd::exporting::csv {
namespace {

std::string_view EventName(int64_t event, bool cpp) {
  if (event == 0) return "APP";
  if (event == 1) return "Device";
  return cpp ? "UNKNOWN" : "";
}

char* Copy(char* out, std::string_view text) {
  std::memcpy(out, text.data(), text.size());
  return out + text.size();
}

char* Time(char* out, int64_t t_ns) {
  out = AppendMicros(out, t_ns);
  *out++ = '\t';
  return out;
}

char* Comma(char* out) {
  *out++ = ',';
  return out;
}

char* PrintNpuMem(const PartContext& context, const Batch& batch, size_t row, char* out) {
  int64_t ddr = batch.Ints(1)[row];
  int64_t hbm = batch.Ints(2)[row];
  auto memory = static_cast<int64_t>(static_cast<uint64_t>(ddr) + static_cast<uint64_t>(hbm));
  bool cpp = IsMadeInCpp(context.place->chip);
  if (cpp && IsBeforeStart(context, batch.t_ns[row])) return nullptr;
  out = Comma(Copy(out, EventName(batch.Ints(0)[row], cpp)));
  for (int64_t bytes : {ddr, hbm, memory}) {
    out = cpp ? AppendInt(out, bytes / 1024)
              : AppendRepr(out, PyRound3(static_cast<double>(bytes) / 1024));
    out = Comma(out);
  }
  return Time(out, batch.t_ns[row]);
}

char* PrintModuleMem(const PartContext& context, const Batch& batch, size_t row, char* out) {
  int64_t reserved = batch.Ints(1)[row];
  out = Comma(Copy(out, ModuleName(batch.Ints(0)[row])));
  out = Comma(Time(out, batch.t_ns[row]));
  out = reserved > 0 ? AppendRepr(out, PyRound3(static_cast<double>(reserved) / 1024))
                     : AppendInt(out, reserved);
  return AppendInt(Copy(Comma(out), "NPU:"), context.place->device);
}

char* PrintUb(const PartContext&, const Batch& batch, size_t row, char* out) {
  out = Comma(AppendInt(out, batch.Ints(0)[row]));
  out = Comma(Time(out, batch.t_ns[row]));
  out = Comma(AppendInt(out, batch.Ints(1)[row]));
  return AppendInt(out, batch.Ints(2)[row]);
}

}  // namespace

bool IsMadeInCpp(int chip) { return chip < 0 || chip == 5 || chip == 15 || chip == 16; }

bool IsBeforeStart(const PartContext& context, int64_t t_ns) {
  return t_ns / 1000 < context.place->clock.begin_us;
}

RecordRows::RecordRows(const PartContext& context, Print print)
    : Part(context), print_(print), lines_(*context.spool) {
  CsvRow(device_, *context.place);
  device_ += ',';
}

void RecordRows::Take(const Batch& batch) {
  std::string& text = lines_.text();
  uint64_t printed = 0;
  std::array<char, kMaxLine> line;
  char* begin = Copy(line.data(), device_);
  for (size_t row = 0; row < batch.rows(); ++row) {
    char* end = print_(context_, batch, row, begin);
    if (end == nullptr) continue;
    *end++ = '\n';
    text.append(line.data(), static_cast<size_t>(end - line.data()));
    ++printed;
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
