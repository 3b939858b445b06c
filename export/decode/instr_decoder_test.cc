// Instruction profiling. The blocks of a record are fields without gaps, low bits first.
#include <initializer_list>
#include <utility>

#include "driver/abi/channels.h"
#include "export/decode/device_test_support.h"

namespace profd::exporting {
namespace {

struct BitField {
  int bits;
  uint64_t value;
};

std::array<uint8_t, 32> PackBits(std::initializer_list<BitField> fields) {
  std::array<uint8_t, 32> block{};
  int at = 0;
  for (const BitField& field : fields) {
    for (int bit = 0; bit < field.bits; ++bit, ++at) {
      if ((field.value >> bit & 1) != 0) block[static_cast<size_t>(at / 8)] |= static_cast<uint8_t>(1 << at % 8);
    }
  }
  EXPECT_EQ(at, 256);
  return block;
}

struct Units {
  uint64_t vector = 0, scalar = 0, cube = 0, mte1 = 0, mte2 = 0, mte3 = 0;
};

std::array<uint8_t, 32> CyclesBlock(const Units& units, uint64_t timestamp) {
  auto part = [timestamp](int shift) { return BitField{12, timestamp >> shift}; };
  const BitField unused{12, 0x5A5};
  return PackBits({{12, units.vector}, {12, units.scalar}, {12, units.cube}, {12, units.mte1}, {12, units.mte2},
                   {12, units.mte3}, unused, part(0), part(12), unused, unused, unused, unused, unused, part(24),
                   part(36), unused, unused, unused, unused, {16, timestamp >> 48}});
}

Bytes VectorRecord(const Units& units, uint64_t timestamp) {
  Bytes bytes;
  return bytes.Zeros(32).Add(CyclesBlock(units, timestamp));
}

Bytes CubeRecord(const Units& units, uint64_t timestamp) {
  const auto flow = PackBits({{16, 1}, {16, 2}, {24, 300003}, {24, 400004}, {24, 500005}, {24, 600006}, {24, 700007},
                              {24, 800008}, {64, timestamp}, {16, 9}});
  const auto cycles = CyclesBlock(units, 1);  // the record's time is that of the other block
  Bytes bytes;
  bytes.Zeros(32);
  for (size_t i = 0; i < 32; i += 8) {
    for (size_t k = i; k < i + 8; ++k) bytes.Add(flow[k]);
    for (size_t k = i; k < i + 8; ++k) bytes.Add(cycles[k]);
  }
  return bytes;
}

class InstrTest : public DeviceDecodeTest {
 protected:
  const std::vector<Row>& CycleRows() { return Rows(TableId::kInstrCycles); }
  const std::vector<Row>& FlowRows() { return Rows(TableId::kInstrFlow); }
};

TEST_F(InstrTest, AnAiCoreHasCyclesAndFlow) {
  Bytes bytes = CubeRecord({0, 10, 20, 30, 40, 50}, kDeviceStartCount + 500000);
  bytes.Append(CubeRecord({0, 110, 220, 330, 440, 550}, kDeviceStartCount + 500050));
  ASSERT_EQ(bytes.size(), 192u);
  Decode("instr.group_3_aic", bytes, 7);
  // Of the first record it is not known since when its cycles are counted.
  EXPECT_EQ(CycleRows(), (std::vector<Row>{{10001000, {3, 0, 0, 100, 200, 300, 400, 500}}}));
  const std::vector<double> flow = {3, 500005, 600006, 300003, 400004, 1, 2, 700007, 800008, 9};
  EXPECT_EQ(FlowRows(), (std::vector<Row>{{10000000, flow}, {10001000, flow}}));
  EXPECT_EQ(stats_.records, 2u);
}

// The same bytes, written down.
TEST_F(InstrTest, BytesOfARecord) {
  constexpr uint8_t kRecord[] = {
      0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
      // vector 0x123, scalar 0x456, cube 0x789, MTE1 0xABC, MTE2 0xDEF, MTE3 0x001
      0x23, 0x61, 0x45, 0x89, 0xC7, 0xAB, 0xEF, 0x1D, 0x00,
      // The time 0x0000'0802'dd4a'0cf7 is 12 bits each of 0xCF7, 0x4A0 ...
      0x00, 0x70, 0xCF, 0xA0, 0x04, 0x00, 0, 0, 0, 0, 0, 0,
      // ... 0x2DD and 0x080, and 16 bits of 0.
      0xDD, 0x02, 0x08, 0, 0, 0, 0, 0, 0, 0, 0};
  static_assert(sizeof kRecord == 64);
  Bytes bytes = VectorRecord({}, 0x0802dd4a0cf7 - 50);
  for (uint8_t byte : kRecord) bytes.Add(byte);
  Decode("instr.group_24_aiv1", bytes);
  const auto t_ns = static_cast<int64_t>((0x0802dd4a0cf7 - kDeviceStartCount) * 20);
  EXPECT_EQ(CycleRows(), (std::vector<Row>{{t_ns, {24, 2, 0x123, 0x456, 0x789, 0xABC, 0xDEF, 1}}}));
  EXPECT_TRUE(FlowRows().empty());
}

TEST_F(InstrTest, CountersOfTwelveBitsBeginAnew) {
  Bytes bytes = VectorRecord({4090, 0, 0, 4095, 7, 7}, kDeviceStartCount);
  bytes.Append(VectorRecord({5, 4095, 0, 0, 7, 6}, kDeviceStartCount + 50));
  Decode("instr.group_0_aiv0", bytes);
  EXPECT_EQ(CycleRows(), (std::vector<Row>{{1000, {0, 1, 11, 4095, 0, 1, 0, 4095}}}));
}

TEST_F(InstrTest, WhatHasNoTimeIsBad) {
  Bytes bytes = VectorRecord({}, kDeviceStartCount);
  bytes.Append(VectorRecord({1, 1, 1, 1, 1, 1}, UINT64_MAX));
  bytes.Append(VectorRecord({2, 2, 2, 2, 2, 2}, kDeviceStartCount + 50)).Zeros(63);
  Decode("instr.group_1_aiv0", bytes);
  EXPECT_EQ(CycleRows(), (std::vector<Row>{{1000, {1, 1, 2, 2, 2, 2, 2, 2}}}));
  EXPECT_EQ(stats_.bad_records, 1u);
  EXPECT_EQ(stats_.bad_bytes, 64u + 63);
}

TEST_F(InstrTest, FilesOfOneCoreEach) {
  EXPECT_EQ(Spec("instr.group_24_aic")->record_size, 96);
  EXPECT_EQ(Spec("instr.group_0_aiv0")->record_size, 64);
  // The last one is a file of chips 15 and 16, in another format.
  for (const char* base : {"instr.group__aic", "instr.group_x_aic", "instr.group_1_aiv2", "instr.group_1", "1_aic",
                           "instr.group_1_aic.data", "instr.biu_perf_group0_aic"}) {
    EXPECT_EQ(Spec(base), nullptr) << base;
  }
}

// What is recorded can be exported, of every channel that a session can open.
TEST(Decoders, ReadEveryChannelOfTheDriver) {
  for (const abi::ChannelFormat& format : abi::kChannelFormats) {
    const DecoderSpec* spec = FindDecoder(format.file, Place::Kind::kDevice, 5);
    ASSERT_NE(spec, nullptr) << format.file;
    EXPECT_EQ(spec->record_size, format.record_size) << format.file;
    EXPECT_FALSE(spec->tables.empty()) << format.file;
  }
  EXPECT_NE(FindDecoder(abi::kLpInfoFile, Place::Kind::kDevice, 5), nullptr);
}

}  // namespace
}  // namespace profd::exporting
