// A driver that never answers the first question.
#include <unistd.h>

#include "tests/faults/libs/forward.h"

FAULT_EXPORT int drvGetDevNum(uint32_t*) {
  for (;;) ::pause();
}
