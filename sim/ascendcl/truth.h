// The ground truth of a process: what really ran, as lines of JSON in one file.
#pragma once

#include <cstdio>
#include <string>

#include "base/mutex.h"
#include "sim/ascendcl/device.h"

namespace profd::sim::acl {

class Truth {
 public:
  // False: the file cannot be made.
  bool Open(const std::string& path);
  void Write(const std::string& json);
  void WriteTask(uint32_t device, const Task& task);
  void Flush();

 private:
  Mutex mutex_;
  std::FILE* file_ GUARDED_BY(mutex_) = nullptr;
};

}  // namespace profd::sim::acl
