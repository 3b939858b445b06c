#include "client/top/draw.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "base/clock.h"
#include "client/health_view.h"
#include "client/render.h"
#include "client/top/panels.h"
#include "client/top/select.h"

namespace profd::client::top {
namespace {

// Rows that are always there: title, totals, header of the devices, keys.
constexpr int kFixedRows = 4;
constexpr int64_t kSilentSeconds = 5;

Style LoadStyle(double ratio) {
  return ratio >= 0.9 ? Style::kBad : ratio >= 0.75 ? Style::kWarning : Style::kGood;
}

Style HealthStyle(const Device& device) {
  switch (device.Verdict()) {
    case v1::Health::VERDICT_OK:
      return Style::kGood;
    case v1::Health::VERDICT_DEGRADED:
      return Style::kWarning;
    case v1::Health::VERDICT_FAULTY:
    case v1::Health::VERDICT_DOWN:
      return Style::kBad;
    default:
      return Style::kFaint;
  }
}

// One column of the devices' rows.
struct Column {
  enum class Kind : uint8_t { kId, kHealth, kFlags, kMeasure, kMemory, kBar, kHistory, kChip, kJob };
  Kind kind;
  std::string_view header;
  int width;
  Measure measure = Measure::kUtilization;
};

// What fits, the most wanted first, then in the order of the screen.
std::vector<Column> ColumnsFor(int width) {
  using Kind = Column::Kind;
  struct ColumnFromWidth {
    Column column;
    int from;
  };
  const std::vector<ColumnFromWidth> all = {
      {{Kind::kId, "NPU", 4}, 0},
      {{Kind::kHealth, "HEALTH", 8}, 78},
      {{Kind::kChip, "CHIP", 12}, 150},
      {{Kind::kMeasure, "UTIL", 5, Measure::kUtilization}, 0},
      {{Kind::kBar, "", 0}, 72},
      {{Kind::kMemory, "HBM", 11, Measure::kHbmUsed}, 0},
      {{Kind::kMeasure, "BW", 5, Measure::kHbmBandwidth}, 100},
      {{Kind::kMeasure, "POWER", 6, Measure::kPower}, 40},
      {{Kind::kMeasure, "TEMP", 5, Measure::kTemperature}, 40},
      {{Kind::kMeasure, "FREQ", 6, Measure::kFrequency}, 48},
      {{Kind::kMeasure, "HCCS", 6, Measure::kHccs}, 55},
      {{Kind::kMeasure, "ROCE", 6, Measure::kRoce}, 62},
      {{Kind::kMeasure, "PCIE", 6, Measure::kPcie}, 69},
      {{Kind::kJob, "JOB", 16}, 110},
      {{Kind::kFlags, "FLAGS", 22}, 170},
      {{Kind::kHistory, "HISTORY", 0}, 120},
  };
  std::vector<Column> columns;
  int taken = 0;
  for (const ColumnFromWidth& wanted : all) {
    if (width < wanted.from) continue;
    columns.push_back(wanted.column);
    taken += wanted.column.width + 1;
  }
  int left = width - taken;
  for (Column& column : columns) {
    if (column.kind == Kind::kBar) column.width = std::clamp(left + 1, 0, width >= 120 ? 16 : 20);
    if (column.kind == Kind::kBar) left -= column.width;
    if (column.kind == Kind::kHistory) column.width = std::max(0, left + 1);
  }
  return columns;
}

std::string MemoryText(const Device& device) {
  double used = device.Now(Measure::kHbmUsed) / (1 << 30);
  double size = device.Now(Measure::kHbmSize) / (1 << 30);
  if (!std::isfinite(used) || std::fabs(used) > 1e5) return "-";
  if (!std::isfinite(size) || std::fabs(size) > 1e5) return fmt::format("{:.1f}G", used);
  return fmt::format("{:.1f}/{:.1f}G", used, size);
}

std::string BarText(double ratio, int width, bool ascii) {
  if (!std::isfinite(ratio)) return "";
  auto filled = static_cast<int>(std::lround(std::clamp(ratio, 0.0, 1.0) * width));
  std::string bar;
  for (int i = 0; i < width; ++i) bar += i < filled ? (ascii ? "=" : "█") : (ascii ? "." : "·");
  return bar;
}

void DrawCell(const Device& device, const Column& column, int x, int y, const View& view,
              Frame* frame) {
  using Kind = Column::Kind;
  double value = device.Now(column.measure);
  Style style = Style::kPlain;
  switch (column.kind) {
    case Kind::kId:
      frame->PutRight(x, y, std::to_string(device.id), column.width,
                      device.Verdict() == v1::Health::VERDICT_OK ? Style::kBold : HealthStyle(device));
      return;
    case Kind::kHealth:
      frame->Put(x, y, VerdictWord(device.Verdict()), HealthStyle(device), column.width);
      return;
    case Kind::kFlags:
      frame->Put(x, y, FlagsText(device.health), HealthStyle(device), column.width);
      return;
    case Kind::kChip:
      frame->Put(x, y, device.chip, Style::kFaint, column.width);
      return;
    case Kind::kBar:
      frame->Put(x, y, BarText(value, column.width, view.ascii), Style::kGood, column.width);
      return;
    case Kind::kMemory: {
      double size = device.Now(Measure::kHbmSize);
      if (size > 0 && value / size >= 0.75) style = LoadStyle(value / size);
      frame->PutRight(x, y, MemoryText(device), column.width, style);
      return;
    }
    case Kind::kHistory:
      frame->Put(x, y,
                 GraphRows(device.Of(Measure::kUtilization), column.width, 1, 1, view.ascii)[0],
                 Style::kGood, column.width);
      return;
    case Kind::kJob:
      frame->Put(x, y, JobsText(device), Style::kPlain, column.width);
      return;
    case Kind::kMeasure:
      if (column.measure == Measure::kTemperature && value >= 85) {
        style = value >= 95 ? Style::kBad : Style::kWarning;
      }
      frame->PutRight(x, y, ShortText(column.measure, value), column.width, style);
      return;
  }
}

bool IsSortColumn(const Column& column, const View& view) {
  if (column.kind == Column::Kind::kId) return !view.sort;
  bool shows = column.kind == Column::Kind::kMeasure || column.kind == Column::Kind::kMemory;
  return shows && view.sort == column.measure;
}

void DrawDeviceHeader(const std::vector<Column>& columns, int y, const View& view, Frame* frame) {
  int x = 0;
  bool marked = false;
  for (const Column& column : columns) {
    std::string text(column.header);
    if (IsSortColumn(column, view)) {
      text.insert(0, view.descending ? "v" : "^");
      marked = true;
    }
    bool left = column.kind == Column::Kind::kJob || column.kind == Column::Kind::kChip ||
                column.kind == Column::Kind::kHistory ||
                column.kind == Column::Kind::kHealth || column.kind == Column::Kind::kFlags;
    if (left) {
      frame->Put(x, y, text, Style::kPlain, column.width);
    } else {
      frame->PutRight(x, y, text, column.width);
    }
    x += column.width + 1;
  }
  frame->ReverseRow(y);
  // Sorted by what this width does not show.
  if (!marked) {
    frame->Put(0, y, fmt::format("{}{}", view.descending ? "v" : "^", SortWord(view)),
               Style::kReverse, frame->size().columns);
  }
}

void DrawDevices(const std::vector<const Device*>& rows, int y, int height, const View& view,
                 Frame* frame) {
  std::vector<Column> columns = ColumnsFor(frame->size().columns);
  DrawDeviceHeader(columns, y, view, frame);
  auto count = static_cast<int>(rows.size());
  bool cut = count > height;
  int shown = cut ? std::max(0, height - 1) : count;
  int first = std::clamp(view.scroll, 0, count - shown);
  for (int i = 0; i < shown; ++i) {
    const Device& device = *rows[static_cast<size_t>(first + i)];
    int row = y + 1 + i;
    int x = 0;
    for (const Column& column : columns) {
      DrawCell(device, column, x, row, view, frame);
      x += column.width + 1;
      if (column.kind == Column::Kind::kId && !device.Problem().empty()) {
        frame->Put(x, row, device.Problem(), Style::kBad);
        break;
      }
    }
  }
  if (cut && height > 0) {
    const std::string devices = CountText(static_cast<uint64_t>(count), "device");
    frame->Put(1, y + height,
               shown == 0 ? devices + ": enlarge the terminal" : fmt::format("{}-{} of {} (up, down)", first + 1, first + shown, devices),
               Style::kFaint);
  }
  if (count == 0) {
    frame->Put(1, y + 1,
               view.filter.empty() && view.job.empty() ? "no device" : "no device matches",
               Style::kFaint);
  }
}

void DrawTitle(const Model& model, const View& view, const Times& times, Frame* frame) {
  const v1::Node& node = model.node();
  std::string title = fmt::format(" profd {}", node.hostname());
  std::set<std::string> chips;
  for (const auto& [id, device] : model.devices()) chips.insert(device.chip);
  title += fmt::format("  {} x {}", model.devices().size(), fmt::join(chips, ", "));
  if (node.simulated()) title += " (simulated)";
  std::string right;
  const Connection& connection = model.connection();
  int64_t silent_s = (times.steady_ns - connection.heard_ns) / kNsPerSecond;
  if (!connection.up) {
    right = "NOT CONNECTED  ";
  } else if (silent_s >= kSilentSeconds) {
    right = fmt::format("silent for {}  ", FormatSpan(silent_s * kNsPerSecond));
  }
  if (view.paused) right += "PAUSED  ";
  if (!view.filter.empty()) right += fmt::format("/{}  ", view.filter);
  right += fmt::format("{:.3g} s  {} ", static_cast<double>(view.interval_ms) / 1e3, times.wall);
  int columns = frame->size().columns;
  int left = columns - static_cast<int>(DisplayWidth(Printable(right))) - 1;
  frame->Put(0, 0, title, Style::kPlain, std::max(0, left));
  frame->PutRight(0, 0, right, columns);
  frame->ReverseRow(0);
}

void DrawTotals(const Model& model, const std::vector<const Device*>& devices, const Times& times,
                Frame* frame) {
  const Connection& connection = model.connection();
  if (!connection.up) {
    int64_t left_ns = std::max<int64_t>(0, connection.retry_ns - times.steady_ns);
    frame->Put(1, 1,
               fmt::format("profd does not answer, trying again in {:.0f} s: {}",
                           std::ceil(static_cast<double>(left_ns) / 1e9), connection.problem),
               Style::kBad);
    return;
  }
  double utilization = 0;
  double power = kNothing;  // as long as that of no device is known
  int counted = 0;
  for (const Device* device : devices) {
    if (const double watts = device->Now(Measure::kPower); std::isfinite(watts)) power = std::isfinite(power) ? power + watts : watts;
    if (!std::isfinite(device->Now(Measure::kUtilization))) continue;
    utilization += device->Now(Measure::kUtilization);
    ++counted;
  }
  size_t processes = 0;
  for (const v1::Job& job : model.jobs().jobs()) {
    processes += static_cast<size_t>(job.processes().size());
  }
  int x = 1 + frame->Put(1, 1,
                         fmt::format("util {}  power {}  jobs {}  processes {}  sessions {}  ",
                                     ShortText(Measure::kUtilization,
                                               counted > 0 ? utilization / counted : kNothing),
                                     ShortText(Measure::kPower, power), model.jobs().jobs_size(),
                                     processes, model.sessions().sessions_size()));
  uint64_t records = model.dropped_records();
  uint64_t samples = model.dropped_samples();
  x += frame->Put(x, 1, fmt::format("dropped {}", records),
                  records > 0 ? Style::kBad : Style::kPlain);
  if (samples > 0) {
    frame->Put(x, 1, fmt::format("  (this view: {})", CountText(samples, "sample")), Style::kWarning);
  }
}

void DrawFooter(const View& view, Frame* frame) {
  int y = frame->size().rows - 1;
  if (view.typing) {
    frame->Put(0, y, "/" + *view.typing + "_", Style::kBold);
    return;
  }
  frame->Put(
      0, y,
      fmt::format(" q quit  space {}  s sort:{}{}  / filter  g graph  Tab panels  +- rate  h help",
                  view.paused ? "resume" : "pause", SortWord(view), view.descending ? "(desc)" : ""),
      Style::kFaint);
}

// How the rows below the devices are shared out.
struct PanelRows {
  int graphs = 0;
  int processes = 0;
  int sessions = 0;
};

PanelRows PanelRowsOf(int rows, int processes, int sessions, Panel panel) {
  switch (panel) {
    case Panel::kGraphs:
      return {rows, 0, 0};
    case Panel::kProcesses:
      return {0, rows, 0};
    case Panel::kSessions:
      return {0, 0, rows};
    case Panel::kAll:
      break;
  }
  PanelRows panels;
  if (sessions > 0 && rows >= 6) panels.sessions = std::min(1 + sessions, std::max(2, rows / 6));
  panels.processes =
      std::min({1 + std::max(1, processes), std::max(3, rows * 2 / 5), rows - panels.sessions});
  panels.graphs = rows - panels.sessions - panels.processes;
  // A graph without a row for itself is none.
  if (panels.graphs < 3) {
    panels.processes += panels.graphs;
    panels.graphs = 0;
  }
  return panels;
}

}  // namespace

Frame Draw(const Model& model, const View& view, Size size, const Times& times) {
  Frame frame(size, view.ascii);
  if (size.columns < kLeastSize.columns || size.rows < kLeastSize.rows) {
    frame.Put(0, 0, fmt::format("at least {}x{}", kLeastSize.columns, kLeastSize.rows));
    return frame;
  }
  DrawTitle(model, view, times, &frame);
  if (view.help) {
    DrawHelp({2, size.rows - 3}, &frame);
    DrawFooter(view, &frame);
    return frame;
  }
  std::vector<const Device*> devices = SelectDevices(model, view);
  std::vector<ProcessRow> processes = SelectProcesses(model, view);
  std::vector<const v1::Session*> sessions = SelectSessions(model, view);
  DrawTotals(model, devices, times, &frame);
  int left = size.rows - kFixedRows;
  // Many devices leave a third to the rest.
  int device_rows =
      std::min(std::max(1, static_cast<int>(devices.size())), std::max(2, left * 2 / 3));
  DrawDevices(devices, 2, device_rows, view, &frame);
  PanelRows panels = PanelRowsOf(left - device_rows, static_cast<int>(processes.size()),
                        static_cast<int>(sessions.size()), view.panel);
  int y = 3 + device_rows;
  if (const ProcessRow* selected = SelectedProcess(processes, view)) {
    DrawKernels(*selected, {y, panels.graphs}, &frame);
  } else {
    DrawGraphs(devices, view, {y, panels.graphs}, &frame);
  }
  y += panels.graphs;
  DrawProcesses(processes, view, {y, panels.processes}, &frame);
  y += panels.processes;
  DrawSessions(sessions, view, {y, panels.sessions}, &frame);
  DrawFooter(view, &frame);
  return frame;
}

}  // namespace profd::client::top
