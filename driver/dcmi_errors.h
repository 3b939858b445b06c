// What libdcmi's return codes mean (dcmi-and-metrics 1.6) and what follows from each.
#pragma once

#include <span>
#include <string_view>

#include "base/status.h"
#include "driver/abi/dcmi_table.h"

namespace profd {

// Ours. The device has a call in flight that does not return; the library was not asked.
inline constexpr int kDcmiStuck = -99990;
// Ours. This very call was given up on while it hung and its thread was abandoned: code that sees
// this runs on an abandoned thread and must return without touching anything shared.
inline constexpr int kDcmiAbandoned = -99991;

enum class DcmiErrorClass : uint8_t {
  kNone,
  kUnsupported,  // never will work on this device with this driver: not asked again
  kDenied,       // we may not: not asked again
  kDeviceDown,   // the device does not answer or is not there
  kTransient,    // may work next time
  kBroken,       // an answer that makes no sense (wrong parameter, unknown code)
};

struct DcmiErrorInfo {
  int code;
  DcmiErrorClass error_class;
  std::string_view label;  // the code as a metric label
  std::string_view text;
};

// Every code that is known, and at the end one entry ("other", code 0) for all the rest.
std::span<const DcmiErrorInfo> DcmiErrors();
// Index of `code` in DcmiErrors(); the last one for unknown codes. `code` is not success.
size_t DcmiErrorIndex(int code);

DcmiErrorClass ClassifyDcmi(int code);
// Success for 0, else "`what`: card or device missing (-8008)".
Status DcmiStatus(int code, std::string_view what);

}  // namespace profd
