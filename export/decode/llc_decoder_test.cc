#include "export/decode/device_test_support.h"

namespace profd::exporting {
namespace {

// Codes of events 0 to 7 (driver-abi 3.6).
constexpr std::array<uint32_t, 8> kReadEvents = {0x00, 0x01, 0x02, 0x13, 0x20, 0x22, 0x34, 0x36};
constexpr std::array<uint32_t, 8> kWriteEvents = {0x00, 0x01, 0x03, 0x14, 0x21, 0x23, 0x35, 0x37};

class LlcTest : public DeviceDecodeTest {
 protected:
  using Counts = std::array<uint64_t, 8>;
  static void Instant(Bytes& bytes, uint64_t us, uint32_t id, const Counts& counts,
                      const std::array<uint32_t, 8>& events = kReadEvents) {
    for (size_t i = 0; i < 8; ++i) bytes.Add(us, counts[i], events[i], id);
  }
  const std::vector<Row>& Llc() { return Rows(TableId::kLlc); }
};

// Hits (3 + 4 + 6 + 8) of lookups (5 + 7) * 10; (1000 + 2000) * 64 bytes in 10,000,128 ns.
constexpr std::array<uint64_t, 8> kCounts = {1000, 2000, 3, 4, 50, 6, 70, 8};

TEST_F(LlcTest, HitRatioAndThroughputPerSlice) {
  Bytes bytes;
  for (uint64_t us : {10000u, 20000u}) {
    Instant(bytes, us, 0, kCounts);
    Instant(bytes, us, 1, {});
  }
  Decode("llc.data", bytes);
  ASSERT_EQ(Llc().size(), 4u);
  EXPECT_EQ(Llc()[0], (Row{9999872, {0, 0, 21.0 / 120, 0, 21.0 / 120}}));
  EXPECT_EQ(Llc()[1], (Row{9999872, {1, 0, 0, 0, 0}}));
  EXPECT_EQ(Llc()[2].t_ns, 20000000);
  EXPECT_EQ(Llc()[2].cells[2], 0.175);
  EXPECT_EQ(Llc()[2].cells[3], 18.31);  // 18.3103
  EXPECT_EQ(Llc()[3], (Row{20000000, {1, 0, 0, 0, 0}}));
}

TEST_F(LlcTest, WriteModeHasItsOwnCodes) {
  place_.llc_mode = "write";
  Bytes bytes;
  Instant(bytes, 10000, 0, kCounts, kWriteEvents);
  Decode("llc.data", bytes);
  EXPECT_EQ(Llc(), (std::vector<Row>{{9999872, {0, 1, 0.175, 0, 0.175}}}));
  Bytes read;
  Instant(read, 10000, 0, kCounts);
  Decode("llc.data", read);  // the codes 0 and 1 are in both, which makes no complete instant
  EXPECT_TRUE(Llc().empty());
  EXPECT_EQ(stats_.bad_records, 6u);
}

// A missing record is not traffic of 0, nor a hit rate of 0.
TEST_F(LlcTest, AnInstantWithoutAllItsEventsHasNoRow) {
  Bytes bytes;
  Instant(bytes, 10000, 0, kCounts);
  for (size_t i = 1; i < 8; ++i) bytes.Add(uint64_t{20000}, kCounts[i], kReadEvents[i], 0u);
  Instant(bytes, 20000, 1, kCounts);  // the other slice has all of them
  for (size_t i = 0; i < 7; ++i) bytes.Add(uint64_t{30000}, kCounts[i], kReadEvents[i], 0u);
  Instant(bytes, 40000, 0, kCounts);
  bytes.Add(uint64_t{50000}, uint64_t{1000}, kReadEvents[0], 0u);  // cut off by the end of the session
  Decode("llc.data", bytes);
  // 3000 lines in the 10,000,128 ns since the instant before, though it has no row.
  EXPECT_EQ(Llc(), (std::vector<Row>{{9999872, {0, 0, 0.175, 0, 0.175}},
                                     {40000000, {0, 0, 0.175, 18.31, 0.175}},
                                     {20000000, {1, 0, 0.175, 0, 0.175}}}));
  EXPECT_EQ(stats_.bad_records, 0u);
}

TEST_F(LlcTest, TheLastOfRepeatedCountsCounts) {
  Bytes bytes;
  Instant(bytes, 10000, 0, kCounts);
  bytes.Add(uint64_t{10000}, uint64_t{123}, uint32_t{0x20}, uint32_t{0});
  Decode("llc.data", bytes);
  EXPECT_EQ(Llc(), (std::vector<Row>{{9999872, {0, 0, 0.109, 0, 21.0 / 193}}}));
}

TEST_F(LlcTest, TheRatioIsNotClampedAndNeverInfinite) {
  Bytes bytes;
  Instant(bytes, 10000, 0, {0, 0, 300, 0, 100, 0, 100, 0});
  Instant(bytes, 20000, 0, {0, 0, 300, 0, 0, 0, 0, 0});
  Decode("llc.data", bytes);
  ASSERT_EQ(Llc().size(), 2u);
  EXPECT_EQ(Llc()[0].cells[2], 1.5);
  EXPECT_EQ(Llc()[1].cells[2], 0);
}

// Three decimals, ties to even: averages of exports are of these. Samples have the ratio itself.
TEST_F(LlcTest, TheRatioHasThreeDecimals) {
  for (auto [hits, ratio] : {std::pair{1u, 0.0}, {3u, 0.002}, {5u, 0.002}, {4666u, 2.333}}) {
    Bytes bytes;
    Instant(bytes, 10000, 0, {0, 0, hits, 0, 1000, 0, 1000, 0});
    Decode("llc.data", bytes);
    ASSERT_EQ(Llc().size(), 1u);
    EXPECT_EQ(Llc()[0].cells[2], ratio) << hits;
    EXPECT_EQ(Llc()[0].cells[4], hits / 2000.0);
  }
}

TEST_F(LlcTest, SlicesTheChipDoesNotHaveAreBad) {
  Bytes bytes;
  for (uint32_t id = 0; id < 5; ++id) Instant(bytes, 10000, id, kCounts);
  for (auto [chip, slices] : {std::pair{5, 2u}, {7, 1u}, {4, 4u}, {15, 4u}}) {
    place_.chip = chip;
    Decode("llc.data", bytes);
    EXPECT_EQ(Llc().size(), slices) << chip;
    EXPECT_EQ(stats_.bad_records, (5 - slices) * 8) << chip;
  }
}

TEST_F(LlcTest, EarlierTimestampsAndGarbageAreBad) {
  Bytes bytes;
  Instant(bytes, 20000, 0, kCounts);
  bytes.Add(uint64_t{10000}, uint64_t{1}, uint32_t{0}, uint32_t{0});
  bytes.Add(uint64_t{20000}, uint64_t{1}, uint32_t{0x3F}, uint32_t{0});
  bytes.Add(uint64_t{20000}, uint64_t{1}, uint32_t{0xFFFFFFFF}, uint32_t{0});
  bytes.Add(UINT64_MAX, uint64_t{1}, uint32_t{0}, uint32_t{0});
  Decode("llc.data", bytes);
  EXPECT_EQ(Llc(), (std::vector<Row>{{20000000, {0, 0, 0.175, 0, 0.175}}}));
  EXPECT_EQ(stats_.bad_records, 4u);
}

TEST_F(LlcTest, VersionTwo) {
  place_.record_version = "2.0";
  Bytes bytes;
  for (size_t i = 0; i < 8; ++i) {
    bytes.Add(uint32_t{9}, static_cast<uint32_t>(kCounts[i]), kReadEvents[i], uint32_t{1},
              static_cast<uint64_t>(kBegin) + 20000000);
  }
  Decode("llc.data", bytes);
  EXPECT_EQ(Llc(), (std::vector<Row>{{20000000, {1, 0, 0.175, 0, 0.175}}}));
}

}  // namespace
}  // namespace profd::exporting
