// The files of a FRAMEWORK directory as bytes, little endian, and what is in them as lines of JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace profd::sim::framework {

// Fields of a record behind its fixed part: type and text.
using Fields = std::vector<std::pair<uint16_t, std::string>>;

// Packed, in the order of the calls.
class Bytes {
 public:
  template <class T>
  Bytes& Put(T value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Bytes& PutText(std::string_view text) {
    text_.append(text);
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// type u16, length u32 of what follows, the fixed part, then the fields in the same way.
std::string Record(uint16_t type, const Bytes& fixed, const Fields& fields = {});
// A text as JSON has it; what is not UTF-8 byte by byte as \u00XX.
std::string Quoted(std::string_view text);

}  // namespace profd::sim::framework
