#include "client/libprofd/mspti/mspti_library.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <exception>
#include <vector>

namespace profd::lib::mspti {
namespace {

template <class Call>
Called Guarded(Call call) {
  try {
    return {call(), {}};
  } catch (abi::__forced_unwind&) {
    throw;  // the end of a cancelled thread is no exception
  } catch (const std::exception& thrown) {
    return {kInner, thrown.what()};
  } catch (...) {
    return {kInner, "an exception of unknown type"};
  }
}

// Never closed: late callbacks may come after Unsubscribe. Lazy, since a version may lack what only other
// clients call.
constexpr int kLoadFlags = RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE;

void* OpenAnywhere(std::string* why) {
  std::vector<std::string> places;
  if (const char* home = ::getenv("ASCEND_HOME_PATH"); home != nullptr && *home != '\0') {
    places.push_back(std::string(home) + "/lib64/" + kLibrary);
    places.push_back(std::string(home) + "/tools/mspti/lib64/" + kLibrary);
  }
  places.emplace_back(kLibrary);
  // One that is preloaded, or that the application loaded, is the one that sees its calls.
  void* handle = ::dlopen(kLibrary, kLoadFlags | RTLD_NOLOAD);
  for (const std::string& place : places) {
    if (handle != nullptr) return handle;
    handle = ::dlopen(place.c_str(), kLoadFlags);
    if (handle == nullptr) *why = ::dlerror();
  }
  return handle;
}

template <class Function>
void Find(void* handle, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(::dlsym(handle, name));
}

}  // namespace

bool IsMapped(const char* library) {
  void* handle = ::dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return false;
  ::dlclose(handle);
  return true;
}

bool IsMappedFile(std::string_view file_name) {
  const auto is_it = [](dl_phdr_info* info, size_t, void* wanted) {
    const std::string_view path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
    return static_cast<int>(path.substr(path.rfind('/') + 1) == *static_cast<std::string_view*>(wanted));
  };
  return ::dl_iterate_phdr(is_it, &file_name) != 0;
}

std::string MsptiLibrary::Load(MsptiLibrary* library) {
  std::string why;
  void* handle = nullptr;
  const Called opened = Guarded([&] {
    handle = OpenAnywhere(&why);
    return 0;
  });
  if (!opened.ok()) return std::string(kLibrary) + ": " + opened.why;
  if (handle == nullptr) return why;
  Find(handle, kSubscribeName, &library->subscribe_);
  Find(handle, kUnsubscribeName, &library->unsubscribe_);
  Find(handle, kRegisterCallbacksName, &library->register_callbacks_);
  Find(handle, kEnableName, &library->enable_);
  Find(handle, kDisableName, &library->disable_);
  Find(handle, kFlushAllName, &library->flush_all_);
  Find(handle, kIsEnabledName, &library->is_enabled_);
  if (library->subscribe_ == nullptr || library->unsubscribe_ == nullptr ||
      library->register_callbacks_ == nullptr || library->enable_ == nullptr ||
      library->disable_ == nullptr || library->flush_all_ == nullptr) {
    return std::string(kLibrary) + " lacks functions of MSPTI";
  }
  return {};
}

Called MsptiLibrary::Subscribe() {
  return Guarded([this] { return subscribe_(&subscriber_, nullptr, nullptr); });
}
Called MsptiLibrary::RegisterCallbacks(RequestFunction request, CompleteFunction complete) {
  return Guarded([&] { return register_callbacks_(request, complete); });
}
Called MsptiLibrary::Enable(Kind kind) {
  return Guarded([&] { return enable_(kind); });
}
Called MsptiLibrary::Disable(Kind kind) {
  return Guarded([&] { return disable_(kind); });
}
Called MsptiLibrary::FlushAll() {
  return Guarded([this] { return flush_all_(0); });
}
Called MsptiLibrary::Unsubscribe() {
  return Guarded([this] { return unsubscribe_(subscriber_); });
}

}  // namespace profd::lib::mspti
