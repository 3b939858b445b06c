// Broken drivers for tests: libraries with the vendor's symbols that pass every call on to the
// simulator, except for what a variant does wrong. forward_hal.cc defines all symbols weakly; a
// variant is one file that defines some of them again.
#pragma once

#include <dlfcn.h>

#include <cstdlib>

#include "driver/abi/hal_abi.h"

#define FAULT_EXPORT extern "C" __attribute__((visibility("default")))
#define FAULT_EXPORT_WEAK extern "C" __attribute__((visibility("default"), weak))

namespace fault {

// The simulator's function, from the library named by PROFD_FAULT_REAL_HAL.
template <class Fn>
Fn Real(const char* name) {
  static void* const library = [] {
    const char* path = std::getenv("PROFD_FAULT_REAL_HAL");
    return path == nullptr ? nullptr : ::dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  }();
  if (library == nullptr) std::abort();  // the test forgot the variable
  return reinterpret_cast<Fn>(::dlsym(library, name));
}

// The argument of a variant, or `otherwise`.
inline int Number(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

}  // namespace fault
