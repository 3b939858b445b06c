#include "client/libprofd/step_watch.h"

#include <algorithm>
#include <utility>

namespace profd::lib {
namespace {

constexpr int kMaxStackRequests = 1 << 30;

}  // namespace

void StepWatch::OnNotice(const attach::SessionNotice& notice, int64_t last_step) {
  if (notice.state != "armed" && notice.state != "running") {
    sessions_.erase(notice.session_id);
    return;
  }
  auto found = sessions_.find(notice.session_id);
  if (found == sessions_.end()) {
    if (sessions_.size() >= kMaxSessions) return;
    found = sessions_.emplace(notice.session_id, Watched{}).first;
  }
  // Notified again, it continues to count where it was.
  Watched& session = found->second;
  session.running = notice.state == "running";
  session.marks = notice.marks;
  const auto stacks = notice.options.find("TORCH_CALL_STACK");
  const bool wants = session.running && stacks != notice.options.end() && stacks->second != "off";
  if (wants && !std::exchange(session.stacks, true)) stack_orders_ = stack_orders_ % kMaxStackRequests + 1;
  session.start_step = notice.start_step;
  session.steps = notice.steps;
  session.warms_up = !session.running && notice.collect && notice.start_step;
  // The first step of all has none before it. From 0 or 1 on they are counted.
  if (session.warms_up && (last_step == kNoStep ? *notice.start_step <= 1 : last_step >= *notice.start_step - 1)) {
    session.warms_up = false;
    due_.push_back(notice.session_id);
  }
  // It runs without a begin of ours, or there is nothing to wait for.
  if (session.running || (!notice.start_step && notice.steps == 0)) session.begun = true;
}

void StepWatch::Begin(int64_t step, const std::string& id, Watched& session,
                      std::vector<attach::StepReport>* reports) {
  if (session.start_step && step < *session.start_step) return;
  if (!session.begun) {
    session.begun = true;
    reports->push_back({id, step, true});
  }
  if (session.last_begun && step <= *session.last_begun) return;
  // Some loops never report the end of a step: the next one's begin ends it too.
  if (session.steps > 0 && session.seen >= session.steps) {
    session.done = true;
    reports->push_back({id, *session.last_begun, false});
    return;
  }
  session.last_begun = step;
  ++session.seen;
}

void StepWatch::End(int64_t step, const std::string& id, Watched& session,
                    std::vector<attach::StepReport>* reports) {
  // The end of a step that had begun before the session does not count.
  if (session.steps == 0 || !session.last_begun || step > *session.last_begun) return;
  if (session.start_step && step < *session.start_step) return;
  if (session.last_ended && step <= *session.last_ended) return;
  session.last_ended = step;
  if (++session.ended < session.steps) return;
  session.done = true;
  reports->push_back({id, step, false});
}

void StepWatch::LookDue(int64_t step, int64_t now_ns) {
  const int64_t length_ns = last_begin_ns_ == 0 ? 0 : now_ns - last_begin_ns_;
  last_begin_ns_ = now_ns;
  for (auto& [id, session] : sessions_) {
    if (!session.warms_up) continue;
    const int64_t left = *session.start_step - step;
    const bool soon = length_ns > 0 && left <= kWarmUpNs / length_ns;
    if (left > 1 && !soon) continue;
    session.warms_up = false;
    due_.push_back(id);
  }
}

void StepWatch::OnStep(int64_t step, bool begin, int64_t now_ns, std::vector<attach::StepReport>* reports) {
  if (begin) LookDue(step, now_ns);
  for (auto& [id, session] : sessions_) {
    if (!session.waits()) continue;
    begin ? Begin(step, id, session, reports) : End(step, id, session, reports);
  }
}

bool StepWatch::wants_marks() const {
  // Of one that begins with a step from that step on: the daemon keeps what comes before the session runs.
  return std::ranges::any_of(sessions_, [](const auto& entry) {
    const Watched& session = entry.second;
    return session.marks && (session.running || (session.start_step && session.begun));
  });
}

int StepWatch::wants_stacks() const {
  const bool any = std::ranges::any_of(sessions_, [](const auto& entry) { return entry.second.stacks; });
  return any ? stack_orders_ : 0;
}

bool StepWatch::wants_steps() const {
  return std::ranges::any_of(sessions_, [](const auto& entry) { return entry.second.waits(); });
}

}  // namespace profd::lib
