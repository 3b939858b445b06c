// What is the driver's though no specification lists it: values, events, ids (driver-abi 3.6).
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "driver/abi/hal_abi.h"
#include "driver/framer.h"
#include "driver/framer_test_support.h"

namespace profd {
namespace {

Buffer Join(const std::vector<Buffer>& parts) {
  Buffer all;
  for (const Buffer& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

Buffer Ddr(uint32_t us, uint32_t count, uint32_t event) {
  Buffer record(20);
  StoreUnchecked(std::span(record), 0, us);
  StoreUnchecked(std::span(record), 4, count);
  StoreUnchecked(std::span(record), 8, event);
  StoreUnchecked(std::span(record), 16, 0xFFFFFFFFu);
  return record;
}

Buffer NpuMem(uint32_t us, uint32_t kind, uint64_t hbm_bytes) {
  Buffer record(32);
  StoreUnchecked(std::span(record), 0, us);
  StoreUnchecked(std::span(record), 4, kind);
  StoreUnchecked(std::span(record), 24, hbm_bytes);
  return record;
}

// `count` changes, 20 us apart at 50 MHz.
Buffer Lpm(uint32_t count, uint32_t type, uint64_t first) {
  Buffer record(888);
  StoreUnchecked(std::span(record), 0, count);
  StoreUnchecked(std::span(record), 4, type);
  for (uint32_t i = 0; i < count; ++i) {
    StoreUnchecked(std::span(record), 8 + 16 * i, first + i * 1000);
    StoreUnchecked(std::span(record), 16 + 16 * i, 1000 + i * 10);
  }
  return record;
}

Buffer Pcie(uint64_t ns, uint32_t device) {
  Buffer record(96);
  StoreUnchecked(std::span(record), 0, ns);
  StoreUnchecked(std::span(record), 8, device);
  return record;
}

struct Fed {
  Buffer good;
  uint64_t garbage_bytes = 0;
};

// Each piece is a read; nothing follows the last one.
Fed Feed(uint32_t channel, const std::vector<Buffer>& pieces) {
  Framer framer(*abi::FindChannelFormat(channel));
  Fed fed;
  Buffer work;
  for (size_t i = 0; i <= pieces.size(); ++i) {
    if (i < pieces.size()) work.insert(work.end(), pieces[i].begin(), pieces[i].end());
    const FrameResult r = framer.Frame(work, i == pieces.size());
    fed.good.insert(fed.good.end(), work.begin(), work.begin() + static_cast<ptrdiff_t>(r.good_bytes));
    work = Buffer(work.begin() + static_cast<ptrdiff_t>(r.good_bytes),
                  work.begin() + static_cast<ptrdiff_t>(r.good_bytes + r.tail_bytes));
    fed.garbage_bytes += r.garbage_bytes;
  }
  return fed;
}

std::vector<Buffer> PiecesOf(const Buffer& bytes, size_t size) {
  std::vector<Buffer> pieces;
  for (size_t at = 0; at < bytes.size(); at += size) {
    const size_t n = std::min(size, bytes.size() - at);
    pieces.emplace_back(bytes.begin() + static_cast<ptrdiff_t>(at), bytes.begin() + static_cast<ptrdiff_t>(at + n));
  }
  return pieces;
}

// Periods of 50 ms, from the stream's start on or later, read in pieces of all kinds.
void ExpectAllPass(uint32_t channel, const std::vector<Buffer>& records) {
  const Buffer input = Join(records);
  for (const size_t step : {size_t{1}, size_t{37}, records[0].size(), 3 * records[0].size(), input.size()}) {
    const Fed fed = Feed(channel, PiecesOf(input, step));
    EXPECT_EQ(fed.good, input) << channel << " in pieces of " << step;
    EXPECT_EQ(fed.garbage_bytes, 0u) << channel << " in pieces of " << step;
  }
}

TEST(FramerOdd, UnlistedEventsAndIdsInStepAreRecords) {
  for (const int first : {0, 5}) {  // the period of the first odd one
    std::vector<Buffer> hbm, llc, ddr, mem, pcie;
    for (int period = 1; period < 20; ++period) {
      const uint32_t us = static_cast<uint32_t>(period) * 50'000;
      if (period > first) {
        hbm.push_back(Hbm(us, 12'345, 2, 0));
        hbm.push_back(Hbm(us, 12'345, 0, 64));
        ddr.push_back(Ddr(us, 12'345, 3));
        mem.push_back(NpuMem(us, 5, 99));
        pcie.push_back(Pcie(us * uint64_t{1000}, 5000));
      }
      for (uint32_t stack = 0; stack < 4; ++stack) {
        for (uint32_t event = 0; event < 2; ++event) {
          hbm.push_back(Hbm(us, 1'000'000 + 10'000 * stack + 1'000 * event, event, stack));
        }
      }
      for (const uint32_t event : {0x00u, 0x01u, 0x02u, 0x99u, 0x13u, 0x20u, 0x22u, 0x34u, 0x36u}) {
        if (event != 0x99 || period > first) llc.push_back(Hbm(us, 200'000, event, event == 0x99 ? 17 : 0));
      }
      ddr.push_back(Ddr(us, 500'000, 0));
      ddr.push_back(Ddr(us, 501'000, 1));
      mem.push_back(NpuMem(us, 1, 5'000'131'000));
      pcie.push_back(Pcie(us * uint64_t{1000} + 1, 0));
    }
    ExpectAllPass(abi::kChannelHbm, hbm);
    ExpectAllPass(abi::kChannelLlc, llc);
    ExpectAllPass(abi::kChannelDdr, ddr);
    ExpectAllPass(abi::kChannelNpuMem, mem);
    ExpectAllPass(abi::kChannelPcie, pcie);
  }
}

TEST(FramerOdd, AChannelOfUnlistedEventsOnlyPasses) {
  std::vector<Buffer> llc;
  for (uint64_t n = 1; n < 40; ++n) llc.push_back(Hbm(50'000 * n, 200'000, 0x99, 0));
  ExpectAllPass(abi::kChannelLlc, llc);
}

// One that is not in step is none.
TEST(FramerOdd, UnlistedEventsWithOtherTimestampsAreGarbage) {
  const Buffer before = Join({Hbm(50'000, 7, 0, 0), Hbm(50'000, 7, 1, 0)});
  const Buffer behind = Join({Hbm(100'000, 7, 0, 0), Hbm(100'000, 7, 1, 0), Hbm(150'000, 7, 0, 0)});
  const Fed fed = Feed(abi::kChannelHbm, {Join({before, Hbm(uint64_t{1} << 40, 7, 2, 0), behind})});
  EXPECT_EQ(fed.good, Join({before, behind}));
  EXPECT_EQ(fed.garbage_bytes, 24u);
}

Buffer Soc(uint64_t cycles, uint16_t magic) {
  Buffer record(64);
  StoreUnchecked(std::span(record), 0, static_cast<uint16_t>(abi::SocProfileType::kSio));
  StoreUnchecked(std::span(record), 2, magic);
  StoreUnchecked(std::span(record), 8, cycles);
  return record;
}

// driver-abi 3.6: records of channel 52 have a magic number. Zeros are what a driver without such data gives
// (driver-abi 7).
TEST(FramerOdd, WithoutItsMarkNothingIsARecord) {
  const Buffer zeros(1024);
  for (const size_t step : {size_t{1}, size_t{64}, size_t{100}, zeros.size()}) {
    const Fed fed = Feed(abi::kChannelStarsSocProfile, PiecesOf(zeros, step));
    EXPECT_TRUE(fed.good.empty()) << step;
    EXPECT_EQ(fed.garbage_bytes, 1024u) << step;
  }
  const uint64_t begin = 5'000'000'000;
  const Buffer before = Join({Soc(begin, abi::kSocProfileMagic), Soc(begin + 1'000'000, abi::kSocProfileMagic)});
  const Buffer behind = Join({Soc(begin + 3'000'000, abi::kSocProfileMagic), Soc(begin + 4'000'000, abi::kSocProfileMagic)});
  for (const uint16_t magic : {uint16_t{0}, uint16_t{0x1234}}) {
    const Fed fed = Feed(abi::kChannelStarsSocProfile, {Join({before, Soc(begin + 2'000'000, magic), behind})});
    EXPECT_EQ(fed.good, Join({before, behind})) << magic;
    EXPECT_EQ(fed.garbage_bytes, 64u) << magic;
  }
}

// One byte that is no record, a second after the start: behind it, the microseconds of bytes out of step are 256 times
// as many, which may follow, and so do all after them.
TEST(FramerOdd, AByteOfGarbageEarlyInARunCostsThatByteOnly) {
  for (uint32_t channel : {abi::kChannelHbm, abi::kChannelLlc, abi::kChannelNpuAppMem}) {
    const auto at = [&](uint32_t period) {
      const uint32_t us = 20'000 * period;
      if (channel == abi::kChannelNpuAppMem) return NpuMem(us, 0, uint64_t{period} << 21);
      return Join({Hbm(us, 300'000, 0, 0), Hbm(us, 300'000, 1, 0), Hbm(us, 300'000, 0, 1), Hbm(us, 300'000, 1, 1)});
    };
    std::vector<Buffer> before, after;
    for (uint32_t period = 1; period <= 50; ++period) before.push_back(at(period));
    for (uint32_t period = 51; period <= 100; ++period) after.push_back(at(period));
    const Buffer good = Join({Join(before), Join(after)});
    std::vector<Buffer> pieces = before;
    pieces.push_back({std::byte{0x0A}});
    pieces.insert(pieces.end(), after.begin(), after.end());
    for (const std::vector<Buffer>& reads : {pieces, std::vector<Buffer>{Join(pieces)}}) {
      const Fed fed = Feed(channel, reads);
      EXPECT_EQ(fed.garbage_bytes, 1u) << channel << " " << reads.size();
      EXPECT_TRUE(fed.good == good) << channel << " " << reads.size();
    }
  }
}

// A driver may be without records for some seconds, and devices without traffic count zeros.
TEST(FramerOdd, ALongGapEarlyInARunIsNone) {
  std::vector<Buffer> reads;
  for (uint64_t us : {20'000, 40'000, 3'040'000, 3'060'000, 9'060'000, 9'080'000}) {
    reads.push_back(Join({Hbm(us, 0, 0, 0), Hbm(us, 0, 1, 0), Hbm(us, 0, 0, 1), Hbm(us, 0, 1, 1)}));
  }
  for (const std::vector<Buffer>& pieces : {reads, std::vector<Buffer>{Join(reads)}}) {
    const Fed fed = Feed(abi::kChannelHbm, pieces);
    EXPECT_EQ(fed.garbage_bytes, 0u);
    EXPECT_TRUE(fed.good == Join(reads));
  }
}

// A read ends where a record ends: none is held back because of its values until the next one comes, which of
// low power may be long after. lpmFreqConv has any number in its type (driver-abi 3.6).
TEST(FramerOdd, AnOddRecordThatEndsTheReadIsNotHeldBack) {
  for (const uint32_t type : {0u, 9u, 1000u, 0xCDCDCDCDu}) {
    Framer framer(*abi::FindChannelFormat(abi::kChannelLp));
    for (uint64_t n = 1; n < 4; ++n) {
      Buffer record(888);
      StoreUnchecked(std::span(record), 0, 1u);
      StoreUnchecked(std::span(record), 4, type);
      StoreUnchecked(std::span(record), 8, 5'000'000'000 + n);
      StoreUnchecked(std::span(record), 16, static_cast<uint32_t>(1000 + n));
      const FrameResult r = framer.Frame(record);
      EXPECT_EQ(r.records, 1u) << type;
      EXPECT_EQ(r.tail_bytes, 0u) << type;
    }
  }
  Framer framer(*abi::FindChannelFormat(abi::kChannelHbm));
  Buffer work = Join({Hbm(50'000, 7, 0, 0), Hbm(50'000, 7, 2, 0)});
  EXPECT_EQ(framer.Frame(work).records, 2u);
}

// The same of many changes in one record, and of several records in one read.
TEST(FramerOdd, LowPowerRecordsOfAnyTypeAreRecords) {
  for (const uint32_t type : {0u, 2u, 3u, 7u, 55u, 60u, 1800u, 0xCDCDCDCDu}) {
    for (const uint32_t count : {1u, 3u, 8u, 55u}) {
      const Buffer read = Join({Lpm(count, type, 803'813'279'999), Lpm(count, type, 803'913'279'999), Lpm(count, type, 804'013'279'999)});
      const Fed fed = Feed(abi::kChannelLp, {read, read});
      EXPECT_TRUE(fed.good == Join({read, read})) << type << ' ' << count;
      EXPECT_EQ(fed.garbage_bytes, 0u) << type << ' ' << count;
    }
  }
}

// dump-format, "How profd writes", 3: lines are never cut, also those whose form is not known.
TEST(FramerOdd, ATornLastLineIsGarbage) {
  for (const std::string_view line : {"1:000000001 0 5 0 1000 3 55% 100 7 25% 50 2\n", "engine 135 util 4\n"}) {
    for (size_t cut = 1; cut < line.size(); ++cut) {
      const std::string text = std::string(line) + std::string(line.substr(0, line.size() - cut));
      const auto bytes = AsBytes(text);
      const Fed fed = Feed(abi::kChannelDvppVenc, {Buffer(bytes.begin(), bytes.end())});
      EXPECT_EQ(AsText(fed.good), line) << cut;
      EXPECT_EQ(fed.garbage_bytes, line.size() - cut);
    }
  }
}

// What is no text is not known to have lines.
TEST(FramerOdd, OtherBytesNeedNoLineEnd) {
  const Buffer bytes(40, std::byte{1});
  EXPECT_EQ(Feed(abi::kChannelDvppVenc, {bytes, bytes}).good, Join({bytes, bytes}));
}

}  // namespace
}  // namespace profd
