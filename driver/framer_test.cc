#include "driver/framer.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "driver/abi/hal_abi.h"
#include "driver/framer_test_support.h"
#include "driver/plausible.h"

namespace profd {
namespace {

const abi::ChannelFormat& Format(uint32_t id) { return *abi::FindChannelFormat(id); }

void Append(Buffer& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}
Buffer operator+(Buffer a, const Buffer& b) {
  Append(a, b);
  return a;
}
Buffer Text(std::string_view text) {
  auto bytes = AsBytes(text);
  return {bytes.begin(), bytes.end()};
}

// One record of any binary channel at time `n`, with values as hardware has them.
Buffer Sample(const abi::ChannelFormat& format, uint64_t n) {
  Buffer record(format.record_size);
  std::span<std::byte> r(record);
  uint64_t timestamp = 5'000'000'000 + n * 20'000;
  if (format.timestamp.width == 4) StoreUnchecked(r, format.timestamp.offset, static_cast<uint32_t>(timestamp));
  if (format.timestamp.width == 8) StoreUnchecked(r, format.timestamp.offset, timestamp);
  auto value = static_cast<uint32_t>(90'000 + n % 7);
  switch (format.id) {
    case abi::kChannelHbm:
    case abi::kChannelLlc:
      StoreUnchecked(r, 8, uint64_t{value});
      StoreUnchecked(r, 16, static_cast<uint32_t>(n % 2));
      StoreUnchecked(r, 20, static_cast<uint32_t>(n % 4));
      break;
    case abi::kChannelDdr:
      StoreUnchecked(r, 4, value);
      StoreUnchecked(r, 8, static_cast<uint32_t>(n % 2));
      StoreUnchecked(r, 16, 0xFFFFFFFFu);
      break;
    case abi::kChannelPcie:
      for (size_t at = 12; at < 96; at += 4) StoreUnchecked(r, at, value);
      break;
    case abi::kChannelStarsSocProfile:
      StoreUnchecked(r, 0, static_cast<uint16_t>(abi::SocProfileType::kSio));
      StoreUnchecked(r, 2, abi::kSocProfileMagic);
      break;
    case abi::kChannelNpuMem:
    case abi::kChannelNpuAppMem:
      StoreUnchecked(r, 4, 1u);
      StoreUnchecked(r, 24, uint64_t{value} << 12);
      break;
    case abi::kChannelNpuModuleMem:
      StoreUnchecked(r, 0, static_cast<uint32_t>(n % 60));
      StoreUnchecked(r, 16, uint64_t{value} << 12);
      break;
    case abi::kChannelLp:
      StoreUnchecked(r, 0, 2u);
      StoreUnchecked(r, 4, static_cast<uint32_t>(n % 3));
      StoreUnchecked(r, 16, 1800u);
      StoreUnchecked(r, 24, timestamp + 900);
      StoreUnchecked(r, 32, 1650u);
      break;
    case abi::kChannelQos:
      for (size_t at = 24; at < 64; at += 4) StoreUnchecked(r, at, value);
      break;
    default:
      ADD_FAILURE() << "no sample for channel " << format.id;
  }
  return record;
}

struct Fed {
  Buffer good;
  uint64_t records = 0;
  uint64_t garbage_bytes = 0;
  uint64_t garbage_events = 0;
  uint64_t zeros_missing = 0;
};

// Feeds `input` in pieces of `step` bytes, as the pump does, and ends with last = true.
Fed Feed(Framer& framer, const Buffer& input, size_t step) {
  Fed fed;
  Buffer work;
  for (size_t at = 0; at <= input.size(); at += step) {
    bool last = at + step > input.size();
    size_t n = std::min(step, input.size() - at);
    Append(work, std::span(input).subspan(at, n));
    size_t before = work.size();
    FrameResult r = framer.Frame(work, last);
    EXPECT_LE(r.good_bytes + r.tail_bytes + r.garbage_bytes, before);
    EXPECT_LE(r.tail_bytes, Framer::kMaxTail);
    Append(fed.good, std::span(work).first(r.good_bytes));
    work = Buffer(work.begin() + static_cast<ptrdiff_t>(r.good_bytes),
                  work.begin() + static_cast<ptrdiff_t>(r.good_bytes + r.tail_bytes));
    fed.records += r.records;
    fed.garbage_bytes += r.garbage_bytes;
    fed.garbage_events += r.garbage_events;
    fed.zeros_missing += r.zeros_missing;
    if (last) break;
  }
  EXPECT_TRUE(work.empty());
  return fed;
}

Fed Feed(uint32_t channel, const Buffer& input, size_t step = SIZE_MAX / 2) {
  Framer framer(Format(channel));
  return Feed(framer, input, step);
}

class BinaryFramerTest : public ::testing::TestWithParam<uint32_t> {};

TEST_P(BinaryFramerTest, CompleteRecordsPassAtEveryPieceSize) {
  const abi::ChannelFormat& format = Format(GetParam());
  Buffer input;
  for (uint64_t n = 0; n < 40; ++n) Append(input, Sample(format, n));
  for (size_t step : {size_t{1}, size_t{7}, size_t{format.record_size}, size_t{1000}}) {
    Fed fed = Feed(format.id, input, step);
    EXPECT_EQ(fed.good, input) << step;
    EXPECT_EQ(fed.records, 40u);
    EXPECT_EQ(fed.garbage_bytes, 0u);
  }
}

TEST_P(BinaryFramerTest, FindsTheNextRecordAfterGarbage) {
  const abi::ChannelFormat& format = Format(GetParam());
  std::minstd_rand random(GetParam());
  for (size_t size : {size_t{1}, size_t{5}, size_t{24}, size_t{999}}) {
    Buffer input;
    for (uint64_t n = 0; n < 10; ++n) Append(input, Sample(format, n));
    for (size_t i = 0; i < size; ++i) input.push_back(static_cast<std::byte>(random() >> 8 | 0x80));
    Buffer rest;
    for (uint64_t n = 10; n < 30; ++n) Append(rest, Sample(format, n));
    for (size_t step : {size_t{13}, size_t{100000}}) {
      Fed fed = Feed(format.id, input + rest, step);
      EXPECT_EQ(fed.records, 30u) << "garbage of " << size << " in pieces of " << step;
      EXPECT_EQ(fed.garbage_bytes, size);
      EXPECT_EQ(fed.garbage_events, 1u) << size << " " << step;
    }
  }
}

TEST_P(BinaryFramerTest, AGapInsideARecordCostsThatRecordOnly) {
  const abi::ChannelFormat& format = Format(GetParam());
  for (size_t cut = 1; cut < format.record_size; cut += 5) {
    Buffer input;
    for (uint64_t n = 0; n < 30; ++n) {
      Buffer record = Sample(format, n);
      if (n == 10) record.resize(cut);
      Append(input, record);
    }
    Fed fed = Feed(format.id, input);
    // What is left of the record may, with its successor's bytes, look like one: at most that one.
    EXPECT_GE(fed.records, 28u) << cut;
    EXPECT_LE(fed.records, 30u) << cut;
    Buffer end = Sample(format, 29);
    ASSERT_GE(fed.good.size(), end.size());
    EXPECT_TRUE(std::equal(end.rbegin(), end.rend(), fed.good.rbegin())) << cut;
  }
}

TEST_P(BinaryFramerTest, AnyBytesAreSurvived) {
  const abi::ChannelFormat& format = Format(GetParam());
  std::minstd_rand random(7);
  for (uint32_t round = 0; round < 30; ++round) {
    Buffer input(3000);
    // Few distinct bytes, so that zeros and small numbers are frequent.
    for (std::byte& b : input) b = static_cast<std::byte>((random() >> 9) % (round + 1));
    Fed fed = Feed(format.id, input, 1 + random() % 700);
    EXPECT_EQ(fed.good.size() + fed.garbage_bytes, input.size());
    EXPECT_EQ(fed.good.size(), fed.records * format.record_size);
  }
}

INSTANTIATE_TEST_SUITE_P(Channels, BinaryFramerTest,
                         ::testing::Values(1, 3, 7, 8, 52, 130, 131, 132, 133, 142));

TEST(FramerTest, KeepsTheTailForNextTime) {
  Framer framer(Format(abi::kChannelHbm));
  Buffer work = Hbm(1000, 5, 0, 1) + Hbm(1000, 5, 1, 1);
  work.resize(30);
  FrameResult r = framer.Frame(work);
  EXPECT_EQ(r.records, 1u);
  EXPECT_EQ(r.good_bytes, 24u);
  EXPECT_EQ(r.tail_bytes, 6u);
  EXPECT_EQ(r.garbage_bytes, 0u);
}

TEST(FramerTest, AnIncompleteEndIsGarbage) {
  Framer framer(Format(abi::kChannelHbm));
  Buffer work = Hbm(1000, 5, 0, 1) + Buffer(10, std::byte{1});
  FrameResult r = framer.Frame(work, true);
  EXPECT_EQ(r.records, 1u);
  EXPECT_EQ(r.tail_bytes, 0u);
  EXPECT_EQ(r.garbage_bytes, 10u);
}

TEST(FramerTest, ARecordAfterGarbageThatEndsTheReadIsNotHeldBack) {
  Framer framer(Format(abi::kChannelHbm));
  Buffer work = Hbm(1000, 5, 0, 1) + Buffer(3, std::byte{0xEE}) + Hbm(2000, 5, 0, 1);
  FrameResult r = framer.Frame(work);
  EXPECT_EQ(r.records, 2u);
  EXPECT_EQ(r.tail_bytes, 0u);
}

TEST(FramerTest, ASingleWrongTimestampDoesNotAffectTheChannel) {
  Buffer input;
  for (uint64_t i = 0; i < 10; ++i) Append(input, Hbm(20'000 * i, 1, 0, 0));
  Append(input, Hbm(uint64_t{1} << 61, 1, 0, 0));
  for (uint64_t i = 10; i < 30; ++i) Append(input, Hbm(20'000 * i, 1, 0, 0));
  Fed fed = Feed(abi::kChannelHbm, input);
  EXPECT_EQ(fed.records, 30u);
  EXPECT_EQ(fed.garbage_bytes, 24u);
}

TEST(FramerTest, AClockThatWasResetIsFollowed) {
  Buffer input;
  for (uint64_t i = 0; i < 10; ++i) Append(input, Hbm(900'000'000 + 20'000 * i, 1, 0, 0));
  for (uint64_t i = 0; i < 10; ++i) Append(input, Hbm(20'000 * i, 1, 0, 0));
  Fed fed = Feed(abi::kChannelHbm, input);
  EXPECT_EQ(fed.good, input);
  EXPECT_EQ(fed.garbage_bytes, 0u);
}

TEST(FramerTest, ThirtyTwoBitMicrosecondsWrap) {
  Buffer input;
  for (uint32_t i = 0; i < 10; ++i) {
    Buffer record(20);
    StoreUnchecked(std::span(record), 0, 0xFFFF'0000u + i * 20'000u);
    Append(input, record);
  }
  Fed fed = Feed(abi::kChannelDdr, input);
  EXPECT_EQ(fed.records, 10u);
}

constexpr std::string_view kHccs =
    "time_stamp(s):time_stamp(ns) send_amount receive_amount\n"
    "176168:391356200 100 200\n"
    "176168:411356200 110 220\n";

TEST(TextFramerTest, DropsHeadersKeepsLinesAtEveryPieceSize) {
  for (size_t step : {size_t{1}, size_t{10}, size_t{1000}}) {
    Fed fed = Feed(abi::kChannelHccs, Text(kHccs) + Text("\n") + Text(kHccs), step);
    EXPECT_EQ(AsText(fed.good),
              "176168:391356200 100 200\n176168:411356200 110 220\n"
              "176168:391356200 100 200\n176168:411356200 110 220\n");
    EXPECT_EQ(fed.records, 4u);
    EXPECT_EQ(fed.garbage_bytes, 0u);
  }
}

TEST(TextFramerTest, BadLinesAreDroppedCompletely) {
  for (std::string_view bad : {"176168: 1 2\n", "176168:0391356200 1 2\n", "176168:391356200 1\n", "x 1 2\n",
                               "176168:391356200 1 2 3\n", "176168:391356200 1 0x2\n",
                               "\x80\xff\x01\n", "176168:391356200 1 2e\n", ":391356200 1 2\n"}) {
    Fed fed = Feed(abi::kChannelHccs, Text(kHccs) + Text(bad) + Text(kHccs));
    EXPECT_EQ(fed.records, 4u) << bad;
    EXPECT_EQ(fed.garbage_bytes, bad.size()) << bad;
    EXPECT_EQ(fed.garbage_events, 1u) << bad;
  }
}

// driver-abi 3.6 has nanoseconds without a width: a driver may print those of the first 100 ms of a second with
// fewer than nine digits.
TEST(TextFramerTest, NanosecondsMayLackTheirZeros) {
  const std::string counters = " 100000 1 2 3 4 5 6 7 8 9 10 11 12\n";
  for (size_t digits = 1; digits <= 9; ++digits) {
    const std::string fraction = std::string("961985012").substr(0, digits);
    const std::string line = "52160:" + fraction + counters;
    for (const uint32_t channel : {abi::kChannelNic, abi::kChannelRoce}) {
      for (const size_t step : {size_t{1}, size_t{1000}}) {
        const Fed fed = Feed(channel, Text(line + "52160:961985012" + counters + line), step);
        EXPECT_EQ(AsText(fed.good), line + "52160:961985012" + counters + line) << "as they came";
        EXPECT_EQ(fed.records, 3u) << fraction;
        EXPECT_EQ(fed.garbage_bytes, 0u) << fraction;
        EXPECT_EQ(fed.zeros_missing, 2 * (9 - digits)) << fraction;
      }
    }
  }
  EXPECT_EQ(Feed(abi::kChannelHccs, Text("52160:9619850 1 2\n")).zeros_missing, 2u);
  EXPECT_EQ(Feed(abi::kChannelDvpp, Text("52160:7 0 0 0 699300 1998 90% 1 2 0% 3 4\n")).zeros_missing, 8u);
  EXPECT_EQ(Feed(abi::kChannelDvppVenc, Text("52160:7 0 0 0 699300 1998 90% 1 2 0% 3 4\n")).zeros_missing, 0u) << "passes as it is";
}

TEST(TextFramerTest, OverlongLinesAreGarbageUpToTheirEnd) {
  for (size_t length : {size_t{4095}, size_t{4097}, size_t{20000}}) {
    std::string line = "176168:391356200 1 2" + std::string(length - 20, ' ');
    Buffer input = Text(line + "\n" + std::string(kHccs));
    bool fits = length <= kMaxLineBytes;
    for (size_t step : {size_t{100}, size_t{5000}, size_t{1000000}}) {
      Fed fed = Feed(abi::kChannelHccs, input, step);
      EXPECT_EQ(fed.records, fits ? 3u : 2u) << length << " " << step;
      EXPECT_EQ(fed.garbage_bytes, fits ? 0u : length + 1) << length << " " << step;
      EXPECT_EQ(fed.garbage_events, fits ? 0u : 1u);
    }
  }
}

TEST(TextFramerTest, EveryTextChannelTakesItsLines) {
  Fed nic = Feed(abi::kChannelNic, Text("x rxPacket/s y\n"
                                        "1:000000001 200000 1 2 3 4 5 6 7 8 9 10 11 12\n"
                                        "1:000000001 200000 1 2 3 4 5 6 7 8 9 10 11 12 0\n"
                                        "1:000000001 200000 1 2 3 4 5 6 7 8 9 10 11 12 0 1\n"
                                        "1:000000001 200000 1 2 3 4 5 6 7 8 9 10 11\n"));
  EXPECT_EQ(nic.records, 3u);
  EXPECT_EQ(nic.garbage_events, 1u);
  Fed dvpp =
      Feed(abi::kChannelDvppVdec, Text("1:000000001 0 0 0 699300 1998 90% 1 2 0% 3 4\n"
                                       "1:000000001 0 0 699300 1998 90% 1 2 0.5% 3 4\n"
                                       "1:000000001 0 VDEC 0 699300 1998 90% 1 2 0% 3 4\n"
                                       "1:000000001 0 VDEC PNGD 699300 1998 90% 1 2 0% 3 4\n"));
  EXPECT_EQ(dvpp.records, 4u);
  EXPECT_EQ(Feed(abi::kChannelDvpp, dvpp.good).records, 2u) << "engine types are numbers";
}

// driver-abi 3.6 does not say what the channels of single DVPP engines deliver.
TEST(TextFramerTest, WhatHasNoKnownFormPassesAsItIs) {
  std::minstd_rand random(4);
  for (const size_t step : {size_t{1}, size_t{700}, size_t{100000}}) {
    Buffer input = Text("no timestamp\n\n1:000000001 and=more\n");
    for (int i = 0; i < 9000; ++i) input.push_back(static_cast<std::byte>(random() >> 9));
    const Fed fed = Feed(abi::kChannelDvppScd, input, step);
    EXPECT_EQ(fed.good, input) << step;
    EXPECT_EQ(fed.records, 1u);
    EXPECT_EQ(fed.garbage_bytes, 0u);
  }
}

TEST(TextFramerTest, AnyBytesAreSurvived) {
  std::minstd_rand random(3);
  constexpr std::string_view kAlphabet = "0123456789: \n%.\xff-ab";
  for (int round = 0; round < 50; ++round) {
    Buffer input(9000);
    for (std::byte& b : input) {
      b = static_cast<std::byte>(
          kAlphabet[(random() >> 9) % (kAlphabet.size() - (round % 3 == 0))]);
    }
    Fed fed = Feed(abi::kChannelHccs, input, 1 + random() % 3000);
    EXPECT_LE(fed.good.size() + fed.garbage_bytes, input.size());
  }
}

TEST(PlausibleTest, FieldsOutOfRangeAreRefused) {
  const abi::ChannelFormat& hbm = Format(abi::kChannelHbm);
  EXPECT_TRUE(IsPlausibleRecord(hbm, Hbm(1, 2, 1, 63)));
  EXPECT_FALSE(IsPlausibleRecord(hbm, Hbm(1, 2, 2, 0)));
  EXPECT_FALSE(IsPlausibleRecord(hbm, Hbm(1, 2, 0, 64)));
  EXPECT_FALSE(IsPlausibleRecord(hbm, Hbm(uint64_t{1} << 63, 2, 0, 0)));
  EXPECT_FALSE(IsPlausibleRecord(hbm, Buffer(23)));
  const abi::ChannelFormat& llc = Format(abi::kChannelLlc);
  EXPECT_TRUE(IsPlausibleRecord(llc, Hbm(1, 2, 0x37, 15)));
  EXPECT_FALSE(IsPlausibleRecord(llc, Hbm(1, 2, 0x04, 0)));
  EXPECT_FALSE(IsPlausibleRecord(llc, Hbm(1, 2, 0x37, 16)));
  Buffer soc = Sample(Format(52), 1);
  soc[2] = std::byte{0};
  EXPECT_FALSE(IsPlausibleRecord(Format(52), soc));
  Buffer lp = Sample(Format(132), 1);
  EXPECT_TRUE(IsPlausibleRecord(Format(132), lp));
  StoreUnchecked(std::span(lp), 0, 56u);
  EXPECT_FALSE(IsPlausibleRecord(Format(132), lp));
  Buffer module = Sample(Format(142), 1);
  StoreUnchecked(std::span(module), 16, ~uint64_t{0});  // "unknown"
  EXPECT_TRUE(IsPlausibleRecord(Format(142), module));
  StoreUnchecked(std::span(module), 0, 4096u);
  EXPECT_FALSE(IsPlausibleRecord(Format(142), module));
}

// Lines that look like records, damaged in all ways: what the shape says is plain, the general test
// calls plausible, and undamaged ones are all plain.
TEST(Framer, PlainRecordsArePlausibleRecords) {
  std::minstd_rand random(5);
  const std::pair<uint32_t, std::string_view> kLines[] = {
      {abi::kChannelHccs, "1000:000000000 1234567890123 5000"},
      {abi::kChannelNic, "176168:391356200 100000 5 4.5 123456789012345 2 3 4 0 0 0 0.25 0 0 0 7"},
      {abi::kChannelDvpp, "176168:391356200 0 3 1 123456789 1234 45% 4500 4 4.5% 4400 4"},
  };
  constexpr std::string_view kDamage = "0123456789 .:%-a\xc3";
  int plain = 0;
  int changed_plain = 0;
  for (int round = 0; round < 30'000; ++round) {
    const auto& [channel, good] = kLines[static_cast<size_t>(round) % 3];
    std::string line(good);
    const auto damages = random() % 4;
    for (unsigned i = 0; i < damages; ++i) {
      const size_t at = random() % line.size();
      switch (random() % 3) {
        case 0: line[at] = kDamage[random() % kDamage.size()]; break;
        case 1: line.insert(at, 1 + random() % 34, kDamage[random() % kDamage.size()]); break;
        default: line.erase(at, 1 + random() % 3); break;
      }
      if (line.empty()) line = "0";
    }
    LineShape shape;
    if (!ScanLine(line + "\n", &shape)) continue;
    const bool is_plain = IsPlainRecord(Format(channel), line, shape);
    if (damages == 0) {
      ASSERT_TRUE(is_plain) << line;
    }
    if (is_plain) {
      ASSERT_TRUE(IsPlausibleLine(Format(channel), line)) << line;
    }
    plain += is_plain;
    changed_plain += is_plain && line != good;
  }
  EXPECT_GT(plain, 7'000);
  EXPECT_GT(changed_plain, 2'000);
}

Buffer Lpm(uint32_t count, uint32_t type, uint64_t first_counter, uint32_t value) {
  Buffer record(records::LpmRecord::kSize);
  StoreUnchecked(std::span(record), 0, count);
  StoreUnchecked(std::span(record), 4, type);
  StoreUnchecked(std::span(record), 8, first_counter);
  StoreUnchecked(std::span(record), 16, value);
  return record;
}

Buffer Filled(uint32_t channel, uint64_t n, size_t from, uint32_t value) {
  Buffer record = Sample(Format(channel), n);
  for (size_t at = from; at < record.size(); at += 4) StoreUnchecked(std::span(record), at, value);
  return record;
}

// Values that hardware does not have are in the layout all the same: they are for readers to judge.
TEST(FramerTest, OddValuesAreRecords) {
  const auto expect_all = [](uint32_t channel, const std::vector<Buffer>& records) {
    Buffer input;
    for (const Buffer& record : records) Append(input, record);
    for (const size_t step : {size_t{1}, size_t{100}, input.size(), SIZE_MAX / 2}) {
      const Fed fed = Feed(channel, input, step);
      EXPECT_EQ(fed.good, input) << channel << " " << step;
      EXPECT_EQ(fed.records, records.size());
    }
  };
  expect_all(abi::kChannelLp, {Lpm(0, 0, 0, 0), Lpm(1, 1, 5'000'000'000, 900), Lpm(0, 2, 0, 0), Lpm(0, 0, 0, 0),
                               Lpm(1, 7, 5'000'000'000, 900), Lpm(1, 0, 0, 1800), Lpm(55, 0, 0, 0),
                               Lpm(1, 0, 5'000'000'001, 2'000'000), Lpm(1, 0, 5'000'000'002, 1800)});
  expect_all(abi::kChannelLp, {3, Lpm(0, 0, 0, 0)});
  for (const uint32_t odd : {1u << 25, 0xFFFFFFFFu}) {
    expect_all(abi::kChannelPcie, {Filled(3, 0, 12, 7), Filled(3, 1, 12, odd), Filled(3, 2, 12, 7), Filled(3, 3, 12, odd)});
    expect_all(abi::kChannelQos, {Filled(133, 0, 24, odd), Filled(133, 1, 24, odd), Filled(133, 2, 24, 7)});
  }
}

// On chips without voltages it is whatever was in memory (driver-abi 3.6).
TEST(LpmRecord, TheTypeMayBeUndefined) {
  std::array<std::byte, records::LpmRecord::kSize> bytes{};
  const auto put = [&bytes](size_t at, uint32_t value) { std::memcpy(&bytes[at], &value, sizeof value); };
  put(0, 1);       // entries
  put(8, 12'345);  // the counter of the first
  put(16, 1800);   // MHz
  for (const uint32_t type : {0u, 2u, 3u, 1800u, 0xCDCDCDCDu}) {
    put(4, type);
    EXPECT_TRUE(records::LpmRecord(bytes).IsPlausible());
    EXPECT_TRUE(records::LpmRecord(bytes).IsUsual()) << type;
  }
}

// dump-format 2.9: the magic number makes a record; of its types 24 to 29 are used.
TEST(SocRecord, UnusedTypesAreRecords) {
  std::array<std::byte, records::SocRecord::kSize> bytes{};
  for (uint16_t type = 0; type < 64; ++type) {
    const std::array<uint16_t, 2> head = {type, abi::kSocProfileMagic};
    std::memcpy(bytes.data(), head.data(), sizeof head);
    const records::SocRecord record(bytes);
    EXPECT_TRUE(record.IsPlausible()) << type;
    EXPECT_EQ(record.IsUnused(), type < 24 || type > 29) << type;
  }
}

}  // namespace
}  // namespace profd
