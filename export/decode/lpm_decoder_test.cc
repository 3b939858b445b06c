#include "export/decode/device_test_support.h"

namespace profd::exporting {
namespace {

class LpmTest : public DeviceDecodeTest {
 protected:
  struct Change {
    int64_t count;  // since the device's start
    uint32_t value;
  };
  static void Changes(Bytes& bytes, uint32_t type, std::vector<Change> changes) {
    bytes.Add(static_cast<uint32_t>(changes.size()), type);
    for (Change change : changes) {
      bytes.Add(kDeviceStartCount + static_cast<uint64_t>(change.count), change.value, uint32_t{0});
    }
    bytes.Zeros((55 - changes.size()) * 16);
  }
  struct Record {
    uint32_t type;
    std::vector<Change> changes;
  };
  void DecodeChanges(std::string_view base, const std::vector<Record>& records) {
    Bytes bytes;
    for (const Record& record : records) Changes(bytes, record.type, record.changes);
    Decode(base, bytes);
  }
  const std::vector<Row>& Freq() { return Rows(TableId::kAicoreFreq); }
  const std::vector<Row>& Volts() { return Rows(TableId::kVoltage); }
};

// Begin of the collection, device start, changes, end of the collection.
TEST_F(LpmTest, RowsAreMadeUpAtTheEnds) {
  place_.clock.end_us = kBegin / 1000 + 5000000;
  DecodeChanges("lpmFreqConv.data", {{9, {{50, 1650}, {100, 800}}}});
  EXPECT_EQ(Freq(), (std::vector<Row>{{0, {-1, 1800}},
                                      {0, {-1, 1800}},
                                      {1000, {-1, 1650}},
                                      {2000, {-1, 800}},
                                      {5000000000, {-1, 800}}}));
  EXPECT_EQ(stats_.records, 1u);
}

TEST_F(LpmTest, WithoutEndInfoTheLastRowIsMissing) {
  DecodeChanges("lpmFreqConv.data", {{0, {{50, 1650}}}});
  EXPECT_EQ(Freq().size(), 3u);
  EXPECT_EQ(Freq().back(), (Row{1000, {-1, 1650}}));
}

TEST_F(LpmTest, EarlierChangesOnlySetTheFirstValue) {
  DecodeChanges("lpmFreqConv.data", {{0, {{-100, 900}, {-50, 1000}, {50, 1650}}}});
  EXPECT_EQ(Freq(), (std::vector<Row>{{0, {-1, 1800}}, {0, {-1, 1000}}, {1000, {-1, 1650}}}));
  DecodeChanges("lpmFreqConv.data", {{0, {{-100, 900}}}});
  EXPECT_EQ(Freq(), (std::vector<Row>{{0, {-1, 1800}}, {0, {-1, 900}}}));
}

// The device was started before the collection: what held then is the value it begins with.
TEST_F(LpmTest, ChangesBeforeTheCollectionSetItsFirstValue) {
  place_.clock.begin_us += 1;
  place_.clock.begin_raw_ns += 1000;
  DecodeChanges("lpmFreqConv.data", {{0, {{25, 1000}, {50, 1650}}}});
  EXPECT_EQ(Freq(), (std::vector<Row>{{1000, {-1, 1000}}, {1000, {-1, 1650}}}));
}

TEST_F(LpmTest, AFileWithoutChangesHasTheDefault) {
  place_.clock.end_us = kBegin / 1000 + 1;
  Decode("lpmFreqConv.data", Bytes());
  EXPECT_EQ(Freq(), (std::vector<Row>{{0, {-1, 1800}}, {1000, {-1, 1800}}}));
}

TEST_F(LpmTest, InfoHasFrequencyAndVoltages) {
  DecodeChanges("lpmInfoConv.data", {{0, {{50, 1650}}}, {1, {{-5, 810}, {60, 850}}}, {2, {{70, 750}, {80, 760}}}});
  EXPECT_EQ(Freq(), (std::vector<Row>{{0, {-1, 1800}}, {0, {-1, 1800}}, {1000, {-1, 1650}}}));
  EXPECT_EQ(
      Volts(),
      (std::vector<Row>{
          {0, {0, 810}}, {1200, {0, 850}}, {0, {1, 900}}, {1400, {1, 750}}, {1600, {1, 760}}}));
}

// The driver delivered no 900 mV, the vendor's first value. What was delivered before the start gives the first row.
TEST_F(LpmTest, VoltagesOfADumpOfProfdBeginWithADeliveredValue) {
  dump_.manifest.emplace();
  place_.clock.end_us = kBegin / 1000 + 5000000;
  DecodeChanges("lpmInfoConv.data", {{1, {{-5, 810}, {60, 850}}}, {2, {{70, 750}}}});
  EXPECT_EQ(Volts(), (std::vector<Row>{{0, {0, 810}},
                                       {1200, {0, 850}},
                                       {1400, {1, 750}},
                                       {5000000000, {0, 850}},
                                       {5000000000, {1, 750}}}));
  DecodeChanges("lpmInfoConv.data", {{1, {}}});
  EXPECT_TRUE(Volts().empty());
}

TEST_F(LpmTest, VoltagesHoldUntilTheEnd) {
  place_.clock.end_us = kBegin / 1000 + 5000000;
  DecodeChanges("lpmInfoConv.data", {{2, {{70, 750}}}});
  EXPECT_EQ(Volts(), (std::vector<Row>{{0, {1, 900}}, {1400, {1, 750}}, {5000000000, {1, 750}}}));
}

TEST_F(LpmTest, ChangesAreTakenOnce) {
  Bytes bytes;
  Changes(bytes, 0, {{50, 1650}});
  place_.files.push_back({.base = "lpmFreqConv.data", .slices = {}, .bytes = 888});
  Decode("lpmInfoConv.data", bytes);
  EXPECT_TRUE(Freq().empty());
  Decode("lpmFreqConv.data", bytes);
  EXPECT_EQ(Freq().size(), 3u);
  place_.chip = 15;
  Decode("lpmFreqConv.data", bytes);
  EXPECT_EQ(Freq().size(), 3u);
  place_.files.push_back({.base = "stars_soc_profile.data", .slices = {}, .bytes = 64});
  Decode("lpmFreqConv.data", bytes);
  EXPECT_TRUE(Freq().empty());
}

TEST_F(LpmTest, GarbageIsBad) {
  Bytes bytes;
  bytes.Add(uint32_t{56}, uint32_t{0}).Zeros(880);
  bytes.Add(uint32_t{1}, uint32_t{3}).Zeros(880);
  Changes(bytes, 0, {{50, 1650}, {-50, 1}});  // the past behind later ones
  bytes.Zeros(100);
  Decode("lpmInfoConv.data", bytes);
  EXPECT_EQ(Freq().size(), 3u);
  EXPECT_EQ(stats_.bad_records, 3u);
  EXPECT_EQ(stats_.bad_bytes, 3 * 888u + 100);
}

}  // namespace
}  // namespace profd::exporting
