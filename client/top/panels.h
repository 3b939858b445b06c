// The parts of the screen below the devices' rows. Each draws into rows [y, y + height) of a frame.
#pragma once

#include <vector>

#include "client/top/frame.h"
#include "client/top/model.h"
#include "client/top/select.h"
#include "client/top/view.h"

namespace profd::client::top {

struct Area {
  int y = 0;
  int height = 0;
};

// One small graph per device, for as many measures as fit.
void DrawGraphs(const std::vector<const Device*>& devices, const View& view, Area area,
                Frame* frame);
void DrawProcesses(const std::vector<ProcessRow>& rows, const View& view, Area area, Frame* frame);
// The hottest kernels of one process.
void DrawKernels(const ProcessRow& row, Area area, Frame* frame);
void DrawSessions(const std::vector<const v1::Session*>& rows, const View& view, Area area,
                  Frame* frame);
void DrawHelp(Area area, Frame* frame);

// `width` columns of `height` rows, newest value at the right; `top` fills it. Answers the rows,
// the highest first.
std::vector<std::string> GraphRows(const History& history, int width, int height, double top,
                                   bool ascii);

}  // namespace profd::client::top
