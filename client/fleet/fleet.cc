#include "client/fleet/fleet.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <set>
#include <thread>
#include <utility>

#include "client/commands/sessions.h"
#include "client/render.h"
#include "client/session_view.h"

namespace profd::client {

Fleet::Fleet(Setup setup) : setup_(std::move(setup)) {}

bool IsFleetId(const std::string& id) {
  return id.size() == 16 && id.find_first_not_of("0123456789abcdef") == std::string::npos;
}

FleetReport Fleet::NewReport(std::string command, std::string job_id) const {
  FleetReport report;
  report.command = std::move(command);
  report.job_id = std::move(job_id);
  report.nodes.resize(setup_.nodes.size());
  for (size_t i = 0; i < setup_.nodes.size(); ++i) {
    report.nodes[i].node = setup_.nodes[i].text;
    report.nodes[i].status = {StatusCode::kCancelled, "not called: interrupted before its turn"};
  }
  return report;
}

bool Fleet::GoOn(const std::string& what, size_t done, size_t all, int64_t began_ns) {
  if (setup_.signals != nullptr && setup_.signals->Poll() != 0) return false;
  if (setup_.io.err_tty && setup_.clock.SteadyNs() - began_ns > kNsPerSecond) {
    setup_.io.err << fmt::format("\r\033[K{}: {} of {}", what, done, CountText(all, "node")) << std::flush;
    shown_ = true;
  }
  return true;
}

bool Fleet::ForEach(const std::string& what, const std::vector<size_t>& which, const Work& work,
                    Deadline deadline) {
  const int64_t began_ns = setup_.clock.SteadyNs();
  FanOut::Plan plan;
  plan.nodes = which.size();
  plan.node_timeout_ns = deadline == Deadline::kNone ? 0 : setup_.node_timeout_ns;
  plan.make_api = [&](size_t i) { return setup_.make_api(setup_.nodes[which[i]].endpoint); };
  if (setup_.diagnose) {
    plan.diagnose = [&](size_t i) { return setup_.diagnose(setup_.nodes[which[i]].endpoint); };
  }
  plan.work = [&](size_t i, NodeCall* call) { work(which[i], call); };
  plan.go_on = [&](size_t done) { return GoOn(what, done, which.size(), began_ns); };
  bool finished = FanOut(setup_.clock).Run(plan);
  if (shown_) setup_.io.err << "\r\033[K" << std::flush;
  shown_ = false;
  return finished;
}

bool Fleet::Pause(const std::string& what, int64_t ms) {
  if (setup_.io.err_tty) setup_.io.err << "\r\033[K" << what << std::flush;
  bool go_on = true;
  if (setup_.signals == nullptr) {
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
  } else {
    go_on = setup_.signals->Poll() == 0 && setup_.signals->Wait(ms).si_signo == 0;
  }
  if (setup_.io.err_tty) setup_.io.err << "\r\033[K" << std::flush;
  return go_on;
}

bool Fleet::ForAll(const std::string& what, const Work& work) {
  std::vector<size_t> all(setup_.nodes.size());
  std::iota(all.begin(), all.end(), size_t{0});
  return ForEach(what, all, work);
}

namespace {

// Fleet ids become the ids of their sessions on this node.
Result<std::vector<std::string>> SessionsOf(ProfdApi& api, const std::vector<std::string>& ids) {
  std::vector<std::string> sessions;
  std::set<std::string> fleets;
  for (const std::string& id : ids) {
    if (IsFleetId(id)) {
      fleets.insert(id);
    } else {
      sessions.push_back(id);
    }
  }
  if (fleets.empty()) return sessions;
  // Ended ones, too: the answer is how they ended.
  auto list = api.ListSessions({});
  if (!list.ok()) return list.status();
  for (const v1::Session& session : list->sessions()) {
    auto fleet = session.spec().metadata().find(kFleetId);
    if (fleet != session.spec().metadata().end() && fleets.contains(fleet->second)) {
      sessions.push_back(session.session_id());
    }
  }
  // The node answers: not found, or to a viewer that it may not stop anything.
  if (sessions.empty()) sessions.assign(fleets.begin(), fleets.end());
  return sessions;
}

Status StopOne(NodeCall* call, const std::string& id, NodeResult* result) {
  auto session = call->api().StopSession(id);
  if (!session.ok()) return session.status();
  if (!IsFinal(session->status().state())) {
    result->partial = true;
    result->note = "is still stopping";
  } else if (ExitForEnded(*session) != kExitOk) {
    result->partial = true;
  }
  result->sessions.push_back(std::move(*session));
  return Status::Ok();
}

// The node's part of a stop: nothing there to stop is kNotFound.
Status StopOnNode(NodeCall* call, const FleetStop& wanted, NodeResult* result) {
  auto found = wanted.ids.empty() ? OwnSessions(call->api(), wanted.job_id)
                                 : SessionsOf(call->api(), wanted.ids);
  if (!found.ok()) return found.status();
  const std::vector<std::string> ids = std::move(*found);
  // Others are stopped all the same when one cannot be.
  Status first_error;
  for (const std::string& id : ids) {
    Status status = StopOne(call, id, result);
    if (!status.ok() && (first_error.ok() || first_error.code() == StatusCode::kNotFound)) {
      first_error = status;
    }
  }
  // An id belongs to one node only: that the others do not know it is not an error.
  if (first_error.code() == StatusCode::kNotFound && !result->sessions.empty()) return Status::Ok();
  return first_error;
}

// An id that no node has is a mistake although other sessions were stopped. Where a node failed, it may be there.
void CheckStopped(const FleetStop& wanted, FleetReport* report) {
  std::set<std::string> missing(wanted.ids.begin(), wanted.ids.end());
  const size_t all = missing.size();
  for (const NodeResult& node : report->nodes) {
    if (!node.status.ok()) return;
    for (const v1::Session& session : node.sessions) {
      missing.erase(session.session_id());
      auto fleet = session.spec().metadata().find(kFleetId);
      if (fleet != session.spec().metadata().end()) missing.erase(fleet->second);
    }
  }
  if (missing.empty() || missing.size() == all) return;
  report->warnings.push_back(fmt::format("no node has a session {}", fmt::join(missing, ", ")));
  report->incomplete = true;
}

}  // namespace

FleetReport StopOnAll(Fleet* fleet, const FleetStop& wanted) {
  FleetReport report = fleet->NewReport("stop", wanted.job_id);
  report.interrupted = !fleet->ForAll("stopping", [&](size_t node, NodeCall* call) {
    NodeResult& result = report.nodes[node];
    Status status = call->Explain(StopOnNode(call, wanted, &result));
    result.none = status.code() == StatusCode::kNotFound;
    if (status.code() == StatusCode::kDeadlineExceeded) {
      result.note = "the node may still complete the stop";
    }
    result.status = result.none ? Status::Ok() : status;
    if (result.none) result.note = status.message();
  });
  CheckStopped(wanted, &report);
  return report;
}

FleetReport StatusOfAll(Fleet* fleet) {
  FleetReport report = fleet->NewReport("status", "");
  report.interrupted = !fleet->ForAll("asking", [&](size_t node, NodeCall* call) {
    auto answer = call->api().GetNode();
    NodeResult& result = report.nodes[node];
    result.status = call->Explain(answer.status());
    if (answer.ok()) result.description = std::move(*answer);
  });
  return report;
}

FleetReport DumpOnAll(Fleet* fleet, const v1::DumpRecorderRequest& request) {
  FleetReport report = fleet->NewReport("dump", request.job_id());
  report.interrupted = !fleet->ForAll("writing the past", [&](size_t node, NodeCall* call) {
    auto session = call->api().DumpRecorder(request);
    NodeResult& result = report.nodes[node];
    result.status = call->Explain(session.status());
    // A job need not be on all of the nodes.
    result.none = !request.job_id().empty() && session.status().code() == StatusCode::kNotFound;
    if (result.none) result.note = std::exchange(result.status, Status::Ok()).message();
    if (session.ok()) result.sessions.push_back(std::move(*session));
  });
  return report;
}

FleetReport ListOnAll(Fleet* fleet, const v1::ListSessionsRequest& request) {
  FleetReport report = fleet->NewReport("list", request.job_id());
  report.interrupted = !fleet->ForAll("asking", [&](size_t node, NodeCall* call) {
    auto answer = call->api().ListSessions(request);
    NodeResult& result = report.nodes[node];
    result.status = call->Explain(answer.status());
    if (!answer.ok()) return;
    result.sessions.assign(answer->sessions().begin(), answer->sessions().end());
    const bool runs = std::ranges::any_of(result.sessions, [](const v1::Session& session) {
      return session.status().started_ns() != 0 && session.status().ended_ns() == 0;
    });
    if (!runs) return;
    // For how long, is by the node's own clock.
    if (auto offset = MeasureOffset(call->api(), fleet->clock(), 1); offset.ok()) result.offset = *offset;
  });
  return report;
}

}  // namespace profd::client
