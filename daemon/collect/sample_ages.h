// How old what the daemon shows is: profd_sample_age_seconds.
#pragma once

#include "daemon/collect/collector_stats.h"
#include "daemon/data/channel_router.h"
#include "daemon/metrics/self_metrics.h"

namespace profd {

void UpdateSampleAges(const Host& host, const CollectorStatsTable& stats, const ChannelRouter& router, SelfMetrics* self);

}  // namespace profd
