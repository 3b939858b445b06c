// Which rows are shown, in which order.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "client/top/model.h"
#include "client/top/view.h"

namespace profd::client::top {

struct ProcessRow {
  const v1::Job* job;
  const v1::JobProcess* process;
  // Of all devices' memory; NaN = not known.
  double memory = kNothing;
  const v1::ProcessActivity* activity = nullptr;  // null = not collected from
  std::string advice;  // ids of the live checks that found something in it or in its job, "gc,free_time"

  // Of the last seconds; only with `activity`.
  const v1::ActivitySpan& span() const { return *activity->spans().rbegin(); }
  double KernelsPerSecond() const;
};

// Pointers into the model, for as long as it is not changed.
std::vector<const Device*> SelectDevices(const Model& model, const View& view);
// Ordered by memory when the devices are, else by job, rank and pid.
std::vector<ProcessRow> SelectProcesses(const Model& model, const View& view);
// The row whose kernels are to be seen; null = none is selected.
const ProcessRow* SelectedProcess(const std::vector<ProcessRow>& rows, const View& view);
std::vector<const v1::Session*> SelectSessions(const Model& model, const View& view);

// "attached", "silent 12 s", "not attached"
std::string LivenessText(const v1::JobProcess& process);
// Computation, communication and free time in percent, kernels a second; dashes without activity.
std::array<std::string, 4> ActivityTexts(const ProcessRow& row);
// "0-2,5"; "-" when there is none.
std::string DeviceText(const google::protobuf::RepeatedField<uint32_t>& devices);
// "j42,j43"; "-" when there is none.
std::string JobsText(const Device& device);

}  // namespace profd::client::top
