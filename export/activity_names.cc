#include "export/activity_names.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "base/text.h"
#include "dump/activity_files.h"
#include "export/repaired_text.h"

namespace profd::exporting {

ActivityNames::Line ActivityNames::Add(std::string_view line) {
  const size_t tab = line.find('\t');
  uint32_t id = 0;
  if (tab == std::string_view::npos || !ParseNumber(line.substr(0, tab), &id) || id == 0) return Line::kBad;
  if (names_.contains(id)) return Line::kBad;
  // As the daemon writes them.
  std::string name = RepairedText(line.substr(tab + 1), kMaxBytes);
  std::ranges::replace_if(name, IsControl, ' ');
  if (names_.size() >= kMaxNames || text_.size() + name.size() > kMaxBytes) return Line::kTooMany;
  names_.emplace(id, std::pair(static_cast<uint32_t>(text_.size()), static_cast<uint32_t>(name.size())));
  text_ += name;
  return Line::kTaken;
}

Status ActivityNames::Load(int fd) {
  constexpr size_t kBlock = 256u << 10;
  // The rest is not needed of a file that is so much longer than what is kept.
  constexpr uint64_t kMaxRead = uint64_t{kMaxBytes} * 2;
  std::vector<char> block(kBlock);
  std::string rest;
  uint64_t bad = 0;
  uint64_t too_many = 0;
  bool first = true;
  bool cut = false;
  for (uint64_t read = 0; !cut;) {
    const ssize_t got = ::read(fd, block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Status::FromErrno(errno, "reading names");
    if (got == 0) break;
    rest.append(block.data(), static_cast<size_t>(got));
    read += static_cast<uint64_t>(got);
    cut = read > kMaxRead || rest.size() > kMaxBytes;
    size_t begin = 0;
    for (size_t end = rest.find('\n'); end != std::string::npos; end = rest.find('\n', begin)) {
      const std::string_view line(rest.data() + begin, end - begin);
      begin = end + 1;
      const bool heading = std::exchange(first, false) && kActivityNamesHeading.starts_with(line);
      if (heading) continue;
      const Line added = Add(line);
      bad += added == Line::kBad ? 1 : 0;
      too_many += added == Line::kTooMany ? 1 : 0;
    }
    rest.erase(0, begin);
  }
  // A line without an end is still being written, or was when the machine went down.
  std::string what;
  if (bad > 0) what = fmt::format("{} lines are not names", bad);
  if (too_many > 0 || cut) {
    what += fmt::format("{}more than {} names or {} MiB: others are shown by their numbers",
                        what.empty() ? "" : "; ", kMaxNames, kMaxBytes >> 20);
  }
  return what.empty() ? Status::Ok() : DataLoss(what);
}

std::string ActivityNames::Text(uint32_t id) const {
  if (id == 0) return {};
  const auto found = names_.find(id);
  if (found == names_.end()) return fmt::format("name {}", id);
  return text_.substr(found->second.first, found->second.second);
}

}  // namespace profd::exporting
