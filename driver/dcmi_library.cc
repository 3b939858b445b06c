#include "driver/dcmi_library.h"

#include "driver/dl_library.h"

namespace profd {

Result<DcmiLibrary> LoadDcmiLibrary(const DcmiLibraryOptions& options) {
  DlOptions search{.configured_path = options.configured_path, .soname = "libdcmi.so",
                   .trust_unsafe_path = options.trust_unsafe_path};
  // dcmi-and-metrics 1.1.
  search.usual_folders = {"/usr/local/dcmi", "/usr/local/Ascend/driver/lib64",
                          "/usr/local/Ascend/driver/lib64/common",
                          "/usr/local/Ascend/driver/lib64/driver"};
  Result<DlLibrary> opened = DlLibrary::Open(search);
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
