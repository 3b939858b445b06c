#include "daemon/recorder/flight_recorder.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/strand.h"
#include "collectors/channel_options.h"
#include "daemon/metrics/self_metrics.h"
#include "daemon/recorder/recorder_poll_sink.h"
#include "profd/v1/profd.pb.h"

namespace profd {
namespace {

// Clocks drift by tens of ppm and change it slowly: between pairs this far apart, to well below 1 us.
constexpr int64_t kClockIntervalNs = 10 * kNsPerSecond;
// A claim that was refused because a session measures something else there is tried again.
constexpr int64_t kClaimIntervalNs = 5 * kNsPerSecond;

}  // namespace

FlightRecorder::FlightRecorder(const Deps& deps, const DaemonConfig& config,
                               std::shared_ptr<RecorderRing> ring,
                               std::unique_ptr<ActivityHistory> activity_or_null)
    : deps_(deps), config_(config), ring_(std::move(ring)), activity_(std::move(activity_or_null)) {}

FlightRecorder::~FlightRecorder() = default;

Result<std::unique_ptr<FlightRecorder>> FlightRecorder::Create(const Deps& deps,
                                                               const DaemonConfig& config) {
  const int64_t now = deps.session.host.clock.MonotonicRawNs();
  const bool with_activity = config.recorder_activity != "off";
  const int64_t activity_mb = with_activity ? config.recorder_activity_memory_mb : 0;
  RecorderRing::Options options;
  options.max_bytes = static_cast<size_t>(config.recorder_memory_mb - activity_mb) << 20;
  options.max_age_ns = config.recorder_seconds * kNsPerSecond;
  auto ring = RecorderRing::Create(options, now);
  if (!ring.ok()) return ring.status();
  std::unique_ptr<ActivityHistory> activity;
  if (with_activity) {
    options.max_bytes = static_cast<size_t>(activity_mb) << 20;
    auto made = ActivityHistory::Create(options, config.recorder_activity, now);
    if (!made.ok()) return made.status();
    activity = std::move(made).value();
  }
  return std::unique_ptr<FlightRecorder>(
      new FlightRecorder(deps, config, std::move(ring).value(), std::move(activity)));
}

RecorderRing::RouteId FlightRecorder::AddRoute(const Route& route) {
  routes_.push_back(route);
  return ring_->AddRoute(route.channel != 0, LastChanges::Are(route.channel));
}

ChannelOptions FlightRecorder::OptionsOf(const WantedCollector& wanted) const {
  ChannelOptions options;
  SetEverything(*Collectors()[wanted.collector].spec, wanted.hz, &options);
  return options;
}

void FlightRecorder::AddChannels(const WantedCollector& wanted) {
  const CollectorEntry& entry = Collectors()[wanted.collector];
  for (const DeviceInfo& device : deps_.session.host.devices) {
    Claimed& one = claimed_.emplace_back();
    one.wanted = wanted;
    one.device = device.id;
    if (Status probe = ProbeDevice(entry, deps_.session.host, device); !probe.ok()) {
      one.problem = probe.message();
      continue;
    }
    for (const ChannelRequest& request : entry.plan(device, OptionsOf(wanted))) {
      if (abi::FindChannelFormat(request.channel) == nullptr) continue;
      RecorderRing::RouteId route =
          AddRoute({wanted.collector, device.id, request.channel, request.effective_hz});
      taps_.push_back(std::make_unique<RingTap>(ring_, route));
      deps_.router.SetTap(static_cast<uint32_t>(device.id), request.channel, taps_.back().get());
    }
    if (std::ranges::find(devices_, device.id) == devices_.end()) {
      devices_.push_back(device.id);
    }
  }
}

void FlightRecorder::AddPoller(const WantedCollector& wanted) {
  const CollectorEntry& entry = Collectors()[wanted.collector];
  const CollectorSpec& spec = *entry.spec;
  Claimed& one = claimed_.emplace_back();
  one.wanted = wanted;
  if (Status probe = entry.probe_host(deps_.session.host); !probe.ok()) {
    one.problem = probe.message();
    return;
  }
  std::map<int, RecorderRing::RouteId> routes;
  routes[kHostDevice] = AddRoute({wanted.collector, kHostDevice, 0, wanted.hz});
  if (!spec.vendor_files) {
    for (const DeviceInfo& device : deps_.session.host.devices) {
      routes[device.id] = AddRoute({wanted.collector, device.id, 0, wanted.hz});
    }
  }
  one.sink = std::make_shared<RecorderPollSink>(deps_.session.store, deps_.session.host.clock,
                                                ring_, routes, spec.vendor_files);
  // The node's values only: the owner of a process is no longer known when a dump is requested.
  PollOptions options;
  options.hz = wanted.hz;
  Result<PollEngine::Handle> handle =
      deps_.session.pollers.Start(wanted.collector, options, one.sink);
  if (handle.ok()) {
    one.poller = *handle;
  } else {
    one.problem = handle.status().message();
  }
}

void FlightRecorder::Begin(SessionRecords& records, DumpRequests& dumps, JobDirectory* jobs_or_null) {
  DCHECK_ON(deps_.session.control);
  records_ = &records;
  dump_requests_ = &dumps;
  jobs_ = jobs_or_null;
  clocks_[kHostDevice].Add(CorrelateHostClock(deps_.session.host.clock));
  for (const std::string& text : config_.recorder_collectors) {
    Result<WantedCollector> wanted = ParseWantedCollector(text);
    if (!wanted.ok()) continue;  // the configuration has been checked
    if (Collectors()[wanted->collector].spec->source == CollectorSource::kChannel) {
      AddChannels(*wanted);
    } else {
      AddPoller(*wanted);
    }
  }
  // Clocks before channels: samples are timestamped with them from the first record on.
  ReadClocks([this](int device) { ClaimDevice(device); });
  SetTriggers();
  EvictTriggerDumps();
  WatchJobs();
  log::Info("flight recorder", {{"seconds", config_.recorder_seconds},
                                {"memory_mb", config_.recorder_memory_mb},
                                {"routes", routes_.size()},
                                {"triggers", config_.recorder_triggers.size()}});
}

void FlightRecorder::ReadClocks(const std::function<void(int device)>& ready) {
  const Clock& clock = deps_.session.host.clock;
  next_clocks_ns_ = clock.MonotonicRawNs() + kClockIntervalNs;
  clocks_[kHostDevice].Add(CorrelateHostClock(clock));
  for (int device : devices_) {
    deps_.session.devices.ControlOf(device)->CorrelateClock(
        [this, device, ready](const Result<ClockPair>& pair) {
          deps_.session.control.Post([this, device, ready, pair] {
            if (ended_) return;
            if (pair.ok()) {
              clocks_[device].Add(*pair);
              deps_.session.arbiter.SetClock(device, *pair);
            }
            if (ready) ready(device);
          });
        });
  }
}

void FlightRecorder::ClaimDevice(int device) {
  for (Claimed& one : claimed_) {
    bool of_channel = Collectors()[one.wanted.collector].spec->source == CollectorSource::kChannel;
    if (of_channel && one.device == device && one.problem.empty()) Claim(one);
  }
}

void FlightRecorder::Claim(Claimed& one) {
  ClaimRequest request{.device = one.device, .collector = one.wanted.collector, .options = OptionsOf(one.wanted),
                       .owner = "recorder", .resident = true};
  one.claim = deps_.session.arbiter.Claim(request, [] {});
}

void FlightRecorder::End(std::function<void()> done) {
  DCHECK_ON(deps_.session.control);
  ended_ = true;
  watching_.reset();
  auto waiting = std::make_shared<size_t>(1);
  auto gone = [this, waiting, done = std::move(done)] {
    deps_.session.control.Post([waiting, done] {
      if (--*waiting == 0) done();
    });
  };
  for (Claimed& one : claimed_) {
    if (one.claim) {
      ++*waiting;
      deps_.session.arbiter.Release(*std::exchange(one.claim, std::nullopt), [gone](const auto&) { gone(); });
    }
    if (one.poller) {
      ++*waiting;
      deps_.session.pollers.Stop(*std::exchange(one.poller, std::nullopt), gone);
    }
  }
  if (!writing_.empty()) {
    ++*waiting;
    when_written_ = gone;
  }
  gone();
}

void FlightRecorder::Configure(const DaemonConfig& config) {
  DCHECK_ON(deps_.session.control);
  bool other = config.recorder_triggers != config_.recorder_triggers;
  config_ = config;
  if (other) SetTriggers();
  EvictTriggerDumps();
}

void FlightRecorder::Tick() {
  DCHECK_ON(deps_.session.control);
  if (ended_) return;
  int64_t now = deps_.session.host.clock.MonotonicRawNs();
  ring_->Expire(now);
  if (activity_ != nullptr) activity_->Expire(now);
  if (now >= next_clocks_ns_) ReadClocks(nullptr);
  if (now >= next_claims_ns_) {
    next_claims_ns_ = now + kClaimIntervalNs;
    for (Claimed& one : claimed_) {
      if (!one.claim) continue;
      ClaimAnswer answer = deps_.session.arbiter.AnswerOf(*one.claim);
      // Refused completely: the arbiter itself retries single channels only.
      if (!answer.channels.empty() || answer.state != v1::Outcome::RESULT_BUSY) continue;
      deps_.session.arbiter.Release(*one.claim, [](const auto&) {});
      Claim(one);
    }
  }
  LookAtTriggers(now);
}

std::string FlightRecorder::ProblemOf(const Claimed& one) const {
  if (!one.problem.empty()) return one.problem;
  if (one.sink != nullptr) return one.sink->LastError();
  if (!one.claim) return "not begun yet";
  ClaimAnswer answer = deps_.session.arbiter.AnswerOf(*one.claim);
  if (answer.state == v1::Outcome::RESULT_UNSPECIFIED) return "not begun yet";
  return answer.detail;
}

bool FlightRecorder::Owns(const Claimed& one, const Route& route) const {
  return route.collector == one.wanted.collector &&
         (one.sink != nullptr || route.device == one.device);
}

void FlightRecorder::Describe(v1::Recorder* out) {
  DCHECK_ON(deps_.session.control);
  int64_t now = deps_.session.host.clock.MonotonicRawNs();
  Stats all = stats();
  out->set_enabled(true);
  out->set_limit_ms(static_cast<uint64_t>(config_.recorder_seconds) * 1000);
  out->set_limit_bytes(all.ring.max_bytes);
  out->set_held_ns(static_cast<uint64_t>(all.held_ns));
  out->set_held_bytes(all.ring.bytes);
  out->set_evicted_early(all.ring.evicted_early);
  for (const Claimed& one : claimed_) {
    v1::RecorderChannel& channel = *out->add_channels();
    channel.set_collector(std::string(Collectors()[one.wanted.collector].spec->name));
    if (one.device != kHostDevice) channel.set_device(static_cast<uint32_t>(one.device));
    channel.set_problem(ProblemOf(one));
    int64_t oldest = now;
    for (RecorderRing::RouteId route = 0; route < routes_.size(); ++route) {
      if (!Owns(one, routes_[route])) continue;
      channel.set_hz(std::max(channel.hz(), routes_[route].hz));
      RecorderRing::RouteStats held = ring_->StatsOf(route);
      channel.set_bytes(channel.bytes() + held.bytes);
      if (held.oldest_ns != 0) oldest = std::min(oldest, held.oldest_ns);
    }
    channel.set_held_ns(static_cast<uint64_t>(std::max<int64_t>(0, now - oldest)));
  }
  DescribeActivity(now, out);
  for (const auto& [reason, count] : dumps_) (*out->mutable_dumps())[reason] = count;
  out->set_suppressed(suppressed_);
  for (const Trigger& trigger : watch_.triggers()) out->add_triggers(trigger.text);
}

FlightRecorder::Stats FlightRecorder::stats() {
  int64_t now = deps_.session.host.clock.MonotonicRawNs();
  ring_->Expire(now);
  Stats stats;
  stats.ring = ring_->stats();
  if (activity_ != nullptr) {
    activity_->Expire(now);
    const RecorderRing::Stats activity = activity_->stats();
    stats.ring.bytes += activity.bytes;
    stats.ring.max_bytes += activity.max_bytes;
    stats.ring.blocks += activity.blocks;
    stats.ring.appended += activity.appended;
    stats.ring.expired += activity.expired;
    stats.ring.evicted_early += activity.evicted_early;
    stats.ring.dropped += activity.dropped;
    ++(activity_->Problem().empty() ? stats.recording : stats.failing);
  }
  int64_t from = std::max(stats.ring.complete_from_ns, now - config_.recorder_seconds * kNsPerSecond);
  stats.held_ns = std::max<int64_t>(0, now - from);
  for (const Claimed& one : claimed_) ++(ProblemOf(one).empty() ? stats.recording : stats.failing);
  return stats;
}

int64_t FlightRecorder::Reach() {
  int64_t now = deps_.session.host.clock.MonotonicRawNs();
  ring_->Expire(now);
  return std::max(ring_->stats().complete_from_ns,
                  now - config_.recorder_seconds * kNsPerSecond);
}

bool FlightRecorder::Records(uint16_t collector) const {
  return std::ranges::any_of(routes_, [collector](const Route& route) { return route.collector == collector; });
}

bool FlightRecorder::ClockAt(int device, int64_t host_ns, ClockPair* out) const {
  auto track = clocks_.find(device);
  if (track == clocks_.end()) return false;
  const DeviceInfo* const info = deps_.session.host.FindDevice(device);
  const double hz = info == nullptr ? 0 : info->counter_hz;
  if (!track->second.At(host_ns, hz, deps_.session.host.host_counter_hz, out)) return false;
  // The host's counter is the same for all, and has been read more often.
  ClockPair host;
  if (device != kHostDevice && ClockAt(kHostDevice, host_ns, &host)) {
    out->host_count = host.host_count;
  }
  return true;
}

std::shared_ptr<BlockSource> FlightRecorder::HostSince(uint16_t collector, int64_t from_ns) {
  if (!Records(collector)) return nullptr;
  std::vector<bool> wanted;
  for (const Route& route : routes_) {
    wanted.push_back(route.collector == collector && route.channel == 0);
  }
  return ring_->Read(std::move(wanted), from_ns);
}

std::unique_ptr<ActivitySource> FlightRecorder::ActivitySince(int64_t from_ns,
                                                              const std::function<bool(const TrainingProcess&)>& wanted) {
  if (activity_ == nullptr) return nullptr;
  return std::make_unique<ActivityPast>(activity_->Read(from_ns, wanted, deps_.session.host.clock.MonotonicRawNs()));
}

double FlightRecorder::HostHz(uint16_t collector) const {
  for (const Route& route : routes_) {
    if (route.collector == collector && route.channel == 0) return route.hz;
  }
  return 0;
}

void FlightRecorder::UpdateMetrics(SelfMetrics* self) {
  DCHECK_ON(deps_.session.control);
  const Stats held = stats();
  self->Set(MetricByName("profd_recorder_seconds"), static_cast<double>(held.held_ns) / 1e9);
  self->Set(MetricByName("profd_recorder_bytes"), held.ring.bytes);
  self->Set(MetricByName("profd_recorder_limit_bytes"), held.ring.max_bytes);
  self->Set(MetricByName("profd_recorder_blocks"), held.ring.blocks);
  self->Set(MetricByName("profd_recorder_blocks_total"), held.ring.appended);
  self->Set(MetricByName("profd_recorder_evicted_total"), held.ring.expired, "age");
  self->Set(MetricByName("profd_recorder_evicted_total"), held.ring.evicted_early, "memory");
  self->Set(MetricByName("profd_recorder_dropped_total"), held.ring.dropped);
  self->Set(MetricByName("profd_recorder_sources"), held.recording, "recording");
  self->Set(MetricByName("profd_recorder_sources"), held.failing, "failing");
  for (std::string_view reason : {"request", "threshold", "error_code", "crash", "slow_step", "advice"}) {
    const auto found = dumps_.find(std::string(reason));
    self->Set(MetricByName("profd_recorder_dumps_total"), found == dumps_.end() ? 0 : found->second, reason);
  }
  self->Set(MetricByName("profd_recorder_suppressed_total"), suppressed_);
}

}  // namespace profd
