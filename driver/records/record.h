// The layouts of the driver's records (driver-abi 3.6, dump-format 2), each written once: a header
// per kind of record has its fields, what a plausible one looks like, its timestamp and its key.
// Code that decodes records reads them through these structs; the simulator and the tests write bytes
// by themselves, so that a wrong layout shows.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

#include "base/bytes.h"
#include "driver/abi/channel_format.h"

namespace profd::records {

using Bytes = std::span<const std::byte>;

// Most records are structs that have the driver's bytes, and are copied out of them, which costs no
// more than reading the fields that are used. One that is made of bytes refers to these instead.
template <class Record>
inline constexpr bool kReadInPlace = std::is_constructible_v<Record, Bytes>;

template <class Record>
constexpr size_t SizeOf() {
  if constexpr (kReadInPlace<Record>) {
    return Record::kSize;
  } else {
    return sizeof(Record);
  }
}

// An object at any address. Unlike a copy by memcpy, one of this is not an obstacle to g++ 12 keeping the
// fields in registers, which is worth a third of the time of decoding.
template <class T>
struct [[gnu::packed, gnu::may_alias]] Unaligned {
  T value;
};

// `record` has at least SizeOf<Record>() bytes, which need not be aligned.
template <class Record>
Record Read(Bytes record) {
  if constexpr (kReadInPlace<Record>) {
    return Record(record);
  } else {
    static_assert(std::is_trivially_copyable_v<Record>);
    return reinterpret_cast<const Unaligned<Record>*>(record.data())->value;
  }
}

// For ChannelFormat::plausible.
template <class Record>
bool IsPlausible(Bytes record) {
  return Read<Record>(record).IsPlausible();
}

// For ChannelFormat::usual.
template <class Record>
bool IsUsual(Bytes record) {
  return Read<Record>(record).IsUsual();
}

// Of a field that is there.
inline uint64_t LoadField(Bytes record, abi::Field field) {
  return field.width == 4 ? LoadUnchecked<uint32_t>(record, field.offset) : LoadUnchecked<uint64_t>(record, field.offset);
}
inline void StoreField(std::span<std::byte> record, abi::Field field, uint64_t value) {
  std::memcpy(record.data() + field.offset, &value, field.width);
}

// More memory than any device has, with a margin: 256 TiB.
inline constexpr uint64_t kMaxMemoryBytes = uint64_t{1} << 48;
// Timestamps this large are not times: half the range of int64.
inline constexpr uint64_t kMaxTimestamp = uint64_t{1} << 62;

}  // namespace profd::records
