// libmsprofiler.so as it was found in this process.
#pragma once

#include <string>
#include <vector>

#include "client/libprofd/aclprof/aclprof_abi.h"
#include "client/libprofd/vendor_library.h"

namespace profd::lib::aclprof {

class AclprofLibrary {
 public:
  // Empty: loaded, and never closed. Otherwise why there is none.
  static std::string Load(AclprofLibrary* library);

  Called Init(const std::string& path);
  // One of 200006 where this version has no such function.
  Called SetConfig(int type, const std::string& value);
  // Keeps the config for Start and Stop. An answer of null is returned as 100000.
  Called CreateConfig(std::vector<uint32_t> devices, int metrics, uint64_t bits);
  Called Start();
  Called Stop();
  // Destroys the config, too.
  Called Finalize();

  // Of the devices that the process sees; all of them, since which it sets is known only when it has.
  static std::vector<uint32_t> Devices();
  // The one that the launcher gave this process; empty: not known, or there is only one.
  static std::vector<uint32_t> OwnDevice();

 private:
  InitFunction init_ = nullptr;
  FinalizeFunction finalize_ = nullptr;
  CreateConfigFunction create_config_ = nullptr;
  ConfigFunction destroy_config_ = nullptr;
  ConfigFunction start_ = nullptr;
  ConfigFunction stop_ = nullptr;
  SetConfigFunction set_config_ = nullptr;
  Config* config_ = nullptr;
};

}  // namespace profd::lib::aclprof
