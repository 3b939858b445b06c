// What one process is to the daemon: one background thread that keeps the connection, and calls
// from any thread that hand it packets and wait, with a deadline, for answers. Nothing waits for
// the daemon while it holds the mutex, and the hot path (marks) enters here only through
// HotState.
//
// A Library is never destroyed: marks may come at any time, also while the process ends. After a
// fork the child leaves its parent's behind (AbandonAfterFork) and makes one of its own when it
// needs one.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "client/libprofd/collect_client.h"
#include "client/libprofd/descriptors.h"
#include "client/libprofd/profd.h"
#include "client/libprofd/step_watch.h"
#include "proto/attach/attach_protocol.h"

namespace profd::lib {

// What every mark looks at, and all it looks at while marks are not recorded.
struct HotState {
  enum Flag : uint32_t {
    kUninitialised = 1,  // the next call initialises
    kAttached = 2,       // steps go into the ring
    kMarks = 4,          // marks and ranges do, too
    kStepsWatched = 8,   // a session waits for a step
    kStacks = 16,        // call stacks go into the ring
  };
  std::atomic<uint32_t> flags{kUninitialised};
  std::atomic<const attach::MarkRingWriter*> ring{nullptr};
  std::atomic<uint64_t> lost_without_ring{0};
  std::atomic<uint64_t> steps{0};  // begun while attached
  std::atomic<int64_t> last_step{INT64_MIN};  // that has begun while attached; INT64_MIN = none yet
  std::atomic<uint32_t> collect_allowed{PROFD_ALLOW_ALL};
};

struct Settings {
  attach::Hello hello;  // options_json: of the environment, cleared when it must not start anything
  std::string socket;
  uint32_t ring_slots = 0;
  bool log = false;
  std::string collect_mode = "auto";  // PROFD_COLLECT
  bool SaysTheSame(const Settings& other) const;
};

// A profd_result and its text.
struct Answer {
  int code = PROFD_OK;
  std::string text;
};

using Deadline = std::chrono::steady_clock::time_point;

class Library {
 public:
  explicit Library(HotState& hot)
      : hot_(hot), collect_({WakeForCollector, CountSteps, TakesMarks, this, hot.collect_allowed}) {}

  // Not beside each other (the caller has a lock of its own).
  Status Start(Settings settings);
  // Sends Bye and waits at most so long for the thread to end.
  void Stop(int wait_ms);
  // Only what may be done while the process ends.
  void StopAtExit();
  const Settings& settings() const { return settings_; }

  Answer WaitAttached(Deadline deadline);
  Answer StartSession(attach::StartCall call, Deadline deadline);
  // "" = the last one this process started.
  Answer StopSession(std::string id, Deadline deadline);
  Answer SetMetadata(std::string key, std::string value);
  // The last session as JSON, requested anew when `refresh`.
  Answer SessionJson(bool refresh, Deadline deadline, std::string* out);
  // A step boundary while kStepsWatched.
  void OnStep(int64_t step, bool begin);
  profd_counters Counters();
  // Waits while what sessions want of call stacks is `known`.
  int WaitStacks(int known, Deadline deadline);
  // Whether the daemon wants to know where the threads stand; its caller can answer, from now on.
  bool StacksAsked();
  // `threads_json`: as attach::ParseStackThreads takes it.
  Answer AnswerStacks(const char* threads_json, bool left_out);
  // Something that the thread has to look at.
  void Wake() { descriptors_.Wake(); }

  // From before a fork until after it, in functions that only the fork connects.
  void LockForFork() UNCHECKED_LOCKING { descriptors_.LockForFork(); }
  void UnlockAfterFork() UNCHECKED_LOCKING { descriptors_.UnlockAfterFork(); }
  // `predecessor`: what this one's parent left behind before it, so that it stays reachable.
  void AbandonAfterFork(Library* predecessor) {
    predecessor_ = predecessor;
    descriptors_.Abandon();
  }

 private:
  // kTrying: the first attempt is not over; kGreeting: Hello was sent, Welcome is not received.
  enum class Phase { kTrying, kGreeting, kAbsent, kRefused, kAttached, kStopped };
  // The last two are the library's own: is a session of before still there, and PROFILING_OPTIONS again.
  enum class Kind { kStart, kStop, kStatus, kRecheck, kOwnStart };
  struct PendingCall {
    Kind kind = Kind::kStatus;
    bool abandoned = false;  // its caller has given up; the answer still counts, but a start is undone
    bool lost = false;
    std::string session_id;  // kRecheck
    std::optional<attach::Reply> reply;
  };
  bool is_under_way() const REQUIRES(mutex_) {
    return phase_ == Phase::kTrying || phase_ == Phase::kGreeting;
  }

  // attach_calls.cc: on the callers' threads
  Answer NotAttached() const REQUIRES(mutex_);
  Answer NoSession() const REQUIRES(mutex_);
  Result<attach::Reply> Call(MutexLock& lock, Kind kind,
                             const std::function<attach::ToDaemon(uint64_t)>& make,
                             Deadline deadline, Answer* failure) REQUIRES(mutex_);
  bool Queue(const attach::ToDaemon& message, int fd = -1) REQUIRES(mutex_);

  // attach_thread.cc: on the thread of its own
  static void* ThreadMain(void* library);
  void Run();
  void Attempt();
  bool Greet();
  void Serve();
  bool ReceiveAll();
  bool SendQueued();
  bool OnPacket(const std::string& packet);
  void OnWelcome(const attach::Welcome& welcome);
  void OnReply(attach::Reply reply);
  void TakeReply(attach::Reply reply);
  void FetchWhenDone(const std::string& session_id);
  void OnOwnOptionsReply(const attach::Reply& reply) REQUIRES(mutex_);
  void OnRechecked(const std::string& session_id, const attach::Reply& reply) REQUIRES(mutex_);
  void Recheck(const std::string& session_id) REQUIRES(mutex_);
  void OnNotice(const attach::SessionNotice& notice);
  void OnStacksCall(const attach::StacksCall& call);
  void Lose(Phase phase, const std::string& why);
  void WaitBeforeNextAttempt();
  void SayBye();
  void WaitForCopy();
  void ReportCollector();
  void WarmUp();
  static void WakeForCollector(void* library);
  static uint64_t CountSteps(void* library);
  static int TakesMarks(void* library) {
    return (static_cast<Library*>(library)->hot_.flags.load(std::memory_order_relaxed) & HotState::kMarks) != 0 ? 1 : 0;
  }

  void RememberSession(const attach::SessionSummary& session) REQUIRES(mutex_);
  void UpdateFlags() REQUIRES(mutex_);
  void Log(const std::string& text) const;

  HotState& hot_;
  Library* predecessor_ = nullptr;
  Descriptors descriptors_;
  Settings settings_;  // constant while the thread runs
  std::atomic<bool> stopping_{false};
  bool thread_runs_ = false;  // of Start and Stop

  Mutex mutex_;
  CondVar changed_;
  Phase phase_ GUARDED_BY(mutex_) = Phase::kStopped;
  std::string why_not_attached_ GUARDED_BY(mutex_);
  int waiters_ GUARDED_BY(mutex_) = 0;  // on being attached: the thread tries sooner
  std::map<uint64_t, PendingCall> calls_ GUARDED_BY(mutex_);
  uint64_t next_seq_ GUARDED_BY(mutex_) = 1;
  struct Outgoing {
    std::string packet;
    int fd = -1;  // goes with it; not ours to close
  };
  std::deque<Outgoing> outbox_ GUARDED_BY(mutex_);
  StepWatch watch_ GUARDED_BY(mutex_);
  // Sessions that run and request records from inside, until the collector has reported its state.
  std::set<std::string> collector_awaited_ GUARDED_BY(mutex_);
  bool answers_stacks_ GUARDED_BY(mutex_) = false;  // an interpreter has asked whether it should
  uint64_t stacks_asked_ GUARDED_BY(mutex_) = 0;    // the call that is not answered yet
  bool stacks_news_ GUARDED_BY(mutex_) = false;     // a wait has to end for it
  std::map<std::string, std::string> metadata_ GUARDED_BY(mutex_);
  std::set<std::string> untold_metadata_ GUARDED_BY(mutex_);
  uint64_t welcomes_ GUARDED_BY(mutex_) = 0;
  // PROFILING_OPTIONS: wanted until its session has ended in order, sent again while unanswered. A daemon
  // that no longer knows the session gets the request again.
  bool own_options_wanted_ GUARDED_BY(mutex_) = false;
  bool own_options_sent_ GUARDED_BY(mutex_) = false;
  std::string own_session_ GUARDED_BY(mutex_);
  // The session above, until its dump is waited for.
  std::string to_fetch_ GUARDED_BY(mutex_);
  std::string own_refusal_ GUARDED_BY(mutex_);
  // Sessions this process can stop, the last one last.
  std::vector<std::string> opened_ GUARDED_BY(mutex_);
  std::optional<attach::SessionSummary> last_session_ GUARDED_BY(mutex_);

  // Of the thread.
  CollectClient collect_;
  std::chrono::milliseconds backoff_{0};
  Deadline welcome_by_;
  std::optional<Deadline> welcomed_at_;
  int wrong_packets_ = 0;
  std::minstd_rand random_;
};

}  // namespace profd::lib
