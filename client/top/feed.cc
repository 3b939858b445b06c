#include "client/top/feed.h"

#include <poll.h>

#include <algorithm>
#include <utility>

namespace profd::client::top {
namespace {

constexpr int64_t kListsEveryNs = 2 * kNsPerSecond;
constexpr int64_t kNodeEveryNs = 5 * kNsPerSecond;
constexpr int64_t kPollTimeoutMs = 5000;
constexpr uint32_t kHotKernels = 10;
constexpr int64_t kFirstRetryNs = 500 * kNsPerMs;
constexpr int64_t kLastRetryNs = 8 * kNsPerSecond;
constexpr int kNapMs = 50;
// The fastest refresh; and a chunk holds at most 8192 samples, which all channels make in 200 ms.
constexpr uint32_t kChunkMs = 100;
}  // namespace

v1::StreamSamplesRequest Feed::Request(const v1::Node& node) const {
  v1::StreamSamplesRequest request;
  request.set_devices_only(true);
  request.set_interval_ms(kChunkMs);
  for (uint32_t id : settings_.devices) request.add_devices(id);
  // Only what rows are made of: the others would be decoded for nothing. A daemon of an earlier version, which names none,
  // sends them all.
  for (const v1::CollectorInfo& collector : node.collectors()) {
    if (collector.overview()) request.add_collectors(collector.name());
  }
  return request;
}

bool Feed::Tick() {
  if (!stopped_ && !tick_()) stopped_ = true;
  return !stopped_;
}

void Feed::PollLists() {
  v1::ListJobsRequest jobs_request;
  jobs_request.set_job_id(settings_.job);
  auto jobs = polls_->ListJobs(jobs_request);
  // What this caller or daemon cannot is left empty; a lost connection is reported by the stream.
  if (jobs.ok()) model_.SetJobs(std::move(jobs).value());
  if (stopped_) return;
  v1::ListSessionsRequest sessions_request;
  sessions_request.set_job_id(settings_.job);
  sessions_request.set_active_only(true);
  auto sessions = polls_->ListSessions(sessions_request);
  if (sessions.ok()) model_.SetSessions(std::move(sessions).value());
  if (stopped_) return;
  v1::GetActivityRequest activity_request;
  activity_request.set_job_id(settings_.job);
  activity_request.set_kernels(kHotKernels);
  auto activity = polls_->GetActivity(activity_request);
  if (activity.ok()) model_.SetActivity(std::move(activity).value());
  if (stopped_) return;
  v1::GetAdviceRequest advice_request;
  advice_request.set_job_id(settings_.job);
  auto advice = polls_->GetAdvice(advice_request);
  model_.SetAdvice(advice.ok() ? std::move(advice).value() : v1::GetAdviceResponse());
}

void Feed::PollWhenDue() {
  int64_t now = clock_.SteadyNs();
  if (polling_ || now < next_lists_ns_) return;
  polling_ = true;
  PollLists();
  if (!stopped_ && now >= next_node_ns_) {
    auto node = polls_->GetNode();
    if (node.ok()) model_.SetNode(*node);
    next_node_ns_ = clock_.SteadyNs() + kNodeEveryNs;
  }
  next_lists_ns_ = clock_.SteadyNs() + kListsEveryNs;
  polling_ = false;
}

Status Feed::Connect() {
  stream_.reset();
  polls_ = settings_.make_api(kPollTimeoutMs);
  polls_->SetWaitHook([this] { return Tick(); });
  auto node = polls_->GetNode();
  if (!node.ok()) return node.status();
  request_ = Request(*node);
  model_.SetNode(*node);
  PollLists();
  next_lists_ns_ = clock_.SteadyNs() + kListsEveryNs;
  next_node_ns_ = clock_.SteadyNs() + kNodeEveryNs;
  return Status::Ok();
}

Status Feed::Stream() {
  stream_ = settings_.make_api(std::nullopt);
  stream_->SetWaitHook([this] {
    if (Tick()) PollWhenDue();
    return !stopped_;
  });
  model_.BeginStream(clock_.SteadyNs());
  return stream_->StreamSamples(request_, [this](const v1::SampleChunk& chunk) {
    model_.Take(chunk, clock_.SteadyNs());
    heard_ = true;
    return true;
  });
}

void Feed::Nap(int64_t until_ns) {
  while (clock_.SteadyNs() < until_ns && Tick()) poll(nullptr, 0, kNapMs);
}

Status Feed::Run(const std::function<bool()>& tick) {
  tick_ = tick;
  int64_t wait_ns = kFirstRetryNs;
  for (bool once_up = false;;) {
    heard_ = false;
    Status status = Connect();
    if (status.ok() && !stopped_) {
      once_up = true;
      status = Stream();
    }
    if (stopped_) return Status::Ok();
    if (status.ok()) status = Unavailable("the daemon ended the stream");
    if (!settings_.reconnect || !once_up) return status;
    if (heard_) wait_ns = kFirstRetryNs;
    int64_t again_ns = clock_.SteadyNs() + wait_ns;
    model_.Lose(status.message(), again_ns);
    Nap(again_ns);
    if (stopped_) return Status::Ok();
    wait_ns = std::min(2 * wait_ns, kLastRetryNs);
  }
}

}  // namespace profd::client::top
