// The small files that describe a result, each one line of JSON or a few of text.
#pragma once

#include <cstdint>
#include <string>

namespace profd::sim::aclprof {

inline constexpr int kHostId = 64;
inline constexpr double kDeviceMhz = 50;
inline constexpr uint64_t kAicoreMhz = 1800;

struct ControlFacts {
  int device = kHostId;
  uint64_t bits = 0;
  int metrics = 0xFF;
  double host_mhz = 0;  // 0: host times are ns
  std::string folder;
};

std::string InfoJson(const ControlFacts& facts);
std::string SampleJson(const ControlFacts& facts);
// start_info of the begin, end_info of the end.
std::string StartInfo(int64_t wall_ns, int64_t raw_ns);
std::string EndInfo(int64_t wall_ns, int64_t raw_ns);
std::string HostStartLog(int device, int64_t raw_ns, uint64_t host_count);
std::string DevStartLog(int64_t raw_ns, uint64_t device_count);
// The counters of a record of this metric.
int EventCount(int metrics);

}  // namespace profd::sim::aclprof
