#include "daemon/collect/always_on.h"

#include <algorithm>
#include <memory>

#include "base/log.h"
#include "base/strand.h"

namespace profd {

void AlwaysOn::Start(const std::vector<std::string>& off) {
  DCHECK_ON(control_);
  std::span<const CollectorEntry> collectors = Collectors();
  for (size_t i = 0; i < collectors.size(); ++i) {
    const CollectorSpec& spec = *collectors[i].spec;
    if (spec.always_on_hz <= 0 || collectors[i].make_poller == nullptr) continue;
    if (std::ranges::find(off, spec.name) != off.end()) continue;
    if (Status probe = collectors[i].probe_host(host_); !probe.ok()) {
      log::Info("collector off", {{"collector", spec.name}, {"why", probe.message()}});
      continue;
    }
    PollOptions poll;
    poll.hz = spec.always_on_hz;
    Result<PollEngine::Handle> handle = pollers_.Start(static_cast<CollectorIndex>(i), poll, nullptr);
    if (handle.ok()) {
      running_.push_back({static_cast<CollectorIndex>(i), *handle});
    } else {
      log::Warning("collector failed to start", {{"collector", spec.name}, {"why", handle.status().ToString()}});
    }
  }
}

void AlwaysOn::Stop(std::function<void()> done) {
  DCHECK_ON(control_);
  auto left = std::make_shared<size_t>(running_.size() + 1);
  auto gone = [&control = control_, left, done = std::move(done)] {
    control.Post([left, done] {
      if (--*left == 0) done();
    });
  };
  for (const Running& one : running_) pollers_.Stop(one.handle, gone);
  gone();
}

}  // namespace profd
