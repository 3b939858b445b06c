// What a session collects: its claims on channels and its host pollers, and what each of them answers. Control strand.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/problem.h"
#include "base/strand.h"
#include "daemon/collect/poll_engine.h"
#include "daemon/data/dump_writer.h"
#include "daemon/data/replay.h"
#include "daemon/session/channel_arbiter.h"
#include "daemon/session/session_clocks.h"
#include "daemon/session/session_plan.h"
#include "dump/manifest.h"
#include "profd/v1/profd.pb.h"

namespace profd {

class SessionPollSink;

class SessionCollectors {
 public:
  // References outlive the object.
  struct Deps {
    Strand& control;
    const Host& host;
    MetricStore& store;
    ChannelArbiter& arbiter;
    PollEngine& pollers;
    RecorderHistory* history_or_null;
    const SessionPlan& plan;
    const SessionClocks& clocks;
  };
  SessionCollectors(const Deps& deps, std::string session_id) : deps_(deps), session_id_(std::move(session_id)) {}

  // What is given to these three keeps the object alive, and runs once. `since_ns`: with what the recorder holds since
  // then; 0: without. `settled`: the driver has answered; at once where it is not called.
  void Start(std::shared_ptr<WriterSession> dump_or_null, int64_t since_ns, std::function<void()> settled);
  // The channels of `plan` on a device that comes later.
  void Join(const SessionPlan& plan, int device, std::function<void()> settled);
  // The answers stay as they are now; `gone`: no record of theirs can come any more.
  void Release(std::function<void()> gone);
  bool released() const { return released_; }
  bool gone() const { return released_ && leaving_ == 0; }

  // Of the answers so far.
  bool AnyRunning() const;
  // There is one at least.
  bool AllUnsupported() const;
  // Requested ones that do not run. Devices on which a collector fared alike are one line, and all of them are not named.
  std::vector<Problem> Unstarted() const;
  void Fill(bool finished, v1::SessionStatus* out) const;
  // Brings the answers into a manifest, on any thread; after Release as those of collectors that have finished.
  std::function<void(Manifest&)> Outcomes() const;

 private:
  struct Row {
    CollectorIndex collector = 0;
    int device = kHostDevice;
    bool named = false;
    std::optional<ChannelArbiter::ClaimId> claim;
    std::optional<PollEngine::Handle> poller;
    std::shared_ptr<SessionPollSink> sink;
    ClaimAnswer answer;  // of pollers and of rows that never started; final answers of all
    std::vector<const DumpFeed*> feeds;
  };
  void StartChannel(const PlannedCollector& planned, int device, int64_t since_ns, std::function<void()> settled);
  void StartPoller(const PlannedCollector& planned, int64_t since_ns);
  void OnGone(const std::function<void()>& gone);
  void NoteGarbage(size_t row, const ChannelArbiter::GarbageBytes& bytes);
  ClaimAnswer AnswerOf(const Row& row) const;
  static void WriteOutcome(const Row& row, Manifest* manifest);
  void FillRow(const Row& row, v1::Outcome* out) const;

  const Deps deps_;
  const std::string session_id_;
  std::shared_ptr<WriterSession> dump_;
  std::vector<Row> rows_;
  bool released_ = false;
  size_t leaving_ = 0;  // claims and pollers that are being given back
};

}  // namespace profd
