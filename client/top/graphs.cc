#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "client/top/panels.h"

namespace profd::client::top {
namespace {

// Columns of one device's graph with the number and value before it.
constexpr int kLabel = 7;
constexpr int kLeastCell = 19;
constexpr int kMostCell = 52;
constexpr int kLeastHeight = 2;
constexpr int kMostHeight = 6;

constexpr std::array<std::string_view, 9> kBlocks = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::array<std::string_view, 5> kAscii = {" ", ".", ":", "|", "#"};

// 1, 2 or 5 times a power of ten, not below `value`.
double RoundUp(double value) {
  if (!(value > 0)) return 1;
  double power = std::pow(10, std::floor(std::log10(value)));
  for (double step : {1.0, 2.0, 5.0}) {
    if (value <= step * power) return step * power;
  }
  return 10 * power;
}

// The value that fills a graph: the same for all devices, so that they can be compared.
double TopOf(const std::vector<const Device*>& devices, Measure measure) {
  if (InfoOf(measure).unit == "ratio") return 1;
  double most = 0;
  for (const Device* device : devices) {
    if (measure == Measure::kHbmUsed && device->Now(Measure::kHbmSize) > 0) {
      most = std::max(most, device->Now(Measure::kHbmSize));
      continue;
    }
    const History& history = device->Of(measure);
    for (size_t i = 0; i < history.size(); ++i) most = std::fmax(most, history.Back(i));
  }
  if (measure == Measure::kHbmUsed && most > 0) return most;
  return std::isfinite(most) ? RoundUp(most) : 1;
}

bool HasValues(const std::vector<const Device*>& devices, Measure measure) {
  return std::ranges::any_of(devices, [measure](const Device* device) {
    const History& history = device->Of(measure);
    for (size_t i = 0; i < history.size(); ++i) {
      if (std::isfinite(history.Back(i))) return true;
    }
    return false;
  });
}

struct Grid {
  int columns = 1;
  int rows = 1;
  int cell = 0;
};

Grid GridOf(int devices, int width) {
  Grid grid;
  int most = std::max(1, width / kLeastCell);
  grid.rows = (devices + most - 1) / most;
  grid.columns = (devices + grid.rows - 1) / grid.rows;
  grid.cell = std::min(kMostCell, width / grid.columns);
  return grid;
}

void DrawPanel(const std::vector<const Device*>& devices, Measure measure, const Grid& grid,
               const View& view, Area area, Frame* frame) {
  double top = TopOf(devices, measure);
  int height = std::clamp((area.height - 1) / grid.rows, 1, kMostHeight);
  int graph = grid.cell - kLabel - 1;
  double seconds = static_cast<double>(graph) * static_cast<double>(view.interval_ms) / 1e3;
  frame->Put(0, area.y,
             fmt::format(" {}  0..{}  last {:.3g} s", InfoOf(measure).title,
                         ShortText(measure, top), seconds),
             Style::kAccent);
  for (size_t i = 0; i < devices.size(); ++i) {
    auto at = static_cast<int>(i);
    int x = at % grid.columns * grid.cell;
    int y = area.y + 1 + at / grid.columns * height;
    if (y + height > area.y + area.height) return;
    const Device& device = *devices[i];
    std::string value = ShortText(measure, device.Now(measure));
    if (height > 1) {
      frame->PutRight(x, y, std::to_string(device.id), kLabel - 1, Style::kFaint);
      frame->PutRight(x, y + 1, value, kLabel - 1);
    } else {
      frame->PutRight(x, y, std::to_string(device.id), 2, Style::kFaint);
      frame->PutRight(x + 2, y, value, kLabel - 2);
    }
    std::vector<std::string> rows = GraphRows(device.Of(measure), graph, height, top, view.ascii);
    for (int row = 0; row < height; ++row) {
      frame->Put(x + kLabel, y + row, rows[static_cast<size_t>(row)], Style::kGood, graph);
    }
  }
}

}  // namespace

std::vector<std::string> GraphRows(const History& history, int width, int height, double top,
                                   bool ascii) {
  std::vector<std::string> rows(static_cast<size_t>(height));
  const int steps = ascii ? 4 : 8;
  for (int x = 0; x < width; ++x) {
    double value = history.Back(static_cast<size_t>(width - 1 - x));
    int filled = 0;
    if (std::isfinite(value)) {
      double part = std::clamp(value / top, 0.0, 1.0);
      // What is there shows, however little it is.
      filled = std::max(1, static_cast<int>(std::lround(part * height * steps)));
    }
    for (int row = 0; row < height; ++row) {
      auto level = static_cast<size_t>(std::clamp(filled - (height - 1 - row) * steps, 0, steps));
      rows[static_cast<size_t>(row)] += ascii ? kAscii[level] : kBlocks[level];
    }
  }
  return rows;
}

void DrawGraphs(const std::vector<const Device*>& devices, const View& view, Area area,
                Frame* frame) {
  if (devices.empty() || area.height < 2) return;
  std::vector<Measure> measures = {view.graph};
  auto first = std::ranges::find(kSortable, view.graph) - kSortable.begin();
  for (size_t i = 1; i < kSortable.size(); ++i) {
    Measure measure = kSortable[(static_cast<size_t>(first) + i) % kSortable.size()];
    if (HasValues(devices, measure)) measures.push_back(measure);
  }
  Grid grid = GridOf(static_cast<int>(devices.size()), frame->size().columns);
  int fitting = area.height / (1 + grid.rows * kLeastHeight);
  int panels = std::clamp(fitting, 1, static_cast<int>(measures.size()));
  int height = std::min(area.height / panels, 1 + grid.rows * kMostHeight);
  for (int i = 0; i < panels; ++i) {
    DrawPanel(devices, measures[static_cast<size_t>(i)], grid, view, {area.y + i * height, height},
              frame);
  }
}

}  // namespace profd::client::top
