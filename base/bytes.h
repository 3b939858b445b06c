// Bounded, unaligned-safe reading of untrusted little-endian bytes.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace profd {

static_assert(std::endian::native == std::endian::little,
              "driver records are little-endian and decoded in place");

// Reads a T at `offset`; the caller has checked that it fits.
template <class T>
T LoadUnchecked(std::span<const std::byte> bytes, size_t offset) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// Reads a T at `offset` into `*out`; false (and *out untouched) when it does not fit.
template <class T>
[[nodiscard]] bool Load(std::span<const std::byte> bytes, size_t offset, T* out) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return false;
  *out = LoadUnchecked<T>(bytes, offset);
  return true;
}

template <class T>
void StoreUnchecked(std::span<std::byte> bytes, size_t offset, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

inline std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline std::span<const std::byte> AsBytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

}  // namespace profd
