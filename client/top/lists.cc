#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "client/json.h"
#include "client/render.h"
#include "client/top/panels.h"
#include "client/user_names.h"
#include "proto/enum_word/enum_word.h"

namespace profd::client::top {
namespace {

struct Column {
  std::string_view header;
  int width;
  bool right = false;
};
struct Text {
  std::string text;
  Style style = Style::kPlain;
};

// A list with a header; rows beyond the area are scrolled to.
class List {
 public:
  List(std::vector<Column> columns, int rows, const View& view, Area area, Frame* frame)
      : columns_(std::move(columns)), area_(area), frame_(frame) {
    // The last column takes what is left.
    int x = 0;
    for (size_t i = 0; i + 1 < columns_.size(); ++i) x += columns_[i].width + 1;
    columns_.back().width = std::max(0, frame->size().columns - x);
    int visible = std::max(0, area.height - 1);
    first_ = std::clamp(view.scroll, 0, std::max(0, rows - visible));
    end_ = std::min(rows, first_ + visible);
    for (size_t i = 0; i < columns_.size(); ++i) Put(i, area.y, {std::string(columns_[i].header)});
    if (end_ < rows || first_ > 0) {
      frame->PutRight(0, area.y,
                      fmt::format(" {}-{} of {} ", std::min(first_ + 1, rows), end_, rows),
                      frame->size().columns);
    }
    frame->ReverseRow(area.y);
  }

  int first() const { return first_; }
  int end() const { return end_; }
  void Row(int index, const std::vector<Text>& cells) {
    for (size_t i = 0; i < columns_.size() && i < cells.size(); ++i) {
      Put(i, area_.y + 1 + index - first_, cells[i]);
    }
  }

 private:
  void Put(size_t column, int y, const Text& cell) {
    int x = 0;
    for (size_t i = 0; i < column; ++i) x += columns_[i].width + 1;
    if (columns_[column].right) {
      frame_->PutRight(x, y, cell.text, columns_[column].width, cell.style);
    } else {
      frame_->Put(x, y, cell.text, cell.style, columns_[column].width);
    }
  }

  std::vector<Column> columns_;
  Area area_;
  Frame* frame_;
  int first_ = 0;
  int end_ = 0;
};

std::string StepTime(uint64_t step_ns) {
  if (step_ns == 0) return "-";
  const double seconds = static_cast<double>(step_ns) / 1e9;
  return seconds < 1 ? fmt::format("{:.1f}ms", seconds * 1e3) : fmt::format("{:.2f}s", seconds);
}

Style StyleOf(v1::Session::State state) {
  switch (state) {
    case v1::Session::STATE_RUNNING:
      return Style::kGood;
    case v1::Session::STATE_FAILED:
    case v1::Session::STATE_INTERRUPTED:
      return Style::kBad;
    default:
      return Style::kPlain;
  }
}

}  // namespace

void DrawProcesses(const std::vector<ProcessRow>& rows, const View& view, Area area, Frame* frame) {
  if (area.height < 1) return;
  const bool wide = frame->size().columns >= 110;
  // On a narrow screen the columns of activity replace those of memory and user.
  const bool active = std::ranges::any_of(rows, [](const auto& row) { return row.activity; });
  const bool memory = wide || !active;
  const bool user = wide && (!active || frame->size().columns >= 140);
  const bool advised = std::ranges::any_of(rows, [](const auto& row) { return !row.advice.empty(); });
  const int job = wide ? 20 : active && advised ? 8 : active || advised ? 10 : 12;
  std::vector<Column> columns = {{"JOB", job}, {"RANK", 5, true}, {"PID", 8, true}};
  columns.push_back({"NPU", memory ? 7 : 5});
  if (memory) columns.push_back({"HBM", 6, true});
  columns.insert(columns.end(), {{"STEP", 8, true}, {"TIME", 8, true}});
  if (active) {
    columns.insert(columns.end(), {{"COMP", 4, true}, {"COMM", 4, true}, {"FREE", 4, true}, {"KERN/S", 6, true}});
  }
  if (advised) columns.push_back({"ADVICE", wide ? 20 : 12});
  if (user) columns.insert(columns.end(), {{"USER", 10}, {"FRAMEWORK", 10}});
  if (wide) columns.push_back({"STATE", 14});
  columns.push_back({"COMMAND", 0});
  List list(std::move(columns), static_cast<int>(rows.size()), view, area, frame);
  const ProcessRow* selected = SelectedProcess(rows, view);
  for (int i = list.first(); i < list.end(); ++i) {
    const ProcessRow& row = rows[static_cast<size_t>(i)];
    const v1::JobProcess& p = *row.process;
    Style style = p.attached() ? Style::kGood : p.has_silent_ns() ? Style::kWarning : Style::kFaint;
    std::vector<Text> cells = {{OrDash(row.job->job_id()), &row == selected ? Style::kAccent : Style::kPlain},
                               {p.has_rank() ? std::to_string(p.rank()) : "-"},
                               {std::to_string(p.pid())},
                               {DeviceText(p.devices())}};
    if (memory) cells.push_back({ShortText(Measure::kHbmUsed, row.memory)});
    cells.insert(cells.end(), {{p.has_step() ? std::to_string(p.step()) : "-"}, {StepTime(p.step_ns())}});
    if (active) {
      for (std::string& text : ActivityTexts(row)) cells.push_back({std::move(text)});
    }
    if (advised) cells.push_back({OrDash(row.advice), row.advice.empty() ? Style::kPlain : Style::kWarning});
    if (user) cells.insert(cells.end(), {{UserText(p.uid())}, {OrDash(p.framework())}});
    if (wide) cells.push_back({LivenessText(p), style});
    cells.push_back({OrDash(p.command())});
    list.Row(i, cells);
  }
  if (rows.empty() && area.height > 1) {
    frame->Put(0, area.y + 1, "no process is attached or uses a device", Style::kFaint);
  }
}

void DrawKernels(const ProcessRow& row, Area area, Frame* frame) {
  if (area.height < 1) return;
  const v1::JobProcess& p = *row.process;
  const std::string of = fmt::format("KERNELS of {}pid {}", p.has_rank() ? fmt::format("rank {}, ", p.rank()) : "", p.pid());
  const int kernels = row.activity == nullptr ? 0 : row.activity->kernels_size();
  std::string title = "HOTTEST " + of;
  if (kernels > 0) title += fmt::format(", last {:.0f} s", static_cast<double>(row.activity->kernels_span_ns()) / 1e9);
  // Behind the other columns, and before the position in a list that does not fit.
  constexpr int kOthers = 35 + 12;
  if (static_cast<int>(title.size()) > frame->size().columns - kOthers) title = of;
  View from_the_top;
  List list({{"SHARE", 6, true}, {"TOTAL", 8, true}, {"COUNT", 9, true}, {"MEAN", 8, true}, {title, 0}}, kernels,
            from_the_top, area, frame);
  const double all = kernels == 0 ? 0 : static_cast<double>(row.activity->kernels_total_ns());
  for (int i = list.first(); i < list.end(); ++i) {
    const v1::HotKernel& kernel = row.activity->kernels(i);
    const uint64_t mean_ns = kernel.count() == 0 ? 0 : kernel.total_ns() / kernel.count();
    list.Row(i, {{all > 0 ? fmt::format("{:.1f}%", 100 * static_cast<double>(kernel.total_ns()) / all) : "-"},
                 {StepTime(kernel.total_ns())},
                 {std::to_string(kernel.count())},
                 {mean_ns < 100'000 ? fmt::format("{:.1f}us", static_cast<double>(mean_ns) / 1e3) : StepTime(mean_ns)},
                 {kernel.name().empty() ? "(no name)" : kernel.name()}});
  }
  if (kernels == 0 && area.height > 1) {
    frame->Put(0, area.y + 1, "no session collects kernels from this process", Style::kFaint);
  }
}

void DrawSessions(const std::vector<const v1::Session*>& rows, const View& view, Area area,
                  Frame* frame) {
  if (area.height < 1) return;
  const bool wide = frame->size().columns >= 110;
  List list({{"SESSION", 12},
             {"STATE", 9},
             {"JOB", wide ? 20 : 10},
             {"USER", wide ? 10 : 6},
             {"NPU", 7},
             {"RECORDS", 10, true},
             {"DROPPED", 7, true},
             {"LABEL", 0}},
            static_cast<int>(rows.size()), view, area, frame);
  for (int i = list.first(); i < list.end(); ++i) {
    const v1::Session& s = *rows[static_cast<size_t>(i)];
    uint64_t dropped = s.status().dropped_records() + s.status().dropped_marks();
    list.Row(i, {{s.session_id()},
                 {EnumWord(s.status().state()), StyleOf(s.status().state())},
                 {OrDash(s.spec().target().job_id())},
                 {UserText(s.owner().uid())},
                 {DeviceText(s.status().devices())},
                 {std::to_string(s.status().records())},
                 {std::to_string(dropped), dropped == 0 ? Style::kPlain : Style::kBad},
                 {OrDash(s.spec().label())}});
  }
  if (rows.empty() && area.height > 1) {
    frame->Put(0, area.y + 1, "no session", Style::kFaint);
  }
}

void DrawHelp(Area area, Frame* frame) {
  // At most 78 columns each.
  constexpr std::array<std::string_view, 21> kLines = {
      "q, Ctrl-C    quit                     space   pause, resume",
      "s, S         sort by the next, the previous column (also right, left)",
      "i u m p t    sort by id, utilisation, memory, power, temperature",
      "r            reverse order",
      "/            filter: npu3, a job, a process, a chip",
      "Esc          show everything again",
      "g, G         the next, the previous measure in the graphs",
      "n, N         hottest kernels of the next, the previous process (Esc: graphs)",
      "Tab          graphs, processes, sessions alone, all of them",
      "up, down     scroll the lists (also j, k, page up, page down, home)",
      "+, -         refresh faster, slower    Ctrl-L  redraw",
      "h, ?         toggle help",
      "",
      "HEALTH: ok, degraded (throttled, minor alarm), faulty, down, unknown; profctl",
      "health shows why. UTIL: AI Core. BW: share of the memory's bandwidth. HCCS,",
      "ROCE, PCIE: bytes per second, both directions; PCIE only while a session",
      "records it. TEMP: the hottest of chip and HBM. COMP, COMM, FREE: share of time",
      "with kernels, with communication, with neither, over the last 10 s, while a",
      "session collects kernels; what COMP and COMM exceed 100 % by is overlapped.",
      "",
      "Other values are means over the refresh interval."};
  int y = area.y;
  for (std::string_view line : kLines) {
    if (y >= area.y + area.height) return;
    frame->Put(1, y++, line);
  }
}

}  // namespace profd::client::top
