// libprofapi's part in mstx: all marks of the process pass through here to one receiver at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "base/mutex.h"
#include "sim/profapi/profapi.h"

namespace profd::sim::prof {

class MstxSwitch {
 public:
  static constexpr size_t kFunctions = 8;  // of a module; ids begin at 1

  // Lets `init` fill the functions of a receiver.
  int Register(MstxInit init, uint64_t receiver);
  int Enable(uint64_t receiver);
  // The current receiver's function; nullptr: it has none.
  MstxFunction Current(MstxModule module, size_t id);

  // A domain is one object for all receivers; each makes its own when it first meets it.
  void* CreateDomain(const char* name);
  void* CurrentDomain(void* domain);

 private:
  struct Domain {
    std::string name;
    void* of_receiver[3] = {};
  };

  Mutex mutex_;
  MstxFunction functions_[3][kMstxModules][kFunctions] GUARDED_BY(mutex_) = {};
  uint64_t current_ GUARDED_BY(mutex_) = kMstxMsprof;
  std::deque<Domain> domains_ GUARDED_BY(mutex_);  // addresses stay
};

MstxSwitch& TheMstxSwitch();

}  // namespace profd::sim::prof
