#include "client/selftest/gather.h"

#include <fmt/format.h>

#include <algorithm>

#include "client/session_view.h"
#include "client/signals.h"

namespace profd::client::selftest {
namespace {

constexpr const char* kLabel = "selftest";
constexpr double kChannelHz = 10;
constexpr uint32_t kHotKernels = 20;
// Of the end of a session: the vendor's profiler writes files until then.
constexpr int64_t kEndNs = 120 * kNsPerSecond;
constexpr int64_t kTickMs = 200;

v1::SessionSpec SpecOf(const GatherOptions& options) {
  v1::SessionSpec spec;
  spec.set_label(kLabel);
  spec.set_best_effort(true);
  // Slack for the look in the middle; it is stopped before.
  spec.mutable_schedule()->set_duration_ms(static_cast<uint64_t>(options.session_ms) * 4);
  return spec;
}

// What the driver's channels measure, of all devices.
v1::SessionSpec ChannelSpec(const GatherOptions& options, const v1::Node& node) {
  v1::SessionSpec spec = SpecOf(options);
  spec.mutable_target()->set_all(true);
  spec.set_no_dump(true);
  for (const v1::CollectorInfo& collector : node.collectors()) {
    // Not those of events, such as each instruction: they cost the application.
    if (!collector.available() || collector.source() != v1::CollectorInfo::SOURCE_DRIVER_CHANNEL || collector.max_hz() <= 0) continue;
    v1::CollectorRequest& request = *spec.add_collectors();
    request.set_name(collector.name());
    request.set_hz(std::min(kChannelHz, collector.max_hz()));
  }
  return spec;
}

v1::SessionSpec JobSpec(const GatherOptions& options, const v1::Node& node, v1::SessionSpec::Provider provider) {
  v1::SessionSpec spec = ChannelSpec(options, node);
  spec.mutable_target()->Clear();
  spec.mutable_target()->set_job_id(options.job);
  spec.set_provider(provider);
  spec.set_no_dump(false);
  spec.mutable_options()->set_task_time("l1");
  if (provider == v1::SessionSpec::PROVIDER_ACLPROF) spec.clear_collectors();
  return spec;
}

class Recorder {
 public:
  Recorder(const Context& context, const GatherOptions& options, const std::function<bool()>& go_on)
      : context_(context), options_(options), go_on_(go_on) {}

  Recorded Record(const v1::SessionSpec& spec) const {
    Recorded recorded;
    if (!go_on_()) return {{StatusCode::kCancelled, "interrupted"}};
    auto started = context_.api.StartSession(spec);
    if (!started.ok()) return {started.status()};
    const std::string id = started->session_id();
    const bool completed = Wait(options_.session_ms);
    Look(id, &recorded);
    const int64_t begin_ns = context_.clock.SteadyNs();
    auto ended = context_.api.StopSession(id);
    if (ended.ok()) recorded.ended = *std::move(ended);
    Await(id, &recorded);
    recorded.stop_ns = context_.clock.SteadyNs() - begin_ns;
    // Nothing of it stays on the node.
    v1::DeleteDumpRequest remove;
    remove.set_session_id(id);
    const Status removed = context_.api.DeleteDump(remove).status();
    if (!spec.no_dump() && !removed.ok() && removed.code() != StatusCode::kNotFound) {
      recorded.left = fmt::format("the dump of session {} stays on the node: {}; profctl rm {}", id, removed.message(), id);
    }
    if (!completed) recorded.status = {StatusCode::kCancelled, "interrupted"};
    return recorded;
  }

 private:
  bool Wait(int64_t ms) const {
    const int64_t until_ns = context_.clock.SteadyNs() + ms * kNsPerMs;
    while (context_.clock.SteadyNs() < until_ns) {
      if (!go_on_()) return false;
    }
    return true;
  }

  void Look(const std::string& id, Recorded* recorded) const {
    auto session = context_.api.GetSession(id);
    if (!session.ok()) recorded->status = session.status();
    if (session.ok()) recorded->running = *std::move(session);
    auto node = context_.api.GetNode();
    if (node.ok()) recorded->node = *std::move(node);
    v1::GetActivityRequest activity;
    activity.set_job_id(options_.job);
    activity.set_kernels(kHotKernels);
    if (options_.job.empty()) return;
    auto seen = context_.api.GetActivity(activity);
    if (seen.ok()) recorded->activity = *std::move(seen);
  }

  // Until it has ended: its processes may have to write files.
  void Await(const std::string& id, Recorded* recorded) const {
    const int64_t until_ns = context_.clock.SteadyNs() + kEndNs;
    while (!IsFinal(recorded->ended.status().state()) && context_.clock.SteadyNs() < until_ns) {
      (void)Wait(kTickMs);
      auto session = context_.api.GetSession(id);
      if (!session.ok()) return;
      recorded->ended = *std::move(session);
    }
  }

  const Context& context_;
  const GatherOptions& options_;
  const std::function<bool()>& go_on_;
};

}  // namespace

std::vector<std::string> PlanOf(const GatherOptions& options) {
  if (!options.active) return {};
  const double seconds = static_cast<double>(options.session_ms) / 1e3;
  std::vector<std::string> plan;
  if (options.channels) plan.push_back(fmt::format("a session of {:g} s with the driver's channels of all devices, without a dump", seconds));
  if (options.starts) {
    plan.emplace_back("processes that register with libprofapi, and that start channels 44, 45 and 50 of one device, without and with aclrtSetDevice");
  }
  if (options.job.empty()) return plan;
  plan.push_back(fmt::format("a session of {:g} s inside the processes of job {} by MSPTI, beside the channels", seconds, options.job));
  plan.push_back(fmt::format("another one of {:g} s by aclprof; both dumps are removed", seconds));
  return plan;
}

Facts Gather(const Context& context, const GatherOptions& options, const std::function<bool()>& go_on) {
  Facts facts;
  facts.remote = context.endpoint.remote();
  facts.active = options.active;
  facts.job = options.job;
  auto node = context.api.GetNode();
  facts.reached = node.status();
  if (!node.ok()) return facts;
  facts.node = *std::move(node);
  auto jobs = context.api.ListJobs(v1::ListJobsRequest());
  if (jobs.ok()) facts.jobs.assign(jobs->jobs().begin(), jobs->jobs().end());
  if (!options.active) return facts;
  const Recorder recorder(context, options, go_on);
  if (options.channels) facts.channels = recorder.Record(ChannelSpec(options, facts.node));
  if (options.job.empty()) return facts;
  facts.mspti = recorder.Record(JobSpec(options, facts.node, v1::SessionSpec::PROVIDER_MSPTI));
  facts.aclprof = recorder.Record(JobSpec(options, facts.node, v1::SessionSpec::PROVIDER_ACLPROF));
  return facts;
}

}  // namespace profd::client::selftest
