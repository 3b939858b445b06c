// GetStacks: where the threads of training processes stand now. Queries the kernel about all of them and the interpreters
// of those that are attached, and answers when both have answered, or at the deadline. Lives on the control
// strand.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/strand.h"
#include "daemon/jobs/job_directory.h"
#include "daemon/jobs/process_probe.h"
#include "daemon/session/peer.h"

namespace profd {

namespace v1 {
class GetStacksRequest;
class GetStacksResponse;
}  // namespace v1

class StacksService {
 public:
  static constexpr size_t kMaxProcesses = 16;  // in one answer
  static constexpr size_t kMaxFrames = 3000;   // of one process
  static constexpr size_t kMaxLooks = 16;      // at a time
  static constexpr size_t kMaxLooksOfUser = 4;
  static constexpr int64_t kDeadlineNs = 2 * kNsPerSecond;

  struct Deps {
    Strand& control;
    const JobDirectory& jobs;
    ThreadProbe& threads;
    // False: the process cannot be asked.
    std::function<bool(uint64_t attach_id, uint64_t seq)> ask;
  };
  explicit StacksService(Deps deps) : deps_(std::move(deps)) {}

  // `finish` exactly once, as long as the control strand runs; `out` stays until then.
  void Get(const Peer& peer, const v1::GetStacksRequest& request_untrusted, v1::GetStacksResponse* out,
           std::function<void(const Status&)> finish);
  void OnReport(uint64_t attach_id, const attach::StacksReport& report_untrusted);
  // Nothing more will come of it.
  void OnClosed(uint64_t attach_id);

 private:
  struct LookedAt {
    TrainingProcess process;
    bool asked = false;
    std::optional<Result<ProcessThreads>> threads;
    std::optional<attach::StacksReport> report;
  };
  struct Look {
    explicit Look(Strand& strand) : deadline(strand) {}
    uint32_t uid = 0;
    std::vector<LookedAt> processes;
    size_t left_out = 0;
    size_t awaited = 0;  // answers
    v1::GetStacksResponse* out = nullptr;
    std::function<void(const Status&)> finish;
    Timer deadline;
  };
  // What a process was asked and has not answered: one question at a time, for all requests that wait for it.
  struct Question {
    uint64_t seq = 0;
    std::vector<std::weak_ptr<Look>> looks;
  };
  using Questions = std::map<uint64_t, Question>;  // by attach_id

  Result<std::shared_ptr<Look>> Begin(const Peer& peer, const v1::GetStacksRequest& request);
  void Ask(const std::shared_ptr<Look>& look, LookedAt* process);
  // The process has answered, or (no report) will not any more.
  void Settle(Questions::iterator question, const std::optional<attach::StacksReport>& report);
  void Answered(const std::shared_ptr<Look>& look);
  void Finish(const std::shared_ptr<Look>& look);

  Deps deps_;
  std::list<std::shared_ptr<Look>> looks_;
  Questions questions_;
  uint64_t next_seq_ = 1;
};

}  // namespace profd
