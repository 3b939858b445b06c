// A driver of which only the enumeration exists, as in containers that bring half of it.
#include "tests/faults/libs/forward.h"

FAULT_EXPORT int drvGetDevNum(uint32_t* count) {
  *count = 2;
  return profd::abi::kDrvErrorNone;
}
FAULT_EXPORT int drvGetDevIDs(uint32_t* ids, uint32_t length) {
  for (uint32_t i = 0; i < length; ++i) ids[i] = i;
  return profd::abi::kDrvErrorNone;
}
