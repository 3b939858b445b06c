#include "daemon/data/host_file_buffer.h"

#include <algorithm>
#include <cstring>

#include "daemon/data/dump_writer.h"

namespace profd {
namespace {

constexpr size_t kHeadBytes = sizeof(uint32_t) + sizeof(uint8_t);
constexpr size_t kMaxName = 255;
// Sizes of the block pool's; the larger one for what fills a part of it at least.
constexpr size_t kBundleBytes = 32 * 1024;
constexpr size_t kLargeBundleBytes = BlockPool::kMaxBlockBytes;
constexpr size_t kLeastForLarge = kLargeBundleBytes / 4;
constexpr size_t kMaxPart = BlockPool::kMaxBlockBytes - kHeadBytes - kMaxName;

// Head and name of a text; returns where its lines go.
char* PutHead(std::string_view file, size_t bytes, char* at) {
  const auto size = static_cast<uint32_t>(bytes);
  std::memcpy(at, &size, sizeof size);
  at[sizeof size] = static_cast<char>(file.size());
  if (!file.empty()) std::memcpy(at + kHeadBytes, file.data(), file.size());
  return at + kHeadBytes + file.size();
}

}  // namespace

void HostFileBuffer::Add(std::string_view file, std::string_view lines) {
  file = file.substr(0, kMaxName);
  while (!lines.empty()) {
    std::string_view part = lines.substr(0, kMaxPart);
    if (part.size() < lines.size()) {
      const size_t end = part.rfind('\n');
      if (end != std::string_view::npos) part = part.substr(0, end + 1);
    }
    lines.remove_prefix(part.size());
    AddPart(file, part);
  }
}

void HostFileBuffer::AddPart(std::string_view file, std::string_view lines) {
  if (char* place = Reserve(file, lines.size())) {
    std::memcpy(place, lines.data(), lines.size());
  } else {
    Lose(lines.size());
  }
}

void HostFileBuffer::Lose(size_t bytes, uint64_t records) {
  session_->CountLostTextRecords(feed_, bytes, records);
}

// One text of many records, and so one write. A text of lines counts as one record: it stays by itself.
char* HostFileBuffer::Extend(std::string_view file, size_t bytes) {
  if (used_ == 0 || feed_->options().record_bytes == 0 || buffer_.size() - used_ < bytes) return nullptr;
  char* const head = reinterpret_cast<char*>(buffer_.data()) + last_;
  uint32_t size = 0;
  std::memcpy(&size, head, sizeof size);
  const auto name = static_cast<uint8_t>(head[sizeof size]);
  if (std::string_view(head + kHeadBytes, name) != file) return nullptr;
  size += static_cast<uint32_t>(bytes);
  std::memcpy(head, &size, sizeof size);
  return reinterpret_cast<char*>(buffer_.data()) + used_;
}

char* HostFileBuffer::Reserve(std::string_view file, size_t bytes, uint64_t records) {
  if (file.size() > kMaxName || bytes > kMaxPart) return nullptr;
  size_t needed = bytes;
  char* at = Extend(file, bytes);
  if (at == nullptr) {
    needed += kHeadBytes + file.size();
    if (buffer_.size() - used_ < needed) {
      HandOn();
      const size_t rest = added_before_ - std::min(added_before_, added_);
      const size_t bundle = rest >= kLeastForLarge ? kLargeBundleBytes : std::min(std::max(added_, added_before_), kBundleBytes);
      block_ = session_->NewTextBlock(std::max(needed, bundle));
      if (!block_ && bundle > needed) block_ = session_->NewTextBlock(needed);
      if (!block_) return nullptr;
      buffer_ = block_.buffer();
    }
    last_ = used_;
    at = PutHead(file, bytes, reinterpret_cast<char*>(buffer_.data()) + used_);
  }
  used_ += needed;
  added_ += needed;
  count_ += records;
  return at;
}

void HostFileBuffer::HandOn() {
  if (count_ > 0) session_->PushTextRecords(feed_, std::move(block_), used_, count_);
  buffer_ = {};
  used_ = 0;
  count_ = 0;
}

void HostFileBuffer::Flush() {
  HandOn();
  added_before_ = std::exchange(added_, 0);
}

void AppendHostText(std::string_view file, std::string_view lines, std::string* out) {
  file = file.substr(0, kMaxName);
  const size_t at = out->size();
  out->resize(at + kHeadBytes + file.size());
  PutHead(file, lines.size(), out->data() + at);
  out->append(lines);
}

bool NextHostText(std::string_view* rest, std::string_view* file, std::string_view* lines) {
  if (rest->size() < kHeadBytes) return false;
  uint32_t size = 0;
  std::memcpy(&size, rest->data(), sizeof size);
  const auto name = static_cast<uint8_t>((*rest)[sizeof size]);
  if (rest->size() - kHeadBytes < size_t{size} + name) return false;
  *file = rest->substr(kHeadBytes, name);
  *lines = rest->substr(kHeadBytes + name, size);
  rest->remove_prefix(kHeadBytes + name + size);
  return true;
}

}  // namespace profd
