#include "driver/dcmi_library.h"

#include "driver/dl_library.h"

namespace profd {

Result<DcmiLibrary> LoadDcmiLibrary(const std::string& configured_path, bool trust_unsafe_path) {
  // dcmi-and-metrics 1.1.
  Result<DlLibrary> opened = DlLibrary::Open({.configured_path = configured_path,
                                              .soname = "libdcmi.so",
                                              .usual_folders = {"/usr/local/dcmi", "/usr/local/Ascend/driver/lib64",
                                                                "/usr/local/Ascend/driver/lib64/common",
                                                                "/usr/local/Ascend/driver/lib64/driver"},
                                              .trust_unsafe_path = trust_unsafe_path});
  if (!opened.ok()) return opened.status().Annotate("libdcmi");
  DcmiLibrary library;
  library.path = opened->path();
  VisitDcmiSymbols(library.functions, [&](const char* name, auto& function, const char*) {
    opened->Resolve(name, &function, &library.missing);
  });
  if (library.functions.init == nullptr && library.functions.v2_init == nullptr) {
    return FailedPrecondition(library.path + " has neither dcmi_init nor dcmiv2_init");
  }
  return library;
}

}  // namespace profd
