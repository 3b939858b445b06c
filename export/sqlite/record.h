// One row as a cell of a SQLite table: payload size, rowid, record (sqlite.org/fileformat2, 2.1).
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace profd::exporting {

inline constexpr size_t kMaxVarint = 9;

enum class CellKind : uint8_t {
  kInt,
  kNumeric,  // a double in a column of affinity INTEGER or NUMERIC: whole numbers become integers
  kReal,     // a double in a column of affinity REAL
};

// Where a column's values are: data[row * step]; step 0 = the same in all rows. Doubles as their bits;
// NaN is NULL.
struct CellColumn {
  const uint64_t* data = nullptr;
  size_t step = 1;
  CellKind kind = CellKind::kInt;
};

// The end of it. `value` in 7 bits a byte, the most significant first; the ninth byte has 8.
inline std::byte* PutVarint(std::byte* out, uint64_t value) {
  if (value < 0x80) {
    *out = static_cast<std::byte>(value);
    return out + 1;
  }
  const int bytes = (static_cast<int>(std::bit_width(value)) + 6) / 7;
  if (bytes > 8) {
    out[8] = static_cast<std::byte>(value);
    value >>= 8;
    for (int i = 7; i >= 0; --i, value >>= 7) out[i] = static_cast<std::byte>(value | 0x80);
    return out + 9;
  }
  out[bytes - 1] = static_cast<std::byte>(value & 0x7f);
  value >>= 7;
  for (int i = bytes - 2; i >= 0; --i, value >>= 7) out[i] = static_cast<std::byte>(value | 0x80);
  return out + bytes;
}

// Type and size of an integer by the number of its bits without the sign's copies.
struct SerialType {
  uint8_t type;
  uint8_t bytes;
};
inline constexpr std::array<SerialType, 64> kIntTypes = [] {
  std::array<SerialType, 64> types{};
  for (unsigned bits = 0; bits < 64; ++bits) {
    types[bits] = bits < 8    ? SerialType{1, 1}
                  : bits < 16 ? SerialType{2, 2}
                  : bits < 24 ? SerialType{3, 3}
                  : bits < 32 ? SerialType{4, 4}
                  : bits < 48 ? SerialType{5, 6}
                              : SerialType{6, 8};
  }
  return types;
}();

inline SerialType IntType(uint64_t value) {
  if (value <= 1) return {static_cast<uint8_t>(8 + value), 0};
  auto sign = static_cast<uint64_t>(static_cast<int64_t>(value) >> 63);
  return kIntTypes[static_cast<size_t>(std::bit_width(value ^ sign))];
}

// Writes up to 8 bytes more than it returns. At most 120 columns.
inline size_t EncodeCell(std::byte* out, int64_t rowid, std::span<const CellColumn> columns,
                         size_t row) {
  constexpr double kTwo63 = 9223372036854775808.0;
  std::array<SerialType, 120> types;
  std::array<uint64_t, 120> values;
  size_t body = 0;
  for (size_t i = 0; i < columns.size(); ++i) {
    uint64_t value = columns[i].data[row * columns[i].step];
    SerialType type;
    if (columns[i].kind == CellKind::kInt) {
      type = IntType(value);
    } else {
      auto number = std::bit_cast<double>(value);
      type = std::isnan(number) ? SerialType{0, 0} : SerialType{7, 8};
      if (columns[i].kind == CellKind::kNumeric && number > -kTwo63 && number < kTwo63) {
        auto whole = static_cast<int64_t>(number);
        if (static_cast<double>(whole) == number) {
          value = static_cast<uint64_t>(whole);
          type = IntType(value);
        }
      }
    }
    types[i] = type;
    values[i] = value;
    body += type.bytes;
  }
  const size_t header = 1 + columns.size();
  std::byte* at = PutVarint(out, header + body);
  at = PutVarint(at, static_cast<uint64_t>(rowid));
  *at++ = static_cast<std::byte>(header);
  for (size_t i = 0; i < columns.size(); ++i) *at++ = std::byte{types[i].type};
  for (size_t i = 0; i < columns.size(); ++i) {
    if (types[i].bytes == 0) continue;
    uint64_t big = __builtin_bswap64(values[i] << (64 - 8 * types[i].bytes));
    std::memcpy(at, &big, sizeof big);
    at += types[i].bytes;
  }
  return static_cast<size_t>(at - out);
}

}  // namespace profd::exporting
