// AI Core counters, and UB.
#include "export/decode/device_test_support.h"

namespace profd::exporting {
namespace {

class AicoreTest : public DeviceDecodeTest {
 protected:
  AicoreTest() { place_.aicore_mode = "sample-based"; }
  static Bytes Sample(uint64_t timestamp, uint8_t core, uint8_t used, size_t events = 8,
                      uint8_t mode = 1) {
    Bytes bytes;
    bytes.Add(mode).Zeros(7);
    for (uint64_t i = 0; i < events; ++i) bytes.Add(i + 10);
    bytes.Add(uint64_t{5000}, timestamp, used, core).Zeros(6);
    return bytes;
  }
  const std::vector<Row>& Pmu() { return Rows(TableId::kAicorePmu); }
};

TEST_F(AicoreTest, OneRowPerRecordWithTheEventsInUse) {
  Bytes bytes = Sample(kDeviceStartNs + 10000001, 3, 6);
  ASSERT_EQ(bytes.size(), 96u);
  for (auto [base, type] : {std::pair{"aicore.data", 0}, {"aiVectorCore.data", 1}}) {
    Decode(base, bytes);
    EXPECT_EQ(Pmu(), (std::vector<Row>{{10000001,
                                        {3, static_cast<double>(type), 10, 11, 12, 13, 14, 15, 0, 0,
                                         0, 0, 5000, 6}}}));
  }
}

TEST_F(AicoreTest, TheKindFollowsFromTheCoresNumber) {
  Bytes bytes;
  bytes.Append(Sample(kDeviceStartNs, 24, 8)).Append(Sample(kDeviceStartNs, 25, 8));
  Decode("ffts_profile.data", bytes);
  ASSERT_EQ(Pmu().size(), 2u);
  EXPECT_EQ(Pmu()[0].cells[1], 0);
  EXPECT_EQ(Pmu()[1].cells[1], 1);
}

TEST_F(AicoreTest, V6HasTenEventsAndTheCounter) {
  place_.chip = 15;
  Bytes bytes;
  bytes.Append(Sample(kDeviceStartCount + 500000, 35, 10, 10));
  bytes.Append(Sample(kDeviceStartCount + 500000, 36, 10, 10));
  ASSERT_EQ(bytes.size(), 224u);
  Decode("ffts_profile.data", bytes);
  ASSERT_EQ(Pmu().size(), 2u);
  EXPECT_EQ(Pmu()[0], (Row{10000000, {35, 0, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 5000, 10}}));
  EXPECT_EQ(Pmu()[1].cells[1], 1);
}

TEST_F(AicoreTest, GarbageIsBad) {
  Bytes bytes;
  bytes.Append(Sample(kDeviceStartNs, 0, 8, 8, 0));  // no mode
  bytes.Append(Sample(kDeviceStartNs, 0, 9));        // more events than there are
  bytes.Append(Sample(UINT64_MAX, 0, 8));
  bytes.Zeros(95);
  Decode("aicore.data", bytes);
  EXPECT_TRUE(Pmu().empty());
  EXPECT_EQ(stats_.bad_records, 3u);
  EXPECT_EQ(stats_.bad_bytes, 3 * 96u + 95);
}

class UbTest : public DeviceDecodeTest {};

TEST_F(UbTest, OneRowPerRecord) {
  place_.chip = 15;
  auto record = [](uint16_t magic, uint64_t us, uint64_t last) {
    Bytes bytes;
    bytes.Add(magic, uint16_t{0}, uint16_t{7}, uint16_t{0}, us);
    for (uint64_t i = 0; i < 13; ++i) bytes.Add(i + 100);
    return bytes.Add(last);
  };
  Bytes bytes;
  bytes.Append(record(0x5A5A, 10001, 113));
  bytes.Append(record(0x5A5B, 10001, 113));
  bytes.Append(record(0x5A5A, UINT64_MAX, 113));
  bytes.Append(record(0x5A5A, 10001, UINT64_MAX));
  ASSERT_EQ(bytes.size(), 512u);
  Decode("ub.data", bytes);
  EXPECT_EQ(
      Rows(TableId::kUb),
      (std::vector<Row>{
          {10001000, {7, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113}}}));
  EXPECT_EQ(stats_.bad_records, 3u);
}

// What a spec says of its files is what its decoder takes.
TEST_F(UbTest, RecordSizesFitTheFile) {
  auto size = [&](std::string_view base) { return RecordSizeOf(*Spec(base), place_); };
  EXPECT_EQ(size("hbm.data"), 24u);
  // operator-data a.4: of a task-based run these are counters of tasks.
  for (const char* base : {"ffts_profile.data", "aicore.data", "aiVectorCore.data"}) {
    place_.aicore_mode = "task-based";
    EXPECT_EQ(size(base), 128u);
    place_.aicore_mode = "sample-based";
    EXPECT_EQ(size(base), 96u);
  }
  // Each kind of core has a mode of its own; without one of theirs, AI Vector cores have that of AI Cores.
  place_.aiv_mode = "task-based";
  EXPECT_EQ(size("aiVectorCore.data"), 128u);
  EXPECT_EQ(size("aicore.data"), 96u);
  place_.aicore_mode = "";
  place_.aiv_mode = "sample-based";
  EXPECT_EQ(size("aiVectorCore.data"), 96u);
  EXPECT_EQ(size("aicore.data"), 128u) << "task-based is the default";
  place_.aicore_mode = "sample-based";
  place_.record_version = "2.0";
  EXPECT_EQ(size("hbm.data"), 32u);
  EXPECT_EQ(size("llc.data"), 24u);
  EXPECT_EQ(size("npu_mem.app"), 32u);
  place_.chip = 16;
  EXPECT_EQ(size("ffts_profile.data"), 112u);
  EXPECT_EQ(size("hbm.data"), 32u);
}

}  // namespace
}  // namespace profd::exporting
