#include "client/user_names.h"

#include <pwd.h>

#include <array>
#include <map>
#include <utility>

#include "base/mutex.h"

namespace profd::client {
namespace {

std::string AskMachine(uint32_t uid) {
  std::array<char, 16384> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) {
    return {};
  }
  return found->pw_name;
}

// The answers of several nodes are made texts by a thread each (client/fleet/fan_out.h).
struct Names {
  Mutex mutex;
  std::function<std::string(uint32_t)> lookup GUARDED_BY(mutex) = AskMachine;
  std::map<uint32_t, std::string> known GUARDED_BY(mutex);
};

Names& TheNames() {
  static Names names;
  return names;
}

}  // namespace

std::string UserText(uint32_t uid) {
  Names& names = TheNames();
  // Held while it looks up, too: the others wait for the name instead of asking for it again.
  MutexLock lock(names.mutex);
  auto [name, is_new] = names.known.try_emplace(uid);
  if (is_new) {
    name->second = names.lookup(uid);
    if (name->second.empty()) name->second = std::to_string(uid);
  }
  return name->second;
}

void SetUserLookup(std::function<std::string(uint32_t)> lookup) {
  Names& names = TheNames();
  MutexLock lock(names.mutex);
  names.lookup = std::move(lookup);
  names.known.clear();
}

}  // namespace profd::client
