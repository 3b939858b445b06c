// One call to each of many nodes, whose answers are shown together.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "client/connection.h"
#include "client/fleet/fleet.h"
#include "client/json.h"
#include "client/render.h"

namespace profd::client {

// `Node` has the texts `node` and `answer`.
template <class Node>
struct NodeAnswers {
  FleetReport report;
  std::vector<Node> nodes;  // in their order; of one that failed an empty answer
};

// `call`: of a connection and a Node's answer; on several threads. That a node does not have what was requested (kNotFound)
// is an answer, as long as another node has it.
template <class Node, class Call>
NodeAnswers<Node> AskEach(Fleet* fleet, const std::string& command, const std::string& job_id, const Call& call) {
  NodeAnswers<Node> all{fleet->NewReport(command, job_id), std::vector<Node>(fleet->nodes().size())};
  for (size_t i = 0; i < all.nodes.size(); ++i) all.nodes[i].node = fleet->nodes()[i].text;
  all.report.interrupted = !fleet->ForAll("asking", [&](size_t i, NodeCall* node) {
    auto answer = call(node->api());
    all.report.nodes[i].none = answer.status().code() == StatusCode::kNotFound;
    all.report.nodes[i].status = all.report.nodes[i].none ? Status::Ok() : node->Explain(answer.status());
    if (answer.ok()) all.nodes[i].answer = std::move(answer).value();
  });
  return all;
}

template <class Node>
Json AnswersToJson(const NodeAnswers<Node>& all) {
  const FleetReport& report = all.report;
  Json made = {{"command", report.command}, {"job_id", report.job_id}, {"exit_code", ExitCodeOf(report)},
               {"interrupted", report.interrupted}, {"nodes", Json::array()}};
  for (size_t i = 0; i < all.nodes.size(); ++i) {
    const Status& status = report.nodes[i].status;
    made["nodes"].push_back({{"node", all.nodes[i].node},
                             {"exit_code", report.nodes[i].none ? kExitNotFound : ExitCodeFor(status.code())},
                             {"error", status.ok() ? Json() : Json(status.message())},
                             {"answer", status.ok() ? ToJson(all.nodes[i].answer) : Json()}});
  }
  return made;
}

// On stderr; the exit code. `what`: what was requested, "job j42", where no node has it.
template <class Node>
int PrintFailures(Io& io, const NodeAnswers<Node>& all, std::string_view what) {
  for (size_t i = 0; i < all.nodes.size(); ++i) {
    const Status& status = all.report.nodes[i].status;
    if (!status.ok()) io.err << fmt::format("profctl: {}: {}\n", Printable(all.nodes[i].node), PrintableLines(status.message()));
  }
  const int exit_code = ExitCodeOf(all.report);
  if (exit_code == kExitNotFound) {
    io.err << fmt::format("profctl: {} not found on {}, or not owned by you\n", what, all.nodes.size() == 1 ? "this node" : fmt::format("these {} nodes", all.nodes.size()));
  }
  io.err.flush();
  return exit_code;
}

}  // namespace profd::client
