// Whose work the NPUs do: wiring of Attribution to jobs, names of processes and metrics.
#include <unistd.h>

#include "base/log.h"
#include "daemon/app_impl.h"
#include "daemon/attribution/attribution.h"

namespace profd {

void App::Impl::BuildAttribution() {
  if (!options.config.attribution_enabled || !options.config.metrics_enabled) return;
  Attribution::Deps deps{*control, clock, node->host(), jobs->table(), store};
  deps.names_or_null = &node->process_names();
  deps.notice = [](const std::string& source, const std::string& what) {
    log::Warning("attribution", {{"source", source}, {"what", what}});
  };
  deps.own_uid = ::geteuid();
  attribution = std::make_unique<Attribution>(std::move(deps), options.config);
}

}  // namespace profd
