// Takes numbers and pieces off the front of a fuzzer's input. An input that is used up gives zeros,
// so that every prefix of a seed is an input too; whatever is left over is the payload.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <type_traits>

namespace profd::fuzz {

class Input {
 public:
  Input(const uint8_t* data, size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}

  template <class T>
  T Take() {
    static_assert(std::is_arithmetic_v<T>);
    T value{};
    const size_t size = std::min(sizeof value, rest_.size());
    if (size > 0) std::memcpy(&value, rest_.data(), size);
    rest_.remove_prefix(size);
    return value;
  }
  // 0..count-1; count must not be 0.
  size_t TakeIndex(size_t count) { return Take<uint8_t>() % count; }
  std::string_view TakePiece(size_t size) {
    std::string_view piece = rest_.substr(0, size);
    rest_.remove_prefix(piece.size());
    return piece;
  }
  std::string_view rest() const { return rest_; }
  bool empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

// What a fuzzer does with one input: each defines its own.
void Run(Input input);

// What must hold for every input; reports where and ends the process, as a sanitizer would.
#define FUZZ_EXPECT(condition)                                                     \
  do {                                                                             \
    if (!(condition)) {                                                            \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                \
    }                                                                              \
  } while (0)

}  // namespace profd::fuzz
