#include "daemon/jobs/attach_calls.h"

#include "base/text.h"
#include "profd/v1/profd.pb.h"

namespace profd {
namespace {

std::string_view StateText(v1::Session::State state) {
  switch (state) {
    case v1::Session::SCHEDULED:
      return "scheduled";
    case v1::Session::STARTING:
      return "starting";
    case v1::Session::RUNNING:
      return "running";
    case v1::Session::STOPPING:
      return "stopping";
    case v1::Session::DONE:
      return "done";
    case v1::Session::FAILED:
      return "failed";
    case v1::Session::INTERRUPTED:
      return "interrupted";
    default:
      return "unspecified";
  }
}

std::string_view ResultText(v1::Outcome::Result result) {
  switch (result) {
    case v1::Outcome::RUNNING:
      return "running";
    case v1::Outcome::UNSUPPORTED:
      return "unsupported";
    case v1::Outcome::DENIED:
      return "denied";
    case v1::Outcome::BUSY:
      return "busy";
    case v1::Outcome::FAILED:
      return "failed";
    case v1::Outcome::FINISHED:
      return "finished";
    case v1::Outcome::NEEDS_PROCESS:
      return "needs_process";
    default:
      return "unspecified";
  }
}

// "hccs" or "hccs=50". What is no rate stays in the name, where the planner complains about it.
void AddCollector(const std::string& text, v1::StartSessionRequest* request) {
  v1::CollectorOrder& order = *request->add_collectors();
  size_t equals = text.find('=');
  double hz = 0;
  if (equals != std::string::npos && ParseNumber(std::string_view(text).substr(equals + 1), &hz)) {
    order.set_name(text.substr(0, equals));
    order.set_hz(hz);
  } else {
    order.set_name(text);
  }
}

attach::SessionSummary Summary(const v1::Session& session) {
  attach::SessionSummary summary;
  summary.session_id = session.session_id();
  summary.state = StateText(session.state());
  summary.reason = session.reason();
  summary.dump_path = session.dump_path();
  summary.records = session.records();
  summary.dropped_records = session.dropped_records();
  summary.dump_bytes = session.dump_bytes();
  summary.marks = session.marks();
  summary.dropped_marks = session.dropped_marks();
  summary.warnings.assign(session.warnings().begin(), session.warnings().end());
  for (const v1::EffectiveOption& option : session.effective_options()) {
    summary.effective_options[option.key()] = option.value();
  }
  for (const v1::Outcome& outcome : session.outcomes()) {
    attach::SessionSummary::Outcome one;
    one.collector = outcome.collector();
    one.result = ResultText(outcome.result());
    one.detail = outcome.detail();
    one.device = outcome.device();
    one.hz = outcome.hz();
    one.records = outcome.records();
    summary.outcomes.push_back(std::move(one));
  }
  return summary;
}

}  // namespace

v1::StartSessionRequest ToRequest(const attach::StartCall& call_untrusted,
                                  const TrainingProcess& process,
                                  const std::map<std::string, std::string>& metadata) {
  v1::StartSessionRequest request;
  request.set_job_id(process.job_id);
  if (process.rank) request.set_rank(*process.rank);
  request.set_label(call_untrusted.label);
  for (int device : process.devices) request.add_devices(static_cast<uint32_t>(device));
  // A process that does not know its devices means those it may use.
  request.set_all(process.devices.empty());
  request.add_pids(process.pid);
  request.set_end_with_pid(process.pid);
  request.set_options_json(call_untrusted.options_json);
  for (const auto& [name, value] : call_untrusted.acl_switches) {
    (*request.mutable_acl_switches())[name] = value;
  }
  for (const std::string& collector : call_untrusted.collectors) AddCollector(collector, &request);
  request.set_duration_ms(call_untrusted.duration_ms);
  if (call_untrusted.start_step) request.set_start_step(*call_untrusted.start_step);
  request.set_steps(call_untrusted.steps);
  request.set_no_dump(call_untrusted.no_dump);
  request.set_best_effort(call_untrusted.best_effort);
  // A process that starts a session by call marks by call as well; PROFILING_OPTIONS alone is taken literally.
  request.set_marks(call_untrusted.seq != 0);
  for (const auto& [name, value] : metadata) (*request.mutable_metadata())[name] = value;
  return request;
}

attach::Reply ToReply(uint64_t seq, const Result<v1::Session>& session) {
  attach::Reply reply;
  reply.seq = seq;
  if (!session.ok()) {
    reply.code = static_cast<int>(session.status().code());
    reply.message = session.status().message();
    return reply;
  }
  reply.session = Summary(*session);
  return reply;
}

}  // namespace profd
