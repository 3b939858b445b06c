// For tests only: a queue over dumps that are names and sizes, and the process that loads them.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "base/manual_executor.h"
#include "daemon/archive/archive_queue.h"
#include "daemon/session/testing/fake_node.h"
#include "dump/test_support.h"

namespace profd {

inline constexpr uint64_t kMiB = 1u << 20;
inline constexpr pid_t kCompanion = 4711;

// Dumps are names and sizes only: nothing here reads one.
inline std::string Name(int number) { return fmt::format("PROF_{:06}_20261121102319555_FFLQEJLNBPGEGPGC", number); }

// Those that are not 0.
template <class Counts>
Counts Counted(Counts counts) {
  std::erase_if(counts, [](const auto& entry) { return entry.second == 0; });
  return counts;
}

class ArchiveQueueTest : public ::testing::Test {
 protected:
  ArchiveQueueTest() : root_(std::move(DumpRoot::Open(tmp_ / "root")).value()) {
    config_.archive_to = "clickhouse://db/profiles";
    config_.archive_retry_first_s = 10;
    config_.archive_retry_longest_s = 60;
    peer_.pid = kCompanion;
    processes_.alive[kCompanion] = {0, 1};
    Start();
  }
  ~ArchiveQueueTest() override { retention_->Stop(); }

  // As a daemon does, with what the one before it saved.
  void Start() {
    if (retention_ != nullptr) retention_->Stop();
    retention_ = std::make_unique<DumpRetention>(DumpRetention::Deps{control_, clock_, store_, states_, tmp_ / "root"}, QuotaLimits{});
    queue_ = std::make_unique<ArchiveQueue>(
        ArchiveQueue::Deps{control_, clock_, *retention_, "n1", states_, processes_}, config_, states_.files["archive.json"]);
    retention_->Watch(queue_.get());
  }

  KeptDump Make(int number, uint64_t bytes = kMiB) {
    return {.name = Name(number), .uid = 1000, .session_id = fmt::format("s{}", number), .job_id = "train",
            .bytes = bytes};
  }
  void Finish(int number, uint64_t bytes = kMiB) { Finish(Make(number, bytes)); }
  void Finish(KeptDump dump) {
    time_.Advance(kNsPerSecond);
    const std::string name = dump.name;
    retention_->Opened(std::move(dump));
    retention_->Closed(name, DumpState::kDone, 0);
  }
  // What the companion is given; empty: nothing is due.
  std::string Take() {
    v1::ClaimArchiveUploadResponse response;
    EXPECT_TRUE(queue_->Take(peer_, &response).ok());
    upload_ = response.upload();
    return response.upload().dump().name();
  }
  Status Loaded(int number) {
    v1::ReportArchiveRequest report;
    report.set_dump(Name(number));
    report.mutable_loaded()->set_rows(7);
    return queue_->Report(report);
  }
  Status Failed(int number, v1::ArchiveFailed::Reason reason, const std::string& why = "no") {
    v1::ReportArchiveRequest report;
    report.set_dump(Name(number));
    report.mutable_failed()->set_reason(reason);
    report.mutable_failed()->set_message(why);
    return queue_->Report(report);
  }
  v1::ArchiveState StateOf(int number) {
    v1::Dump dump;
    dump.set_name(Name(number));
    queue_->Describe(&dump);
    return dump.archive();
  }
  bool IsProtected(int number) {
    const KeptDump* dump = retention_->Find(Name(number));
    return dump != nullptr && dump->waiting;
  }
  void Configure() { queue_->Configure(config_); }

  TempDir tmp_;
  ManualClock clock_;
  ManualExecutor time_{clock_};
  Strand control_{time_.executor()};
  StateStore store_{tmp_ / "state"};
  DumpRoot root_;
  DaemonConfig config_;
  testing::FakeStates states_;
  testing::FakeProcesses processes_;
  Peer peer_;
  v1::ArchiveUpload upload_;
  std::unique_ptr<DumpRetention> retention_;
  std::unique_ptr<ArchiveQueue> queue_;
};

}  // namespace profd
