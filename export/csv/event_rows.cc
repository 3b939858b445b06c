#include "export/csv/event_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "export/csv/csv_row.h"
#include "export/csv/record_rows.h"

namespace profd::exporting::csv {
namespace {

constexpr size_t kWaitingBytes = 16 * 1024 * 1024;

int64_t Whole(double value) {
  return std::isfinite(value) && std::fabs(value) < 9e18 ? std::llround(value) : 0;
}
int64_t Plus(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

// What an event has of an iteration, in ns; lengths but for the timestamps.
struct Iteration {
  int64_t end = 0;
  int64_t time = 0;
  std::optional<int64_t> fp_start;
  std::optional<int64_t> bp_end;
  std::optional<int64_t> data_aug;
  std::vector<std::pair<int64_t, int64_t>> reduces;  // start, length

  explicit Iteration(const Event& event) : end(Plus(event.t_ns, event.dur_ns)), time(event.dur_ns) {
    for (const Event::Arg& arg : event.args) {
      int64_t value = Whole(arg.value);
      if (arg.name == "FP Start") fp_start = Plus(event.t_ns, value);
      if (arg.name == "BP End") bp_end = Plus(event.t_ns, value);
      if (arg.name == "Data Aug Bound") data_aug = value;
      if (arg.name == "Reduce Start") reduces.emplace_back(Plus(event.t_ns, value), 0);
      if (arg.name == "Reduce End" && !reduces.empty()) {
        reduces.back().second = Plus(Plus(event.t_ns, value), -reduces.back().first);
      }
    }
  }
  std::optional<int64_t> fp_to_bp() const {
    if (!fp_start || !bp_end) return std::nullopt;
    return Plus(*bp_end, -*fp_start);
  }
  std::optional<int64_t> refresh() const {
    if (!bp_end) return std::nullopt;
    return Plus(end, -*bp_end);
  }
};

// As the analyser prints them on this chip. Lengths of its Python are cycles by the frequency and not rounded. What is
// not known is N/A there, 0.000 in its C++ (a defect that only --compat msprof has).
class StepTracePrinter {
 public:
  StepTracePrinter(const PartContext& context, std::string* out)
      : row_(*out, *context.place),
        cpp_(IsMadeInCpp(context.place->chip)),
        defects_(cpp_ && context.compat_msprof),
        hz_(context.place->clock.device_hz) {}

  CsvRow& row() { return row_; }
  void Time(std::optional<int64_t> t_ns) {
    if (t_ns) {
      row_.Time(*t_ns);
    } else {
      row_.Text(defects_ ? "0.000\t" : "N/A");
    }
  }
  void Length(std::optional<int64_t> ns) {
    if (cpp_ && (ns || defects_)) {
      row_.Micros(ns.value_or(0));
    } else if (!cpp_ && ns && *ns != 0) {
      row_.Repr(hz_ > 0 ? Cycles(*ns) * 1e6 / hz_ : static_cast<double>(*ns) / 1000);
    } else {
      row_.Text("N/A");
    }
  }
  void ReduceLength(int64_t ns, bool first) {
    if (defects_ && first) {
      const uint64_t wrapped = -static_cast<uint64_t>(ns);
      row_.Text(fmt::format("{}.{:03}", wrapped / 1000, wrapped % 1000));
    } else if (cpp_) {
      row_.Micros(ns);
    } else {
      row_.Fixed3(hz_ > 0 ? Cycles(ns) * (1e6 / hz_) : static_cast<double>(ns) / 1000);
    }
  }

 private:
  double Cycles(int64_t ns) const { return std::round(static_cast<double>(ns) * hz_ / 1e9); }

  CsvRow row_;
  bool cpp_;
  bool defects_;
  double hz_;
};

}  // namespace

void StepTraceRows::Take(const Event& event) {
  bool step = event.kind == EventKind::kDeviceStep;
  // The vendor's analyser leaves out a step without both its records.
  if ((!step && event.kind != EventKind::kIteration) || event.partial) return;
  SpooledText& lines = step ? steps_ : iterations_;
  Iteration iteration(event);
  StepTracePrinter printer(context_, &lines.text());
  printer.row().Int(event.value);
  printer.Time(iteration.fp_start);
  printer.Time(iteration.bp_end);
  printer.Time(iteration.end);
  printer.Length(iteration.time);
  printer.Length(iteration.fp_to_bp());
  printer.Length(iteration.refresh());
  printer.Length(iteration.data_aug);
  printer.row().Int(event.tid);
  bool first = true;
  for (const auto& [start, length] : iteration.reduces) {
    printer.Time(start);
    printer.ReduceLength(length, std::exchange(first, false));
  }
  printer.row().End();
  most_reduces_ = std::max(most_reduces_, iteration.reduces.size());
  lines.Added(1);
}

Status StepTraceRows::Finish() {
  Status status = iterations_.Finish();
  Status other = steps_.Finish();
  return status.ok() ? other : status;
}

Status StepTraceRows::WriteTo(size_t reduces, CsvFile* file) {
  auto commas = static_cast<ptrdiff_t>(std::ranges::count(kStepTraceColumns, ',')) + 1 +
                2 * static_cast<ptrdiff_t>(reduces);
  std::string filled;
  auto fill = [&](std::string_view lines) {
    filled.clear();
    uint64_t rows = 0;
    while (!lines.empty()) {
      std::string_view line = lines.substr(0, EndOfRows(lines, 1));
      lines.remove_prefix(line.size());
      line.remove_suffix(1);
      filled += line;
      for (auto has = std::ranges::count(line, ','); has < commas; ++has) filled += ",N/A";
      filled += '\n';
      ++rows;
    }
    return file->Append(filled, rows);
  };
  RETURN_IF_ERROR(iterations_.ForEach(fill));
  return steps_.ForEach(fill);
}

void MsprofTxRows::Take(const Event& event) {
  if (event.kind != EventKind::kMark && event.kind != EventKind::kRange &&
      event.kind != EventKind::kStep) {
    return;
  }
  std::string line;
  CsvRow row(line, *context_.place);
  const bool plain = event.recorded && !event.recorded->is_ex;
  const auto field = [&](uint64_t value) { plain ? row.Int(value) : row.Text("N/A"); };
  const Event::Recorded recorded = event.recorded.value_or(Event::Recorded{});
  row.Int(event.pid).Int(event.tid);
  field(recorded.category);
  row.Text(MarkTypeName(event));
  field(recorded.payload_type);
  field(recorded.payload);
  row.Time(event.t_ns).Time(Plus(event.t_ns, event.dur_ns));
  field(recorded.message_type);
  row.Text(event.name).Text(plain ? "N/A" : event.domain.empty() ? "default" : event.domain);
  if (const auto& there = recorded.on_device) {
    row.Time(there->start_ns).Time(there->end_ns).End();
  } else {
    row.Text("N/A").Text("N/A").End();
  }
  waiting_bytes_ += line.size();
  waiting_.emplace_back(event.t_ns, std::move(line));
  if (waiting_.size() >= kSorted || waiting_bytes_ >= kWaitingBytes) Sort();
}

void MsprofTxRows::Sort() {
  std::ranges::stable_sort(waiting_, {}, &std::pair<int64_t, std::string>::first);
  for (const auto& [t_ns, line] : waiting_) {
    lines_.text() += line;
    lines_.Added(1);
  }
  waiting_.clear();
  waiting_bytes_ = 0;
}

Status MsprofTxRows::Finish() {
  Sort();
  waiting_.shrink_to_fit();
  return lines_.Finish();
}

}  // namespace profd::exporting::csv
