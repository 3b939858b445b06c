#include "sim/framework/writer.h"

#include <fmt/format.h>

#include <iterator>

namespace profd::sim::framework {

std::string Record(uint16_t type, const Bytes& fixed, const Fields& fields) {
  Bytes body;
  body.PutText(fixed.text());
  for (const auto& [field, text] : fields) {
    body.Put(field).Put(static_cast<uint32_t>(text.size())).PutText(text);
  }
  Bytes record;
  record.Put(type).Put(static_cast<uint32_t>(body.text().size())).PutText(body.text());
  return record.text();
}

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte > 0x7E || c == '"' || c == '\\') {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", byte);
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace profd::sim::framework
