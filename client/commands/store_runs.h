// `profctl list --from clickhouse://...` and `profctl rm --from clickhouse://... RUN...`: the runs of a database.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "client/context.h"
#include "client/endpoint.h"

namespace profd::client {

struct StoreRunsCommand {
  std::string from;                       // empty: it is not about a database
  std::optional<std::string> older_than;  // days
  std::string cluster;                    // of rm
  std::vector<std::string> runs;          // of rm
  TlsFiles tls;
};

int RunListRuns(const Io& io, const Clock& clock, const StoreRunsCommand& command, bool json);
int RunRemoveRuns(const Io& io, const Clock& clock, const StoreRunsCommand& command, bool json);

}  // namespace profd::client
