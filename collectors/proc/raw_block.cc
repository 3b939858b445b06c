#include "collectors/proc/raw_block.h"

#include <fmt/format.h>

#include <cstring>

namespace profd {

void RawBlockWriter::SetTime(int64_t raw_ns) {
  const fmt::format_int time(raw_ns);
  head_.assign("TimeStamp:");
  head_.append(time.data(), time.size());
  head_.append("\nIndex:");
}

void RawBlockWriter::Write(RawSink& raw, std::string_view file, uint64_t index,
                           std::initializer_list<std::string_view> body) {
  constexpr std::string_view kLength = "\nDataLen:";
  constexpr std::string_view kEnd = "\n\n";
  size_t bytes = 0;
  bool newline = false;
  for (std::string_view piece : body) {
    bytes += piece.size();
    if (!piece.empty()) newline = piece.back() == '\n';
  }
  if (newline) --bytes;
  const fmt::format_int index_text(index);
  const fmt::format_int length_text(bytes);
  const size_t total = head_.size() + index_text.size() + kLength.size() + length_text.size() + 1 +
                       bytes + kEnd.size();
  char* to = raw.Reserve(file, total);
  const bool in_place = to != nullptr;
  if (!in_place) {
    if (block_.capacity() < total) block_.reserve(2 * total);  // indices get longer
    block_.resize(total);
    to = block_.data();
  }
  auto put = [&to](const char* data, size_t size) {
    if (size == 0) return;
    std::memcpy(to, data, size);
    to += size;
  };
  put(head_.data(), head_.size());
  put(index_text.data(), index_text.size());
  put(kLength.data(), kLength.size());
  put(length_text.data(), length_text.size());
  *to++ = '\n';
  for (std::string_view piece : body) put(piece.data(), piece.size());
  if (newline) --to;
  put(kEnd.data(), kEnd.size());
  if (!in_place) raw.WriteHostFile(file, block_);
}

std::string ProcessNameLine(std::string_view comm) {
  std::string line = "ProcessName:";
  AppendWord(comm, kMaxDeviceChars, &line);
  line.push_back('\n');
  return line;
}

}  // namespace profd
