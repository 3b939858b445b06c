// `profctl --nodes ... stacks`: the processes of all nodes, those that stand at the same place together.
#include "client/fleet/fleet_stacks.h"

#include <fmt/format.h>

#include "client/json.h"
#include "client/render.h"

namespace profd::client {

int StacksOfAll(Fleet* fleet, const v1::GetStacksRequest& request, bool all_threads, bool json) {
  FleetReport report = fleet->NewReport("stacks", request.job_id());
  std::vector<NodeStacks> nodes(fleet->nodes().size());
  report.interrupted = !fleet->ForAll("asking", [&](size_t node, NodeCall* call) {
    nodes[node].node = fleet->nodes()[node].text;
    Result<v1::GetStacksResponse> answer = call->api().GetStacks(request);
    // No such process there: an answer, as long as another node has some.
    report.nodes[node].none = answer.status().code() == StatusCode::kNotFound;
    if (!report.nodes[node].none) report.nodes[node].status = call->Explain(answer.status());
    if (answer.ok()) nodes[node].answer = std::move(answer).value();
  });
  const int exit_code = ExitCodeOf(report);
  Io& io = fleet->io();
  if (json) {
    Json all = {{"command", "stacks"}, {"job_id", request.job_id()}, {"exit_code", exit_code},
                {"interrupted", report.interrupted}, {"nodes", Json::array()}};
    for (size_t i = 0; i < nodes.size(); ++i) {
      const Status& status = report.nodes[i].status;
      all["nodes"].push_back({{"node", nodes[i].node}, {"error", status.ok() ? Json() : Json(status.message())},
                              {"answer", status.ok() ? ToJson(nodes[i].answer) : Json()}});
    }
    io.out << JsonText(all, /*indent=*/true) << std::endl;
  } else {
    PrintStacks(io, nodes, all_threads);
    io.out.flush();
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Status& status = report.nodes[i].status;
    if (!status.ok()) io.err << fmt::format("profctl: {}: {}\n", Printable(nodes[i].node), PrintableLines(status.message()));
  }
  if (exit_code == kExitNotFound) io.err << fmt::format("profctl: no such training process of yours is known on these {} nodes\n", nodes.size());
  io.err.flush();
  return exit_code;
}

}  // namespace profd::client
