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

static_assert(std::endian::native == std::endian::little);

inline constexpr size_t kMaxVarint = 9;

enum class CellKind : uint8_t {
  kInt,
  kNumeric,  // a double in a column of affinity INTEGER or NUMERIC: integers are stored as such
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

// How a value is stored: its type, its size, and by how much it is shifted to begin at the top.
struct SerialType {
  uint8_t type;
  uint8_t bytes;
  uint8_t shift;
};
inline constexpr SerialType kNullType{0, 0, 0};
inline constexpr SerialType kDoubleType{7, 8, 0};
// By the number of an integer's bits without the sign's copies; behind them 0 and 1.
inline constexpr std::array<SerialType, 66> kIntTypes = [] {
  std::array<SerialType, 66> types{};
  for (unsigned bits = 0; bits < 64; ++bits) {
    types[bits] = bits < 8    ? SerialType{1, 1, 56}
                  : bits < 16 ? SerialType{2, 2, 48}
                  : bits < 24 ? SerialType{3, 3, 40}
                  : bits < 32 ? SerialType{4, 4, 32}
                  : bits < 48 ? SerialType{5, 6, 16}
                              : SerialType{6, 8, 0};
  }
  types[64] = {8, 0, 0};
  types[65] = {9, 0, 0};
  return types;
}();

inline SerialType IntType(uint64_t value) {
  auto sign = static_cast<uint64_t>(static_cast<int64_t>(value) >> 63);
  auto bits = static_cast<size_t>(std::bit_width(value ^ sign));
  return kIntTypes[value <= 1 ? 64 + value : bits];
}

// Writes cells of one table. Remembers what hardly changes from row to row.
class CellEncoder {
 public:
  // At most 50 columns. Writes up to 8 bytes more than it returns.
  size_t Encode(std::byte* out, int64_t rowid, std::span<const CellColumn> columns, size_t row) {
    std::byte* type = PutRowid(out + length_bytes_, static_cast<uint64_t>(rowid));
    const size_t header = 1 + columns.size();
    std::byte* record = type;
    *type++ = static_cast<std::byte>(header);
    std::byte* body = record + header;
    for (const CellColumn& column : columns) {
      uint64_t value = column.data[row * column.step];
      SerialType as = column.kind == CellKind::kInt ? IntType(value) : DoubleType(column.kind, value);
      *type++ = std::byte{as.type};
      const uint64_t big = __builtin_bswap64(value << as.shift);
      std::memcpy(body, &big, sizeof big);
      body += as.bytes;
    }
    return PutLength(out, static_cast<size_t>(body - record), static_cast<size_t>(body - out));
  }

 private:
  // `value` becomes the integer if it is stored as one.
  static SerialType DoubleType(CellKind kind, uint64_t& value) {
    constexpr double kTwo63 = 9223372036854775808.0;
    auto number = std::bit_cast<double>(value);
    if (std::isnan(number)) return kNullType;
    if (kind == CellKind::kReal || !(number > -kTwo63 && number < kTwo63)) return kDoubleType;
    auto whole = static_cast<int64_t>(number);
    if (static_cast<double>(whole) != number) return kDoubleType;
    value = static_cast<uint64_t>(whole);
    return IntType(value);
  }

  // All bytes but the last are those of the rowid before, 127 times out of 128.
  std::byte* PutRowid(std::byte* out, uint64_t rowid) {
    const uint64_t high = rowid >> 7;
    if (high == 0 || rowid >> 56 != 0) return PutVarint(out, rowid);
    if (high != high_) {
      high_ = high;
      high_bytes_ = static_cast<size_t>(PutVarint(high_text_.data(), high) - high_text_.data());
      high_text_[high_bytes_ - 1] |= std::byte{0x80};
    }
    std::memcpy(out, high_text_.data(), 8);
    out[high_bytes_] = static_cast<std::byte>(rowid & 0x7f);
    return out + high_bytes_ + 1;
  }

  // The payload's length stands before what was written behind it; rows of a table are of one or two
  // bytes' length for long.
  size_t PutLength(std::byte* out, size_t payload, size_t total) {
    const size_t bytes = payload < 128 ? 1 : 2;
    if (bytes != length_bytes_) {
      std::memmove(out + bytes, out + length_bytes_, total - length_bytes_);
      total += bytes - length_bytes_;
      length_bytes_ = bytes;
    }
    PutVarint(out, payload);
    return total;
  }

  size_t length_bytes_ = 1;
  uint64_t high_ = 0;  // rowid / 128, never 0 when its bytes are kept
  size_t high_bytes_ = 0;
  std::array<std::byte, 16> high_text_{};
};

}  // namespace profd::exporting
