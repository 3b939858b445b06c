// A libdcmi whose initialisation never comes back.
#include <unistd.h>

#include "tests/faults/libs/forward.h"

FAULT_EXPORT int dcmi_init() {
  for (;;) ::pause();
}
