// The C symbols of libascend_hal.so (driver-abi 1.2). The library holds one node for the life of
// the process; it is never torn down, because threads may sit in a call that only the end of a
// fault lets go.
#include <algorithm>
#include <cstdint>

#include "driver/abi/hal_abi.h"
#include "sim/account.h"
#include "sim/hal_engine.h"
#include "sim/hal_info.h"
#include "sim/node.h"

#define PROFD_SIM_EXPORT extern "C" __attribute__((visibility("default")))

namespace profd::sim {
namespace {

struct Library {
  std::unique_ptr<Node> node = NodeFromEnvironment("libascend_hal.so");
  std::unique_ptr<HalEngine> engine = node ? std::make_unique<HalEngine>(*node) : nullptr;
  std::unique_ptr<HalInfo> info = node ? std::make_unique<HalInfo>(*node) : nullptr;
};

Library& TheLibrary() {
  static Library* const library = new Library;
  return *library;
}

HalEngine* Engine() { return TheLibrary().engine.get(); }
HalInfo* Info() { return TheLibrary().info.get(); }

// Read the scenario when the library is loaded, as the environment is then.
__attribute__((constructor)) void LoadNow() { TheLibrary(); }

}  // namespace
}  // namespace profd::sim

using profd::sim::Engine;
using profd::sim::Info;
namespace abi = profd::abi;

PROFD_SIM_EXPORT int prof_drv_get_channels(unsigned device_id, abi::ChannelList* channels) {
  return Engine() ? Engine()->GetChannels(device_id, channels) : abi::kProfError;
}

PROFD_SIM_EXPORT int prof_drv_start(unsigned device_id, unsigned channel_id,
                                    abi::ProfStartPara* start_para) {
  const profd::sim::Accounted accounted;
  return Engine() ? Engine()->Start(device_id, channel_id, start_para) : abi::kProfError;
}

PROFD_SIM_EXPORT int prof_stop(unsigned device_id, unsigned channel_id) {
  const profd::sim::Accounted accounted;
  return Engine() ? Engine()->Stop(device_id, channel_id) : abi::kProfError;
}

PROFD_SIM_EXPORT int prof_channel_read(unsigned device_id, unsigned channel_id, char* out_buf,
                                       unsigned buf_size) {
  const profd::sim::Accounted accounted;
  return Engine() ? Engine()->Read(device_id, channel_id, out_buf, buf_size) : abi::kProfError;
}

PROFD_SIM_EXPORT int prof_channel_poll(abi::ProfPollInfo* out_buf, int num, int timeout) {
  const profd::sim::Accounted accounted;
  return Engine() ? Engine()->Poll(out_buf, num, timeout) : abi::kProfStoppedAlready;
}

PROFD_SIM_EXPORT int halProfDataFlush(unsigned device_id, unsigned channel_id, unsigned* data_len) {
  const profd::sim::Accounted accounted;
  return Engine() ? Engine()->Flush(device_id, channel_id, data_len) : abi::kDrvErrorNotSupport;
}

PROFD_SIM_EXPORT int drvGetDevNum(uint32_t* num_dev) {
  if (num_dev == nullptr) return abi::kDrvErrorInvalidDevice;
  const profd::sim::Node* node = profd::sim::TheLibrary().node.get();
  *num_dev = node == nullptr ? 0 : static_cast<uint32_t>(node->devices());
  return abi::kDrvErrorNone;
}

PROFD_SIM_EXPORT int drvGetDevIDs(uint32_t* devices, uint32_t len) {
  if (devices == nullptr) return abi::kDrvErrorInvalidDevice;
  uint32_t count = 0;
  drvGetDevNum(&count);
  for (uint32_t i = 0; i < std::min(count, len); ++i) devices[i] = i;
  return abi::kDrvErrorNone;
}

PROFD_SIM_EXPORT int drvDeviceStatus(uint32_t device_id, int* status) {
  const profd::sim::Accounted accounted;
  return Info() ? Info()->DeviceStatus(device_id, status) : abi::kDrvErrorNoDevice;
}

PROFD_SIM_EXPORT int drvGetPlatformInfo(uint32_t* info) {
  if (info == nullptr) return abi::kDrvErrorInvalidDevice;
  *info = abi::kPlatformHostSide;
  return abi::kDrvErrorNone;
}

PROFD_SIM_EXPORT int halGetDeviceInfo(uint32_t device_id, int32_t module_type, int32_t info_type,
                                      int64_t* value) {
  const profd::sim::Accounted accounted;
  return Info() ? Info()->DeviceInfo(device_id, module_type, info_type, value)
                : abi::kDrvErrorNoDevice;
}

PROFD_SIM_EXPORT int halGetDeviceInfoByBuff(uint32_t device_id, int32_t module_type,
                                            int32_t info_type, void* buf, int32_t* size) {
  const profd::sim::Accounted accounted;
  return Info() ? Info()->DeviceInfoByBuff(device_id, module_type, info_type, buf, size)
                : abi::kDrvErrorNoDevice;
}

PROFD_SIM_EXPORT int halGetAPIVersion(int* version) {
  if (version == nullptr) return abi::kDrvErrorInvalidDevice;
  *version = abi::kApiCurrent;
  return abi::kDrvErrorNone;
}

PROFD_SIM_EXPORT int drvGetDeviceSplitMode(unsigned device_id, unsigned* mode) {
  return Info() ? Info()->SplitMode(device_id, mode) : abi::kDrvErrorNoDevice;
}

PROFD_SIM_EXPORT int drvDeviceGetPhyIdByIndex(uint32_t device_index, uint32_t* phy_id) {
  return Info() ? Info()->PhyId(device_index, phy_id) : abi::kDrvErrorNoDevice;
}
