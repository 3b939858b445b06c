#include "collectors/proc/raw_block.h"

#include <fmt/format.h>

#include <iterator>

namespace profd {

void AppendRawBlock(int64_t raw_ns, uint64_t index, std::string_view body, std::string* out) {
  if (body.ends_with('\n')) body.remove_suffix(1);
  fmt::format_to(std::back_inserter(*out), "TimeStamp:{}\nIndex:{}\nDataLen:{}\n", raw_ns, index,
                 body.size());
  out->append(body);
  out->append("\n\n");
}

void AppendProcessName(std::string_view comm, std::string* out) {
  out->append("ProcessName:");
  AppendWord(comm, kMaxDeviceChars, out);
  out->push_back('\n');
}

}  // namespace profd
