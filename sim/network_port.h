// Link and optics of an NPU's network port as a function of scenario time: what libdcmi.so's check
// of the port and the stand-in for hccn_tool agree on.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "sim/scenario.h"

namespace profd::sim {

struct OpticalValues {
  double celsius = 0;
  double millivolts = 0;
  std::array<double, kOpticalLanes> tx_milliwatts{};
  std::array<double, kOpticalLanes> rx_milliwatts{};
};

class NetworkPort {
 public:
  // `scenario` must outlive the port.
  NetworkPort(const Scenario& scenario, int device) : scenario_(scenario), device_(device) {}

  bool LinkUp(int64_t t_ns) const;
  // Times it went up, the first time included.
  uint64_t LinkUps(int64_t t_ns) const;
  // Nothing without a module.
  std::optional<OpticalValues> Optics(int64_t t_ns) const;

 private:
  const Scenario& scenario_;
  int device_;
};

}  // namespace profd::sim
