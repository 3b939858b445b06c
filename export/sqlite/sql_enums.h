// Tables that are the same in every database of the vendor's: META_DATA and ENUM_*.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace profd::exporting {

struct EnumValue {
  uint16_t id;
  std::string_view name;
};
struct EnumTable {
  std::string_view name;
  std::span<const EnumValue> values;
};
std::span<const EnumTable> EnumTables();

struct MetaValue {
  std::string_view name;
  std::string_view value;
};
std::span<const MetaValue> MetaData();

// NPU_INFO's name of a chip (platform_version).
std::string_view ChipName(int chip);

}  // namespace profd::exporting
