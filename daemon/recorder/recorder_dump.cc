// Dumps of the recorder: an ordinary finished session, whose data lies in the past.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "daemon/recorder/flight_recorder.h"
#include "daemon/session/outcome_counts.h"
#include "daemon/session/session_recovered.h"
#include "profd/v1/profd.pb.h"

namespace profd {
namespace {

// A shorter gap is not reported.
constexpr int64_t kSlackNs = 10 * kNsPerMs;
// A channel that delivers nothing for so long, and two of its periods, was released, or its device is gone.
constexpr int64_t kSilenceNs = 2 * kNsPerSecond;
// The processes hand over what they have recorded, and it lies in their rings until we look.
constexpr int64_t kHandOverNs = (ActivityHistory::kFlushMs + 1500) * kNsPerMs;

double Seconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }

}  // namespace

std::string_view LimitOfPast(int64_t held_ns, int64_t most_ns, bool evicted_early) {
  if (held_ns + kSlackNs >= most_ns) return "recorder.seconds is the limit";
  return evicted_early ? "recorder.memory_mb is full" : "the recorder has not been running for longer";
}

// One dump being written; keeps itself alive until it has answered. Control strand, but for the
// writer's callbacks.
class RecorderDump : public std::enable_shared_from_this<RecorderDump> {
 public:
  RecorderDump(FlightRecorder& recorder, RecorderDumpRequest request, SessionCalls::Reply reply)
      : recorder_(recorder),
        deps_(recorder.deps_.session),
        request_(std::move(request)),
        reply_(std::move(reply)) {}

  void Run();

 private:
  struct DumpPart {
    CollectorIndex collector = 0;
    int device = kHostDevice;
    std::string problem;
    double hz = 0;  // as the driver runs it; 0 = event driven
    std::vector<DumpFeed*> feeds;
  };

  void FindTimes();
  SessionDumpOptions Options();
  void AddDevices(SessionDumpOptions* options);
  SessionPlan Plan() const;
  void AddParts();
  void AddFeed(RecorderRing::RouteId route, const WantedCollector& wanted, DumpPart* part);
  void Replay();
  void AwaitActivity();
  void AddProcesses();
  void ReplayActivity();
  void Finish();
  void AddActivityOutcomes(v1::SessionStatus* view) const;
  void OnFinished(const Status& status);
  v1::Session View() const;
  void Answer(const Result<v1::Session>& result);

  FlightRecorder& recorder_;
  const SessionDeps& deps_;
  const RecorderDumpRequest request_;
  SessionCalls::Reply reply_;
  std::string id_;
  int64_t now_ns_ = 0;
  int64_t now_wall_ns_ = 0;
  int64_t from_ns_ = 0;   // blocks read after this
  int64_t start_ns_ = 0;  // where the dump begins: kPastLeadNs earlier
  std::vector<std::string> warnings_;
  std::shared_ptr<WriterSession> dump_;
  std::string path_;
  std::vector<DumpPart> parts_;
  std::vector<DumpFeed*> feed_of_;  // by route
  std::unique_ptr<Timer> handing_over_;
  std::shared_ptr<ActivityReplay> activity_;  // null: there is none
  std::vector<ManifestProcess> processes_;
  std::vector<std::string> late_warnings_;  // that were not known when the manifest was made
};

void RecorderDump::FindTimes() {
  const Clock& clock = deps_.host.clock;
  ClockPair host = CorrelateHostClock(clock);
  recorder_.clocks_[kHostDevice].Add(host);
  now_ns_ = host.host_ns;
  now_wall_ns_ = clock.WallNs() - (clock.MonotonicRawNs() - now_ns_);
  int64_t reach = std::min(recorder_.Reach(), now_ns_);
  int64_t wanted = request_.last_ns > 0 ? now_ns_ - std::min(request_.last_ns, now_ns_) : reach;
  from_ns_ = std::max(wanted, reach);
  start_ns_ = from_ns_ - kPastLeadNs;
  if (reach > wanted + kSlackNs) {
    warnings_.push_back(fmt::format(
        "the last {:g} s were requested, {:.3f} s are held ({})", Seconds(request_.last_ns),
        Seconds(now_ns_ - from_ns_),
        LimitOfPast(now_ns_ - reach, recorder_.config_.recorder_seconds * kNsPerSecond,
                    recorder_.ring_->stats().evicted_early > 0)));
  }
}

SessionPlan RecorderDump::Plan() const {
  SessionPlan plan;
  plan.devices = request_.devices;
  std::set<CollectorIndex> seen;
  for (const FlightRecorder::Claimed& one : recorder_.claimed_) {
    if (!seen.insert(one.wanted.collector).second) continue;
    PlannedCollector planned;
    planned.index = one.wanted.collector;
    planned.hz = one.wanted.hz;
    planned.channel = recorder_.OptionsOf(one.wanted);
    planned.poll.hz = one.wanted.hz;
    plan.collectors.push_back(std::move(planned));
  }
  return plan;
}

void RecorderDump::AddDevices(SessionDumpOptions* options) {
  for (int device : request_.devices) {
    SessionDumpOptions::Device facts;
    facts.facts = deps_.devices.FactsOf(device);
    ClockPair then;
    if (recorder_.ClockAt(device, start_ns_, &then)) facts.clocks = ForDump(then);
    options->devices.push_back(std::move(facts));
    if (const DeviceInfo* info = deps_.host.FindDevice(device)) {
      options->manifest.devices.push_back({info->id, info->physical_id, info->chip_name, info->chip_id,
                                           info->uuid, info->counter_hz, info->aicore_mhz});
    }
  }
}

SessionDumpOptions RecorderDump::Options() {
  SessionDumpOptions options;
  options.session.session_id = id_;
  options.session.pid = request_.pid;
  options.session.job_id = request_.job_id;
  options.session.devices = request_.devices;
  options.session.options = SampleFactsOf(Plan(), deps_.host.devices);
  options.session.start_wall_ns = now_wall_ns_ - (now_ns_ - start_ns_);
  options.session.start_raw_ns = start_ns_;
  options.node = deps_.node;
  ClockPair host;
  recorder_.ClockAt(kHostDevice, start_ns_, &host);
  options.host_clocks = ForDump(host);
  options.owner = {request_.uid, request_.gid};
  options.max_bytes = static_cast<uint64_t>(recorder_.config_.max_session_mb) << 20;
  Manifest& manifest = options.manifest;
  manifest = deps_.manifest_base;
  manifest.session_id = id_;
  manifest.uid = request_.uid;
  manifest.gid = request_.gid;
  manifest.pid = request_.pid;
  manifest.job_id = request_.job_id;
  manifest.label = request_.label;
  manifest.requested["flight_recorder"] =
      request_.last_ns > 0 ? fmt::format("last {:g} s", Seconds(request_.last_ns)) : "all that is held";
  if (!request_.reason.empty()) manifest.requested["reason"] = request_.reason;
  manifest.effective["flight_recorder"] =
      fmt::format("last {:.3f} s", Seconds(now_ns_ - from_ns_));
  manifest.effective["because"] = request_.counted;
  if (recorder_.activity_ != nullptr) manifest.effective["activity"] = recorder_.config_.recorder_activity;
  for (const PlannedCollector& planned : Plan().collectors) {
    std::string name(Collectors()[planned.index].spec->name);
    manifest.effective[name] = planned.hz > 0 ? fmt::format("{} Hz", planned.hz) : "on";
  }
  AddDevices(&options);
  for (const auto& [device, track] : recorder_.clocks_) {
    bool ours = std::ranges::find(request_.devices, device) != request_.devices.end();
    for (const ClockPair& pair : track.pairs()) {
      if (ours && pair.host_ns > start_ns_ && pair.host_ns <= now_ns_) {
        manifest.clocks.push_back({device, "periodic", ForDump(pair)});
      }
    }
  }
  manifest.warnings = warnings_;
  return options;
}

void RecorderDump::AddFeed(RecorderRing::RouteId id, const WantedCollector& wanted, DumpPart* part) {
  const FlightRecorder::Route& route = recorder_.routes_[id];
  FeedOptions options;
  if (route.channel != 0) {
    options = ChannelFeed(deps_.host, *deps_.host.FindDevice(route.device), route.collector, route.channel,
                          recorder_.OptionsOf(wanted));
    options.session_start_ns = start_ns_;
    if (route.hz > 0) options.silence_ns = kSilenceNs + static_cast<int64_t>(2e9 / route.hz);
  } else if (!part->feeds.empty()) {
    // What one collector reads of several devices is one file.
    feed_of_[id] = part->feeds.front();
    return;
  } else {
    options.collector = Collectors()[route.collector].spec->name;
  }
  options.hz = route.hz;
  options.keep_all = true;
  feed_of_[id] = dump_->AddFeed(std::move(options));
  part->feeds.push_back(feed_of_[id]);
}

void RecorderDump::AddParts() {
  feed_of_.assign(recorder_.routes_.size(), nullptr);
  auto allowed = [this](int device) {
    return device == kHostDevice || std::ranges::find(request_.devices, device) != request_.devices.end();
  };
  for (const FlightRecorder::Claimed& one : recorder_.claimed_) {
    if (!allowed(one.device)) continue;
    DumpPart& part = parts_.emplace_back();
    part.collector = one.wanted.collector;
    part.device = one.device;
    part.problem = recorder_.ProblemOf(one);
    for (RecorderRing::RouteId id = 0; id < recorder_.routes_.size(); ++id) {
      const FlightRecorder::Route& route = recorder_.routes_[id];
      if (!recorder_.Owns(one, route) || !allowed(route.device)) continue;
      part.hz = std::max(part.hz, route.hz);
      AddFeed(id, one.wanted, &part);
    }
  }
}

void RecorderDump::Run() {
  id_ = NewId();
  FindTimes();
  const bool empty = recorder_.ring_->stats().blocks == 0 &&
                     (recorder_.activity_ == nullptr || recorder_.activity_->stats().blocks == 0);
  if (id_.empty() || from_ns_ >= now_ns_ || empty) {
    Answer(FailedPrecondition("the flight recorder holds nothing yet"));
    return;
  }
  dump_ = deps_.writer.Open(Options(), recorder_.routes_.size(), [self = shared_from_this()](const Result<std::string>& path) {
    self->deps_.control.Post([self, path] {
      if (!path.ok()) {
        self->Answer(path.status().Annotate("dump"));
        return;
      }
      self->path_ = *path;
      self->Replay();
    });
  });
}

void RecorderDump::Replay() {
  AddParts();
  std::vector<bool> wanted;
  for (const DumpFeed* feed : feed_of_) wanted.push_back(feed != nullptr);
  auto self = shared_from_this();
  dump_->ReplayAll(
      recorder_.ring_->Read(std::move(wanted), from_ns_),
      [self](uint32_t route) { return self->feed_of_[route]; }, [self] {
        self->deps_.control.Post([self] { self->AwaitActivity(); });
      });
}

// What happened just now is still in the processes.
void RecorderDump::AwaitActivity() {
  const ActivityHistory* history = recorder_.activity_.get();
  if (recorder_.ended_ || history == nullptr || !request_.may_hold || history->collecting() == 0) {
    ReplayActivity();
    return;
  }
  handing_over_ = std::make_unique<Timer>(deps_.control);
  const int64_t left = now_ns_ + kHandOverNs - deps_.host.clock.MonotonicRawNs();
  handing_over_->After(std::max<int64_t>(0, left), [self = shared_from_this()] {
    self->handing_over_.reset();
    self->ReplayActivity();
  });
}

// Those of the job, also where nothing was recorded inside them: which rank has which device.
void RecorderDump::AddProcesses() {
  if (recorder_.jobs_ == nullptr || request_.job_id.empty() || !request_.may_hold) return;
  for (const TrainingProcess& process : recorder_.jobs_->Processes()) {
    if (process.job_id != request_.job_id || !request_.may_hold(process)) continue;
    if (std::ranges::find(processes_, process.pid, &ManifestProcess::pid) != processes_.end()) continue;
    processes_.push_back({process.pid, process.rank, process.attached(), process.devices, process.command});
  }
}

void RecorderDump::ReplayActivity() {
  const ActivityHistory* history = recorder_.activity_.get();
  if (history == nullptr || !request_.may_hold) {
    AddProcesses();
    Finish();
    return;
  }
  ActivityHistory::Past past = history->Read(start_ns_, request_.may_hold, now_ns_);
  for (const auto& [id, process] : past.processes) processes_.push_back(process.Describe());
  AddProcesses();
  if (past.held_from_ns > from_ns_ + kSlackNs) {
    late_warnings_.push_back(fmt::format("of what processes did, the last {:.3f} s are held ({})",
                                         Seconds(std::max<int64_t>(0, now_ns_ - past.held_from_ns)),
                                         history->stats().evicted_early > 0
                                             ? "recorder.activity_memory_mb is full"
                                             : "the recorder has not been running for longer"));
    warnings_.insert(warnings_.end(), late_warnings_.begin(), late_warnings_.end());
  }
  activity_ = std::make_shared<ActivityReplay>(dump_, history->kinds(), std::move(past), start_ns_, now_ns_);
  activity_->Run(deps_.writer, [self = shared_from_this()] { self->Finish(); });
}

// Nothing of us changes any more but the answer.
void RecorderDump::Finish() {
  EndFacts end{.wall_ns = now_wall_ns_, .raw_ns = now_ns_,
               .reason = "flight recorder: " + (request_.reason.empty() ? request_.counted : request_.reason)};
  dump_->Finish(
      end,
      [self = shared_from_this()](Manifest& manifest) {
        manifest.processes = self->processes_;
        manifest.warnings.insert(manifest.warnings.end(), self->late_warnings_.begin(), self->late_warnings_.end());
        for (ManifestChannel& channel : manifest.channels) {
          channel.state = "finished";
          for (const DumpPart& part : self->parts_) {
            bool same = part.device == channel.device &&
                        Collectors()[part.collector].spec->name == channel.collector;
            if (same) channel.detail = part.problem;
          }
        }
      },
      [self = shared_from_this()](const Status& status) {
        self->deps_.control.Post([self, status] { self->OnFinished(status); });
      });
}

v1::Session RecorderDump::View() const {
  v1::Session session;
  session.set_session_id(id_);
  session.mutable_owner()->set_uid(request_.uid);
  session.mutable_owner()->set_pid(request_.pid);
  session.mutable_spec()->mutable_target()->set_job_id(request_.job_id);
  session.mutable_spec()->set_label(request_.label);
  v1::SessionStatus& view = *session.mutable_status();
  view.set_state(v1::Session::STATE_DONE);
  view.set_reason("flight recorder: " + (request_.reason.empty() ? request_.counted : request_.reason));
  for (int device : request_.devices) view.add_devices(static_cast<uint32_t>(device));
  view.set_started_ns(now_wall_ns_ - (now_ns_ - start_ns_));
  view.set_ended_ns(now_wall_ns_);
  view.set_dump_path(path_);
  view.set_dump_bytes(dump_->bytes());
  for (const std::string& warning : warnings_) view.add_warnings(warning);
  for (const DumpPart& part : parts_) {
    v1::Outcome& outcome = *view.add_outcomes();
    outcome.set_collector(std::string(Collectors()[part.collector].spec->name));
    if (part.device != kHostDevice) outcome.set_device(static_cast<uint32_t>(part.device));
    outcome.set_result(part.feeds.empty() ? v1::Outcome::RESULT_UNSUPPORTED : v1::Outcome::RESULT_FINISHED);
    outcome.set_detail(part.problem);
    if (part.hz > 0) outcome.set_hz(part.hz);
    for (const DumpFeed* feed : part.feeds) AddRecordsOf(*feed, &outcome);
    AddRecordsOf(outcome, &view);
  }
  AddActivityOutcomes(&view);
  FillProcesses(processes_, &view);
  return session;
}

void RecorderDump::AddActivityOutcomes(v1::SessionStatus* view) const {
  for (size_t i = 0; activity_ != nullptr && i < kActivityFiles; ++i) {
    const auto file = static_cast<ActivityFileId>(i);
    const SessionActivity::Count count = activity_->CountOf(file);
    if (count.records == 0 && count.lost.records == 0 && count.lost.bytes == 0) continue;
    v1::Outcome& outcome = *view->add_outcomes();
    outcome.set_collector(std::string(FileOf(file).collector));
    outcome.set_result(v1::Outcome::RESULT_FINISHED);
    AddRecords(count.records, count.lost, &outcome);
    outcome.set_bytes(count.bytes);
    outcome.set_detail(activity_->BusyText());
    AddRecordsOf(outcome, view);
  }
}

void RecorderDump::OnFinished(const Status& status) {
  if (!status.ok()) {
    recorder_.deps_.dumps.Remove(std::string(BaseName(path_)), kReasonRequest, nullptr);
    Answer(status);
    return;
  }
  v1::Session view = View();
  recorder_.records_->AddEnded(view);
  ++recorder_.dumps_[request_.counted];
  log::Info("flight recorder dumped", {{"session", id_},
                                       {"uid", request_.uid},
                                       {"because", request_.counted},
                                       {"reason", request_.reason},
                                       {"seconds", Seconds(now_ns_ - from_ns_)},
                                       {"bytes", dump_->bytes()},
                                       {"dump", path_}});
  Answer(view);
}

void RecorderDump::Answer(const Result<v1::Session>& result) {
  if (--recorder_.writing_[request_.uid] == 0) recorder_.writing_.erase(request_.uid);
  reply_(result);
  if (recorder_.writing_.empty() && recorder_.when_written_) std::exchange(recorder_.when_written_, nullptr)();
}

void FlightRecorder::Write(RecorderDumpRequest request, SessionReply reply) {
  ++writing_[request.uid];
  std::make_shared<RecorderDump>(*this, std::move(request), std::move(reply))->Run();
}

}  // namespace profd
