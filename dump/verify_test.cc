// What verify makes of the records: counts, gaps, order, clocks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "dump/verify_test_support.h"

namespace profd {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST_F(VerifyTest, ACompleteDumpIsValid) {
  WriteAll(200);
  VerifyReport report = Verify();
  EXPECT_TRUE(report.ok()) << testing::PrintToString(Texts(report));
  EXPECT_TRUE(report.has_manifest);
  EXPECT_GT(report.checksums, 5u);
  ASSERT_EQ(report.channels.size(), 2u);
  for (const VerifyChannel& channel : report.channels) {
    EXPECT_EQ(channel.expected(), channel.received) << channel.file;
    EXPECT_EQ(channel.received, channel.collector == "hbm" ? 1600u : 200u);
  }
  for (VerifyCheck check :
       {VerifyCheck::kManifest, VerifyCheck::kSizes, VerifyCheck::kChecksums, VerifyCheck::kFraming,
        VerifyCheck::kOrder, VerifyCheck::kClocks, VerifyCheck::kAccounting}) {
    EXPECT_TRUE(report.ran[static_cast<size_t>(check)]) << ToString(check);
  }
}

TEST_F(VerifyTest, ReportsWhatLimitsRemoved) {
  Write(0, 200);
  Channel("llc", 77, "").aged.records = 30;
  Channel("ddr", 78, "").aged.records = 20;
  dump_->manifest().options.push_back({"storage_limit", "35MB", "35MB", ""});
  dump_->manifest().aged_for_space = 40;
  Finish(200);
  const VerifyReport report = Verify();
  EXPECT_TRUE(report.ok()) << testing::PrintToString(Texts(report));
  EXPECT_EQ(report.removed_records, 50u);
  EXPECT_EQ(report.removed_for_space, 40u);
  EXPECT_EQ(report.storage_limit.value, "35MB");
}

TEST_F(VerifyTest, LostRecordsWithoutANoteAreFound) {
  Write(0, 100);
  Write(110, 200);
  Finish(200);
  VerifyReport report = Verify();
  EXPECT_THAT(Texts(report),
              Contains(HasSubstr("accounting: hbm.data of device 0: 80 of 1600 records are missing "
                                 "and not accounted for in the manifest; the first 0.990 s after")));
  EXPECT_THAT(Texts(report), Contains(HasSubstr("hccs.data of device 0: 10 of 200 records")));
}

TEST_F(VerifyTest, LostRecordsTheManifestNamesAreExpected) {
  Write(0, 100);
  Write(110, 200);
  for (ManifestChannel* channel :
       {&Channel("hbm", 1, "hbm.data"), &Channel("hccs", 9, "hccs.data")}) {
    const uint64_t lost = channel->collector == "hbm" ? 80 : 10;
    channel->AddGap({kStartNs + 1100 * kNsPerMs, lost, LossReason::kQueueFull, kStartNs + 990 * kNsPerMs});
    channel->AddLoss(LossReason::kQueueFull, lost, lost * 24);
  }
  Finish(200);
  VerifyReport report = Verify();
  EXPECT_TRUE(report.ok()) << testing::PrintToString(Texts(report));
  ASSERT_FALSE(report.channels.empty());
  for (const VerifyChannel& channel : report.channels) {
    EXPECT_EQ(channel.missing, channel.collector == "hbm" ? 80u : 10u);
    EXPECT_EQ(channel.lost, channel.missing);
    EXPECT_EQ(channel.unexplained, 0u);
  }
}

// The volume was full from 2 s on, to the end of the session at 3 s: no record comes after what is missing.
TEST_F(VerifyTest, WhatIsLostAtTheEndOfASessionIsLost) {
  Write(0, 100);
  Write(110, 200);
  WriteHost([](int) { return 0.01; }, 300);
  for (ManifestChannel* channel : {&Channel("hbm", 1, "hbm.data"), &Channel("hccs", 9, "hccs.data"), &Channel("host_cpu", 0, "")}) {
    const uint64_t series = channel->collector == "hbm" ? 8 : 1;
    if (channel->device >= 0) {
      channel->AddGap({kStartNs + 1100 * kNsPerMs, 10 * series, LossReason::kQueueFull, kStartNs + 990 * kNsPerMs});
      channel->AddLoss(LossReason::kQueueFull, 10 * series, 0);
    }
    channel->AddGap({kStartNs + 3000 * kNsPerMs, 100 * series, LossReason::kWriteError, kStartNs + 1995 * kNsPerMs});
    channel->AddLoss(LossReason::kWriteError, 100 * series, 0);
  }
  ManifestChannel& llc = Channel("llc", 77, "llc.data");  // nothing of it was written
  llc.AddGap({kStartNs + 3000 * kNsPerMs, 20, LossReason::kWriteError, kStartNs});
  llc.AddLoss(LossReason::kWriteError, 20, 480);
  Finish(300);
  const VerifyReport report = Verify();
  EXPECT_TRUE(report.ok()) << testing::PrintToString(Texts(report));
  ASSERT_EQ(report.channels.size(), 3u);
  for (const VerifyChannel& channel : report.channels) {
    const uint64_t lost = channel.collector == "hbm" ? 880 : channel.collector == "hccs" ? 110 : 100;
    EXPECT_EQ(channel.missing, lost) << channel.file;
    EXPECT_EQ(channel.lost, lost) << channel.file;
    EXPECT_EQ(channel.unexplained, 0u) << channel.file;
  }
  EXPECT_THAT(report.notes, ElementsAre("llc of device 0: 20 records are lost (write_error)"));
}

// Two processes, whose gaps overlap: from 100 ms to 700 ms and from 1000 ms to 1200 ms.
TEST_F(VerifyTest, TheTimeOfAnotherProfilerIsANote) {
  Write(0, 200);
  ManifestChannel& kernel = Channel("activity_kernel", 0, "");
  kernel.device = -1;
  for (const auto& [from_ms, to_ms] : {std::pair(300, 700), std::pair(100, 500), std::pair(1000, 1200)}) {
    kernel.AddGap({kStartNs + to_ms * kNsPerMs, 0, LossReason::kProfilerBusy, kStartNs + from_ms * kNsPerMs});
  }
  Finish(200);
  const VerifyReport report = Verify();
  EXPECT_TRUE(report.ok()) << testing::PrintToString(Texts(report));
  EXPECT_THAT(report.notes, Contains(HasSubstr("activity_kernel: 0.800 s are without the records of a process")));
}

// Their timestamps do not show it.
TEST_F(VerifyTest, LossesOfRecordsWithoutAPeriodAreThoseOfTheManifest) {
  Write(0, 200);
  ASSERT_TRUE(dump_->AppendOwn("marks.tsv", "5000000000000\t2\t\t2\tmark\ta\t0\n").ok());
  ManifestChannel& marks = Channel("marks", 0, "marks.tsv");
  marks.device = -1;
  marks.hz_effective = 0;
  marks.records = 1;
  marks.AddLoss(LossReason::kRingFull, 5, 0);
  ManifestChannel& kernel = Channel("activity_kernel", 0, "");
  kernel.device = -1;
  kernel.hz_effective = 0;
  kernel.AddLoss(LossReason::kVendorBuffer, 0, 300);
  kernel.AddLoss(LossReason::kProfilerBusy, 0, 0);
  kernel.AddLoss(LossReason::kAged, 7, 70);  // `removed`
  Channel("hccs", 9, "hccs.data").AddLoss(LossReason::kDriver, 2, 0);  // by the timestamps, if they are missing
  Finish(200);
  const VerifyReport report = Verify();
  EXPECT_TRUE(report.ok()) << testing::PrintToString(Texts(report));
  EXPECT_THAT(report.notes, ElementsAre("marks: 5 records are lost (ring_full)",
                                        "activity_kernel: 300 bytes of an unknown number of records are lost (vendor_buffer)"));
  const auto row = std::ranges::find(report.channels, "profd/marks.tsv", &VerifyChannel::file);
  ASSERT_NE(row, report.channels.end());
  EXPECT_EQ(row->received, 1u);
  EXPECT_EQ(row->missing, 5u);
  EXPECT_EQ(row->expected(), 6u);
}

TEST_F(VerifyTest, TooSmallALossDoesNotExplainALargeGap) {
  Write(0, 50);
  Write(150, 200);
  Channel("hccs", 9, "hccs.data")
      .AddGap({kStartNs + 600 * kNsPerMs, 3, LossReason::kQueueFull, kStartNs + 500 * kNsPerMs});
  Channel("hccs", 9, "hccs.data").AddLoss(LossReason::kQueueFull, 3, 100);
  Finish(200);
  EXPECT_THAT(Texts(Verify()),
              Contains(HasSubstr("hccs.data of device 0: 100 records are missing, the manifest "
                                 "knows of 3")));
}

// Four of five records, each the nearest to a point of the session's grid.
TEST_F(VerifyTest, AThinnedChannelHasTheRecordsOfItsOwnGrid) {
  for (ManifestChannel* channel :
       {&Channel("hbm", 1, "hbm.data"), &Channel("hccs", 9, "hccs.data")}) {
    channel->hz_effective = 80;
    channel->channel_hz = 100;
    channel->thinned = true;
  }
  for (int i = 0; i < 200; ++i) {
    if (i % 5 != 4) Write(i, i + 1);
  }
  Finish(200);
  EXPECT_THAT(Texts(Verify()), testing::IsEmpty());
}

// A session that begins in the past of the flight recorder, which had one record a second: what follows the restart
// has the session's own rate, and between the two runs one record of each series is missing.
TEST_F(VerifyTest, AnEarlierRunOfTheChannelHasARateOfItsOwn) {
  for (int i = 0; i <= 800; i += 100) Write(i, i + 1);
  Write(802, 1002);
  for (ManifestChannel* channel : {&Channel("hbm", 1, "hbm.data"), &Channel("hccs", 9, "hccs.data")}) {
    channel->AddGap({kStartNs + 8020 * kNsPerMs, 0, LossReason::kChannelRestart, kStartNs + 8000 * kNsPerMs});
    channel->thinned = channel->collector == "hccs";
    channel->channel_hz = channel->thinned ? 200 : 100;
  }
  Finish(1002);
  const VerifyReport report = Verify();
  EXPECT_TRUE(report.ok()) << testing::PrintToString(Texts(report));
  ASSERT_EQ(report.channels.size(), 2u);
  for (const VerifyChannel& channel : report.channels) {
    EXPECT_EQ(channel.missing, channel.collector == "hbm" ? 8u : 1u);
  }
}

// Late by up to a period and late from then on: every point of the grid has its reading.
TEST_F(VerifyTest, ASampleThatIsLateAndStaysLateIsNotALoss) {
  WriteHost([](int i) { return i < 100 ? 0.01 : 0.8; }, 200);
  Finish(200);
  EXPECT_THAT(Texts(Verify()), testing::IsEmpty());
}

TEST_F(VerifyTest, APollWithoutANoteIsMissing) {
  WriteHost([](int i) { return i != 100 ? i % 7 * 0.05 : kNoReading; }, 199);
  Finish(200);
  EXPECT_THAT(Texts(Verify()),
              ElementsAre(HasSubstr("host_sys_cpu.data: 1 of 200 records are missing and "
                                    "not accounted for in the manifest; the first 0.99")));
}

TEST_F(VerifyTest, ASampleLostOnTheWayIsMissing) {
  WriteHost([](int) { return 0.01; }, 203);
  Finish(200);
  EXPECT_THAT(Texts(Verify()), ElementsAre(HasSubstr("200 samples are here, host_cpu was read 203")));
}

TEST_F(VerifyTest, APollThatWasLeftOutIsExplained) {
  WriteHost([](int i) { return i == 51 || i == 52 ? kNoReading : i == 50 ? 2.3 : 0.01; }, 198, 2);
  Finish(200);
  VerifyReport report = Verify();
  EXPECT_THAT(Texts(report), testing::IsEmpty());
  ASSERT_FALSE(report.channels.empty());
  EXPECT_EQ(report.channels[0].missing, 2u);
}

TEST_F(VerifyTest, MoreLeftOutThanReportedIsFound) {
  WriteHost([](int i) { return i < 50 || i > 70 ? 0.01 : kNoReading; }, 179, 2);
  Finish(200);
  EXPECT_THAT(Texts(Verify()), ElementsAre(HasSubstr("21 records are missing, the manifest knows of 2")));
}

TEST_F(VerifyTest, ACountThatIsWrongIsFound) {
  WriteAll(200);
  const std::string path = path_ + "/profd_manifest.json";
  std::string text = ReadText(path);
  const std::string right = "\"records\": 1600";
  ASSERT_NE(text.find(right), std::string::npos);
  text.replace(text.find(right), right.size(), "\"records\": 1605");
  std::ofstream(path) << text;
  EXPECT_THAT(Texts(Verify()),
              Contains(HasSubstr("1600 records are here, the manifest counts 1605")));
}

TEST_F(VerifyTest, AChannelThatEndsEarlyIsFound) {
  Write(0, 200);
  Finish(2000);
  EXPECT_THAT(Texts(Verify()), Contains(HasSubstr("ends 18.0 s before the session")));
}

// Where the driver has no clock or no counter of the device, nothing can be said of when its records begin and end.
TEST_F(VerifyTest, TimestampsOfAnUnknownClockAreNotPlaced) {
  const SessionDump::Channel qos = dump_->OpenChannel(0, 133).value();
  Write(0, 200);
  for (uint64_t i = 0; i < 200; ++i) {
    std::vector<std::byte> record(64);
    StoreUnchecked(std::span<std::byte>(record), 16, 400'000'000'000 + i * 500'000);  // 8000 s at 50 MHz
    ASSERT_TRUE(dump_->Append(qos, record, 1).ok());
  }
  Channel("qos", 133, "qos.data").records = 200;
  for (ManifestClock& clock : dump_->manifest().clocks) {
    if (clock.device != 0) continue;
    clock.clocks.device_ns = clock.clocks.host_ns;
    clock.clocks.device_count = 0;
  }
  Finish(200);
  EXPECT_THAT(Texts(Verify()), Not(Contains(HasSubstr("the session, without a gap"))));
}

TEST_F(VerifyTest, TimestampsThatGoBackAreFound) {
  Write(0, 100);
  Write(90, 100);
  Finish(100);
  EXPECT_THAT(Texts(Verify()), Contains(HasSubstr("order: hccs.data of device 0: 1 timestamps")));
}

TEST_F(VerifyTest, WrongClocksAreFound) {
  Write(0, 200);
  ManifestClock late{.device = 0, .when = "stop",
                     .clocks = {kStartNs + 2 * kNsPerSecond, 2000, 80 * kNsPerSecond, 5000 + 100'000'000, 100}};
  dump_->manifest().clocks.push_back(late);
  Finish(200);
  std::ofstream(path_ + "/device_0/start_info.0") << "{\n}\n";
  std::ofstream(path_ + "/device_0/dev_start.log.0") << "clock_monotonic_raw: 1\ncntvct: 2\n";
  std::vector<std::string> texts = Texts(Verify());
  EXPECT_THAT(texts, Contains(HasSubstr("device's clock runs at 1.500000")));
  EXPECT_THAT(texts, Contains(HasSubstr("start_info.0: is not on one line")));
  EXPECT_THAT(texts, Contains(HasSubstr("dev_start.log.0: has 1 ns, 2 cycles")));
}

// dump-format 1.2: without one of the two the vendor's analyser makes no timeline and no database, so a dump has them
// also where a device's clocks could not be read and the manifest has no pair.
TEST_F(VerifyTest, MissingStartLogsAreFound) {
  Write(0, 200);
  dump_->manifest().clocks.clear();
  ASSERT_TRUE(dump_->WriteManifest().ok());
  for (const char* log : {"device_0/host_start.log.0", "device_0/dev_start.log.0", "host/host_start.log"}) {
    ASSERT_TRUE(fs::remove(path_ + "/" + log));
  }
  EXPECT_THAT(Texts(Verify()), Not(Contains(HasSubstr("start.log"))));  // it is still written
  Finish(200);
  const std::vector<std::string> texts = Texts(Verify());
  EXPECT_THAT(texts, Contains(HasSubstr("clocks: device_0/host_start.log.0: is missing")));
  EXPECT_THAT(texts, Contains(HasSubstr("clocks: device_0/dev_start.log.0: is missing")));
  EXPECT_THAT(texts, Contains(HasSubstr("clocks: host/host_start.log: is missing")));
}

TEST_F(VerifyTest, ClockPairsMayBeListedInAnyOrder) {
  Write(0, 200);
  ManifestClock later{.device = 0, .when = "periodic",
                      .clocks = {kStartNs + 2 * kNsPerSecond, 2000, 79 * kNsPerSecond, 5000 + 100'000'000, 100}};
  auto& clocks = dump_->manifest().clocks;
  clocks.insert(clocks.begin(), later);
  Finish(200);
  EXPECT_THAT(Texts(Verify()), testing::IsEmpty());
}

TEST_F(VerifyTest, ADeviceMayHaveNoCounter) {
  Write(0, 200);
  auto& clocks = dump_->manifest().clocks;
  for (ManifestClock& pair : clocks) {
    if (pair.device == 0) pair.clocks.device_count = 0;
  }
  clocks.push_back({.device = 0, .when = "stop", .clocks = {kStartNs + 2 * kNsPerSecond, 2000, 79 * kNsPerSecond, 0, 100}});
  Finish(200);
  EXPECT_THAT(Texts(Verify()), Not(Contains(HasSubstr("counter runs"))));
}

TEST_F(VerifyTest, OtherDirectoriesAreNotDumps) {
  fs::create_directories(temp_.path() + "/other");
  Result<VerifyReport> report =
      VerifyDump(DumpReader::OpenPath(temp_.path() + "/other").value(), "other");
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.status().message(), HasSubstr("not a profile dump"));
}

TEST_F(VerifyTest, GivingUpEndsIt) {
  WriteAll(200);
  Result<VerifyReport> report = VerifyDump(DumpReader::OpenPath(path_).value(), "x",
                                           [](uint64_t, uint64_t) { return false; });
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.status().code(), StatusCode::kCancelled);
}

}  // namespace
}  // namespace profd
