// The language of recorder.triggers and recorder.collectors.
#include "daemon/recorder/trigger.h"
#include "tests/fuzz/fuzz_input.h"

void profd::fuzz::Run(Input input) {
  const Result<Trigger> trigger = ParseTrigger(input.rest());
  // What was understood is understood again, to the same effect.
  if (trigger.ok()) {
    const Result<Trigger> again = ParseTrigger(trigger->text);
    FUZZ_EXPECT(again.ok() && again->kind == trigger->kind && again->for_ns == trigger->for_ns &&
                again->labels == trigger->labels);
  } else {
    FUZZ_EXPECT(!trigger.status().message().empty());
  }
  const Result<WantedCollector> order = ParseWantedCollector(input.rest());
  if (order.ok()) FUZZ_EXPECT(order->hz >= 0);
}
