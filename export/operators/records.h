// Records of the files that the vendor's in-process profiler writes (operator-data a.2 and a.4), as they are laid
// out: little endian, packed, some fields unaligned. Everything in them is untrusted.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace profd::exporting::operators {

// Levels of host records.
inline constexpr uint16_t kRuntimeLevel = 5000;
inline constexpr uint16_t kCommunicationLevel = 5500;
inline constexpr uint16_t kNodeLevel = 10000;
inline constexpr uint16_t kModelLevel = 15000;
inline constexpr uint16_t kAclLevel = 20000;

inline constexpr uint16_t kHostMagic = 0x5A5A;
inline constexpr uint16_t kStarsMagic = 0x6BD3;
inline constexpr uint16_t kStreamDestroyed = 0xFFFF;  // as number of a flip
inline constexpr uint32_t kNoContext = 0xFFFFFFFF;
inline constexpr uint32_t kNoModel = 0xFFFFFFFF;
inline constexpr uint16_t kUnknownSqe = 0xFFFF;
inline constexpr uint16_t kSqeV6 = 0x100;  // before the numbers of chips 15 and 16

// Fields of one record by their offset; the caller has checked the size.
class RecordView {
 public:
  explicit RecordView(std::span<const std::byte> bytes) : data_(bytes.data()) {}
  uint8_t U8(size_t at) const { return Load<uint8_t>(at); }
  uint16_t U16(size_t at) const { return Load<uint16_t>(at); }
  uint32_t U32(size_t at) const { return Load<uint32_t>(at); }
  uint64_t U64(size_t at) const { return Load<uint64_t>(at); }
  std::string_view Bytes(size_t at, size_t count) const { return {reinterpret_cast<const char*>(data_ + at), count}; }

 private:
  template <class T>
  T Load(size_t at) const {
    T value;
    std::memcpy(&value, data_ + at, sizeof value);
    return value;
  }
  const std::byte* data_;
};

// Header of every host record.
struct HostHeader {
  explicit HostHeader(const RecordView& record)
      : magic(record.U16(0)), level(record.U16(2)), type(record.U32(4)), thread(record.U32(8)) {}
  uint16_t magic;
  uint16_t level;
  uint32_t type;
  uint32_t thread;
};

// Those of `key` in what is sorted by it, as iterators. (std::ranges::equal_range gives a subrange, which clang 14
// cannot take.)
template <class Records, class Key, class Projection>
auto EqualRange(Records& records, const Key& key, Projection projection) {
  return std::pair(std::ranges::lower_bound(records, key, {}, projection),
                   std::ranges::upper_bound(records, key, {}, projection));
}

}  // namespace profd::exporting::operators
