#include "daemon/session/session_poll_sink.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "collectors/metric_table.h"

namespace profd {
namespace {

TEST(SessionPollSink, ColumnsAreThoseOfTheHeading) {
  SeriesDescription description{.metric = MetricByName("atlas_npu_hbm_used_bytes"), .device = 3,
                                .labels = {{"npu", "4"}, {"uuid", "A-B"}}};
  EXPECT_EQ(SeriesColumns(description), "atlas_npu_hbm_used_bytes\t3\tnpu=4,uuid=A-B");
  // Beside these a line has time and value.
  std::string text = SeriesColumns(description);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\t') + 2,
            std::count(kOwnSamplesHeading.begin(), kOwnSamplesHeading.end(), '\t'));
}

TEST(SessionPollSink, LabelsCannotBreakTheColumns) {
  SeriesDescription description{.metric = MetricByName("atlas_npu_hbm_used_bytes"), .device = kHostDevice,
                                .labels = {{"npu", "a,b=c\\d\te\nf"}}};
  EXPECT_EQ(SeriesColumns(description),
            "atlas_npu_hbm_used_bytes\t-1\tnpu=a\\,b\\=c\\\\d e f");
}

}  // namespace
}  // namespace profd
