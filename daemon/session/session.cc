#include "daemon/session/session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "daemon/session/session_poll_sink.h"

namespace profd {
namespace {

constexpr int64_t kClockIntervalNs = 300 * kNsPerSecond;
// While a device's clocks could not be read at all.
constexpr int64_t kClockRetryNs = 5 * kNsPerSecond;

}  // namespace

Session::Session(const SessionDeps& deps, std::string id, Owner owner, Request request,
                 std::function<void(Session&)> on_change)
    : deps_(deps),
      id_(std::move(id)),
      owner_(owner),
      spec_(std::move(request.spec)),
      plan_(std::move(request.plan)),
      starter_(request.starter),
      on_change_(std::move(on_change)),
      warnings_(plan_.warnings),
      statistics_(request.continues ? request.continues->statistics : SessionStatistics()),
      lease_(static_cast<int64_t>(spec_.lease().lease_ms())),
      continues_(request.continues),
      plan_for_(std::move(request.plan_for)) {
  warnings_.insert(warnings_.end(), request.targets.warnings.begin(), request.targets.warnings.end());
  const SessionProcesses::Deps theirs{deps_.control,       deps_.host,           deps_.processes,
                                      deps_.jobs_or_null, deps_.copier_or_null, deps_.history_or_null};
  processes_ = std::make_shared<SessionProcesses>(
      theirs, SessionProcesses::Request{spec_, plan_, id_, {owner_.uid, owner_.gid}, std::move(request.targets),
                                      continues_ && continues_->started, continues_ ? continues_->steps_done : 0});
}

Session::~Session() = default;

void Session::SetState(v1::Session::State state) {
  state_ = state;
  on_change_(*this);
}

void Session::Start(std::function<void(const Status&)> started) {
  DCHECK_ON(deps_.control);
  started_ = std::move(started);
  if (const pid_t pid = spec_.schedule().end_with_pid(); pid != 0) {
    std::optional<uint64_t> begin = deps_.processes.StartTimeOf(pid);
    if (!begin) {
      FailStart(NotFound(fmt::format("process {} has already ended", pid)));
      return;
    }
    end_pid_start_ = *begin;
  }
  lease_.Renew(deps_.host.clock.SteadyNs());
  // The base is private: a shared_ptr to it cannot be made from outside.
  processes_->Watch(std::shared_ptr<SessionProcesses::Listener>(shared_from_this(), this));
  if (IsScheduled(spec_) && !(continues_ && continues_->started)) {
    Schedule();
  } else {
    Begin();
  }
}

void Session::SetStart() {
  host_clock_ = CorrelateHostClock(deps_.host.clock);
  start_raw_ns_ = host_clock_.host_ns;
  start_wall_ns_ = deps_.host.clock.WallNs() -
                   (deps_.host.clock.MonotonicRawNs() - start_raw_ns_);
}

void Session::Begin() {
  SetState(v1::Session::STATE_STARTING);
  SetStart();
  if (Status past = BeginInHistory(); !past.ok()) {
    FailStart(past);
    return;
  }
  if (spec_.no_dump()) {
    GatherClocks();
  } else {
    OpenDump();
  }
}

// The devices' clocks as near to the start of the channels as can be, after the dump was made:
// timestamps in microseconds since a channel's start are read as counting from here.
void Session::GatherClocks() {
  Recorrelate("start", [self = shared_from_this()] {
    self->next_clock_ns_ = self->start_raw_ns_ +
                           (self->clockless_.empty() ? kClockIntervalNs : kClockRetryNs);
    self->TakePastClocks();
    if (self->dump_ != nullptr) self->dump_->SetClocks(self->ClocksForDump());
    self->StartCollectors();
  });
}

// Reads the clocks of all devices in parallel; a device whose clocks cannot be read keeps its reason.
void Session::Recorrelate(const char* when, std::function<void()> done) {
  auto waiting = std::make_shared<size_t>(plan_.devices.size());
  auto finish = std::make_shared<std::function<void()>>(std::move(done));
  if (plan_.devices.empty()) {
    (*finish)();
    return;
  }
  bool first = std::string_view(when) == "start";
  for (int device : plan_.devices) {
    deps_.devices.ControlOf(device)->CorrelateClock(
        [self = shared_from_this(), device, waiting, finish, when,
         first](const Result<ClockPair>& pair) {
          self->deps_.control.Post([self, device, waiting, finish, pair, when, first] {
            if (!pair.ok()) {
              if (first) self->clockless_.insert(device);
            } else {
              self->clockless_.erase(device);
              if (first) self->clocks_[device] = *pair;
              self->deps_.arbiter.SetClock(device, *pair);
              if (!first && self->dump_ != nullptr) {
                self->dump_->EditManifest([device, clocks = ForDump(*pair), when](Manifest& manifest) {
                  manifest.clocks.push_back({device, when, clocks});
                });
              }
            }
            if (--*waiting == 0) (*finish)();
          });
        });
  }
}

void Session::OpenDump() {
  opening_ = true;
  dump_ = deps_.writer.Open(DumpOptions(), ExpectedFiles(), [self = shared_from_this()](
                                               const Result<std::string>& path) {
    self->deps_.control.Post([self, path] {
      self->opening_ = false;
      if (!path.ok()) {
        self->dump_ = nullptr;
        self->finished() ? self->OnClosed(path.status()) : self->FailStart(path.status().Annotate("dump"));
        return;
      }
      self->dump_path_ = *path;
      if (self->state_ == v1::Session::STATE_STARTING) {
        self->GatherClocks();
      } else if (self->state_ == v1::Session::STATE_STOPPING) {
        self->ReleaseAll();  // stopped before its start, while the dump was being made
      } else if (self->finished()) {
        self->CloseDump();
      }
    });
  });
}

void Session::Settle() {
  if (--pending_ == 0) OnSettled();
}

ClaimAnswer Session::AnswerOf(const Row& row) const {
  if (!row.claim) {
    ClaimAnswer answer = row.answer;
    if (row.sink != nullptr && answer.state == v1::Outcome::RESULT_RUNNING) {
      answer.detail = row.sink->LastError();
      const auto add = [&answer](uint64_t samples, std::string_view what) {
        if (samples > 0) answer.detail += fmt::format("{}{} samples {}", answer.detail.empty() ? "" : "; ", samples, what);
      };
      add(row.sink->missed(), "missed (collector late)");
      add(row.sink->left_out(), "left out (profd over its budget)");
    }
    return answer;
  }
  return released_ ? row.answer : deps_.arbiter.AnswerOf(*row.claim);
}

namespace {

Problem::Kind KindOf(v1::Outcome::Result state) {
  switch (state) {
    case v1::Outcome::RESULT_UNSUPPORTED:
      return Problem::Kind::kUnsupported;
    case v1::Outcome::RESULT_DENIED:
      return Problem::Kind::kDenied;
    case v1::Outcome::RESULT_BUSY:
      return Problem::Kind::kBusy;
    default:
      return Problem::Kind::kFailed;
  }
}

std::vector<Problem> InList(const std::vector<Problem>& problems) {
  ProblemList list;
  list.Append(problems);
  return std::move(list).Take();
}

}  // namespace

// Devices on which a collector fared alike are one line, and all of them are not named.
std::vector<Problem> Session::Unstarted() const {
  struct Answer {
    Problem::Kind kind = Problem::Kind::kInvalid;
    std::string holder;
    std::vector<int> devices;
  };
  std::map<std::pair<CollectorIndex, std::string>, Answer> unstarted;
  for (const Row& row : rows_) {
    ClaimAnswer answer = AnswerOf(row);
    if (answer.state == v1::Outcome::RESULT_RUNNING || !row.named) continue;
    Answer& same = unstarted[{row.collector, answer.detail}];
    same.kind = KindOf(answer.state);
    same.holder = answer.holder;
    same.devices.push_back(row.device);
  }
  std::vector<Problem> problems;
  for (const std::string& warning : warnings_) problems.push_back({.text = warning});
  for (const auto& [what, answer] : unstarted) {
    const auto& [collector, detail] = what;
    const std::vector<int>& devices = answer.devices;
    std::string text(Collectors()[collector].spec->name);
    if (devices.front() == kHostDevice) {
      text += " on the host";
    } else if (devices.size() < plan_.devices.size() || devices.size() == 1) {
      text += fmt::format(" on device{} {}", devices.size() == 1 ? "" : "s",
                          fmt::join(devices, ", "));
    }
    text.append(": ").append(detail);
    problems.push_back({.kind = answer.kind, .text = std::move(text), .holder = answer.holder});
  }
  return problems;
}

void Session::OnSettled() {
  if (stop_requested_) {
    FailStart(Aborted("the session was stopped while it started: " + reason_));
    return;
  }
  bool any = std::any_of(rows_.begin(), rows_.end(), [this](const Row& row) {
    return AnswerOf(row).state == v1::Outcome::RESULT_RUNNING;
  });
  std::vector<Problem> unstarted = Unstarted();
  // A job to come brings its devices.
  if (!any && !plan_.application_only && !spec_.target().follow()) {
    const bool never = !rows_.empty() && std::all_of(rows_.begin(), rows_.end(), [this](const Row& row) {
      return AnswerOf(row).state == v1::Outcome::RESULT_UNSUPPORTED;
    });
    constexpr std::string_view kNothing = "nothing could be collected";
    if (unstarted.size() == 1) {
      unstarted.front().text = fmt::format("{}: {}", kNothing, unstarted.front().text);
    } else {
      unstarted.insert(unstarted.begin(), {.text = fmt::format("{}{}", kNothing, unstarted.empty() ? "" : ":")});
    }
    FailStart({never ? StatusCode::kUnimplemented : StatusCode::kFailedPrecondition, InList(unstarted)});
  } else if (spec_.require_all() && !unstarted.empty()) {
    unstarted.insert(unstarted.begin(), {.text = "require_all:"});
    FailStart({StatusCode::kFailedPrecondition, InList(unstarted)});
  } else {
    Running();
  }
}

void Session::Running() {
  ran_ = true;
  TakeStatistics();
  SetState(v1::Session::STATE_RUNNING);
  std::vector<SessionMarks::Device> devices;
  for (const DeviceInfo& info : deps_.host.devices) {
    if (std::ranges::find(plan_.devices, info.id) != plan_.devices.end()) devices.push_back(MarksOf(info));
  }
  processes_->Begin(dump_, std::move(devices), start_raw_ns_);
  NoteOutcomes();
  if (spec_.schedule().has_duration_ms()) {
    duration_ = std::make_unique<Timer>(deps_.control);
    duration_->After(LeftMs() * kNsPerMs, [this] { Stop("duration"); });
  }
  if (started_) std::exchange(started_, nullptr)(Status::Ok());
  JoinDevices();
}

void Session::FailStart(Status status) {
  failure_ = status;
  reason_ = status.message();
  stop_requested_ = true;
  SetState(v1::Session::STATE_STOPPING);
  ReleaseAll();
}

void Session::Stop(std::string reason) {
  DCHECK_ON(deps_.control);
  if (finished() || stop_requested_) return;
  stop_requested_ = true;
  reason_ = std::move(reason);
  BoundEnd();
  if (state_ == v1::Session::STATE_SCHEDULED) {
    reason_ += " before it started";
    wait_.reset();
    SetState(v1::Session::STATE_STOPPING);
    if (!opening_) ReleaseAll();
    return;
  }
  // A start under way is let through first: every step of it has a deadline, and undoing half of it
  // would need a second order of things.
  if (state_ != v1::Session::STATE_RUNNING) return on_change_(*this);
  SetState(v1::Session::STATE_STOPPING);
  ReleaseAll();
}

void Session::Withdraw(std::string reason) {
  withdrawn_ = true;
  if (stop_requested_ && !finished()) return on_change_(*this);
  Stop(std::move(reason));
}

void Session::WhenFinished(std::function<void()> finished_callback) {
  DCHECK_ON(deps_.control);
  if (finished()) {
    finished_callback();
  } else {
    finished_.push_back(std::move(finished_callback));
  }
}

void Session::WhenClosed(std::function<void(Session&)> closed) {
  DCHECK_ON(deps_.control);
  if (dump_over_) return closed(*this);
  closed_ = std::move(closed);
}

void Session::ReleaseAll() {
  duration_.reset();
  if (ran_) TakeStatistics();
  processes_->End();
  for (Row& row : rows_) {
    if (row.claim) row.answer = deps_.arbiter.AnswerOf(*row.claim);
  }
  released_ = true;
  stop_raw_ns_ = deps_.host.clock.MonotonicRawNs();
  processes_->SetEnd(stop_raw_ns_);
  // Stop bounded the end before it was known that processes hand over.
  if (processes_->awaits_last()) end_deadline_.reset();
  BoundEnd();
  stop_deadline_ = std::make_unique<Timer>(deps_.control);
  // The dump gets the rest.
  stop_deadline_->After(processes_->HandOverNs() + deps_.stop_deadline_ns / 4 * 3, [this] {
    warnings_.emplace_back(
        "some collectors did not end in time; their last records may be missing");
    stop_deadline_.reset();
    CloseDump();
  });
  pending_ = processes_->awaits_last() ? 2 : 1;
  auto gone = [self = shared_from_this()] {
    self->deps_.control.Post([self] { self->OnReleased(); });
  };
  for (size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    if (row.claim) {
      ++pending_;
      deps_.arbiter.Release(*row.claim, [self = shared_from_this(), gone, i](const ChannelArbiter::GarbageBytes& bytes) {
        self->NoteGarbage(i, bytes);
        gone();
      });
    }
    if (row.poller) {
      ++pending_;
      deps_.pollers.Stop(*row.poller, gone);
    }
  }
  OnReleased();
}

void Session::NoteGarbage(size_t row, const ChannelArbiter::GarbageBytes& bytes) {
  DCHECK_ON(deps_.control);
  ClaimAnswer& answer = rows_[row].answer;
  for (const auto& [channel, garbage] : bytes) {
    const auto own = answer.channels.find(channel);
    if (own == answer.channels.end()) continue;  // it has not answered
    answer.garbage_bytes += garbage - std::min(garbage, own->second.garbage_bytes);
    own->second.garbage_bytes = std::max(own->second.garbage_bytes, garbage);
  }
}

void Session::OnReleased() {
  DCHECK_ON(deps_.control);
  if (--pending_ > 0 || stop_deadline_ == nullptr) return;
  stop_deadline_.reset();
  Recorrelate("stop", [self = shared_from_this()] { self->CloseDump(); });
}

// The end of the session, whatever its dump's writer is at.
void Session::BoundEnd() {
  if (end_deadline_ != nullptr) return;
  end_deadline_ = std::make_unique<Timer>(deps_.control);
  end_deadline_->After(processes_->HandOverNs() + deps_.stop_deadline_ns, [this] { CutOff(); });
}

void Session::CutOff() {
  end_deadline_.reset();
  if (finished()) return;
  if (!opening_ && !released_) {
    BoundEnd();  // a start under way, of which every step has a deadline
    return;
  }
  warnings_.push_back(fmt::format(
      "the dump was not complete {:.0f} s after the stop (limits.stop_deadline_s) because the disk is slow or does "
      "not answer; profd continues to write it, and lists it as complete afterwards",
      static_cast<double>(deps_.stop_deadline_ns) / 1e9));
  Conclude(v1::Session::STATE_INTERRUPTED);
}

void Session::Conclude(v1::Session::State state) {
  if (end_wall_ns_ == 0) end_wall_ns_ = deps_.host.clock.WallNs();
  processes_->Leave();
  SetState(state);
  if (started_) std::exchange(started_, nullptr)(failure_.ok() && !ran_ ? Aborted(reason_) : failure_);
  for (auto& callback : std::exchange(finished_, {})) callback();
}

void Session::CloseDump() {
  if (std::exchange(closing_, true)) return;
  processes_->Finish();
  end_wall_ns_ = deps_.host.clock.WallNs();
  if (dump_ == nullptr) {
    OnClosed(Status::Ok());
    return;
  }
  EndFacts end;
  end.wall_ns = end_wall_ns_;
  end.raw_ns = deps_.host.clock.MonotonicRawNs();
  end.state = failure_.ok() ? DumpState::kDone : DumpState::kFailed;
  end.reason = reason_;
  std::vector<Row> rows = rows_;
  for (Row& row : rows) {
    if (row.answer.state == v1::Outcome::RESULT_RUNNING) row.answer.state = v1::Outcome::RESULT_FINISHED;
  }
  Manifest own;
  processes_->Describe(&own);
  dump_->Finish(
      end,
      [self = shared_from_this(), rows = std::move(rows), own = std::move(own),
       warnings = warnings_](Manifest& manifest) {
        self->WriteOutcomes(manifest, rows);
        manifest.processes = own.processes;
        manifest.stop_raw_ns = self->stop_raw_ns_;
        manifest.steps_done = own.steps_done;
        self->processes_->EditManifest(&manifest);
        manifest.warnings.insert(manifest.warnings.end(), warnings.begin(), warnings.end());
      },
      [self = shared_from_this()](const Status& status) {
        self->deps_.control.Post([self, status] { self->OnClosed(status); });
      });
}

void Session::OnClosed(const Status& status) {
  DCHECK_ON(deps_.control);
  end_deadline_.reset();
  dump_over_ = true;
  LogRemoved(true);
  if (dump_ != nullptr) dump_bytes_ = dump_->bytes();
  if (dump_ != nullptr) processes_->SetPlaced(dump_->process_files());
  if (failure_.ok() && !status.ok()) {
    // The disk failed us: what was written is there, and the session has the reason why there is no more.
    warnings_.push_back(status.ToString());
  }
  if (finished()) {
    if (closed_) std::exchange(closed_, nullptr)(*this);
    return;
  }
  Conclude(failure_.ok() ? v1::Session::STATE_DONE : v1::Session::STATE_FAILED);
}

void Session::Tick(const std::map<int, DeviceReading>& readings) {
  DCHECK_ON(deps_.control);
  if (state_ != v1::Session::STATE_RUNNING && state_ != v1::Session::STATE_SCHEDULED) return;
  if (!StillWanted() || state_ != v1::Session::STATE_RUNNING) return;
  JoinDevices();
  statistics_.Take(readings, plan_.devices);
  LogRemoved(false);
  if (dump_ != nullptr) {
    dump_bytes_ = dump_->bytes();
    if (Status health = dump_->health(); !health.ok()) {
      Stop(health.message());
      return;
    }
  }
  int64_t now = deps_.host.clock.MonotonicRawNs();
  if (now >= next_clock_ns_) {
    next_clock_ns_ = now + (clockless_.empty() ? kClockIntervalNs : kClockRetryNs);
    Recorrelate("periodic", [] {});
  }
}

}  // namespace profd
