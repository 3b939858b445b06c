// stars_soc_profile and qos.data.
#include "export/decode/device_test_support.h"

namespace profd::exporting {
namespace {

constexpr uint16_t kQos = 24;
constexpr uint16_t kSio = 25;
constexpr uint16_t kAccPmu = 26;
constexpr uint16_t kChipTrans = 27;
constexpr uint16_t kLevels = 28;
constexpr uint16_t kLowPower = 29;

class SocTest : public DeviceDecodeTest {
 protected:
  // The common head; `count` since the device's start.
  static Bytes Head(uint16_t type, uint16_t subtype, uint64_t count) {
    Bytes bytes;
    bytes.Add(static_cast<uint16_t>(subtype << 10 | 5 << 6 | type), uint16_t{0x6BD3}, uint32_t{0},
              kDeviceStartCount + count);
    return bytes;
  }
  static Bytes Sio(uint16_t die, uint64_t count, std::array<uint32_t, 8> sizes) {
    Bytes bytes = Head(kSio, 0, count);
    bytes.Add(uint16_t{0}, die).Zeros(12);
    for (uint32_t size : sizes) bytes.Add(size);
    return bytes;
  }
  static Bytes LowPower(uint16_t die, uint64_t count) {
    Bytes bytes = Head(kLowPower, die, count);
    bytes.Zeros(8);
    for (uint16_t i = 0; i < 20; ++i) bytes.Add(static_cast<uint16_t>(1000 + i));
    return bytes;
  }
  void DecodeSoc(std::vector<Bytes> records) {
    Bytes bytes;
    for (const Bytes& record : records) {
      EXPECT_EQ(record.size(), 64u);
      bytes.Append(record);
    }
    Decode("stars_soc_profile.data", bytes);
  }
};

// Bytes since the die's last record; n - 1 rows per die.
TEST_F(SocTest, SioRatesPerDie) {
  std::array<uint32_t, 8> sizes = {1000000, 2000000, 3, 4, 5, 6, 7, 4294967295};
  DecodeSoc({Sio(0, 500000, sizes), Sio(1, 500000, sizes), Sio(0, 1000000, sizes)});
  ASSERT_EQ(Rows(TableId::kSio).size(), 1u);
  const Row& row = Rows(TableId::kSio)[0];
  EXPECT_EQ(row.t_ns, 20000000);
  EXPECT_EQ(row.cells[0], 0);
  EXPECT_EQ(row.cells[1], 95.367431640625);
  EXPECT_EQ(row.cells[2], 190.73486328125);
  EXPECT_EQ(row.cells[3], 0.000286102294921875);
  EXPECT_EQ(row.cells[8], 409599.99990463257);
  EXPECT_EQ(stats_.records, 3u);
}

// The counter in Python's doubles: ...985254.4 to ...9048275.2 ns.
TEST_F(SocTest, SioTimesAreDoubles) {
  place_.clock.device_hz = 38.4e6;
  DecodeSoc({Sio(0, 12345, {}), Sio(0, 398765, {1000000, 0, 0, 0, 0, 0, 0, 0})});
  ASSERT_EQ(Rows(TableId::kSio).size(), 1u);
  EXPECT_EQ(Rows(TableId::kSio)[0].t_ns, 10384505);
  EXPECT_DOUBLE_EQ(Rows(TableId::kSio)[0].cells[1], 94.77018166339141);
}

// A repeated or earlier timestamp is passed over; the next rate goes from the record before it.
TEST_F(SocTest, SioPassesOverTimestampsThatAreNotLater) {
  std::array<uint32_t, 8> sizes = {1000000, 0, 0, 0, 0, 0, 0, 0};
  DecodeSoc({Sio(0, 500000, {}), Sio(0, 500000, sizes), Sio(0, 400000, sizes),
             Sio(0, 1000000, sizes), Sio(64, 1, sizes)});
  ASSERT_EQ(Rows(TableId::kSio).size(), 1u);
  EXPECT_EQ(Rows(TableId::kSio)[0].cells[1], 95.367431640625);
  EXPECT_EQ(stats_.bad_records, 3u);
}

TEST_F(SocTest, SioOfV6HasTheDieInTheHead) {
  place_.chip = 15;
  Bytes first = Head(kSio, 3, 500000);
  first.Zeros(48);
  Bytes second = Head(kSio, 3, 1000000);
  // u64, then five words beginning with one that is not read, twice.
  second.Zeros(8).Add(uint32_t{9}, uint32_t{1000000}, uint32_t{2}, uint32_t{3}, uint32_t{4},
                      uint32_t{9}, uint32_t{5}, uint32_t{6}, uint32_t{7}, uint32_t{2000000});
  DecodeSoc({first, second});
  ASSERT_EQ(Rows(TableId::kSio).size(), 1u);
  EXPECT_EQ(Rows(TableId::kSio)[0].cells[0], 3);
  EXPECT_EQ(Rows(TableId::kSio)[0].cells[1], 95.367431640625);
  EXPECT_EQ(Rows(TableId::kSio)[0].cells[8], 190.73486328125);
}

TEST_F(SocTest, AccPmu) {
  Bytes bytes = Head(kAccPmu, 0, 500000);
  bytes.Add(uint16_t{0}, uint16_t{21})
      .Zeros(12)
      .Add(uint64_t{1}, uint64_t{2}, uint64_t{3}, uint64_t{4});
  Bytes bad = Head(kAccPmu, 0, 500000);
  bad.Add(uint16_t{0}, uint16_t{21})
      .Zeros(12)
      .Add(UINT64_MAX, uint64_t{2}, uint64_t{3}, uint64_t{4});
  DecodeSoc({bytes, bad});
  // Read before write.
  EXPECT_EQ(Rows(TableId::kAccPmu), (std::vector<Row>{{10000000, {21, 2, 1, 4, 3}}}));
  EXPECT_EQ(stats_.bad_records, 1u);
}

TEST_F(SocTest, ChipTransfer) {
  auto record = [](uint16_t subtype, uint16_t id) {
    Bytes bytes = Head(kChipTrans, subtype, 500000);
    bytes.Add(uint16_t{0}, id).Zeros(12).Add(uint64_t{11}, uint64_t{12}).Zeros(16);
    return bytes;
  };
  DecodeSoc({record(0b111111, 0x1C3), record(0b100010, 2), record(0b000001, 2)});
  EXPECT_EQ(Rows(TableId::kChipTrans),
            (std::vector<Row>{{10000000, {0, 3, 11, 12}}, {10000000, {1, 2, 11, 12}}}));
  EXPECT_EQ(stats_.skipped, 1u);
}

TEST_F(SocTest, ChipTransferOfV6) {
  place_.chip = 16;
  auto record = [](uint64_t write, uint64_t read) {
    Bytes bytes = Head(kChipTrans, 2, 500000);
    bytes.Add(write, read).Zeros(32);
    return bytes;
  };
  DecodeSoc({record(11, 12), record(UINT64_MAX, 12), record(11, UINT64_MAX)});
  EXPECT_EQ(Rows(TableId::kChipTrans), (std::vector<Row>{{10000000, {1, 2, 11, 12}}}));
  EXPECT_EQ(stats_.skipped, 2u);
}

TEST_F(SocTest, Levels) {
  Bytes bytes = Head(kLevels, 0, 500000);
  bytes.Zeros(16).Add(static_cast<uint16_t>(0xF800 | 200 << 3 | 5)).Zeros(30);
  DecodeSoc({bytes});
  EXPECT_EQ(Rows(TableId::kSocLevel), (std::vector<Row>{{10000000, {200, 5}}}));
}

// Neighbours are swapped; the first of the soft ten is the clock.
TEST_F(SocTest, LowPowerIsTheClockWhereNoFileHasIt) {
  for (auto [chip, has_rows] : {std::pair{5, false}, {7, true}, {8, true}, {15, true}}) {
    place_.chip = chip;
    DecodeSoc({LowPower(2, 500000)});
    ASSERT_EQ(Rows(TableId::kLowPower).size(), 1u);
    const Row& row = Rows(TableId::kLowPower)[0];
    EXPECT_EQ(row.cells[0], 2);
    EXPECT_EQ(row.cells[1], 1001);
    EXPECT_EQ(row.cells[2], 1000);
    EXPECT_EQ(row.cells[20], 1018);
    std::vector<Row> clock = {{10000000, {2, 1011}}};
    EXPECT_EQ(Rows(TableId::kAicoreFreq), has_rows ? clock : std::vector<Row>()) << chip;
  }
  place_.chip = 7;
  place_.files.push_back({.base = "lpmFreqConv.data", .slices = {}, .bytes = 888});
  DecodeSoc({LowPower(2, 500000)});
  EXPECT_TRUE(Rows(TableId::kAicoreFreq).empty());
}

TEST_F(SocTest, QosNamesItsSlots) {
  place_.qos_events = {"SDMA", "AIC"};
  Bytes bytes = Head(kQos, 1, 500000);
  bytes.Zeros(8);
  for (uint32_t i = 0; i < 10; ++i) bytes.Add(i == 1 ? 4294967295u : i + 1);
  DecodeSoc({bytes});
  auto sdma = static_cast<double>(strings_.Intern("SDMA"));
  auto aic = static_cast<double>(strings_.Intern("AIC"));
  EXPECT_EQ(Rows(TableId::kQos),
            (std::vector<Row>{{10000000, {sdma, -1, 1}}, {10000000, {aic, -1, 4294967295.0}}}));
  place_.chip = 15;  // two words further on, and the die
  DecodeSoc({bytes});
  EXPECT_EQ(Rows(TableId::kQos),
            (std::vector<Row>{{10000000, {sdma, 1, 3}}, {10000000, {aic, 1, 4}}}));
}

TEST_F(SocTest, QosWithoutNamesGoesByNumber) {
  auto record = [](uint64_t count, uint32_t third) {
    Bytes bytes;
    bytes.Zeros(16).Add(kDeviceStartCount + count).Add(uint32_t{0}, uint32_t{0}, third).Zeros(28);
    return bytes;
  };
  Bytes bytes;
  bytes.Append(record(500000, 0)).Append(record(1000000, 7)).Append(record(1500000, 0));
  Decode("qos.data", bytes);
  auto name = static_cast<double>(strings_.Intern("2"));
  EXPECT_EQ(Rows(TableId::kQos),
            (std::vector<Row>{{20000000, {name, -1, 7}}, {30000000, {name, -1, 0}}}));
}

TEST_F(SocTest, QosFile) {
  place_.qos_events = {"A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K"};
  Bytes bytes;
  bytes.Zeros(16).Add(kDeviceStartCount + 500000);
  for (uint32_t i = 0; i < 10; ++i) bytes.Add(i);
  Decode("qos.data", bytes);
  ASSERT_EQ(Rows(TableId::kQos).size(), 10u);
  EXPECT_EQ(Rows(TableId::kQos)[9],
            (Row{10000000, {static_cast<double>(strings_.Intern("J")), -1, 9}}));
}

// dump-format 2.9: 30 and 31 are known and ignored; what other types are is not known, but it is no damage.
TEST_F(SocTest, GarbageIsBadAndOtherTypesAreSkipped) {
  auto filled = [](Bytes bytes) {
    bytes.Zeros(64 - bytes.size());
    return bytes;
  };
  Bytes no_magic;
  no_magic.Zeros(64);
  Bytes no_time = Head(kLevels, 0, 0);
  no_time = Bytes().Add(uint16_t{kLevels}, uint16_t{0x6BD3}, uint32_t{0}, UINT64_MAX);
  DecodeSoc({no_magic, filled(Head(30, 0, 1)), filled(Head(31, 0, 1)), filled(Head(32, 0, 1)),
             filled(Head(23, 0, 1)), filled(no_time)});
  EXPECT_EQ(stats_.records, 0u);
  EXPECT_EQ(stats_.skipped, 4u);
  EXPECT_EQ(stats_.bad_records, 2u);
}

TEST_F(SocTest, WithoutACounterFrequencyNothingHasATime) {
  place_.clock.device_hz = 0;
  DecodeSoc({Sio(0, 500000, {}), Sio(0, 1000000, {})});
  EXPECT_TRUE(Rows(TableId::kSio).empty());
  EXPECT_EQ(stats_.bad_records, 2u);
}

}  // namespace
}  // namespace profd::exporting
