// `profctl --nodes ... stacks`: the processes of all nodes, those that stand at the same place together.
#include "client/fleet/fleet_stacks.h"

#include "client/fleet/fleet_answers.h"

namespace profd::client {

int StacksOfAll(Fleet* fleet, const v1::GetStacksRequest& request, bool all_threads, bool json) {
  const auto all = AskEach<NodeStacks>(fleet, "stacks", request.job_id(), [&](ProfdApi& api) { return api.GetStacks(request); });
  Io& io = fleet->io();
  if (json) {
    io.out << JsonText(AnswersToJson(all), /*indent=*/true) << std::endl;
  } else {
    PrintStacks(io, all.nodes, all_threads);
    io.out.flush();
  }
  const std::string& job = request.job_id();
  return PrintFailures(io, all, job.empty() ? "training process" : "process of job " + Printable(job));
}

}  // namespace profd::client
