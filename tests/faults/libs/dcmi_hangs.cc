// A libdcmi whose initialisation never returns.
#include <unistd.h>

#include "tests/faults/libs/forward.h"

FAULT_EXPORT int dcmi_init() {
  for (;;) ::pause();
}
