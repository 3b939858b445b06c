// What the driver reports about devices and channels, made strange by environment variables:
// PROFD_FAULT_DEVICES (a count), PROFD_FAULT_ODD_IDS=1 (only every second device of the simulator,
// each twice as high), PROFD_FAULT_NO_CHANNELS=id, PROFD_FAULT_MANY_CHANNELS=id and
// PROFD_FAULT_RAW_NAMES=1 (names fill all 32 bytes, with control characters and no NUL).
#include <cstring>

#include "tests/faults/libs/forward.h"

namespace abi = profd::abi;
using fault::Number;
using fault::Real;

FAULT_EXPORT int drvGetDevNum(uint32_t* count) {
  int code = Real<abi::DrvGetDevNumFn>("drvGetDevNum")(count);
  if (Number("PROFD_FAULT_ODD_IDS", 0) != 0) *count /= 2;
  *count = static_cast<uint32_t>(Number("PROFD_FAULT_DEVICES", static_cast<int>(*count)));
  return code;
}

FAULT_EXPORT int drvGetDevIDs(uint32_t* ids, uint32_t length) {
  if (Number("PROFD_FAULT_ODD_IDS", 0) == 0) {
    return Real<abi::DrvGetDevIdsFn>("drvGetDevIDs")(ids, length);
  }
  for (uint32_t i = 0; i < length; ++i) ids[i] = 2 * i + 1;
  return abi::kDrvErrorNone;
}

FAULT_EXPORT int prof_drv_get_channels(unsigned device, abi::ChannelList* out) {
  int id = static_cast<int>(device);
  if (Number("PROFD_FAULT_NO_CHANNELS", -1) == id) return abi::kProfError;
  int code = Real<abi::ProfDrvGetChannelsFn>("prof_drv_get_channels")(device, out);
  if (Number("PROFD_FAULT_MANY_CHANNELS", -1) == id) out->channel_num = 100000;
  if (Number("PROFD_FAULT_RAW_NAMES", 0) != 0) {
    for (abi::ChannelInfo& info : out->channel) {
      std::memset(info.channel_name, '\x1b', sizeof info.channel_name);
    }
  }
  return code;
}
