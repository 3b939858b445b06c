#include "driver/hal_library.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "driver/dl_library.h"

namespace profd {
namespace {

// THE list of what is resolved: calls visit(name, member) for every symbol.
template <class Visit>
void VisitSymbols(HalSymbols& s, Visit&& visit) {
  visit("prof_drv_get_channels", s.prof_drv_get_channels);
  visit("prof_drv_start", s.prof_drv_start);
  visit("prof_stop", s.prof_stop);
  visit("prof_channel_read", s.prof_channel_read);
  visit("prof_channel_poll", s.prof_channel_poll);
  visit("halProfDataFlush", s.hal_prof_data_flush);
  visit("drvGetDevNum", s.drv_get_dev_num);
  visit("drvGetDevIDs", s.drv_get_dev_ids);
  visit("drvDeviceStatus", s.drv_device_status);
  visit("halGetDeviceInfo", s.hal_get_device_info);
  visit("halGetDeviceInfoByBuff", s.hal_get_device_info_by_buff);
  visit("halGetAPIVersion", s.hal_get_api_version);
  visit("drvGetDeviceSplitMode", s.drv_get_device_split_mode);
  visit("drvDeviceGetPhyIdByIndex", s.drv_device_get_phy_id_by_index);
}

struct CodeName {
  int code;
  std::string_view name;
};

constexpr auto kProfCodes = std::to_array<CodeName>({
    {abi::kProfOk, "PROF_OK"},
    {abi::kProfError, "PROF_ERROR"},
    {abi::kProfTimeout, "PROF_TIMEOUT"},
    {abi::kProfStartedAlready, "PROF_STARTED_ALREADY"},
    {abi::kProfStoppedAlready, "PROF_STOPPED_ALREADY"},
    {abi::kProfErestartsys, "PROF_ERESTARTSYS"},
    {abi::kProfNotReadableData, "NOT_READABLE_DATA"},
    {abi::kProfNotSupport, "NOT_SUPPORT"},
    {abi::kProfBusy, "BUSY"},
    {abi::kProfNotEnoughBuf, "NOT_ENOUGH_BUF"},
    {abi::kProfNotEnoughSubChannel, "NOT_ENOUGH_SUB_CHANNEL_RESOURCE"},
    {abi::kProfVfSubResourceFull, "VF_SUB_RESOURCE_FULL"},
    {abi::kProfContainerSceneNotOpenPhy, "CONTAINER_SCENE_NOT_OPEN_PHY"},
    {abi::kProfPhySceneNotOpenContainer, "PHY_SCENE_NOT_OPEN_CONTAINER"},
    {abi::kProfPollUninitialised, "poll uninitialised"},
    {abi::kProfTsNotBound, "task scheduler not bound"},
    {abi::kProfStopDataLoss, "data lost"},
    {abi::kDrvErrorNotSupport, "DRV_ERROR_NOT_SUPPORT"},
});

struct Reason {
  int code;
  StatusCode status;
  std::string_view text;
};

constexpr auto kStartReasons = std::to_array<Reason>({
    {abi::kProfError, StatusCode::kUnavailable,
     "the driver refused to start it without a reason; see its log (dmesg, /var/log/npu)"},
    {abi::kProfTimeout, StatusCode::kUnavailable, "the device did not answer the driver in time"},
    {abi::kProfStartedAlready, StatusCode::kResourceExhausted,
     "it is already running: another process started it and has not stopped it"},
    {abi::kProfStoppedAlready, StatusCode::kUnavailable,
     "the driver stopped it while it was being started"},
    {abi::kProfErestartsys, StatusCode::kUnavailable, "interrupted by a signal; try again"},
    {abi::kProfNotReadableData, StatusCode::kUnavailable, "the driver has no data to sample"},
    {abi::kProfNotSupport, StatusCode::kUnimplemented,
     "this driver or chip does not support the channel"},
    {abi::kProfBusy, StatusCode::kResourceExhausted, "the driver is busy; try again"},
    {abi::kProfNotEnoughBuf, StatusCode::kResourceExhausted,
     "the driver has no buffer left; stop other profiling on this device"},
    {abi::kProfNotEnoughSubChannel, StatusCode::kResourceExhausted,
     "channel held by another process; stop the other profiler on this device"},
    {abi::kProfVfSubResourceFull, StatusCode::kResourceExhausted,
     "no profiling resource left for this virtual device"},
    {abi::kProfContainerSceneNotOpenPhy, StatusCode::kPermissionDenied,
     "a container may not profile the physical device; run on the host"},
    {abi::kProfPhySceneNotOpenContainer, StatusCode::kPermissionDenied,
     "the device is given to a container; profile from inside it"},
    {abi::kProfPollUninitialised, StatusCode::kUnavailable,
     "the driver's profiling is not initialised"},
    {abi::kProfTsNotBound, StatusCode::kFailedPrecondition,
     "no process has opened the device yet (its task scheduler is unbound); start the job first"},
    {abi::kDrvErrorNotSupport, StatusCode::kUnimplemented,
     "the driver library does not have this function"},
    {abi::kDrvErrorNoDevice, StatusCode::kNotFound, "device not found"},
    {abi::kDrvErrorInvalidDevice, StatusCode::kNotFound, "the driver does not know this device"},
});

// `missing` where the library has no such function.
template <class... Parameters, class... Arguments>
int Call(int (*function)(Parameters...), int missing, Arguments... arguments) {
  return function == nullptr ? missing : function(arguments...);
}

}  // namespace

Result<std::unique_ptr<HalLibrary>> HalLibrary::Load(const std::string& configured_path, bool trust_unsafe_path) {
  Result<DlLibrary> library = DlLibrary::Open({.configured_path = configured_path,
                                               .soname = "libascend_hal.so",
                                               .usual_folders = {"/usr/local/Ascend/driver/lib64/driver",
                                                                 "/usr/local/Ascend/driver/lib64/common",
                                                                 "/usr/local/Ascend/driver/lib64"},
                                               .trust_unsafe_path = trust_unsafe_path});
  if (!library.ok()) return library.status();
  HalSymbols symbols;
  std::vector<std::string> missing;
  VisitSymbols(symbols, [&](const char* name, auto& function) {
    library->Resolve(name, &function, &missing);
  });
  return std::make_unique<HalLibrary>(symbols, library->path());
}

HalLibrary::HalLibrary(const HalSymbols& symbols, std::string path)
    : symbols_(symbols), path_(std::move(path)) {
  VisitSymbols(symbols_, [this](const char* name, auto& function) {
    if (function == nullptr) missing_symbols_.emplace_back(name);
  });
}

int HalLibrary::ProfGetChannels(uint32_t device, abi::ChannelList* channels) const {
  return Call(symbols_.prof_drv_get_channels, abi::kProfError, device, channels);
}

int HalLibrary::ProfStart(uint32_t device, uint32_t channel, abi::ProfStartPara* para) const {
  return Call(symbols_.prof_drv_start, abi::kProfError, device, channel, para);
}

int HalLibrary::ProfStop(uint32_t device, uint32_t channel) const {
  return Call(symbols_.prof_stop, abi::kProfError, device, channel);
}

int HalLibrary::ProfRead(uint32_t device, uint32_t channel, char* buffer, uint32_t size) const {
  return Call(symbols_.prof_channel_read, abi::kProfError, device, channel, buffer, size);
}

int HalLibrary::ProfPoll(abi::ProfPollInfo* out, int num, int timeout_seconds) const {
  return Call(symbols_.prof_channel_poll, abi::kProfError, out, num, timeout_seconds);
}

int HalLibrary::ProfDataFlush(uint32_t device, uint32_t channel, uint32_t* readable_bytes) const {
  *readable_bytes = 0;
  return Call(symbols_.hal_prof_data_flush, abi::kDrvErrorNotSupport, device, channel, readable_bytes);
}

int HalLibrary::GetDeviceNum(uint32_t* count) const {
  *count = 0;
  return Call(symbols_.drv_get_dev_num, abi::kDrvErrorNotSupport, count);
}

int HalLibrary::GetDeviceIds(uint32_t* ids, uint32_t length) const {
  return Call(symbols_.drv_get_dev_ids, abi::kDrvErrorNotSupport, ids, length);
}

int HalLibrary::GetDeviceStatus(uint32_t device, int* status) const {
  return Call(symbols_.drv_device_status, abi::kDrvErrorNotSupport, device, status);
}

int HalLibrary::GetDeviceInfo(uint32_t device, abi::HalModule module, abi::HalInfo info,
                              int64_t* value) const {
  return Call(symbols_.hal_get_device_info, abi::kDrvErrorNotSupport, device, module, info, value);
}

int HalLibrary::GetDeviceInfoByBuff(uint32_t device, abi::HalModule module, abi::HalInfo info,
                                    void* buffer, int32_t* size) const {
  return Call(symbols_.hal_get_device_info_by_buff, abi::kDrvErrorNotSupport, device, module, info, buffer, size);
}

int HalLibrary::GetPhysicalId(uint32_t device, uint32_t* physical_id) const {
  return Call(symbols_.drv_device_get_phy_id_by_index, abi::kDrvErrorNotSupport, device, physical_id);
}

int HalLibrary::ApiVersion() const {
  int version = 0;
  if (symbols_.hal_get_api_version == nullptr) return 0;
  return symbols_.hal_get_api_version(&version) == abi::kDrvErrorNone ? version : 0;
}

uint32_t HalLibrary::SplitMode(uint32_t device) const {
  unsigned mode = 0;
  if (symbols_.drv_get_device_split_mode == nullptr) return 0;
  return symbols_.drv_get_device_split_mode(device, &mode) == abi::kDrvErrorNone ? mode : 0;
}

std::string ProfCodeText(int code) {
  auto found = std::ranges::find(kProfCodes, code, &CodeName::code);
  return found == kProfCodes.end() ? fmt::format("code {}", code)
                                   : fmt::format("{} ({})", found->name, code);
}

Status StatusOfStartCode(int code, uint32_t device, std::string_view channel_name) {
  if (code == abi::kProfOk) return Status::Ok();
  auto found = std::ranges::find(kStartReasons, code, &Reason::code);
  bool known = found != kStartReasons.end();
  // 1 and 2 are drvError_t values; prof_drv_start is not documented to give them, but may.
  std::string name = code == abi::kDrvErrorNoDevice || code == abi::kDrvErrorInvalidDevice
                         ? fmt::format("DRV_ERROR {}", code)
                         : ProfCodeText(code);
  return {known ? found->status : StatusCode::kUnavailable,
          fmt::format("device {}: channel {}: {} [prof_drv_start: {}]", device, channel_name,
                      known ? found->text : "the driver could not start it", name)};
}

Status StatusOfStopCode(int code, uint32_t device, std::string_view channel_name) {
  if (code == abi::kProfOk || code == abi::kProfStoppedAlready || code == abi::kProfStopDataLoss) {
    return Status::Ok();
  }
  return Unavailable(fmt::format("device {}: channel {} could not be stopped [prof_stop: {}]",
                                 device, channel_name, ProfCodeText(code)));
}

Status StatusOfDrvCode(int code, std::string_view what) {
  switch (code) {
    case abi::kDrvErrorNone:
      return Status::Ok();
    case abi::kDrvErrorNoDevice:
      return NotFound(fmt::format("{}: device not found", what));
    case abi::kDrvErrorInvalidDevice:
      return NotFound(fmt::format("{}: the driver does not know this device", what));
    case abi::kDrvErrorNotSupport:
      return Unimplemented(fmt::format("{}: not supported by this driver or chip", what));
    default:
      return Unavailable(fmt::format("{}: driver error {}", what, code));
  }
}

}  // namespace profd
