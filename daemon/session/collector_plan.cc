#include "daemon/session/collector_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/log.h"
#include "collectors/channel_options.h"
#include "collectors/collector_hint.h"
#include "profd/v1/profd.pb.h"

namespace profd {
namespace {

constexpr size_t kMaxRequests = 128;
// Rates of collectors by name; periods in ns and ms must stay numbers.
constexpr double kMinHz = 0.001;
constexpr double kMaxHz = 1000;

void SetRate(PlannedCollector& planned, double hz) {
  planned.hz = hz;
  planned.channel.hz = hz;
  planned.poll.hz = hz;
}

bool IsRate(const options::Option& option) {
  return option.origin == options::Origin::kDevice && (option.type == options::Type::kFrequency ||
                                                       option.type == options::Type::kCycles);
}

}  // namespace

// The entry for a collector, made on first use.
PlannedCollector& CollectorPlanner::Entry(CollectorIndex index) {
  for (PlannedCollector& planned : planned_) {
    if (planned.index == index) return planned;
  }
  PlannedCollector planned;
  planned.index = index;
  SetChoices(*deps_.collectors[index].spec,
             [this](std::string_view key) { return deps_.options.Text(key); }, &planned.channel);
  planned.poll.system = true;
  planned_.push_back(planned);
  return planned_.back();
}

double CollectorPlanner::Allowed(double hz) {
  if (deps_.max_hz <= 0 || hz <= deps_.max_hz) return hz;
  lowered_ = true;
  return deps_.max_hz;
}

void CollectorPlanner::AddAll() {
  for (size_t i = 0; i < deps_.collectors.size(); ++i) {
    if (deps_.collectors[i].spec->default_hz == 0) continue;
    PlannedCollector& planned = Entry(static_cast<CollectorIndex>(i));
    SetRate(planned, Allowed(deps_.collectors[i].spec->default_hz));
    SetEverything(*deps_.collectors[i].spec, planned.hz, &planned.channel);
    planned.poll.processes = deps_.job;
  }
}

void CollectorPlanner::AddByOptions() {
  for (size_t i = 0; i < deps_.collectors.size(); ++i) {
    const CollectorSpec& spec = *deps_.collectors[i].spec;
    if (spec.source == CollectorSource::kChannel) {
      AddChannel(static_cast<CollectorIndex>(i), spec);
    } else {
      AddHost(static_cast<CollectorIndex>(i), spec);
    }
  }
}

// A channel collector may hang on several options: each turns its part on.
void CollectorPlanner::AddChannel(CollectorIndex index, const CollectorSpec& spec) {
  for (const options::Option& option : options::Table()) {
    double rate = IsRate(option) ? deps_.options.Number(option.key) : 0;
    if (rate <= 0) continue;
    if (spec.with_device_options) SetRate(Entry(index), Allowed(spec.default_hz));
    const CollectorOption* use = FindOption(spec, option.key);
    if (use == nullptr || use->use == OptionUse::kChoice) continue;
    PlannedCollector& planned = Entry(index);
    planned.named = planned.by_option = true;
    planned.option_keys.emplace(option.key);
    SetOption(spec, *use, rate, &planned.channel);
    SetRate(planned, planned.channel.hz);
  }
}

void CollectorPlanner::AddHost(CollectorIndex index, const CollectorSpec& spec) {
  auto on = [&](std::string_view key) {
    const CollectorOption* use = FindOption(spec, key);
    return use != nullptr && deps_.options.ListHas(key, use->item);
  };
  const bool job = on("host_sys");
  const bool usage = on("host_sys_usage");
  if (!job && !usage) return;
  PlannedCollector& planned = Entry(index);
  planned.named = planned.by_option = true;
  if (job) planned.option_keys.emplace("host_sys");
  if (usage) planned.option_keys.emplace("host_sys_usage");
  double usage_hz = deps_.options.Number("host_sys_usage_freq");
  if (usage_hz <= 0) usage_hz = kHostSysHz;
  SetRate(planned, Allowed(!job ? usage_hz : usage ? std::max(kHostSysHz, usage_hz) : kHostSysHz));
  planned.poll.system = usage;
  planned.poll.processes = job ? deps_.job : ProcessScope();
  planned.poll.processes.all = usage;
  if (usage) planned.poll.processes.only_uid = UINT32_MAX;
}

void CollectorPlanner::AddByName(std::span<const v1::CollectorRequest* const> requests_untrusted) {
  if (requests_untrusted.size() > kMaxRequests) {
    deps_.problem({.text = fmt::format("collectors: {} given, at most {}", requests_untrusted.size(),
                                       kMaxRequests)});
    return;
  }
  std::set<std::string_view> seen;
  for (const v1::CollectorRequest* request : requests_untrusted) {
    if (seen.insert(request->name()).second) {
      AddRequest(*request);
    } else {
      deps_.problem({.text = fmt::format("collector {} is named twice", log::Quote(request->name()))});
    }
  }
}

void CollectorPlanner::AddRequest(const v1::CollectorRequest& request) {
  auto found = std::ranges::find_if(deps_.collectors, [&request](const CollectorEntry& entry) { return entry.spec->name == request.name(); });
  if (found == deps_.collectors.end()) {
    // "hbm=abc", which a library took for a name because no number follows.
    if (request.name().find('=') != std::string::npos) {
      deps_.problem({.text = fmt::format("collector {}: the rate must be a number of Hz above zero", log::Quote(request.name()))});
      return;
    }
    deps_.problem({.field = "collector", .value = request.name(), .text = "no such collector" + CollectorHint(request.name())});
    return;
  }
  const CollectorSpec& spec = *found->spec;
  const bool by_default = !request.has_hz();
  if (spec.default_hz == 0 && !by_default) {
    deps_.problem({.text = fmt::format("collector {} = {} Hz: has no rate in Hz; omit it, or set {}", spec.name,
                                       request.hz(), OptionKeys(spec))});
    return;
  }
  const double hz = by_default ? Allowed(spec.default_hz) : request.hz();
  const double max_hz = spec.max_hz > 0 ? spec.max_hz : kMaxHz;
  if (!by_default && hz != spec.default_hz && !(hz >= kMinHz && hz <= max_hz)) {
    deps_.problem({.text = fmt::format("collector {} = {} Hz: must be at least {} and at most {}", spec.name,
                                       hz, kMinHz, max_hz)});
    return;
  }
  if (deps_.max_hz > 0 && hz > deps_.max_hz) {
    deps_.problem({.text = fmt::format("collector {} = {} Hz: at most {} Hz here for users who are no "
                                       "administrators (limits.max_user_hz)",
                                       spec.name, hz, deps_.max_hz)});
    return;
  }
  auto index = static_cast<CollectorIndex>(found - deps_.collectors.begin());
  const bool was_planned =
      std::ranges::any_of(planned_, [index](const PlannedCollector& planned) { return planned.index == index; });
  PlannedCollector& planned = Entry(index);
  planned.named = true;
  planned.by_option = false;
  SetRate(planned, hz);
  SetEverything(spec, hz, &planned.channel);
  if (!was_planned) planned.poll.processes = deps_.job;
}

}  // namespace profd
