#include "export/operators/communication_names.h"

#include <fmt/format.h>

#include <span>
#include <string_view>

namespace profd::exporting::operators {
namespace {

constexpr std::string_view kHcclDataTypes[] = {"INT8",    "INT16",  "INT32",  "FP16", "FP32",  "INT64",
                                               "UINT64",  "UINT8",  "UINT16", "UINT32", "FP64", "BFP16",
                                               "INT128",  "",       "HIF8",   "FP8E4M3", "FP8E5M2", "FP8E8M0"};
constexpr std::string_view kLinkTypes[] = {"ON_CHIP", "HCCS",          "PCIE", "ROCE", "SIO",
                                           "HCCS_SW", "STANDARD_ROCE", "UB",   "UBoE"};
constexpr std::string_view kTransportTypes[] = {"SDMA", "RDMA", "LOCAL", "UB", "ROCE"};
constexpr std::string_view kCopyDirections[] = {"host to host",    "host to device",        "device to host",
                                            "device to device", "managed memory",        "addr device to device",
                                            "host to device ex", "device to host ex"};

std::string NameIn(std::span<const std::string_view> names, uint32_t number) {
  constexpr uint32_t kReserved = 255;
  if (number == kReserved) return "RESERVED";
  if (number == UINT32_MAX) return "INVALID_TYPE";
  if (number < names.size() && !names[number].empty()) return std::string(names[number]);
  return fmt::to_string(number);
}

}  // namespace

std::string CommunicationDataTypeName(uint32_t type) { return NameIn(kHcclDataTypes, type); }
std::string LinkTypeName(uint32_t type) { return NameIn(kLinkTypes, type); }
std::string TransportTypeName(uint32_t type) { return NameIn(kTransportTypes, type); }
std::string CopyDirectionName(uint32_t direction) {
  return std::string(direction < std::size(kCopyDirections) ? kCopyDirections[direction] : "other");
}

}  // namespace profd::exporting::operators
