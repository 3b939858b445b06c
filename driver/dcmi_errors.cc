#include "driver/dcmi_errors.h"

#include <fmt/format.h>

#include <array>

#include "driver/abi/dcmi_abi.h"

namespace profd {
namespace {

using enum DcmiErrorClass;

constexpr auto kErrors = std::to_array<DcmiErrorInfo>({
    {abi::kDcmiInvalidParameter, kBroken, "-8001", "invalid parameter"},
    {abi::kDcmiNotPermitted, kDenied, "-8002", "not permitted"},
    {abi::kDcmiMemoryOperation, kTransient, "-8003", "memory operation failed"},
    {abi::kDcmiSecureFunction, kTransient, "-8004", "secure function failed"},
    {abi::kDcmiInternal, kTransient, "-8005", "internal error of the driver"},
    {abi::kDcmiTimeout, kDeviceDown, "-8006", "timeout in the driver"},
    {abi::kDcmiInvalidDevice, kBroken, "-8007", "invalid device id"},
    {abi::kDcmiDeviceMissing, kDeviceDown, "-8008", "device missing"},
    {abi::kDcmiIoctl, kTransient, "-8009", "ioctl failed"},
    {abi::kDcmiSend, kTransient, "-8010", "sending to the device failed"},
    {abi::kDcmiReceive, kTransient, "-8011", "receiving from the device failed"},
    {abi::kDcmiNotReady, kDeviceDown, "-8012", "device not ready"},
    {abi::kDcmiNotInContainer, kUnsupported, "-8013", "not supported in a container"},
    {abi::kDcmiFileOperation, kTransient, "-8014", "file operation failed"},
    {abi::kDcmiResetFailed, kTransient, "-8015", "reset failed"},
    {abi::kDcmiAborted, kTransient, "-8016", "aborted"},
    {abi::kDcmiUpgrading, kTransient, "-8017", "firmware upgrade in progress"},
    {abi::kDcmiOccupied, kTransient, "-8020", "resource occupied"},
    {abi::kDcmiPartition, kTransient, "-8022", "partition error"},
    {abi::kDcmiConfigMissing, kTransient, "-8023", "configuration missing"},
    {abi::kDcmiNotSupported, kUnsupported, "-8255", "not supported by the device"},
    {kDcmiStuck, kDeviceDown, "stuck", "an earlier call for the device has not returned"},
    {kDcmiAbandoned, kDeviceDown, "abandoned", "returned after it had been given up on"},
    {kDcmiSymbolMissing, kUnsupported, "-99998", "the library has no such function"},
    {0, kBroken, "other", "unknown error"},
});

}  // namespace

std::span<const DcmiErrorInfo> DcmiErrors() { return kErrors; }

size_t DcmiErrorIndex(int code) {
  size_t i = 0;
  while (i + 1 < kErrors.size() && kErrors[i].code != code) ++i;
  return i;
}

DcmiErrorClass ClassifyDcmi(int code) {
  return code == abi::kDcmiOk ? kNone : kErrors[DcmiErrorIndex(code)].error_class;
}

Status DcmiStatus(int code, std::string_view what) {
  if (code == abi::kDcmiOk) return Status::Ok();
  const DcmiErrorInfo& info = kErrors[DcmiErrorIndex(code)];
  std::string text = fmt::format("{}: {} ({})", what, info.text, code);
  if (code == abi::kDcmiOccupied) return ResourceExhausted(std::move(text));
  switch (info.error_class) {
    case kUnsupported:
      return Unimplemented(std::move(text));
    case kDenied:
      return PermissionDenied(std::move(text));
    case kNone:
    case kDeviceDown:
    case kTransient:
      return Unavailable(std::move(text));
    case kBroken:
      return Internal(std::move(text));
  }
  return Internal(std::move(text));
}

}  // namespace profd
