// What operators of a framework took: on the host, and on the devices for what they launched.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "export/operators/model.h"

namespace profd::exporting::operators {

// In ns. Self: without the operators within it.
struct FrameworkTimes {
  int64_t host_self = 0;
  int64_t device_self = 0;
  int64_t device_total = 0;
  int64_t core_self = 0;  // of device_self, what ran on AI Cores: cube or vector, no mix of both
  int64_t core_total = 0;
};

// By operator.
std::vector<FrameworkTimes> FrameworkTimesOf(const Model& model);

// Each execution on a device that a framework's operator has launched, by what it launched it with.
struct FrameworkKernel {
  int32_t op = -1;
  const TaskRow* task = nullptr;  // null: an operation of communication
  const CommunicationOp* communication = nullptr;
  int64_t start_ns() const { return task != nullptr ? task->start_ns : communication->start_ns; }
  int64_t end_ns() const { return task != nullptr ? task->end_ns : communication->end_ns; }
};
void ForEachFrameworkKernel(const Model& model, const std::function<void(const FrameworkKernel&)>& each);

}  // namespace profd::exporting::operators
