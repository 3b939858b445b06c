// Live advice: wiring of the advisor to jobs, log, recorder, RPC, metrics and the page.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "base/log.h"
#include "base/text.h"
#include "collectors/metric_table.h"
#include "daemon/app_impl.h"
#include "daemon/web/status_board.h"
#include "profd/v1/profd.pb.h"

namespace profd {
namespace {

std::string WhereOf(const LiveAdvice& advice) {
  std::string text = advice.job_id.empty() ? fmt::format("process {}", advice.pid) : "job " + advice.job_id;
  if (advice.rank) text += fmt::format(", rank {}", *advice.rank);
  if (advice.device) text += fmt::format(", device {}", *advice.device);
  return text;
}

// The field behind the name in parentheses of /proc/PID/stat, which never waits.
char StateOf(const RootedFs& proc, pid_t pid) {
  std::array<char, 4096> buffer;
  Result<size_t> size = proc.ReadInto(fmt::format("{}/stat", pid), buffer);
  if (!size.ok()) return 0;
  std::string_view rest(buffer.data(), *size);
  const size_t end = rest.rfind(')');
  if (end == std::string_view::npos) return 0;
  rest.remove_prefix(end + 1);
  const std::string_view state = NextToken(&rest);
  return state.size() == 1 ? state.front() : '\0';
}

}  // namespace

void App::Impl::BuildAdvice() {
  if (!options.config.advice_enabled) return;
  Result<analysis::Limits> limits = ParseAdviceLimits(options.config.advice_limits);
  advisor = std::make_unique<Advisor>(
      Advisor::Deps{jobs->table(), [this](uint64_t id) { return jobs->table().FindActivity(id); }, store, clock,
                    [this](pid_t pid) { return StateOf(node->host().proc, pid); },
                    [this](const AdviceChange& change) { OnAdvice(change); }},
      limits.ok() ? std::move(limits).value() : analysis::Limits());
}

void App::Impl::OnAdvice(const AdviceChange& change) {
  const LiveAdvice& advice = change.advice;
  web_outdated = true;
  if (!change.raised) {
    log::Info("advice cleared", {{"check", advice.check}, {"where", WhereOf(advice)}, {"what", advice.what}});
    return;
  }
  log::Warning("advice", {{"check", advice.check}, {"where", WhereOf(advice)}, {"what", advice.what},
                          {"evidence", fmt::format("{}", fmt::join(advice.evidence, "; "))}});
  if (recorder != nullptr) {
    recorder->OnAdvice(advice.check, fmt::format("{}: {}", WhereOf(advice), advice.what), advice.job_id);
  }
}

void App::Impl::TickAdvice() {
  if (advisor == nullptr) return;
  const int64_t begin = clock.SteadyNs();
  advisor->Tick();
  advice_ns = clock.SteadyNs() - begin;
}

void App::Impl::AnswerAdvice(RpcDeps* deps) {
  deps->get_advice = [this](const Peer& peer, const v1::GetAdviceRequest& request, v1::GetAdviceResponse* out,
                            const std::function<void(const Status&)>& finish) {
    if (!options.config.advice_enabled) {
      finish(FailedPrecondition("live advice is off here (advice.enabled)"));
    } else {
      finish(advisor == nullptr ? Status::Ok() : advisor->Describe(peer, request, out));  // null: not yet
    }
  };
  deps->watch_advice = [this](std::function<void()> changed) -> std::shared_ptr<void> {
    if (advisor == nullptr) return nullptr;
    const uint64_t watch = advisor->Watch(std::move(changed));
    return {static_cast<void*>(this), [this, watch](void*) {
              if (advisor != nullptr) advisor->Unwatch(watch);
            }};
  };
}

void App::Impl::UpdateAdviceMetrics() {
  if (advisor == nullptr) return;
  const AdviceBoard& board = advisor->board();
  for (const LiveAdvice* advice : board.Raised()) {
    self->Set(MetricByName("profd_advice"), 1, advice->check, advice->job_id,
              advice->rank ? std::to_string(*advice->rank) : std::string());
  }
  for (size_t i = 0; i < board.raised_total().size(); ++i) {
    self->Set(MetricByName("profd_advice_raised_total"), static_cast<double>(board.raised_total()[i]), LiveChecks()[i].id);
  }
  self->Set(MetricByName("profd_advice_suppressed_total"), static_cast<double>(board.suppressed_total()));
  self->Set(MetricByName("profd_advice_duration_seconds"), static_cast<double>(advice_ns) / 1e9);
}

void App::Impl::ShowAdvice(NodeView* view) const {
  if (advisor == nullptr) return;
  for (const LiveAdvice* advice : advisor->board().Raised()) {
    view->advice.push_back({std::string(advice->check), WhereOf(*advice), advice->what,
                            advice->advice.empty() ? std::string() : advice->advice.front()});
  }
}

}  // namespace profd
