// libdcmi.so, loaded: whatever of driver/abi/dcmi_table.h it has.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "driver/abi/dcmi_table.h"

namespace profd {

// A loaded library; it stays loaded for good (dl_library.h), so the functions outlive every copy.
struct DcmiLibrary {
  DcmiFunctions functions;
  std::string path;                  // what was loaded; empty for a table made by hand
  std::vector<std::string> missing;  // names the library does not have: those calls are unsupported
};

// Without a configured path looks for libdcmi.so by its bare name and then in the driver's usual folders. Both as
// DlOptions has them.
Result<DcmiLibrary> LoadDcmiLibrary(const std::string& configured_path, bool trust_unsafe_path);

}  // namespace profd
