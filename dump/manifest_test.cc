#include "dump/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

namespace profd {
namespace {

ManifestChannel FullChannel() {
  ManifestChannel hbm;
  hbm.collector = "hbm";
  hbm.device = 0;
  hbm.channel = 1;
  hbm.file = "hbm.data";
  hbm.state = "finished";
  hbm.detail = "fine";
  hbm.hz_asked = 100;
  hbm.hz_effective = 33.3;
  hbm.channel_hz = 100;
  hbm.records = 1ull << 60;
  hbm.bytes = ~0ull;
  hbm.AddLoss(LossReason::kQueueFull, 3, 72);
  hbm.AddLoss(LossReason::kDriver, 1, 24);
  hbm.AddLoss(LossReason::kQueueFull, 2, 48);
  hbm.garbage_bytes = 5;
  hbm.thinned = true;
  hbm.thinned_records = 77;
  hbm.rebased = true;
  hbm.rebase_us = -123456789;
  hbm.AddGap({876'117'208'663'771, 5, LossReason::kQueueFull});
  return hbm;
}

Manifest Full() {
  Manifest m;
  m.profd_version = "0.1.0";
  m.build = "g++ 12.2.0 aarch64";
  m.hal_api_version = 0x072419;
  m.driver_version = "24.1.rc1";
  m.dcmi_version = "1.2";
  m.state = DumpState::kInterrupted;
  m.reason = "daemon stopped";
  m.session_id = "s-1";
  m.uid = 4294967294u;
  m.gid = 1000;
  m.pid = 4242;
  m.job_id = "job";
  m.rank = 0;
  m.metadata = {{"run", "7"}};
  m.processes = {{4242, 3, true, {0, 1}, "train.py", "0-31", "4-7", "mspti", "busy", "msprof", "2026-05", 1'234'567, 77'000}, {4243, std::nullopt, false, {}, ""}};
  m.start_step = 11;
  m.steps = 2;
  m.steps_done = 1;
  m.marks = 99;
  m.dropped_marks = 1;
  m.label = "quotes \" and \n lines, \xc3\xa4";
  m.requested = {{"sys_io_sampling_freq", "100"}, {"devices", "0,1"}};
  m.effective = {{"sys_io_sampling_freq", "100"}};
  m.options = {{"dvpp_freq", "83.3333", "80", "every 12 ms"}, {"l2", "off", "", ""}, {"task_time", "l1", "l1", "", "partial", "served by 1 of 2 processes"}};
  m.expected_ranks = 16;
  m.start_wall_ns = 1'767'225'600'000'000'000;
  m.start_raw_ns = 876'117'208'663'770;
  m.end_wall_ns = 1'767'225'660'000'000'000;
  m.end_raw_ns = 876'177'208'663'770;
  m.hostname = "n1";
  m.os = "Linux";
  m.machine = "aarch64";
  m.host_counter_hz = 100e6;
  m.devices = {{0, 4, "Ascend910B", 5, "AB-CD", 50e6, 1800, 0, "32-63", ManifestUse{1.5, 54'342'451'200, 0.25, 3, std::nullopt}}};
  m.channels = {FullChannel(), {}};
  m.clocks = {{0, "start", {1, ~0ull, 3, 4, 5}}, {-1, "stop", {6, 7, 0, 0, 0}}};
  m.warnings = {"one", "two"};
  ManifestFile packed{"device_0/data/hbm.data.0.slice_0.zst", 4096, 7, 0xab, "compressed"};
  packed.raw_bytes = 9000;
  packed.raw_crc32c = 0xffffffff;
  packed.first_ns = 1;
  packed.last_ns = 2;
  m.files = {packed, {"host/info.json", 12}};
  m.segment = 2;
  m.continues = "PROF_000001_1_ABCDEFGH";
  m.limit_bytes = 200u << 20;
  m.limit_action = "age";
  m.aged_for_space = 12;
  m.channels[1].AddAged(10, 240, 100, 200);
  m.channels[1].AddAged(5, 120, 201, 300);
  m.data_bytes = 4096;
  return m;
}

TEST(Manifest, SurvivesARoundTrip) {
  std::string text = Serialize(Full());
  Result<Manifest> parsed = ParseManifest(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
  EXPECT_EQ(Serialize(*parsed), text);
  EXPECT_TRUE(*parsed == Full());
  Manifest no_rank;
  parsed = ParseManifest(Serialize(no_rank));
  ASSERT_TRUE(parsed.ok());
  EXPECT_FALSE(parsed->rank.has_value());
}

TEST(Manifest, CountsLossesByReasonAndAgedSlicesAsOneGap) {
  EXPECT_EQ(FullChannel().dropped, (std::vector<ManifestLoss>{{LossReason::kQueueFull, 5, 120}, {LossReason::kDriver, 1, 24}}));
  const ManifestChannel aged = Full().channels[1];
  EXPECT_EQ(aged.aged, (ManifestAged{2, 15, 360, 100, 300}));
  EXPECT_EQ(aged.dropped, (std::vector<ManifestLoss>{{LossReason::kAged, 15, 360, 100, 300}}));
  EXPECT_EQ(aged.gaps, (std::vector<ManifestGap>{{300, 15, LossReason::kAged, 100}}));
}

TEST(Manifest, ToleratesUnknownAndMissingFields) {
  Result<Manifest> parsed = ParseManifest(
      R"({"profd_manifest":1,"state":"done","new":{"x":[1,2]},"session":{"id":"a","later":null},)"
      R"("channels":[{"collector":"hbm","colour":"red"}]})");
  ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
  EXPECT_EQ(parsed->session_id, "a");
  EXPECT_EQ(parsed->channels[0].collector, "hbm");
  EXPECT_EQ(parsed->channels[0].device, -1);
}

TEST(Manifest, RefusesWhatItCannotMean) {
  EXPECT_EQ(ParseManifest(R"({"profd_manifest":2,"state":"done"})").status().code(),
            StatusCode::kUnimplemented);
  for (const char* text :
       {"", "{", "[]", "null", "{}", R"({"profd_manifest":0})", R"({"profd_manifest":"1"})",
        R"({"profd_manifest":1,"state":"odd"})",
        R"({"profd_manifest":1,"state":"done","files":{}})",
        R"({"profd_manifest":1,"state":"done","files":[7]})",
        R"({"profd_manifest":1,"state":"done","session":{"uid":-1}})",
        R"({"profd_manifest":1,"state":"done","session":{"uid":4294967296}})",
        R"({"profd_manifest":1,"state":"done","session":{"pid":1.5}})",
        R"({"profd_manifest":1,"state":"done","warnings":[{}]})",
        R"({"profd_manifest":1,"state":"done","session":{"requested":{"a":1}}})"}) {
    EXPECT_FALSE(ParseManifest(text).ok()) << text;
  }
  EXPECT_EQ(ParseManifest(std::string(1'000'000, '[')).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(ParseManifest(std::string(kMaxManifestBytes + 1, ' ')).status().code(),
            StatusCode::kOutOfRange);
}

TEST(Manifest, LeavesOutWhatIsNotKnown) {
  Manifest manifest;
  manifest.files.push_back({"host/info.json", 12});
  manifest.processes.emplace_back().pid = 7;
  manifest.devices.emplace_back();
  manifest.channels.emplace_back();
  const nlohmann::json json = nlohmann::json::parse(Serialize(manifest));
  EXPECT_EQ(json["files"][0], (nlohmann::json{{"path", "host/info.json"}, {"bytes", 12}}));
  EXPECT_FALSE(json.contains("process_files"));
  EXPECT_FALSE(json["session"]["processes"][0].contains("collector"));
  EXPECT_FALSE(json["session"]["processes"][0].contains("launch_cpus"));
  EXPECT_FALSE(json["session"]["processes"][0].contains("joined_raw_ns"));
  EXPECT_FALSE(json["node"]["devices"][0].contains("joined_raw_ns"));
  EXPECT_FALSE(json["channels"][0].contains("past_hz"));
  // Not set is something else than not there.
  EXPECT_TRUE(json["session"]["rank"].is_null());
  EXPECT_TRUE(json["session"]["start_step"].is_null());
  EXPECT_EQ(json["session"]["requested"], nlohmann::json::object());
  manifest.files[0].crc32c = 0;  // a check sum may be 0
  EXPECT_EQ(nlohmann::json::parse(Serialize(manifest))["files"][0]["crc32c"], "00000000");
}

TEST(Manifest, NamesTheKeyOfAWrongValue) {
  for (const auto& [text, key] : {std::pair{R"({"profd_manifest":1,"state":"done","files":[{"path":"a","crc32c":"xyz"}]})", "'crc32c'"},
                                  std::pair{R"({"profd_manifest":1,"state":"done","files":[{"path":"a","crc32c":""}]})", "'crc32c'"},
                                  std::pair{R"({"profd_manifest":1,"state":"done","node":[]})", "'node'"},
                                  std::pair{R"({"profd_manifest":1,"state":"done","channels":[{"gaps":[{"host_ns":"1"}]}]})", "'host_ns'"}}) {
    EXPECT_THAT(ParseManifest(text).status().message(), ::testing::HasSubstr(key)) << text;
  }
}

TEST(Manifest, CapsGapsAndCountsOn) {
  Manifest manifest;
  manifest.channels.emplace_back();
  for (size_t i = 0; i < kMaxManifestGaps + 500; ++i) {
    manifest.channels[0].AddGap({static_cast<int64_t>(i), 1, LossReason::kDriver});
  }
  Result<Manifest> parsed = ParseManifest(Serialize(manifest));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->channels[0].gaps.size(), kMaxManifestGaps);
  EXPECT_EQ(parsed->channels[0].gap_count, kMaxManifestGaps + 500);
}

TEST(Manifest, RepairsTextThatIsNotUtf8) {
  Manifest manifest;
  manifest.label = "\xff\xfe";
  EXPECT_TRUE(ParseManifest(Serialize(manifest)).ok());
}

TEST(Manifest, SurvivesDamage) {
  std::string text = Serialize(Full());
  std::mt19937 random(5);
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = text.substr(0, random() % 4 == 0 ? random() % text.size() : text.size());
    for (int k = 0; k < 3 && !damaged.empty(); ++k) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    Result<Manifest> parsed = ParseManifest(damaged);
    if (parsed.ok()) {
      EXPECT_FALSE(Serialize(*parsed).empty());
    }
  }
}

TEST(ManifestTest, ClocksAreNotCountedBackBeyondTheirBegin) {
  Manifest manifest;
  manifest.devices.emplace_back().id = 3;
  manifest.devices.back().counter_hz = 50e6;
  manifest.clocks = {{-1, "start", {5'000'000'000, 100}}, {3, "periodic", {8'000'000'000, 400, 2'999'999'999, 900'000'000, 9}}};
  EXPECT_FALSE(CountClocksBack(3, &manifest));  // the device was started again since
  EXPECT_FALSE(CountClocksBack(4, &manifest));
  EXPECT_EQ(manifest.clocks.size(), 2u);
  manifest.clocks[1].clocks.device_ns = 3'000'000'000;
  ASSERT_TRUE(CountClocksBack(3, &manifest));
  EXPECT_EQ(manifest.clocks.back(), (ManifestClock{3, "start", {5'000'000'000, 100, 0, 750'000'000, 9}}));
  EXPECT_FALSE(CountClocksBack(3, &manifest));
  EXPECT_EQ(manifest.warnings.size(), 1u);
}

TEST(ManifestTest, ClocksAreCountedBackWithoutACounter) {
  Manifest manifest;
  manifest.devices.emplace_back().id = 3;
  manifest.devices.back().counter_hz = 50e6;
  manifest.clocks = {{-1, "start", {5'000'000'000, 100}}, {3, "periodic", {8'000'000'000, 400, 4'000'000'000, 0, 9}}};
  manifest.warnings = {UnknownClocksText(3)};
  ASSERT_TRUE(CountClocksBack(3, &manifest));
  EXPECT_EQ(manifest.clocks.back(), (ManifestClock{3, "start", {5'000'000'000, 100, 1'000'000'000, 0, 9}}));
  EXPECT_THAT(manifest.warnings, testing::ElementsAre(testing::HasSubstr("counted back from 3.0 s later"),
                                                      UnknownCounterText(3)));
}

// A driver that loses records at each stop of a channel is not a longer and longer list.
TEST(Manifest, AWarningIsThereOnce) {
  Manifest manifest;
  for (const char* text : {"a", "b", "a"}) manifest.AddWarning(text);
  EXPECT_EQ(manifest.warnings, (std::vector<std::string>{"a", "b"}));
}

}  // namespace
}  // namespace profd
