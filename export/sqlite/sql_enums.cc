#include "export/sqlite/sql_enums.h"

#include <algorithm>
#include <array>
#include <utility>

#include "driver/records/module_mem.h"

namespace profd::exporting {
namespace {

constexpr auto kApiTypes = std::to_array<EnumValue>({
    {20000, "acl"}, {15000, "model"}, {10000, "node"}, {5500, "communication"}, {5000, "runtime"},
    {50001, "op"}, {50002, "queue"}, {50003, "trace"},  // of frameworks
});

constexpr auto kModules = [] {
  std::array<EnumValue, records::kModules.size() - std::ranges::count(records::kModules, "")> values{};
  size_t next = 0;
  for (size_t module = 0; module < records::kModules.size(); ++module) {
    if (const std::string_view name = records::kModules[module]; !name.empty()) values[next++] = {static_cast<uint16_t>(module), name};
  }
  return values;
}();

constexpr auto kHcclDataTypes = std::to_array<EnumValue>({
    {0, "INT8"}, {1, "INT16"}, {2, "INT32"}, {3, "FP16"}, {4, "FP32"}, {5, "INT64"}, {6, "UINT64"},
    {7, "UINT8"}, {8, "UINT16"}, {9, "UINT32"}, {10, "FP64"}, {11, "BFP16"}, {12, "INT128"},
    {14, "HIF8"}, {15, "FP8E4M3"}, {16, "FP8E5M2"}, {17, "FP8E8M0"}, {255, "RESERVED"},
    {65534, "N/A"}, {65535, "INVALID_TYPE"},
});

constexpr auto kHcclLinkTypes = std::to_array<EnumValue>({
    {0, "ON_CHIP"}, {1, "HCCS"}, {2, "PCIE"}, {3, "ROCE"}, {4, "SIO"}, {5, "HCCS_SW"},
    {6, "STANDARD_ROCE"}, {7, "UB"}, {8, "UBoE"}, {255, "RESERVED"}, {65534, "N/A"},
    {65535, "INVALID_TYPE"},
});

constexpr auto kHcclTransportTypes = std::to_array<EnumValue>({
    {0, "SDMA"}, {1, "RDMA"}, {2, "LOCAL"}, {3, "UB"}, {4, "ROCE"}, {255, "RESERVED"},
    {65534, "N/A"}, {65535, "INVALID_TYPE"},
});

constexpr auto kHcclRdmaTypes = std::to_array<EnumValue>({
    {0, "RDMA_SEND_NOTIFY"}, {1, "RDMA_SEND_PAYLOAD"}, {255, "RESERVED"}, {65534, "N/A"},
    {65535, "INVALID_TYPE"},
});

constexpr auto kMstxEventTypes = std::to_array<EnumValue>({
    {0, "marker"}, {1, "push/pop"}, {2, "start/end"}, {3, "marker_ex"},
});

constexpr auto kMemcpyOperations = std::to_array<EnumValue>({
    {0, "host to host"}, {1, "host to device"}, {2, "device to host"}, {3, "device to device"},
    {4, "managed memory"}, {5, "addr device to device"}, {6, "host to device ex"},
    {7, "device to host ex"}, {65535, "other"},
});

constexpr auto kOverlapTypes = std::to_array<EnumValue>({
    {0, "COMPUTE"}, {1, "COMMUNICATION"}, {2, "COMM_NOT_OVERLAP_COMP"}, {3, "FREE"},
    {65535, "RESERVE"},
});

constexpr auto kTables = std::to_array<EnumTable>({
    {"ENUM_API_TYPE", kApiTypes},
    {"ENUM_MODULE", kModules},
    {"ENUM_HCCL_DATA_TYPE", kHcclDataTypes},
    {"ENUM_HCCL_LINK_TYPE", kHcclLinkTypes},
    {"ENUM_HCCL_TRANSPORT_TYPE", kHcclTransportTypes},
    {"ENUM_HCCL_RDMA_TYPE", kHcclRdmaTypes},
    {"ENUM_MSTX_EVENT_TYPE", kMstxEventTypes},
    {"ENUM_MEMCPY_OPERATION", kMemcpyOperations},
    {"ENUM_OVERLAP_ANALYSIS_TYPE", kOverlapTypes},
});

constexpr auto kMeta = std::to_array<MetaValue>({
    {"SCHEMA_VERSION", "1.2.0"},
    {"SCHEMA_VERSION_MAJOR", "1"},
    {"SCHEMA_VERSION_MINOR", "2"},
    {"SCHEMA_VERSION_MICRO", "0"},
});

}  // namespace

std::span<const EnumTable> EnumTables() { return kTables; }

std::span<const MetaValue> MetaData() { return kMeta; }

std::string_view ChipName(int chip) {
  constexpr std::pair<int, std::string_view> kChips[] = {{0, "Ascend310"},  {1, "Ascend910A"}, {4, "Ascend310P"}, {5, "Ascend910B"},
                                                         {7, "Ascend310B"}, {15, "Ascend950"}, {16, "Ascend950"}};
  for (const auto& [known, name] : kChips) {
    if (known == chip) return name;
  }
  return "UNKNOWN";
}

}  // namespace profd::exporting
