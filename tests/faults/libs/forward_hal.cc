#include "tests/faults/libs/forward.h"

namespace abi = profd::abi;
using fault::Real;

FAULT_EXPORT_WEAK int prof_drv_get_channels(unsigned device, abi::ChannelList* out) {
  return Real<abi::ProfDrvGetChannelsFn>("prof_drv_get_channels")(device, out);
}
FAULT_EXPORT_WEAK int prof_drv_start(unsigned device, unsigned channel, abi::ProfStartPara* para) {
  return Real<abi::ProfDrvStartFn>("prof_drv_start")(device, channel, para);
}
FAULT_EXPORT_WEAK int prof_stop(unsigned device, unsigned channel) {
  return Real<abi::ProfStopFn>("prof_stop")(device, channel);
}
FAULT_EXPORT_WEAK int prof_channel_read(unsigned device, unsigned channel, char* out,
                                        unsigned size) {
  return Real<abi::ProfChannelReadFn>("prof_channel_read")(device, channel, out, size);
}
FAULT_EXPORT_WEAK int prof_channel_poll(abi::ProfPollInfo* out, int num, int timeout) {
  return Real<abi::ProfChannelPollFn>("prof_channel_poll")(out, num, timeout);
}
FAULT_EXPORT_WEAK int drvGetDevNum(uint32_t* count) {
  return Real<abi::DrvGetDevNumFn>("drvGetDevNum")(count);
}
FAULT_EXPORT_WEAK int drvGetDevIDs(uint32_t* ids, uint32_t length) {
  return Real<abi::DrvGetDevIdsFn>("drvGetDevIDs")(ids, length);
}
FAULT_EXPORT_WEAK int halGetDeviceInfo(uint32_t device, int32_t module, int32_t info,
                                       int64_t* value) {
  return Real<abi::HalGetDeviceInfoFn>("halGetDeviceInfo")(device, module, info, value);
}
FAULT_EXPORT_WEAK int halGetDeviceInfoByBuff(uint32_t device, int32_t module, int32_t info,
                                             void* buffer, int32_t* size) {
  return Real<abi::HalGetDeviceInfoByBuffFn>("halGetDeviceInfoByBuff")(device, module, info,
                                                                       buffer, size);
}
FAULT_EXPORT_WEAK int drvGetPlatformInfo(uint32_t* info) {
  return Real<abi::DrvGetPlatformInfoFn>("drvGetPlatformInfo")(info);
}

// The library without_symbols leaves these out, as older drivers do.
#ifndef FAULT_WITHOUT_SYMBOLS
FAULT_EXPORT_WEAK int halProfDataFlush(unsigned device, unsigned channel, unsigned* length) {
  return Real<abi::HalProfDataFlushFn>("halProfDataFlush")(device, channel, length);
}
FAULT_EXPORT_WEAK int drvDeviceStatus(uint32_t device, int* status) {
  return Real<abi::DrvDeviceStatusFn>("drvDeviceStatus")(device, status);
}
FAULT_EXPORT_WEAK int halGetAPIVersion(int* version) {
  return Real<abi::HalGetApiVersionFn>("halGetAPIVersion")(version);
}
FAULT_EXPORT_WEAK int drvGetDeviceSplitMode(unsigned device, unsigned* mode) {
  return Real<abi::DrvGetDeviceSplitModeFn>("drvGetDeviceSplitMode")(device, mode);
}
FAULT_EXPORT_WEAK int drvDeviceGetPhyIdByIndex(uint32_t device, uint32_t* id) {
  return Real<abi::DrvDeviceGetPhyIdByIndexFn>("drvDeviceGetPhyIdByIndex")(device, id);
}
#endif
