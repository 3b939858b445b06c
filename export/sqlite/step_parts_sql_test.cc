// Views of iterations and steps with their parts.
#include "export/sqlite/test_support.h"

namespace profd::exporting {
namespace {

TEST(StepPartsSql, PartsOfStepsAreViews) {
  for (size_t dumps : {1, 2}) {
    MadeExport made(dumps, 1);
    auto sink = made.Open(0, 0);
    Event event;
    event.kind = EventKind::kDeviceStep;
    event.device = 0;
    for (int64_t step : {3, 4}) {
      event.t_ns = kMadeBegin + step * 100;
      event.dur_ns = 90;
      event.value = step;
      if (step == 3) {
        event.args = {{"FP Start", 10.0},    {"BP End", 60.0},       {"Data Aug Bound", 20.0}, {"Reduce Start", 40.0},
                      {"Reduce End", 50.0}, {"Reduce Start", 45.0}, {"Reduce End", 70.0}};
      } else {
        event.args.clear();
      }
      sink->TakeEvent(event);
    }
    ASSERT_TRUE(sink->Finish().ok());
    sink.reset();
    made.End();
    EXPECT_EQ(made.Query("SELECT step, device, kind, fp_start_ns - start_ns, bp_end_ns - start_ns, data_aug_ns, tail_ns, "
                         "all_reduces FROM profd_step_trace ORDER BY start_ns"),
              (SqlRows{{3, 0, "device_step", 10, 60, 20, 30, 2}, {4, 0, "device_step", SqlCell(), SqlCell(), SqlCell(), SqlCell(), 0}}));
    EXPECT_EQ(made.Query("SELECT step, number, start_ns - step_start_ns, end_ns - start_ns, node FROM profd_step_reduces "
                         "ORDER BY start_ns"),
              (SqlRows{{3, 0, 40, 10, "node0"}, {3, 1, 45, 25, "node0"}}));
  }
}

}  // namespace
}  // namespace profd::exporting
