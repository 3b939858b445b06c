#include "daemon/jobs/attach_calls.h"

#include "base/text.h"
#include "collectors/collector.h"
#include "daemon/jobs/process_facts.h"
#include "profd/v1/profd.pb.h"
#include "proto/enum_word/enum_word.h"

namespace profd {
namespace {

// "hccs" or "hccs=50". What is not a rate stays in the name, where the planner complains about it.
void AddCollector(const std::string& text, v1::SessionSpec* request) {
  v1::CollectorRequest& collector = *request->add_collectors();
  size_t equals = text.find('=');
  double hz = 0;
  if (equals != std::string::npos && ParseNumber(std::string_view(text).substr(equals + 1), &hz)) {
    collector.set_name(text.substr(0, equals));
    collector.set_hz(hz);
  } else {
    collector.set_name(text);
  }
}

attach::SessionSummary Summary(const v1::Session& session) {
  attach::SessionSummary summary;
  summary.session_id = session.session_id();
  summary.state = EnumWord(session.status().state());
  summary.reason = session.status().reason();
  summary.dump_path = session.status().dump_path();
  summary.records = session.status().records();
  summary.dropped_records = session.status().dropped_records();
  summary.dump_bytes = session.status().dump_bytes();
  summary.marks = session.status().marks();
  summary.dropped_marks = session.status().dropped_marks();
  summary.warnings.assign(session.status().warnings().begin(), session.status().warnings().end());
  for (const v1::EffectiveOption& option : session.status().effective_options()) {
    summary.effective_options[option.key()] = option.value();
  }
  for (const v1::Outcome& outcome : session.status().outcomes()) {
    attach::SessionSummary::Outcome one;
    one.collector = outcome.collector();
    one.result = EnumWord(outcome.result());
    one.detail = outcome.detail();
    one.device = outcome.has_device() ? static_cast<int>(outcome.device()) : kHostDevice;
    one.hz = outcome.hz();
    one.records = outcome.records();
    summary.outcomes.push_back(std::move(one));
  }
  return summary;
}

}  // namespace

v1::SessionSpec ToRequest(const attach::StartCall& call_untrusted,
                                  const TrainingProcess& process,
                                  const std::map<std::string, std::string>& metadata) {
  v1::SessionSpec request;
  request.mutable_target()->set_job_id(process.job_id);
  if (process.rank) request.mutable_target()->set_rank(*process.rank);
  request.set_label(call_untrusted.label);
  for (int device : process.devices) request.mutable_target()->add_devices(static_cast<uint32_t>(device));
  // A process that does not know its devices means those it may use.
  request.mutable_target()->set_all(process.devices.empty());
  request.mutable_target()->add_pids(process.pid);
  request.mutable_schedule()->set_end_with_pid(process.pid);
  request.set_options_json(call_untrusted.options_json);
  for (const auto& [name, value] : call_untrusted.acl_switches) {
    (*request.mutable_acl_switches())[name] = value;
  }
  for (const std::string& collector : call_untrusted.collectors) AddCollector(collector, &request);
  if (call_untrusted.duration_ms != 0) request.mutable_schedule()->set_duration_ms(call_untrusted.duration_ms);
  if (call_untrusted.start_step) request.mutable_schedule()->set_start_step(*call_untrusted.start_step);
  if (call_untrusted.steps != 0) request.mutable_schedule()->set_steps(call_untrusted.steps);
  request.set_no_dump(call_untrusted.no_dump);
  request.set_best_effort(call_untrusted.best_effort);
  // A process that starts a session by call marks by call as well; PROFILING_OPTIONS alone is taken literally.
  request.set_marks(call_untrusted.seq != 0);
  // Earlier libraries pass on any name; one that no session may have must not keep the process from starting any.
  for (const auto& [name, value] : metadata) {
    if (IsJobId(name)) (*request.mutable_metadata())[name] = value;
  }
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
