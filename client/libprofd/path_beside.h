// Libraries of profd that find each other: they are installed beside each other, of one version.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <string>

namespace profd::lib {

// The path of `library` in the folder of the shared object that this is compiled into, wherever a link to that lies;
// only its name where the folder cannot be determined.
inline std::string PathBeside(const char* library) {
  Dl_info self{};
  if (::dladdr(reinterpret_cast<const void*>(&PathBeside), &self) == 0 || self.dli_fname == nullptr) {
    return library;
  }
  char* real = ::realpath(self.dli_fname, nullptr);
  std::string path = real == nullptr ? self.dli_fname : real;
  std::free(real);
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return library;
  return path.substr(0, slash + 1) + library;
}

}  // namespace profd::lib
