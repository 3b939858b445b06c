#include "export/strings.h"

#include "export/repaired_text.h"

namespace profd::exporting {

int64_t Strings::Intern(std::string_view text) {
  MutexLock lock(mutex_);
  if (auto it = ids_.find(text); it != ids_.end()) return it->second;
  // The kernel cuts names of processes within a character; readers of CSV files and databases then refuse all of them.
  const std::string repaired = RepairedText(text, text.size());
  text = texts_.size() >= kMax ? kOther : std::string_view(repaired);
  if (auto it = ids_.find(text); it != ids_.end()) return it->second;
  const std::string& kept = texts_.emplace_back(text);
  auto id = static_cast<int64_t>(texts_.size() - 1);
  ids_.emplace(kept, id);
  return id;
}

std::string_view Strings::Text(int64_t id) const {
  MutexLock lock(mutex_);
  if (id < 0 || static_cast<size_t>(id) >= texts_.size()) return {};
  return texts_[static_cast<size_t>(id)];
}

size_t Strings::size() const {
  MutexLock lock(mutex_);
  return texts_.size();
}

}  // namespace profd::exporting
