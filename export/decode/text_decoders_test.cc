#include <gtest/gtest.h>

#include <string>

#include "export/decode/text_math.h"
#include "export/decode/text_test_support.h"
#include "export/text_scan.h"

namespace profd::exporting {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

TEST(TextScan, ReadsNumbersAsTheyAreWritten) {
  TextScan scan("  12 -7 3.25 1e3 0.1 123456789012345678901 x5");
  uint64_t natural = 0;
  int64_t whole = 0;
  double real = 0;
  EXPECT_TRUE(scan.Uint(&natural));
  EXPECT_EQ(natural, 12u);
  EXPECT_TRUE(scan.Int(&whole));
  EXPECT_EQ(whole, -7);
  EXPECT_TRUE(scan.Real(&real));
  EXPECT_EQ(real, 3.25);
  EXPECT_TRUE(scan.Real(&real));
  EXPECT_EQ(real, 1000);
  EXPECT_TRUE(scan.Real(&real));
  EXPECT_EQ(real, 0.1);
  EXPECT_TRUE(scan.Real(&real));
  EXPECT_EQ(real, 123456789012345678901.0);
  EXPECT_FALSE(scan.Real(&real));
}

TEST(TextScan, RefusesTextThatIsNotANumber) {
  for (const char* text : {"", "12a", "-", "1:2", "nan", "inf", "1e999"}) {
    double real = 0;
    EXPECT_FALSE(TextScan(text).Real(&real)) << text;
  }
  uint64_t natural = 0;
  EXPECT_TRUE(TextScan("18446744073709551615").Uint(&natural));
  EXPECT_EQ(natural, 18446744073709551615u);
  EXPECT_FALSE(TextScan("18446744073709551616").Uint(&natural));
  EXPECT_FALSE(TextScan("99999999999999999999999").Uint(&natural));
}

TEST(TextScan, LinesHaveNoEnds) {
  std::string text = "a\r\nb\n\nc";
  std::string joined;
  ForEachLine(std::as_bytes(std::span(text)),
              [&](std::string_view line) { joined += "[" + std::string(line) + "]"; });
  EXPECT_EQ(joined, "[a][b][][c]");
}

TEST(TextMath, RoundsTiesToEvenInDecimal) {
  // 16384 bytes in 10 ms are 1.5625 MB/s, a tie.
  EXPECT_EQ(RoundedMegaRate(16384, 10'000'000), 1.562);
  EXPECT_EQ(RoundedMegaRate(3 * 16384, 10'000'000), 4.688);  // 4.6875
  EXPECT_EQ(RoundedMegaRate(1048576, kSecond), 1.0);
  EXPECT_EQ(RoundedMegaRate(5, 0), 0.0);
  EXPECT_EQ(RoundedQuotient(1, 8, 2), 0.12);
  EXPECT_EQ(RoundedQuotient(3, 8, 2), 0.38);
  EXPECT_EQ(RoundedQuotient(-2, 3, 6), -0.666667);
}

TEST(Hccs, RatesButTheLastAtTheLaterTimestamp) {
  DecodeRun run("hccs.data");
  run.Feed(
      {"time_stamp(s):time_stamp(ns) send_amount receive_amount\n"
       "10:000000000 1000 5000\n"
       "11:000000000 1049576 5000\n"     // 1 MB/s
       "11:500000000 2098152 2102152\n"  // 2 and 4 MB/s
       "12:500000000 9999999 9999999\n"});
  ASSERT_EQ(run.Since(DecodeRun::kDeviceWall), (Numbers{{11e9, 1, 0}, {11.5e9, 2, 4}}));
  EXPECT_EQ(run.rows[1].device, 3);
  EXPECT_EQ(run.stats.records, 4u);
  EXPECT_EQ(run.stats.bad_records, 0u);
}

TEST(Hccs, SlicesWithoutHeaderLoseNothing) {
  DecodeRun run("hccs.data");
  run.Feed({"1:000000000 0 0\n2:000000000 1048576 0\n", "3:000000000 3145728 0\n4:000000000 9 0\n",
            "time_stamp(s):time_stamp(ns) send_amount receive_amount\n5:000000000 1048585 0\n"});
  // Four samples rise, the fourth falls below the third, the fifth rises again and is the last.
  EXPECT_EQ(run.Since(DecodeRun::kDeviceWall), (Numbers{{2e9, 1, 0}, {3e9, 2, 0}}));
}

TEST(Hccs, DecreaseInEitherDirectionDropsTheRow) {
  DecodeRun run("hccs.data");
  run.Feed(
      {"1:000000000 10 10\n2:000000000 20 5\n3:000000000 30 10\n4:000000000 40 20\n"
       "5:000000000 50 30\n"});
  // 3 and 4; 2 fell, 5 is the last.
  EXPECT_EQ(run.Since(DecodeRun::kDeviceWall), (Numbers{{3e9, 0, 0}, {4e9, 0, 0}}));
}

TEST(Hccs, FewSamples) {
  DecodeRun none("hccs.data");
  none.Feed({"time_stamp(s):time_stamp(ns) send_amount receive_amount\n"});
  EXPECT_TRUE(none.rows.empty());

  DecodeRun one("hccs.data");
  one.Feed({"7:000000001 100 200"});  // no line end
  EXPECT_EQ(one.Since(DecodeRun::kDeviceWall), (Numbers{{7e9 + 1, 0, 0}}));

  DecodeRun two("hccs.data");
  two.Feed({"1:000000000 0 0\n2:000000000 1048576 2097152\n"});
  EXPECT_EQ(two.Since(DecodeRun::kDeviceWall), (Numbers{{2e9, 1, 2}})) << "the only row is kept";

  DecodeRun fell("hccs.data");
  fell.Feed({"1:000000000 10 10\n2:000000000 5 5\n"});
  EXPECT_TRUE(fell.rows.empty());
}

TEST(Hccs, IdleLinkKeepsTheLastRow) {
  DecodeRun run("hccs.data");
  run.Feed({"1:000000000 8 8\n2:000000000 8 8\n3:000000000 8 8\n"});
  EXPECT_EQ(run.rows.size(), 2u);
}

TEST(Hccs, EqualTimestampsGiveZeroAndEarlierOnesAreBad) {
  DecodeRun run("hccs.data");
  run.Feed(
      {"1:000000000 0 0\n1:000000000 100 0\n0:500000000 200 0\n2:000000000 300 0\n"
       "3:000000000 400 0\n"});
  EXPECT_EQ(run.Since(DecodeRun::kDeviceWall), (Numbers{{1e9, 0, 0}, {2e9, 0, 0}}));
  EXPECT_EQ(run.stats.bad_records, 1u);
}

TEST(Hccs, ATimestampFarAheadDoesNotSilenceTheRest) {
  DecodeRun run("hccs.data");
  std::string text = "1:000000000 0 0\n8000000000:000000000 0 0\n";
  for (int i = 2; i < 14; ++i) text += std::to_string(i) + ":000000000 1048576 0\n";
  run.Feed({text});
  // The garbage itself; 2 to 8 are refused, 9 begins anew, 13 is the last but no counter fell: 10
  // to 12.
  EXPECT_EQ(run.stats.bad_records, 7u);
  ASSERT_EQ(run.rows.size(), 4u);
  EXPECT_EQ(run.rows[1].t_ns, DecodeRun::kDeviceWall + 10 * kSecond);
}

TEST(Netdev, ATimestampFarAheadDoesNotSilenceTheRest) {
  DecodeRun run("netdev_stats.data");
  std::string rest = " 1 2 100 200 5 6 7 8 9 10 11 12 13 1000 2000\n";
  std::string text = "1" + rest + "4000000000000000000" + rest;
  for (int i = 2; i < 12; ++i) text += std::to_string(i) + rest;
  run.Feed({text});
  ASSERT_EQ(run.rows.size(), 3u);  // the garbage, 10 and 11
  EXPECT_EQ(run.rows[1].t_ns, DecodeRun::kWall + 10);
}

TEST(Hccs, GarbageIsCounted) {
  DecodeRun run("hccs.data");
  run.Feed(
      {"1:000000000 0 0\nrubbish\n2:000000000 5\n2:0 1 2 3\n2:000000000 -1 0\n"
       "2:000000000 1048576 0\n3:000000000 2097152 0\n"});
  EXPECT_EQ(run.Since(DecodeRun::kDeviceWall), (Numbers{{2e9, 1, 0}}));
  EXPECT_EQ(run.stats.bad_records, 4u);
  EXPECT_EQ(run.stats.bad_bytes, 8u + 14u + 10u + 17u);
}

TEST(Hccs, TheFirstLineOfASliceIsAHeadingWhateverItIs) {
  DecodeRun run("hccs.data");
  run.Feed({"another heading\n1:000000000 0 0\n2:000000000 1048576 0\n",
            "00 1048576 0\n3:000000000 2097152 0\nrubbish\n4:000000000 3145728 0\n"});
  EXPECT_EQ(run.rows.size(), 2u);
  EXPECT_EQ(run.stats.records, 4u);
  EXPECT_EQ(run.stats.bad_records, 1u) << "the line further down";
}

TEST(Hccs, RowsOutsideOfTheWindowStillServeAsPredecessors) {
  DecodeRun run("hccs.data");
  run.window.from_ns = DecodeRun::kDeviceWall + 3 * kSecond;
  run.Feed({"1:000000000 0 0\n2:000000000 5 0\n3:000000000 1048581 0\n4:000000000 2000000 0\n"});
  EXPECT_EQ(run.Since(DecodeRun::kDeviceWall), (Numbers{{3e9, 1, 0}}));
}

constexpr char kNicHeader[] =
    "time_stamp bandwidth rxPacket/s rxByte/s rxPackets rxBytes rxErrors rxDropped txPacket/s "
    "txByte/s txPackets txBytes txErrors txDropped funcId\n";

TEST(Nic, RatiosOfALine) {
  DecodeRun run("nic.data");
  run.Feed({std::string(kNicHeader) +
            "5:000000007 100 11 1310720 1000 99 10 20 12 2621440 0 98 1 2 4\n"});
  // Errors and drops of 1000 packets, and of none; 1310720 * 8 / (100 * 2^20) of the bandwidth.
  EXPECT_EQ(run.Since(DecodeRun::kDeviceWall),
            (Numbers{{5e9 + 7, 4, 100, 11, 1310720, 1000, 99, 10, 20, 0.01, 0.02, 12, 2621440, 0, 98, 1, 2, 0, 0, 0.1, 0.2}}));
}

// Of other collectors' dumps: they have the driver's lines as they came (driver-abi 3.6).
TEST(Nic, NanosecondsMayLackTheirZeros) {
  DecodeRun run("nic.data");
  run.Feed({"5:9619850 100 11 1310720 1000 99 10 20 12 2621440 0 98 1 2 4\n"});
  ASSERT_EQ(run.rows.size(), 1u);
  EXPECT_EQ(run.rows[0].t_ns, DecodeRun::kDeviceWall + 5 * kSecond + 9'619'850);
}

TEST(Nic, FourteenToSixteenColumns) {
  DecodeRun run("roce.data");
  std::string numbers = " 100000 1 2 3 4 5 6 1 2 3 4 5 6";
  run.Feed({"1:000000000" + numbers + "\n", "2:000000000" + numbers + " 7\n" + kNicHeader,
            "3:000000000" + numbers + " 8 1\n4:000000000" + numbers + " 8 1 9\n"});
  ASSERT_EQ(run.rows.size(), 3u);  // of all slices
  EXPECT_EQ(run.rows[0].table, TableId::kRoce);
  EXPECT_EQ(run.rows[0].Int(0), 0);
  EXPECT_EQ(run.rows[1].Int(0), 7);
  EXPECT_EQ(run.rows[2].Int(0), 8);
  EXPECT_EQ(run.stats.bad_records, 1u);
}

TEST(Nic, UtilizationIsNotRounded) {
  DecodeRun run("nic.data");
  run.Feed({"1:000000000 100000 1 27829346 2 3 4 5 1 6553600 2 3 4 5 0\n"});
  ASSERT_EQ(run.rows.size(), 1u);
  EXPECT_EQ(run.rows[0].Real(18), 27829346.0 * 8 / (100000.0 * 1048576));
  EXPECT_EQ(run.rows[0].Real(19), 0.0005);
}

TEST(Nic, WithoutBandwidthThereIsNoEfficiency) {
  DecodeRun run("nic.data");
  run.Feed({"1:000000000 0 1 2 3 4 5 6 1 2 3 4 5 6 0\n1:0 x\n"});
  ASSERT_EQ(run.rows.size(), 1u);
  EXPECT_EQ(run.rows[0].Real(18), 0.0);
  EXPECT_EQ(run.stats.bad_records, 1u);
}

TEST(Dvpp, WithAndWithoutId) {
  DecodeRun run("dvpp.data");
  run.Feed(
      {"time dvpp_id engine_type engine_id all_time\n"
       "1:000000000 2 1 0 700 5 90% 600 4 80% 500 3\n"
       "2:000000000 1 7 700 5 90.5% 600 4 80% 500 3\n"
       "3:000000000 1 7 700\nx\n"});
  EXPECT_EQ(run.Since(DecodeRun::kDeviceWall), (Numbers{{1e9, 2, 1, 0, 700, 5, 90, 600, 4, 80, 500, 3},
                                                        {2e9, 0, 1, 7, 700, 5, 90.5, 600, 4, 80, 500, 3}}));
  EXPECT_EQ(run.stats.bad_records, 2u);
}

TEST(Dvpp, EveryEngineHasAFile) {
  for (const char* base :
       {"dvpp.vdec", "dvpp.jpegd", "dvpp.jpege", "dvpp.png", "dvpp.scd", "dvpp.venc", "dvpp.vpc"}) {
    DecodeRun run(base);
    run.Feed({"1:000000000 2 1 0 700 5 90% 600 4 80% 500 3\n"});
    EXPECT_EQ(run.rows.size(), 1u) << base;
  }
}

TEST(Netdev, DifferencesOfCounters) {
  DecodeRun run("netdev_stats.data");
  run.Feed(
      {"1000000000 1 2 100 200 5 6 7 8 9 10 11 12 13 1000 2000\n"
       "1500000000 2 4 600 1200 5 7 7 9 9 11 11 13 10 1100 2000\n"
       "1500000000 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9\n"  // no time passed
       "1 2 3\n"
       "3500000000 2 4 600 1200 5 7 7 9 9 11 11 13 11 1100 2002\n"});
  // The thirteenth decreased first. 500, 1000, 100 and 0 bytes in 0.5 s, then 2 of the last in 2 s.
  EXPECT_EQ(run.Since(DecodeRun::kWall),
            (Numbers{{1.5e9, 1, 2, 500, 1000, 0, 1, 0, 1, 0, 1, 0, 1, 0, 100, 0, 1000, 2000, 200, 0},
                     {3.5e9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 1}}));
  EXPECT_EQ(run.stats.bad_records, 2u);
}

TEST(Netdev, OneSampleIsNotEnough) {
  DecodeRun run("netdev_stats.data");
  run.Feed({"1000000000 1 2 100 200 5 6 7 8 9 10 11 12 13 1000 2000\n"});
  EXPECT_TRUE(run.rows.empty());
  EXPECT_EQ(run.stats.records, 1u);
}

TEST(LlcText, ReadAndWriteRowsPerTimestamp) {
  DecodeRun run("llc.data", Place::Kind::kDevice, 0);
  run.Feed(
      {"# started on a day\n"
       "  0.5 4096 hisi_l3c0/read_allocate/\n"
       "  0.5 4096 hisi_l3c0/read_noallocate/\n"
       "  0.5 2048 hisi_l3c0/read_hit/ (50.00%)\n"
       "  1.0 16384 hisi_l3c0/write_allocate/\n"
       "  1.0 <not counted> hisi_l3c0/write_hit/\n"
       "  1.0 5 hisi_l3c0/dsid0/\n"
       "what\n"});
  // 8192 * 64 B in 0.5 s, then 16384 * 64 B.
  EXPECT_EQ(run.Since(DecodeRun::kWall + 5000), (Numbers{{0.5e9, 0, 0, 0.25, 1, 0.25},
                                                         {0.5e9, 0, 1, 0, 0, 0},
                                                         {1e9, 0, 0, 0, 0, 0},
                                                         {1e9, 0, 1, 0, 2, 0}}));
  EXPECT_EQ(run.stats.bad_records, 1u);
  EXPECT_EQ(run.stats.skipped, 1u);
}

TEST(LlcText, SecondsAreTakenToTheNs) {
  DecodeRun run("llc.data", Place::Kind::kDevice, 0);
  run.Feed({"0.267801967 1 hisi_l3c0/read_allocate/\n"});
  ASSERT_EQ(run.rows.size(), 2u);
  EXPECT_EQ(run.Since(DecodeRun::kWall + 5000)[0][0], 267801967);
}

TEST(LlcText, OtherChipsAreBinary) {
  EXPECT_EQ(FindDecoder("llc.data", Place::Kind::kDevice, 0)->record_size, 0);
  EXPECT_EQ(FindDecoder("llc.data", Place::Kind::kDevice, 5)->record_size, 24);
}

// Of a slice that ends without '\n' (dump-format 1.1): the next begins with a line of its own, or with the rest of the
// last one.
TEST(TextLines, CompleteOnesAreKnown) {
  const struct {
    const char* file;
    std::string line;
    std::string heading;
  } kinds[] = {
      {"hccs.data", "9:000000000 1000 5000", "time_stamp(s):time_stamp(ns) send_amount receive_amount"},
      {"nic.data", "5:000000007 100 11 13 10 99 10 20 12 26 0 98 1 2", "time_stamp bandwidth rxPacket/s rxByte/s"},
      {"roce.data", "5:000000007 100 11 13 10 99 10 20 12 26 0 98 1 2 4", "time_stamp bandwidth rxPacket/s rxByte/s"},
      {"dvpp.data", "5:000000000 3 1 0 10 20 69.5% 30 40 50% 60 70", "time_stamp dvpp_id engine_type engine_id"},
      {"netdev_stats.data", "8 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15", ""},
  };
  for (const auto& kind : kinds) {
    SCOPED_TRACE(kind.file);
    DecodeRun run(kind.file);
    run.Feed({});
    EXPECT_TRUE(run.is_line(kind.line));
    EXPECT_FALSE(run.is_line(kind.line + kind.line)) << "two lines are none";
    EXPECT_FALSE(run.is_line(""));
    EXPECT_FALSE(run.is_line(kind.line.substr(kind.line.size() / 2))) << "the rest of one";
    if (kind.heading.empty()) continue;
    EXPECT_TRUE(run.is_line(kind.heading));
    EXPECT_FALSE(run.is_line(kind.line + kind.heading));
  }
}

}  // namespace
}  // namespace profd::exporting
