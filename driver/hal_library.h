// libascend_hal.so as a table of functions, with the vendor's degraded answers where the library or
// a symbol is missing (driver-abi 1.3), and codes turned into Status with a reason to act on (1.4).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "driver/abi/hal_abi.h"

namespace profd {

// Any member may be null. Tests fill it with functions of their own.
struct HalSymbols {
  abi::ProfDrvGetChannelsFn prof_drv_get_channels = nullptr;
  abi::ProfDrvStartFn prof_drv_start = nullptr;
  abi::ProfStopFn prof_stop = nullptr;
  abi::ProfChannelReadFn prof_channel_read = nullptr;
  abi::ProfChannelPollFn prof_channel_poll = nullptr;
  abi::HalProfDataFlushFn hal_prof_data_flush = nullptr;
  abi::DrvGetDevNumFn drv_get_dev_num = nullptr;
  abi::DrvGetDevIdsFn drv_get_dev_ids = nullptr;
  abi::DrvDeviceStatusFn drv_device_status = nullptr;
  abi::HalGetDeviceInfoFn hal_get_device_info = nullptr;
  abi::HalGetDeviceInfoByBuffFn hal_get_device_info_by_buff = nullptr;
  abi::HalGetApiVersionFn hal_get_api_version = nullptr;
  abi::DrvGetDeviceSplitModeFn drv_get_device_split_mode = nullptr;
  abi::DrvDeviceGetPhyIdByIndexFn drv_device_get_phy_id_by_index = nullptr;
};

// Immutable and thread-safe as far as the driver is. Any call may hang: only threads that may be
// written off (the pump's, a GuardedThread) make calls while profd runs. Share it as
// std::shared_ptr<const HalLibrary>, so that a written-off thread still finds it.
class HalLibrary {
 public:
  // Fails when no library can be loaded; a library without some symbols loads and degrades. Both as DlOptions has them.
  static Result<std::unique_ptr<HalLibrary>> Load(const std::string& configured_path, bool trust_unsafe_path);
  explicit HalLibrary(const HalSymbols& symbols, std::string path = "");

  // Raw calls: the driver's code, or the degraded one.
  int ProfGetChannels(uint32_t device, abi::ChannelList* channels) const;
  int ProfStart(uint32_t device, uint32_t channel, abi::ProfStartPara* para) const;
  int ProfStop(uint32_t device, uint32_t channel) const;
  int ProfRead(uint32_t device, uint32_t channel, char* buffer, uint32_t size) const;
  int ProfPoll(abi::ProfPollInfo* out, int num, int timeout_seconds) const;
  int ProfDataFlush(uint32_t device, uint32_t channel, uint32_t* readable_bytes) const;
  int GetDeviceNum(uint32_t* count) const;
  int GetDeviceIds(uint32_t* ids, uint32_t length) const;
  int GetDeviceStatus(uint32_t device, int* status) const;
  int GetDeviceInfo(uint32_t device, abi::HalModule module, abi::HalInfo info,
                    int64_t* value) const;
  int GetDeviceInfoByBuff(uint32_t device, abi::HalModule module, abi::HalInfo info, void* buffer,
                          int32_t* size) const;
  int GetPhysicalId(uint32_t device, uint32_t* physical_id) const;
  // 0x071905 and so on; 0 when the library does not say.
  int ApiVersion() const;
  // 0 = not split (also when unknown).
  uint32_t SplitMode(uint32_t device) const;

  const std::vector<std::string>& missing_symbols() const { return missing_symbols_; }
  const std::string& path() const { return path_; }  // empty for a table of symbols

 private:
  HalSymbols symbols_;
  std::string path_;
  std::vector<std::string> missing_symbols_;
};

// Names a code of the prof_* functions: "PROF_STOPPED_ALREADY (-4)".
std::string ProfCodeText(int code);

// Answers of prof_drv_start. -10 (another process holds the channel) is kResourceExhausted.
Status StatusOfStartCode(int code, uint32_t device, std::string_view channel_name);
// Answers of prof_stop; "already stopped" and BIU's "stopped, but data was lost" are success.
Status StatusOfStopCode(int code, uint32_t device, std::string_view channel_name);
// Answers of drvError_t functions; `what` names the call.
Status StatusOfDrvCode(int code, std::string_view what);

}  // namespace profd
