#include "export/csv/pytorch_files.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "export/csv/collective_json.h"
#include "export/csv/csv_row.h"
#include "export/operators/overlap.h"
#include "export/operators/step_shares.h"

namespace profd::exporting::csv {
namespace {

using operators::OverlapKind;

void AddShare(const operators::StepShare& share, CsvRow* row) {
  share.step ? row->Int(share.step->number) : row->Text("");
  const double communication = share.Of(OverlapKind::kCommunication);
  const double uncovered = share.Of(OverlapKind::kNotOverlapped);
  row->Repr(share.Of(OverlapKind::kComputing)).Repr(uncovered).Repr(communication - uncovered).Repr(communication);
  row->Repr(share.Of(OverlapKind::kFree)).Repr(share.whole_us - share.receive_us);
  share.receive_us > 0 ? row->Repr(share.receive_us) : row->Int(0);
  row->Repr(uncovered - share.receive_us).Repr(share.before_us);
}

// All of it is in the range of the export, and some of it in the time of which the device's records are: the vendor's
// profiler begins later than the session.
bool IsKnown(const StepSpan& step, const TimeWindow& window, const std::optional<operators::Interval>& recorded) {
  if (!window.Has(step.start_ns) || !window.Has(std::max(step.start_ns, step.end_ns - 1))) return false;
  return recorded && step.end_ns > recorded->start_ns && step.start_ns < recorded->end_ns;
}

}  // namespace

Status WritePytorchFiles(const operators::Model& model, const StepSpans& steps,
                         const std::function<int(int device)>& rank_of, const CsvTarget& target) {
  const std::map<int, operators::Overlap>& overlaps = operators::OverlapsOf(model);
  const bool several = overlaps.size() > 1;
  std::string text = several ? "Device_id," : "";
  text += "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
          "Communication(Not Overlapped and Exclude Receive),Preparing\n";
  uint64_t rows = 0;
  for (const auto& [device, overlap] : overlaps) {
    std::vector<StepSpan> its_steps = steps.For(device, rank_of(device));
    const auto recorded = operators::ExtentOf(overlap);
    std::erase_if(its_steps, [&](const StepSpan& step) { return !IsKnown(step, model.window, recorded); });
    const operators::Intervals receives = operators::ReceivesOf(model, device);
    for (const operators::StepShare& share : StepShares(overlap, receives, its_steps)) {
      CsvRow row(text);
      if (several) row.Int(device);
      AddShare(share, &row);
      row.End();
      ++rows;
    }
    // The names of its operations are those of other devices of the group, too.
    const CollectiveJson made = CollectivesAsJson(model, device, its_steps);
    if (made.operations == 0) continue;
    const std::string end = several ? "_" + std::to_string(device) + ".json" : ".json";
    RETURN_IF_ERROR(WriteWhole(target, "communication" + end, made.times, made.operations));
    RETURN_IF_ERROR(WriteWhole(target, "communication_matrix" + end, made.matrix, made.operations));
  }
  return rows == 0 ? Status::Ok() : WriteWhole(target, "step_trace_time.csv", text, rows);
}

}  // namespace profd::exporting::csv
