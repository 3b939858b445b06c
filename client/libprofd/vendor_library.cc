#include "client/libprofd/vendor_library.h"

#include <link.h>

#include <cstdlib>

#include "base/text.h"

namespace profd::lib {
namespace {

// Never closed: late callbacks may come after the last call. Lazy, since a version may lack what only other
// clients call.
constexpr int kLoadFlags = RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE;

}  // namespace

void* OpenVendorLibrary(const char* library, const std::vector<std::string>& folders, std::string* why) {
  std::vector<std::string> places;
  if (const char* home = ::getenv("ASCEND_HOME_PATH"); home != nullptr && *home != '\0') {
    for (const std::string& folder : folders) places.push_back(std::string(home) + "/" + folder + "/" + library);
  }
  places.emplace_back(library);
  void* handle = nullptr;
  // Its constructors run in here.
  const Called opened = Guarded([&] {
    // One that is preloaded, or that the application loaded, is the one that sees its calls.
    handle = ::dlopen(library, kLoadFlags | RTLD_NOLOAD);
    for (const std::string& place : places) {
      if (handle != nullptr) break;
      handle = ::dlopen(place.c_str(), kLoadFlags);
      if (handle == nullptr) *why = ::dlerror();
    }
    return 0;
  });
  if (!opened.ok()) *why = std::string(library) + ": " + opened.why;
  return opened.ok() ? handle : nullptr;
}

bool IsMapped(const char* library) {
  void* handle = ::dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return false;
  ::dlclose(handle);
  return true;
}

bool IsMappedFile(std::string_view file_name) {
  const auto is_it = [](dl_phdr_info* info, size_t, void* wanted) {
    const std::string_view path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
    return static_cast<int>(BaseName(path) == *static_cast<std::string_view*>(wanted));
  };
  return ::dl_iterate_phdr(is_it, &file_name) != 0;
}

}  // namespace profd::lib
