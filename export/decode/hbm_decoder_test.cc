#include "export/decode/device_test_support.h"

namespace profd::exporting {
namespace {

class HbmTest : public DeviceDecodeTest {
 protected:
  static void V1(Bytes& bytes, uint64_t us, uint64_t count, uint32_t event, uint32_t id) {
    bytes.Add(us, count, event, id);
  }
  const std::vector<Row>& Hbm() { return Rows(TableId::kHbm); }
};

// The interval is that of the timestamps as the vendor's analyser keeps them, in steps of 256 ns:
// 9,999,872 to 20,000,000 ns and on to 29,999,872 ns.
TEST_F(HbmTest, RatesOfEverySeriesTheFirstZero) {
  Bytes bytes;
  for (uint64_t us : {10000u, 20000u, 30000u}) {
    for (uint32_t id = 0; id < 4; ++id) {
      for (uint32_t event = 0; event < 2; ++event) {
        V1(bytes, us, us == 20000 ? 62500000 : 1000, event, id);
      }
    }
  }
  Decode("hbm.data", bytes);
  ASSERT_EQ(Hbm().size(), 24u);
  EXPECT_EQ(Hbm()[0], (Row{9999872, {0, 0, 0}}));
  EXPECT_EQ(Hbm()[7], (Row{9999872, {3, 1, 0}}));
  EXPECT_EQ(Hbm()[8], (Row{20000000, {0, 0, 190732.4219062496}}));
  EXPECT_EQ(Hbm()[15], (Row{20000000, {3, 1, 190732.4219062496}}));
  EXPECT_EQ(Hbm()[16], (Row{29999872, {0, 0, 3.0517968755000062}}));
  EXPECT_EQ(stats_.records, 24u);
  EXPECT_EQ(stats_.bad_records, 0u);
}

TEST_F(HbmTest, OneSampleIsZeroAndNoneIsNothing) {
  Bytes bytes;
  V1(bytes, 10000, 62500000, 0, 0);
  Decode("hbm.data", bytes);
  EXPECT_EQ(Hbm(), (std::vector<Row>{{9999872, {0, 0, 0}}}));
  Decode("hbm.data", Bytes());
  EXPECT_TRUE(Hbm().empty());
}

// A missing record costs one row of one series; no other series shifts.
TEST_F(HbmTest, AMissingIdDoesNotShiftTheOthers) {
  Bytes bytes;
  V1(bytes, 10000, 1, 0, 0);
  V1(bytes, 10000, 1, 0, 1);
  V1(bytes, 20000, 62500000, 0, 1);  // id 0 is missing
  V1(bytes, 30000, 2000, 0, 0);
  V1(bytes, 30000, 1000, 0, 1);
  Decode("hbm.data", bytes);
  ASSERT_EQ(Hbm().size(), 5u);
  EXPECT_EQ(Hbm()[2], (Row{20000000, {1, 0, 190732.4219062496}}));
  // 2000 * 32 / 2^20 MB in 20 ms.
  EXPECT_EQ(Hbm()[3].t_ns, 29999872);
  EXPECT_DOUBLE_EQ(Hbm()[3].cells[2], 2000 * 32 / 1048576.0 / 0.02);
  EXPECT_EQ(Hbm()[4], (Row{29999872, {1, 0, 3.0517968755000062}}));
}

TEST_F(HbmTest, RepeatedAndEarlierTimestampsAreLeftOut) {
  Bytes bytes;
  V1(bytes, 10000, 1, 0, 0);
  V1(bytes, 10000, 5, 0, 0);
  V1(bytes, 5000, 5, 0, 0);
  V1(bytes, 20000, 62500000, 0, 0);
  Decode("hbm.data", bytes);
  ASSERT_EQ(Hbm().size(), 2u);
  EXPECT_EQ(Hbm()[1].cells[2], 190732.4219062496);
  EXPECT_EQ(stats_.bad_records, 2u);
  EXPECT_EQ(stats_.bad_bytes, 48u);
}

TEST_F(HbmTest, AGarbageTimestampDoesNotSilenceTheSeries) {
  Bytes bytes;
  V1(bytes, 10000, 1, 0, 0);
  V1(bytes, 900000000000, 1, 0, 0);
  for (uint64_t us = 20000; us <= 100000; us += 10000) V1(bytes, us, 1000, 0, 0);
  Decode("hbm.data", bytes);
  // Seven are given up, the eighth begins anew, the ninth has a rate.
  ASSERT_EQ(Hbm().size(), 4u);
  EXPECT_NEAR(static_cast<double>(Hbm()[2].t_ns), 90000000.0, 256);
  EXPECT_EQ(Hbm()[2].cells[2], 0);
  EXPECT_GT(Hbm()[3].cells[2], 3.0);
  EXPECT_EQ(stats_.bad_records, 7u);
}

TEST_F(HbmTest, GarbageIsCountedAndHoldsNothing) {
  Bytes bytes;
  V1(bytes, 10000, 1, 2, 0);           // no such event
  V1(bytes, 10000, 1, 0, 64);          // no such stack
  V1(bytes, UINT64_MAX, 1, 0, 0);      // no such time
  V1(bytes, 10000, UINT64_MAX, 0, 0);  // the first has no rate
  bytes.Add(uint32_t{7});              // cut off
  Decode("hbm.data", bytes);
  EXPECT_EQ(Hbm().size(), 1u);
  EXPECT_EQ(stats_.bad_records, 3u);
  EXPECT_EQ(stats_.bad_bytes, 3 * 24u + 4);
}

TEST_F(HbmTest, VersionTwoHasAbsoluteTimestamps) {
  place_.record_version = "2.0";
  Bytes bytes;
  for (uint64_t i : {1u, 2u}) {
    bytes.Add(uint32_t{0}, uint32_t{0}, uint32_t{1}, uint32_t{2}, uint64_t{5000},
              static_cast<uint64_t>(kBegin) + i * 10000000 + 1);
  }
  Decode("hbm.data", bytes);
  EXPECT_EQ(Hbm(),
            (std::vector<Row>{{10000128, {2, 1, 0}}, {20000000, {2, 1, 15.258984377500031}}}));
}

// However the bytes come: also cut inside records.
TEST_F(HbmTest, PiecesOfRecordsArePutTogether) {
  Bytes bytes;
  for (uint64_t us = 10000; us < 100000; us += 10000) V1(bytes, us, 1000, 1, 3);
  Decode("hbm.data", bytes);
  std::vector<Row> whole = Hbm();
  ASSERT_EQ(whole.size(), 9u);
  for (size_t piece : {1u, 7u, 23u, 25u, 100u}) {
    Decode("hbm.data", bytes, piece);
    EXPECT_EQ(Hbm(), whole) << piece;
    EXPECT_EQ(stats_.bad_bytes, 0u);
  }
}

TEST_F(HbmTest, RowsOutsideOfTheWindowAreOnlyPredecessors) {
  window_.from_ns = kBegin + 15000000;
  window_.to_ns = kBegin + 25000000;
  Bytes bytes;
  for (uint64_t us : {10000u, 20000u, 30000u}) V1(bytes, us, 62500000, 0, 0);
  Decode("hbm.data", bytes);
  EXPECT_EQ(Hbm(), (std::vector<Row>{{20000000, {0, 0, 190732.4219062496}}}));
}

}  // namespace
}  // namespace profd::exporting
