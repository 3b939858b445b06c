#include "client/user_names.h"

#include <pwd.h>

#include <array>
#include <map>
#include <utility>

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

struct Names {
  std::function<std::string(uint32_t)> lookup = AskMachine;
  std::map<uint32_t, std::string> known;
};

Names& TheNames() {
  static Names names;
  return names;
}

}  // namespace

std::string UserText(uint32_t uid) {
  Names& names = TheNames();
  auto [name, is_new] = names.known.try_emplace(uid);
  if (is_new) {
    name->second = names.lookup(uid);
    if (name->second.empty()) name->second = std::to_string(uid);
  }
  return name->second;
}

void SetUserLookup(std::function<std::string(uint32_t)> lookup) {
  TheNames() = {std::move(lookup), {}};
}

}  // namespace profd::client
