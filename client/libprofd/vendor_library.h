// A library of the vendor's as it is found in this process, and calls into it. A function may throw through its C
// interface; here it answers kThrew then, with the reason.
#pragma once

#include <cxxabi.h>
#include <dlfcn.h>

#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace profd::lib {

inline constexpr int kThrew = 999;

struct Called {
  int code = 0;
  std::string why;  // what it threw
  bool ok() const { return code == 0; }
};

template <class Call>
Called Guarded(Call call) {
  try {
    return {call(), {}};
  } catch (abi::__forced_unwind&) {
    throw;  // the end of a cancelled thread is not an exception
  } catch (const std::exception& thrown) {
    return {kThrew, thrown.what()};
  } catch (...) {
    return {kThrew, "an exception of unknown type"};
  }
}

// One that is mapped already, else of the given folders of $ASCEND_HOME_PATH ("lib64"), else by its name. Never closed.
// Null: why there is none.
void* OpenVendorLibrary(const char* library, const std::vector<std::string>& folders, std::string* why);

// False: it has no function of this name.
template <class Function>
bool FindFunction(void* handle, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(::dlsym(handle, name));
  return *function != nullptr;
}

// Whether the process has a library of this name mapped already.
bool IsMapped(const char* library);
// One whose file has this name, from whatever folder; for libraries without a soname.
bool IsMappedFile(std::string_view file_name);

}  // namespace profd::lib
