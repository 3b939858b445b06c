// The device-information half of libascend_hal.so (driver-abi 1.2, 1.5). Returns are drvError_t
// values.
#pragma once

#include <cstdint>

#include "sim/fault_wait.h"
#include "sim/node.h"

namespace profd::sim {

class HalInfo {
 public:
  explicit HalInfo(const Node& node) : node_(node) {}

  int DeviceStatus(uint32_t device, int* status);
  int DeviceInfo(uint32_t device, int32_t module, int32_t info, int64_t* value);
  int DeviceInfoByBuff(uint32_t device, int32_t module, int32_t info, void* buf, int32_t* size);
  int SplitMode(uint32_t device, unsigned* mode);
  int PhyId(uint32_t device, uint32_t* phy_id);

 private:
  int Check(uint32_t device);
  // kDrvErrorNotSupport for what this chip does not answer.
  int SystemInfo(uint32_t device, int32_t info, int64_t* value);
  int CoreInfo(uint32_t device, int32_t module, int32_t info, int64_t* value);

  const Node& node_;
  FaultWait wait_;
};

}  // namespace profd::sim
