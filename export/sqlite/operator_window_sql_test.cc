// Tables of operators in an export of a part of the time.
#include "export/operators/model.h"
#include "export/sqlite/operator_doc_model.h"
#include "export/sqlite/test_support.h"

namespace profd::exporting {
namespace {

// Calls begin 1, 2, 3 and 5 ms after the begin.
TEST(OperatorWindowSql, CallsAndMemoryAreOfTheWindow) {
  MadeExport made(1, 1);
  made.Begin();
  const std::unique_ptr<operators::Model> model = MadeOperators(kMadeBegin, 0);
  for (const int64_t at_ms : {1, 3, 30}) {
    operators::MemoryRecord record;
    record.time = static_cast<uint64_t>(at_ms * kMs);
    record.bytes = 1024;
    record.device_type = operators::kNpuMemory;
    model->host.memory.memory.push_back(record);
  }
  model->KeepOnly({kMadeBegin + 2 * kMs, kMadeBegin + 20 * kMs});
  ASSERT_TRUE(made.format().TakeOperators(0, *model).ok());
  made.End();
  EXPECT_EQ(made.Query("SELECT startNs FROM CANN_API ORDER BY startNs"),
            (SqlRows{{kMadeBegin + 2 * kMs}, {kMadeBegin + 3 * kMs}, {kMadeBegin + 5 * kMs}}));
  EXPECT_EQ(made.Query("SELECT timestampNs FROM NPU_OP_MEM"), (SqlRows{{kMadeBegin + 3 * kMs}}));
}

}  // namespace
}  // namespace profd::exporting
