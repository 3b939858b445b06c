#include "daemon/session/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "daemon/session/option_plan.h"
#include "proto/enum_word/enum_word.h"

namespace profd {
namespace {

// The dump of a start to come is made this long before it, so that the start itself is short.
constexpr int64_t kPrepareNs = kNsPerSecond;
// The wall clock may be set while a session waits for an instant of it.
constexpr int64_t kLookAgainNs = kNsPerSecond;

std::vector<Problem> InList(const std::vector<Problem>& problems) {
  ProblemList list;
  list.Append(problems);
  return std::move(list).Take();
}

// False: it cannot run here, and it was not the caller who named it, but a default or an option that turns on several.
bool IsExpected(const std::vector<int>& devices, const PlannedCollector& planned, const Host& host) {
  const CollectorEntry& entry = Collectors()[planned.index];
  if (planned.named && !planned.by_option) return true;
  if (entry.spec->source != CollectorSource::kChannel) return planned.named || entry.probe_host(host).ok();
  return std::ranges::any_of(devices, [&](int id) { return ProbeDevice(entry, host, *host.FindDevice(id)).ok(); });
}

}  // namespace

Session::Session(const SessionDeps& deps, std::string id, Owner owner, Request request,
                 std::function<void(Session&)> on_change)
    : deps_(deps),
      id_(std::move(id)),
      owner_(owner),
      spec_(std::move(request.spec)),
      plan_(std::move(request.plan)),
      plan_for_(std::move(request.plan_for)),
      continues_(std::move(request.continues)),
      on_change_(std::move(on_change)),
      warnings_(plan_.warnings),
      clocks_(std::make_shared<SessionClocks>(
          SessionClocks::Deps{deps_.control, deps_.host.clock, deps_.devices, deps_.arbiter})),
      terms_(spec_, request.starter, deps_.processes, deps_.host.clock),
      output_({deps_.control, deps_.host.clock, deps_.writer, id_, plan_.storage_limited}),
      collectors_({deps_.control, deps_.host, deps_.store, deps_.arbiter, deps_.pollers, deps_.history_or_null, plan_, *clocks_}, id_),
      statistics_(continues_ ? continues_->statistics : SessionStatistics()) {
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
  if (Status terms = terms_.Begin(); !terms.ok()) return FailStart(terms);
  // The base is private: a shared_ptr to it cannot be made from outside.
  processes_->Watch(std::shared_ptr<SessionProcesses::Listener>(shared_from_this(), this));
  if (IsScheduled(spec_) && !(continues_ && continues_->started)) {
    Schedule();
  } else {
    Begin();
  }
}

// The order is answered now; WatchSession reports what becomes of it.
void Session::Schedule() {
  SetState(v1::Session::STATE_SCHEDULED);
  if (spec_.schedule().has_start_step()) {
    processes_->Arm();
  } else {
    timer_ = std::make_unique<Timer>(deps_.control);
    WaitForStart();
  }
  if (started_) std::exchange(started_, nullptr)(Status::Ok());
}

void Session::WaitForStart() {
  if (state_ != v1::Session::STATE_SCHEDULED) return;
  // Once the dump has its start, a clock that is set does not change it.
  const bool prepared = clocks_->begun();
  const int64_t left = prepared ? clocks_->start_raw_ns() - deps_.host.clock.MonotonicRawNs()
                                : spec_.schedule().start_at_ns() - deps_.host.clock.WallNs();
  if (left <= 0) {
    Launch();
    return;
  }
  int64_t pause = left;
  if (!spec_.no_dump() && !prepared) {
    if (left <= kPrepareNs) {
      clocks_->BeginAt(spec_.schedule().start_at_ns(), left);
      OpenDump();
    } else {
      pause = left - kPrepareNs;
    }
  }
  timer_->After(std::min(pause, kLookAgainNs), [this] { WaitForStart(); });
}

void Session::Launch() {
  timer_.reset();
  if (!clocks_->begun()) {
    Begin();
    return;
  }
  SetState(v1::Session::STATE_STARTING);
  if (!output_.opening()) GatherClocks();
}

void Session::OnStartStep() {
  if (state_ == v1::Session::STATE_SCHEDULED) Begin();
}

int64_t Session::LeftMs() const {
  return continues_ ? continues_->left_ms : static_cast<int64_t>(spec_.schedule().duration_ms());
}

int64_t Session::KnownEndWallNs() const {
  if (!spec_.schedule().has_duration_ms() || finished()) return 0;
  int64_t begin = clocks_->requested_wall_ns() != 0 ? clocks_->requested_wall_ns() : clocks_->start_wall_ns();
  if (state_ == v1::Session::STATE_SCHEDULED) begin = spec_.schedule().start_at_ns();
  return begin == 0 ? 0 : begin + LeftMs() * kNsPerMs;
}

void Session::Begin() {
  SetState(v1::Session::STATE_STARTING);
  clocks_->Begin();
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

// Moves the session's start back as far as it was requested and the recorder reaches.
Status Session::BeginInHistory() {
  if (!spec_.schedule().has_since_ms()) return {};
  if (deps_.history_or_null == nullptr) {
    return {StatusCode::kFailedPrecondition,
            Problem{.kind = Problem::Kind::kFailed,
                    .field = "since_ms",
                    .value = std::to_string(spec_.schedule().since_ms()),
                    .text = "the flight recorder is off here (recorder.enabled)"}};
  }
  RecorderHistory& past = *deps_.history_or_null;
  int64_t now = clocks_->start_raw_ns();
  // Not before the clock began.
  const auto since_ms = std::min(spec_.schedule().since_ms(), static_cast<uint64_t>(now / kNsPerMs));
  int64_t wanted = now - static_cast<int64_t>(since_ms) * kNsPerMs;
  int64_t from = std::min(now, std::max(wanted, past.Reach()));
  if (from > wanted) {
    warnings_.push_back(fmt::format(
        "the flight recorder reaches back {:.3f} s only, {:.3f} s were requested", static_cast<double>(now - from) / 1e9,
        static_cast<double>(spec_.schedule().since_ms()) / 1e3));
  }
  clocks_->MoveBack(from - kPastLeadNs, past);
  std::string without;
  for (const PlannedCollector& planned : plan_.collectors) {
    if (past.Records(planned.index) || !IsExpected(plan_.devices, planned, deps_.host)) continue;
    without += fmt::format("{}{}", without.empty() ? "" : ", ",
                           Collectors()[planned.index].spec->name);
  }
  const SessionCollect& collect = processes_->collect();
  if (!collect.empty() && (collect.leaves_files() || !past.RecordsActivity())) {
    without += fmt::format("{}operators", without.empty() ? "" : ", ");
  }
  if (!without.empty()) {
    warnings_.push_back("not in the flight recorder, so without a past: " + without);
  }
  return {};
}

// The devices' clocks as near to the start of the channels as can be, after the dump was made:
// timestamps in microseconds since a channel's start are read as counting from here.
void Session::GatherClocks() {
  clocks_->ReadFirst(plan_.devices, [self = shared_from_this()] {
    int64_t since_ns = 0;
    if (self->spec_.schedule().has_since_ms()) {
      self->clocks_->TakePast(*self->deps_.history_or_null);
      since_ns = self->clocks_->start_raw_ns() + kPastLeadNs;
    }
    const std::shared_ptr<WriterSession>& dump = self->output_.dump();
    if (dump != nullptr) dump->SetClocks(self->ClocksForDump());
    self->collectors_.Start(dump, since_ns, [self] { self->OnSettled(); });
  });
}

void Session::OpenDump() {
  output_.Open(DumpOptions(), ExpectedFiles(), [self = shared_from_this()](const Status& made) {
    if (!made.ok()) {
      self->finished() ? self->OnClosed(made) : self->FailStart(made.Annotate("dump"));
    } else if (self->state_ == v1::Session::STATE_STARTING) {
      self->GatherClocks();
    } else if (self->state_ == v1::Session::STATE_STOPPING) {
      self->ReleaseAll();  // stopped before its start, while the dump was being made
    } else if (self->finished()) {
      self->CloseDump();
    }
  });
}

void Session::OnSettled() {
  if (stop_requested_) {
    FailStart(Aborted("the session was stopped while it started: " + reason_));
    return;
  }
  std::vector<Problem> unstarted;
  for (const std::string& warning : warnings_) unstarted.push_back({.text = warning});
  std::ranges::move(collectors_.Unstarted(), std::back_inserter(unstarted));
  // A job to come brings its devices.
  if (!collectors_.AnyRunning() && !plan_.application_only && !spec_.target().follow()) {
    constexpr std::string_view kNothing = "nothing could be collected";
    if (unstarted.size() == 1) {
      unstarted.front().text = fmt::format("{}: {}", kNothing, unstarted.front().text);
    } else {
      unstarted.insert(unstarted.begin(), {.text = fmt::format("{}{}", kNothing, unstarted.empty() ? "" : ":")});
    }
    FailStart({collectors_.AllUnsupported() ? StatusCode::kUnimplemented : StatusCode::kFailedPrecondition, InList(unstarted)});
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
    const bool used = std::ranges::find(plan_.devices, info.id) != plan_.devices.end();
    if (const ClockPair* clock = clocks_->Of(info.id); used && clock != nullptr) devices.push_back(MarksOf(info, *clock));
  }
  processes_->Begin(output_.dump(), std::move(devices), clocks_->start_raw_ns());
  NoteOutcomes();
  if (spec_.schedule().has_duration_ms()) {
    timer_ = std::make_unique<Timer>(deps_.control);
    timer_->After(LeftMs() * kNsPerMs, [this] { Stop("duration"); });
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
    timer_.reset();
    SetState(v1::Session::STATE_STOPPING);
    if (!output_.opening()) ReleaseAll();
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
  if (output_.closed()) return closed(*this);
  closed_ = std::move(closed);
}

void Session::ReleaseAll() {
  timer_.reset();
  if (ran_) TakeStatistics();
  processes_->End();
  clocks_->Stop();
  processes_->SetEnd(clocks_->stop_raw_ns());
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
  collectors_.Release([self = shared_from_this()] { self->OnReleased(); });
}

void Session::OnReleased() {
  DCHECK_ON(deps_.control);
  if (!collectors_.gone() || processes_->awaits_last() || stop_deadline_ == nullptr) return;
  stop_deadline_.reset();
  clocks_->ReadAgain(plan_.devices, "stop", output_.dump(), [self = shared_from_this()] { self->CloseDump(); });
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
  if (!output_.opening() && !collectors_.released()) {
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
  if (clocks_->end_wall_ns() == 0) clocks_->End();
  processes_->Leave();
  SetState(state);
  if (started_) std::exchange(started_, nullptr)(failure_.ok() && !ran_ ? Aborted(reason_) : failure_);
  for (auto& callback : std::exchange(finished_, {})) callback();
}

void Session::CloseDump() {
  if (output_.closing()) return;
  processes_->Finish();
  clocks_->End();
  EndFacts end{.wall_ns = clocks_->end_wall_ns(), .raw_ns = deps_.host.clock.MonotonicRawNs(),
               .state = failure_.ok() ? DumpState::kDone : DumpState::kFailed, .reason = reason_};
  Manifest own;
  processes_->Describe(&own);
  output_.Close(
      end,
      [processes = processes_, outcomes = collectors_.Outcomes(), own = std::move(own), stop_raw_ns = clocks_->stop_raw_ns(),
       served = processes_->Served(), results = processes_->OptionOutcomes(), statistics = statistics_, warnings = warnings_](Manifest& manifest) {
        outcomes(manifest);
        std::vector<std::string> keys = processes->Written();
        keys.insert(keys.end(), served.begin(), served.end());
        for (ManifestOption& option : manifest.options) {
          if (option.note == kNeedsProcess && std::ranges::find(keys, option.key) != keys.end()) option.note.clear();
          const auto result = std::ranges::find(results, option.key, &v1::Outcome::collector);
          if (result == results.end()) continue;
          option.result = EnumWord(result->result());
          option.detail = result->detail();
        }
        manifest.processes = own.processes;
        manifest.expected_ranks = own.expected_ranks;
        manifest.stop_raw_ns = stop_raw_ns;
        manifest.steps_done = own.steps_done;
        processes->EditManifest(&manifest);
        statistics.Describe(&manifest);
        for (const std::string& warning : warnings) manifest.AddWarning(warning);
      },
      [self = shared_from_this()](const Status& status) { self->OnClosed(status); });
}

void Session::OnClosed(const Status& status) {
  DCHECK_ON(deps_.control);
  end_deadline_.reset();
  if (output_.dump() != nullptr) processes_->SetPlaced(output_.dump()->process_files());
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

void Session::Tick(const std::map<int, DeviceValues>& latest) {
  DCHECK_ON(deps_.control);
  if (state_ != v1::Session::STATE_RUNNING && state_ != v1::Session::STATE_SCHEDULED) return;
  processes_->Tick();
  if (const std::optional<std::string> over = terms_.WhyOver(job())) return Stop(*over);
  if (state_ != v1::Session::STATE_RUNNING) return;
  JoinDevices();
  statistics_.Take(latest, plan_.devices);
  if (Status health = output_.Tick(); !health.ok()) return Stop(health.message());
  clocks_->Tick(plan_.devices, output_.dump());
}

}  // namespace profd
