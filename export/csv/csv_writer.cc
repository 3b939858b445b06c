#include "export/csv/csv_writer.h"

#include <algorithm>
#include <cmath>

#include "export/csv/activity_rows.h"
#include "export/csv/csv_row.h"
#include "export/csv/module_mem.h"
#include "export/csv/record_rows.h"
#include "export/csv/summaries.h"

namespace profd::exporting::csv {
namespace {

// The order of the vendor's folders: device_0, device_1, device_10, device_2, host. Several files
// of one of them, by their names.
bool InVendorOrder(const PartContext& a, const PartContext& b) {
  if (a.place->dir != b.place->dir) return a.place->dir < b.place->dir;
  return a.file->base < b.file->base;
}

template <class T>
std::vector<T*> Sorted(const std::vector<std::unique_ptr<T>>& parts) {
  std::vector<T*> sorted;
  sorted.reserve(parts.size());
  for (const auto& part : parts) sorted.push_back(part.get());
  std::ranges::stable_sort(
      sorted, [](const T* a, const T* b) { return InVendorOrder(a->context(), b->context()); });
  return sorted;
}

CsvFile Make(const CsvTarget& target, std::string_view name, std::string columns, uint64_t rows,
             bool slice_at_limit) {
  CsvFileSpec spec = {target.dir,           name,          target.timestamp, std::move(columns), rows,
                      target.rows_per_file, slice_at_limit, true, target.go_on};
  return CsvFile(std::move(spec), target.files);
}

// Parts of all summaries over a table lie mixed: each file brought one of each kind, in order.
Status WriteSummary(const SummaryKind& kind, std::span<Summary* const> parts,
                    const CsvTarget& target) {
  CsvText text;
  text.columns = kind.columns;
  for (size_t i = 0; i < parts.size();) {
    Summary* first = parts[i];
    for (++i; i < parts.size() && parts[i]->context().place == first->context().place; ++i) {
      first->Merge(*parts[i]);
    }
    RETURN_IF_ERROR(first->Write(kind.name, &text));
  }
  if (text.row_count == 0) return Status::Ok();
  CsvFile file = Make(target, kind.name, text.columns, text.row_count, true);
  RETURN_IF_ERROR(file.Append(text.rows, text.row_count));
  return file.Close();
}

bool HasOperators(const DumpParts& parts, std::string_view name) {
  return std::ranges::find(parts.operators, name) != parts.operators.end();
}

Status WriteSummaries(DumpParts* parts, const CsvTarget& target) {
  for (const SummaryKind& kind : SummaryKinds()) {
    if (HasOperators(*parts, kind.name)) continue;
    const auto& table = parts->tables[static_cast<size_t>(kind.table)];
    size_t kinds = 0;
    size_t which = 0;
    for (const SummaryKind& other : SummaryKinds()) {
      if (&other == &kind) which = kinds;
      if (other.table == kind.table) ++kinds;
    }
    for (const ActivityCsv& csv : ActivityCsvs()) kinds += csv.table == kind.table ? 1 : 0;
    std::vector<Summary*> mine;
    const std::vector<Part*> sorted = Sorted(table);  // the parts of a file stay together
    for (size_t i = which; i < sorted.size(); i += kinds) mine.push_back(static_cast<Summary*>(sorted[i]));
    RETURN_IF_ERROR(WriteSummary(kind, mine, target));
  }
  return Status::Ok();
}

// Of parts whose lines are written as they are.
template <class Rows>
Status WriteLines(std::string_view name, std::string_view columns, std::span<Rows* const> parts, bool slice_at_limit,
                  const CsvTarget& target) {
  uint64_t rows = 0;
  for (Rows* part : parts) rows += part->lines().rows();
  if (rows == 0) return Status::Ok();
  CsvFile file = Make(target, name, std::string(columns), rows, slice_at_limit);
  for (Rows* part : parts) RETURN_IF_ERROR(part->lines().WriteTo(&file));
  return file.Close();
}

Status WriteRecords(DumpParts* parts, TableId table, std::string_view name, std::string_view columns,
                    const CsvTarget& target) {
  std::vector<RecordRows*> rows;
  for (Part* part : Sorted(parts->tables[static_cast<size_t>(table)])) {
    rows.push_back(static_cast<RecordRows*>(part));
  }
  if (rows.empty()) return Status::Ok();
  const bool python = name == "ub" || !IsMadeInCpp(rows.front()->context().place->chip);
  return WriteLines<RecordRows>(name, columns, rows, python, target);
}

Status WriteActivity(DumpParts* parts, const CsvTarget& target) {
  for (const ActivityCsv& csv : ActivityCsvs()) {
    if (HasOperators(*parts, csv.name)) continue;
    std::vector<ActivityRows*> mine;
    for (Part* part : Sorted(parts->tables[static_cast<size_t>(csv.table)])) {
      auto* activity = dynamic_cast<ActivityRows*>(part);
      if (activity != nullptr && activity->Is(csv)) mine.push_back(activity);
    }
    RETURN_IF_ERROR(WriteLines<ActivityRows>(csv.name, csv.columns, mine, false, target));
  }
  return Status::Ok();
}

Status WriteStepTrace(DumpParts* parts, const CsvTarget& target) {
  uint64_t rows = 0;
  size_t reduces = 0;
  for (const auto& part : parts->steps) {
    rows += part->rows();
    reduces = std::max(reduces, part->most_reduces());
  }
  if (rows == 0) return Status::Ok();
  std::string columns(kStepTraceColumns);
  for (size_t i = 0; i < reduces; ++i) columns += kReduceColumns;
  CsvFile file = Make(target, "step_trace", std::move(columns), rows, false);
  for (StepTraceRows* part : Sorted(parts->steps)) {
    RETURN_IF_ERROR(part->WriteTo(reduces, &file));
  }
  return file.Close();
}

// Ours; the vendor has none.
Status WriteDurations(const DurationStats& durations, const CsvTarget& target) {
  const auto& groups = durations.groups();
  if (groups.empty()) return Status::Ok();
  std::string text;
  for (const auto& [key, group] : groups) {
    CsvRow row(text, key.device);
    key.rank ? row.Int(*key.rank) : row.Text("N/A");
    row.Text(DurationKind(key.kind)).Text(key.name).Int(static_cast<int64_t>(group.count()));
    row.Micros(std::llround(group.mean())).Micros(group.Percentile(50));
    row.Micros(group.Percentile(99)).Micros(group.max()).End();
  }
  CsvFile file = Make(target, "step_range_statistics", std::string(kDurationColumns), groups.size(),
                      false);
  RETURN_IF_ERROR(file.Append(text, groups.size()));
  return file.Close();
}

}  // namespace

bool HasCsv(TableId table) {
  return table == TableId::kNpuMem || table == TableId::kModuleMem || table == TableId::kUb ||
         std::ranges::find(SummaryKinds(), table, &SummaryKind::table) != SummaryKinds().end() ||
         std::ranges::find(ActivityCsvs(), table, &ActivityCsv::table) != ActivityCsvs().end();
}

std::vector<std::unique_ptr<Part>> MakeParts(TableId table, const PartContext& context) {
  std::vector<std::unique_ptr<Part>> parts;
  if (table == TableId::kNpuMem) parts.push_back(MakeNpuMemRows(context));
  if (table == TableId::kUb) parts.push_back(MakeUbRows(context));
  if (table == TableId::kModuleMem) {
    if (IsMadeInCpp(context.place->chip)) {
      parts.push_back(std::make_unique<ModuleMem>(context));
    } else {
      parts.push_back(MakeModuleMemRows(context));
    }
  }
  for (const SummaryKind& kind : SummaryKinds()) {
    if (kind.table == table) parts.push_back(kind.make(context));
  }
  for (const ActivityCsv& csv : ActivityCsvs()) {
    if (csv.table == table) parts.push_back(std::make_unique<ActivityRows>(context, csv.print));
  }
  return parts;
}

void Join(DumpParts* parts, DumpParts more) {
  auto append = [](auto& to, auto& from) { std::ranges::move(from, std::back_inserter(to)); };
  for (size_t table = 0; table < kTableCount; ++table) {
    append(parts->tables[table], more.tables[table]);
  }
  append(parts->steps, more.steps);
  append(parts->marks, more.marks);
  append(parts->operators, more.operators);
  parts->durations.Merge(more.durations);
}

// Which kind a part is depends on the chip; no chip writes both kinds, but such a dump is exported.
Status WriteModules(DumpParts* parts, const CsvTarget& target) {
  constexpr std::string_view kName = "npu_module_mem";
  std::vector<const ModuleMem*> sorted;
  std::vector<RecordRows*> plain;
  uint64_t rows = 0;
  for (Part* part : Sorted(parts->tables[static_cast<size_t>(TableId::kModuleMem)])) {
    if (IsMadeInCpp(part->context().place->chip)) {
      sorted.push_back(static_cast<ModuleMem*>(part));
      rows += sorted.back()->rows();
    } else {
      plain.push_back(static_cast<RecordRows*>(part));
      rows += plain.back()->lines().rows();
    }
  }
  if (rows == 0) return Status::Ok();
  CsvFile file = Make(target, kName, std::string(kModuleMemColumns), rows, sorted.empty());
  RETURN_IF_ERROR(WriteModuleMem(sorted, &file));
  for (RecordRows* part : plain) RETURN_IF_ERROR(part->lines().WriteTo(&file));
  return file.Close();
}

Status WriteOthers(DumpParts* parts, const CsvTarget& target) {
  RETURN_IF_ERROR(WriteSummaries(parts, target));
  RETURN_IF_ERROR(WriteRecords(parts, TableId::kNpuMem, "npu_mem", kNpuMemColumns, target));
  RETURN_IF_ERROR(WriteRecords(parts, TableId::kUb, "ub", kUbColumns, target));
  RETURN_IF_ERROR(WriteActivity(parts, target));
  RETURN_IF_ERROR(WriteStepTrace(parts, target));
  RETURN_IF_ERROR(WriteLines<MsprofTxRows>("msprof_tx", kMsprofTxColumns, Sorted(parts->marks), true, target));
  return WriteDurations(parts->durations, target);
}

}  // namespace profd::exporting::csv
