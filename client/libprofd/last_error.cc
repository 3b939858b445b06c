#include "client/libprofd/last_error.h"

#include <pthread.h>

#include <cstdlib>
#include <cstring>

namespace profd::lib {
namespace {

struct Key {
  Key() : made(::pthread_key_create(&key, [](void* text) { std::free(text); }) == 0) {}
  pthread_key_t key{};
  bool made;
};

// Never destroyed, as the key must outlive every thread.
const Key& TheKey() {
  static const Key key;
  return key;
}

}  // namespace

void SetLastError(const std::string& text) {
  const Key& key = TheKey();
  if (!key.made) return;
  void* before = ::pthread_getspecific(key.key);
  if (before == nullptr && text.empty()) return;
  char* copy = text.empty() ? nullptr : ::strdup(text.c_str());
  if (::pthread_setspecific(key.key, copy) == 0) {
    std::free(before);
  } else {
    std::free(copy);
  }
}

const char* LastError() {
  const Key& key = TheKey();
  const auto* text = key.made ? static_cast<const char*>(::pthread_getspecific(key.key)) : nullptr;
  return text == nullptr ? "" : text;
}

}  // namespace profd::lib
