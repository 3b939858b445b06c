// PCIe, DDR and the memory records: decoders without much of a state.
#include "export/decode/device_test_support.h"

namespace profd::exporting {
namespace {

class MemoryTest : public DeviceDecodeTest {
 protected:
  static void Ddr(Bytes& bytes, uint32_t us, uint32_t count, uint32_t event, uint32_t id = 0,
                  uint32_t master = 0xFFFFFFFF) {
    bytes.Add(us, count, event, id, master);
  }
  static void Pcie(Bytes& bytes, uint64_t ns, uint32_t min, uint32_t max) {
    bytes.Add(ns, uint32_t{3}, min, max, uint32_t{13});
    for (uint32_t i = 0; i < 18; ++i) bytes.Add(i == 0 || i == 9 ? 0xFFFFFu : i + 100);
  }
  static void NpuMem(Bytes& bytes, uint32_t us, uint32_t kind, uint64_t ddr, uint64_t hbm) {
    bytes.Add(us, kind, uint64_t{0}, ddr, hbm);
  }
};

TEST_F(MemoryTest, PcieShowsUnmeasuredMinimaAsZero) {
  Bytes bytes;
  Pcie(bytes, kDeviceStartNs + 20000001, 0, 5000000);
  Decode("pcie.data", bytes);
  ASSERT_EQ(Rows(TableId::kPcie).size(), 1u);
  const Row& row = Rows(TableId::kPcie)[0];
  EXPECT_EQ(row.t_ns, 20000001);
  EXPECT_EQ(row.cells,
            (std::vector<double>{0,   5000000, 13,  0,   101, 102, 103, 104, 105, 106, 107,
                                 108, 0,       110, 111, 112, 113, 114, 115, 116, 117}));
}

// 64 bits: 4295 B/us and more do not wrap on the way.
TEST_F(MemoryTest, PcieShowsAnIdleLinkAndRefusesAMaximumBelowTheMinimum) {
  Bytes bytes;
  Pcie(bytes, kDeviceStartNs + 1, 0xFFFFF, 0);
  Pcie(bytes, kDeviceStartNs + 2, 0xFFFFF, 0xFFFFF);
  Pcie(bytes, kDeviceStartNs + 2, 7, 0xFFFFFFFF);  // the same timestamp: both stay
  Pcie(bytes, kDeviceStartNs + 3, 10, 9);
  Pcie(bytes, UINT64_MAX, 1, 2);
  Decode("pcie.data", bytes);
  ASSERT_EQ(Rows(TableId::kPcie).size(), 3u);
  EXPECT_EQ(Rows(TableId::kPcie)[0].t_ns, 1);
  EXPECT_EQ(Rows(TableId::kPcie)[0].cells[0], 0);
  EXPECT_EQ(Rows(TableId::kPcie)[0].cells[1], 0);
  EXPECT_EQ(Rows(TableId::kPcie)[1].cells[0], 0);
  EXPECT_EQ(Rows(TableId::kPcie)[1].cells[1], 1048575);
  EXPECT_EQ(Rows(TableId::kPcie)[2].cells[1], 4294967295.0);
  EXPECT_EQ(stats_.records, 3u);
  EXPECT_EQ(stats_.skipped, 0u);
  EXPECT_EQ(stats_.bad_records, 2u);
}

// 1000 accesses of 256 bits in the first 10 ms, which began with the session.
TEST_F(MemoryTest, DdrSumsControllersPerInstant) {
  place_.chip = 4;
  Bytes bytes;
  Ddr(bytes, 10000, 400, 0, 0);
  Ddr(bytes, 10000, 600, 0, 1);
  Ddr(bytes, 10000, 3000, 1, 1);
  Ddr(bytes, 30000, 2000, 0, 0);
  Decode("ddr.data", bytes);
  EXPECT_EQ(Rows(TableId::kDdr), (std::vector<Row>{{10000000, {0, 3.0517578125, 9.1552734375}},
                                                   {30000000, {0, 3.0517578125, 0}}}));
}

// In a dump of profd it is not known since when the first instant counts.
TEST_F(MemoryTest, DdrBeginsWithZeroInADumpOfProfd) {
  dump_.manifest.emplace();
  place_.chip = 4;
  Bytes bytes;
  Ddr(bytes, 10000, 60000, 0);
  Ddr(bytes, 10000, 3000, 1);
  Ddr(bytes, 30000, 2000, 0);
  Decode("ddr.data", bytes);
  EXPECT_EQ(Rows(TableId::kDdr),
            (std::vector<Row>{{10000000, {0, 0, 0}}, {30000000, {0, 3.0517578125, 0}}}));
}

// A channel that was started for single masters (`master_id`) has no record of all of them.
TEST_F(MemoryTest, DdrSumsMastersWhereThereIsNoTotal) {
  place_.chip = 4;
  Bytes bytes;
  Ddr(bytes, 10000, 400, 0, 0, 3);
  Ddr(bytes, 10000, 600, 0, 0, 9);
  Ddr(bytes, 30000, 700, 0, 0, 3);  // part of the total, before and behind it
  Ddr(bytes, 30000, 2000, 0, 0);
  Ddr(bytes, 30000, 900, 0, 0, 9);
  Decode("ddr.data", bytes);
  EXPECT_EQ(Rows(TableId::kDdr), (std::vector<Row>{{10000000, {0, 3.0517578125, 0}},
                                                   {30000000, {0, 3.0517578125, 0}}}));
}

TEST_F(MemoryTest, DdrIsNarrowOnOtherChips) {
  place_.chip = 7;
  Bytes bytes;
  Ddr(bytes, 20000, 5000, 1);
  Decode("ddr.data", bytes);
  EXPECT_EQ(Rows(TableId::kDdr), (std::vector<Row>{{20000000, {0, 0, 3.814697265625}}}));
}

TEST_F(MemoryTest, DdrMicrosecondsWrap) {
  place_.chip = 4;
  Bytes bytes;
  Ddr(bytes, 4294960000, 1, 0);
  Ddr(bytes, 2704, 1000, 0);  // 10 ms later
  Ddr(bytes, 4294967000, 1000, 0, 1);  // a controller that is behind
  Ddr(bytes, 12704, 1000, 0);
  Decode("ddr.data", bytes);
  ASSERT_EQ(Rows(TableId::kDdr).size(), 3u);
  EXPECT_EQ(stats_.bad_records, 1u);
  EXPECT_EQ(Rows(TableId::kDdr)[1], (Row{4294970000000, {0, 3.0517578125, 0}}));
  EXPECT_EQ(Rows(TableId::kDdr)[2], (Row{4294980000000, {0, 3.0517578125, 0}}));
}

TEST_F(MemoryTest, DdrEdges) {
  place_.chip = 4;
  Bytes bytes;
  Ddr(bytes, 0, 1000, 0);            // no time to go by
  Ddr(bytes, 10000, 1000, 0, 0, 5);  // of one master only
  Ddr(bytes, 20000, 1000, 2);        // no such event
  Ddr(bytes, 20000, 1000, 0);
  Ddr(bytes, 15000, 1000, 0);  // earlier
  Decode("ddr.data", bytes);
  EXPECT_EQ(
      Rows(TableId::kDdr),
      (std::vector<Row>{{0, {0, 0, 0}}, {10000000, {0, 3.0517578125, 0}}, {20000000, {0, 3.0517578125, 0}}}));
  EXPECT_EQ(stats_.bad_records, 2u);
  Decode("ddr.data", Bytes());
  EXPECT_TRUE(Rows(TableId::kDdr).empty());
}

TEST_F(MemoryTest, NpuMemIsOneRowPerRecord) {
  Bytes bytes;
  NpuMem(bytes, 10000, 0, 4096, uint64_t{5} << 32);
  NpuMem(bytes, 10000, 1, 1, 2);
  for (std::string_view base : {"npu_mem.data", "npu_mem.app"}) {
    Decode(base, bytes);
    EXPECT_EQ(Rows(TableId::kNpuMem),
              (std::vector<Row>{{9999872, {0, 4096, 21474836480.0}}, {9999872, {1, 1, 2}}}));
  }
}

TEST_F(MemoryTest, NpuMemWrapsAndRefusesGarbage) {
  Bytes bytes;
  NpuMem(bytes, 4294960000, 0, 1, 1);
  NpuMem(bytes, 2704, 0, 2, 2);
  NpuMem(bytes, 2704, 2, 1, 1);
  NpuMem(bytes, 2704, 1, UINT64_MAX, 1);
  bytes.Zeros(31);
  Decode("npu_mem.data", bytes);
  ASSERT_EQ(Rows(TableId::kNpuMem).size(), 2u);
  EXPECT_NEAR(static_cast<double>(Rows(TableId::kNpuMem)[1].t_ns), 4294970000000.0, 512);
  EXPECT_EQ(stats_.bad_records, 2u);
  EXPECT_EQ(stats_.bad_bytes, 64u + 31);
}

TEST_F(MemoryTest, NpuMemVersionTwoHasAbsoluteTimestamps) {
  place_.record_version = "2.0";
  Bytes bytes;
  bytes.Add(uint32_t{77}, uint32_t{1}, static_cast<uint64_t>(kBegin) + 10000001, uint64_t{3},
            uint64_t{4});
  bytes.Add(uint32_t{77}, uint32_t{1}, UINT64_MAX, uint64_t{3}, uint64_t{4});
  Decode("npu_mem.data", bytes);
  EXPECT_EQ(Rows(TableId::kNpuMem), (std::vector<Row>{{9999872 + 256, {1, 3, 4}}}));
  EXPECT_EQ(stats_.bad_records, 1u);
}

TEST_F(MemoryTest, ModuleMemoryIsOnTheHostsCounter) {
  Bytes bytes;
  bytes.Add(uint32_t{0}, uint32_t{0}, kHostStartCount + 1000000, uint64_t{901218304});
  bytes.Add(uint32_t{52}, uint32_t{0}, kHostStartCount + 1000001, UINT64_MAX - 5);
  Decode("npu_module_mem.data", bytes);
  EXPECT_EQ(Rows(TableId::kModuleMem),
            (std::vector<Row>{{10000000, {0, 901218304}}, {10000010, {52, -1}}}));
}

TEST_F(MemoryTest, ModuleMemoryWithoutACounterIsInHostNanoseconds) {
  place_.clock.host_hz = 0;
  Bytes bytes;
  bytes.Add(uint32_t{1}, uint32_t{0}, uint64_t{876117208663770} + 5, uint64_t{1});
  Decode("npu_module_mem.data", bytes);
  EXPECT_EQ(Rows(TableId::kModuleMem), (std::vector<Row>{{5, {1, 1}}}));
}

}  // namespace
}  // namespace profd::exporting
