// A small dump with known contents, shared by the verifier's tests.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "dump/session_dump.h"
#include "dump/test_support.h"
#include "dump/verify.h"

namespace profd {

namespace fs = std::filesystem;

inline constexpr int64_t kStartNs = 5000 * kNsPerSecond;  // host clock
inline constexpr int64_t kPeriodNs = 10 * kNsPerMs;
inline constexpr double kNoReading = -1;

// A dump of one device with HBM and HCCS at 100 Hz for two seconds.
class VerifyTest : public testing::Test {
 protected:
  void SetUp() override {
    root_.emplace(DumpRoot::Open(temp_.path() + "/root").value());
    SessionDumpOptions options;
    options.session.start_wall_ns = 1'767'225'600'000'000'000;
    options.session.start_raw_ns = kStartNs;
    options.owner = {::getuid(), ::getgid()};
    options.slice_bytes = 4096;
    options.devices.push_back({.facts = {.id = 0, .chip_id = 5, .counter_hz = 50e6},
                               .clocks = DumpClocks{kStartNs, 1000, 77 * kNsPerSecond, 5000, 100}});
    options.host_clocks = {kStartNs, 1000, 0, 0, 0};
    dump_ = SessionDump::Create(*root_, std::move(options)).value();
    path_ = dump_->path();
    hbm_ = dump_->OpenChannel(0, 1).value();
    hccs_ = dump_->OpenChannel(0, 9).value();
  }

  // Records of instants [from, to), as many as the manifest has.
  void Write(int from, int to) {
    for (int i = from; i < to; ++i) {
      std::vector<std::byte> bytes(24 * 8);
      for (uint32_t k = 0; k < 8; ++k) {
        std::span<std::byte> record = std::span(bytes).subspan(24 * k, 24);
        StoreUnchecked(record, 0, static_cast<uint64_t>(i) * 10'000);
        StoreUnchecked(record, 16, k & 1);
        StoreUnchecked(record, 20, k / 2);
      }
      ASSERT_TRUE(dump_->Append(hbm_, bytes, 8).ok());
      std::string line = std::to_string(77 + i / 100) + ":" +
                         std::to_string(1'000'000'000 + i % 100 * 10'000'000).substr(1) + " 1 2\n";
      ASSERT_TRUE(dump_->Append(hccs_, AsBytes(line), 1).ok());
    }
    hbm_records_ += static_cast<uint64_t>(to - from) * 8;
    hccs_records_ += static_cast<uint64_t>(to - from);
  }

  ManifestChannel& Channel(const std::string& collector, uint32_t channel,
                           const std::string& file) {
    for (ManifestChannel& known : dump_->manifest().channels) {
      if (known.collector == collector) return known;
    }
    dump_->manifest().channels.reserve(8);  // references stay good
    ManifestChannel& made = dump_->manifest().channels.emplace_back();
    made.collector = collector;
    made.device = 0;
    made.channel = channel;
    made.file = file;
    made.hz_effective = 100;
    return made;
  }

  // host_sys_cpu.data at 100 Hz: samples of 200 instants, each so many periods late. `readings` is what the
  // collector says of itself.
  void WriteHost(const std::function<double(int)>& late, uint64_t readings, uint64_t reported_late = 0) {
    uint64_t records = 0;
    for (int i = 0; i < 200; ++i) {
      const double periods = late(i);
      if (periods < 0) continue;
      const auto ns = kStartNs + static_cast<int64_t>((i + periods) * double{kPeriodNs});
      ASSERT_TRUE(dump_->AppendHostFile("host_sys_cpu.data", "TimeStamp:" + std::to_string(ns) + "\nIndex:0\n").ok());
      ++records;
    }
    ManifestChannel& channel = dump_->manifest().channels.emplace_back();
    channel.collector = "host_cpu";
    channel.hz_effective = 100;
    channel.records = records;
    channel.readings = readings;
    if (reported_late == 0) return;
    channel.AddGap({kStartNs + 1000 * kNsPerMs, reported_late, LossReason::kLate, kStartNs});
    channel.AddLoss(LossReason::kLate, reported_late, 0, kStartNs);
  }

  void Finish(int instants) {
    Channel("hbm", 1, "hbm.data").records = hbm_records_;
    Channel("hccs", 9, "hccs.data").records = hccs_records_;
    EndFacts end;
    end.wall_ns = 1'767'225'600'000'000'000 + instants * kPeriodNs;
    end.raw_ns = kStartNs + instants * kPeriodNs;
    ASSERT_TRUE(dump_->Finish(end).ok());
    dump_.reset();
  }

  // A complete dump of so many instants.
  void WriteAll(int instants) {
    Write(0, instants);
    Finish(instants);
  }

  VerifyReport Verify() {
    return VerifyDump(DumpReader::OpenPath(path_).value(), fs::path(path_).filename().string())
        .value();
  }
  static std::vector<std::string> Texts(const VerifyReport& report) {
    std::vector<std::string> texts;
    for (const VerifyProblem& problem : report.problems) {
      texts.push_back(std::string(ToString(problem.check)) + ": " + problem.where + ": " +
                      problem.what);
    }
    return texts;
  }
  // Changes one byte of a file in place.
  void Flip(const std::string& file, std::streamoff at) {
    std::fstream stream(path_ + "/" + file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(at);
    char byte = static_cast<char>(stream.get() ^ 1);
    stream.seekp(at);
    stream.put(byte);
  }

  TempDir temp_;
  std::optional<DumpRoot> root_;
  std::unique_ptr<SessionDump> dump_;
  std::string path_;
  SessionDump::Channel hbm_ = 0;
  SessionDump::Channel hccs_ = 0;
  uint64_t hbm_records_ = 0;
  uint64_t hccs_records_ = 0;
};

}  // namespace profd
