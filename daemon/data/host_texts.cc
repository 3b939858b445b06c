#include "daemon/data/host_texts.h"

#include <algorithm>
#include <cstring>

#include "daemon/data/dump_writer.h"

namespace profd {
namespace {

constexpr size_t kHeadBytes = sizeof(uint32_t) + sizeof(uint8_t);
constexpr size_t kMaxName = 255;
// A size of the block pool's.
constexpr size_t kBundleBytes = 32 * 1024;
constexpr size_t kMaxPart = BlockPool::kMaxBlockBytes - kHeadBytes - kMaxName;

}  // namespace

void HostTexts::Add(std::string_view file, std::string_view lines) {
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

void HostTexts::AddPart(std::string_view file, std::string_view lines) {
  if (texts_.size() + kHeadBytes + file.size() + lines.size() > kBundleBytes) Flush();
  AppendHostText(file, lines, &texts_);
  ++count_;
}

void HostTexts::Flush() {
  if (count_ == 0) return;
  session_->PushTexts(feed_, texts_, count_);
  texts_.clear();
  count_ = 0;
}

void AppendHostText(std::string_view file, std::string_view lines, std::string* out) {
  file = file.substr(0, kMaxName);
  const auto size = static_cast<uint32_t>(lines.size());
  char head[kHeadBytes];
  std::memcpy(head, &size, sizeof size);
  head[sizeof size] = static_cast<char>(file.size());
  out->append(head, kHeadBytes);
  out->append(file);
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
