// A graph that was loaded once and is executed completely: its tasks keep their ids and have been reported when it was
// loaded.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/ascendcl/device.h"

namespace profd::sim::acl {

class Model {
 public:
  Model(uint32_t id, std::string name, Device& device) : id_(id), name_(std::move(name)), device_(device) {}

  uint32_t id() const { return id_; }
  const std::string& name() const { return name_; }
  Device& device() const { return device_; }

  // What is launched while it is loaded. The result lives as long as the model.
  const Task& Add(Task task);
  void AddWait(uint32_t stream, uint32_t other);
  // `durations`: of its kernels and communications, in their order; fewer: the rest as loaded. False: a stream does
  // not drain.
  bool Execute(uint32_t iteration, std::span<const int64_t> durations) const;

 private:
  struct Item {
    std::unique_ptr<Task> task;  // null: a wait
    uint32_t stream = 0, other = 0;
  };

  const uint32_t id_;
  const std::string name_;
  Device& device_;
  std::vector<Item> items_;
};

}  // namespace profd::sim::acl
