#include "export/csv/activity_rows.h"

#include <fmt/format.h>

#include <array>

#include "export/csv/csv_row.h"

namespace profd::exporting::csv {

// One line: cells by their columns' names are looked up once.
class ActivityLine {
 public:
  ActivityLine(const Strings& strings, const Batch& batch, size_t row, std::string* out)
      : strings_(strings), batch_(batch), row_(row), csv_(*out, batch.device) {}

  // What is not known is N/A.
  ActivityLine& Name(size_t column) {
    const std::string_view text = strings_.Text(Cell(column));
    csv_.Text(text.empty() ? "N/A" : text);
    return *this;
  }
  ActivityLine& Key(size_t column) {
    const std::string_view text = KeyText(batch_.table->columns[column], Cell(column));
    text.empty() ? csv_.Int(Cell(column)) : csv_.Text(text);
    return *this;
  }
  ActivityLine& Known(size_t column) {
    Cell(column) < 0 ? csv_.Text("N/A") : csv_.Int(Cell(column));
    return *this;
  }
  // Of a column where 0 means that there is none.
  ActivityLine& Nonzero(size_t column) {
    Cell(column) == 0 ? csv_.Text("N/A") : csv_.Text(fmt::format_int(static_cast<uint64_t>(Cell(column))).c_str());
    return *this;
  }
  ActivityLine& Unsigned(size_t column) {
    csv_.Text(fmt::format_int(static_cast<uint64_t>(Cell(column))).c_str());
    return *this;
  }
  ActivityLine& Real(size_t column) {
    const double value = batch_.Reals(column)[row_];
    value > 0 ? csv_.Repr(value) : csv_.Text("N/A");
    return *this;
  }
  ActivityLine& Start() {
    csv_.Time(batch_.t_ns[row_]);
    return *this;
  }
  ActivityLine& Stop(size_t duration) {
    csv_.Time(batch_.t_ns[row_] + Cell(duration));
    return *this;
  }
  ActivityLine& Duration(size_t column) {
    csv_.Micros(Cell(column));
    return *this;
  }
  ActivityLine& NotKnown() {
    csv_.Text("N/A");
    return *this;
  }
  void End() { csv_.End(); }

 private:
  int64_t Cell(size_t column) const { return batch_.Ints(column)[row_]; }

  const Strings& strings_;
  const Batch& batch_;
  size_t row_;
  CsvRow csv_;
};

namespace {

// Numbers of columns are those of export/table.cc.
constexpr auto kCsvs = std::to_array<ActivityCsv>({
    {"kernel", TableId::kKernel, "Name,Type,Stream ID,Start Time(us),Duration(us),Pid,Rank,Thread,Correlation",
     [](ActivityLine& line) {
       line.Name(0).Name(1).Known(3).Start().Duration(2).Known(4).Known(5).Nonzero(6).Nonzero(7);
     }},
    {"task_time", TableId::kKernel,
     "kernel_name,kernel_type,stream_id,task_id,task_time(us),task_start(us),task_stop(us)",
     [](ActivityLine& line) { line.Name(0).Name(1).Known(3).NotKnown().Duration(2).Start().Stop(2); }},
    {"communication", TableId::kCommunication,
     "Name,Communicator,Algorithm,Stream ID,Start Time(us),Duration(us),Count,Data Type,Bandwidth,Pid,Rank,Correlation",
     [](ActivityLine& line) {
       line.Name(0).Name(1).Name(2).Known(4).Start().Duration(3).Unsigned(8).Known(9).Real(10).Known(5).Known(6).Nonzero(7);
     }},
    {"api", TableId::kApi, "Level,API Name,Start Time(us),Duration(us),Pid,Rank,Thread,Correlation",
     [](ActivityLine& line) {
       line.Key(1).Name(0).Start().Duration(2).Known(3).Known(4).Nonzero(5).Nonzero(6);
     }},
    {"marker", TableId::kMarker, "Name,Domain,Source,Kind,Time(us),Id,Stream ID,Pid,Rank,Thread",
     [](ActivityLine& line) {
       line.Name(0).Name(1).Key(2).Key(3).Start().Unsigned(4).Known(5).Known(6).Known(7).Nonzero(8);
     }},
    {"memory", TableId::kMemory,
     "Operation,Stream ID,Start Time(us),Duration(us),Size(B),Address,Async,Detail,Pid,Rank,Correlation",
     [](ActivityLine& line) {
       line.Key(0).Known(4).Start().Duration(1).Unsigned(2).Unsigned(3).Known(8).Known(9).Known(5).Known(6).Nonzero(7);
     }},
});

}  // namespace

std::span<const ActivityCsv> ActivityCsvs() { return kCsvs; }

bool ActivityRows::Is(const ActivityCsv& csv) const { return csv.print == print_; }

void ActivityRows::Take(const Batch& batch) {
  for (size_t row = 0; row < batch.rows(); ++row) {
    ActivityLine line(*context_.strings, batch, row, &lines_.text());
    print_(line);
    line.End();
  }
  lines_.Added(batch.rows());
}

}  // namespace profd::exporting::csv
