// The language of recorder.triggers and recorder.collectors.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "daemon/recorder/trigger.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  profd::Result<profd::Trigger> trigger = profd::ParseTrigger(text);
  // What was understood is understood again, to the same effect.
  if (trigger.ok()) {
    profd::Result<profd::Trigger> again = profd::ParseTrigger(trigger->text);
    if (!again.ok() || again->kind != trigger->kind || again->for_ns != trigger->for_ns ||
        again->labels != trigger->labels) {
      std::abort();
    }
  } else if (trigger.status().message().empty()) {
    std::abort();
  }
  profd::Result<profd::WantedCollector> order = profd::ParseWantedCollector(text);
  if (order.ok() && !(order->hz >= 0)) std::abort();
  return 0;
}
