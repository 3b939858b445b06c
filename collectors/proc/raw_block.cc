#include "collectors/proc/raw_block.h"

#include <fmt/format.h>

namespace profd {

void AppendRawBlock(int64_t raw_ns, uint64_t index, std::string_view body, std::string* out) {
  if (body.ends_with('\n')) body.remove_suffix(1);
  auto number = [out](std::string_view name, auto value) {
    const fmt::format_int text(value);
    out->append(name);
    out->append(text.data(), text.size());
  };
  number("TimeStamp:", raw_ns);
  number("\nIndex:", index);
  number("\nDataLen:", body.size());
  out->push_back('\n');
  out->append(body);
  out->append("\n\n");
}

void AppendProcessName(std::string_view comm, std::string* out) {
  out->append("ProcessName:");
  AppendWord(comm, kMaxDeviceChars, out);
  out->push_back('\n');
}

}  // namespace profd
