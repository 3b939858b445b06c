#include "client/libprofd/mstx/profd_calls.h"

#include <dlfcn.h>

#include <cstdlib>

#include "client/libprofd/path_beside.h"
#include "client/libprofd/vendor_library.h"

namespace profd::mstx {
namespace {

constexpr const char* kLibrary = "libprofd.so.0";

void* Open() {
  if (void* loaded = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) return loaded;
  // This one or none, as everywhere.
  if (const char* named = std::getenv("PROFD_LIBRARY"); named != nullptr && *named != '\0') {
    return ::dlopen(named, RTLD_NOW | RTLD_LOCAL);
  }
  if (void* beside = ::dlopen(lib::PathBeside(kLibrary).c_str(), RTLD_NOW | RTLD_LOCAL)) return beside;
  return ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
}

}  // namespace

ProfdCalls FindProfd() {
  ProfdCalls calls;
  void* library = Open();
  const bool complete = library != nullptr && lib::FindFunction(library, "profd_mark_in", &calls.mark_in) &&
                        lib::FindFunction(library, "profd_range_start", &calls.range_start) &&
                        lib::FindFunction(library, "profd_range_end", &calls.range_end);
  return complete ? calls : ProfdCalls();
}

}  // namespace profd::mstx
