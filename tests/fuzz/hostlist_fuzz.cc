// Input: a list of nodes (--nodes, --nodes-file), and what kubectl and scontrol print.
#include <set>

#include "client/fleet/hostlist.h"
#include "client/fleet/node_source.h"
#include "tests/fuzz/fuzz_input.h"

namespace profd::client {
namespace {

void CheckNodes(const NodeList& list) {
  FUZZ_EXPECT(list.nodes.size() <= kMaxNodes);
  std::set<std::string> seen;
  for (const NodeName& node : list.nodes) {
    FUZZ_EXPECT(!node.text.empty());
    FUZZ_EXPECT(seen.insert(node.endpoint.name()).second);
    // What a list may hold is what one node may be called.
    Result<NodeName> again = ParseNodeName(node.text, kDefaultTlsPort);
    FUZZ_EXPECT(again.ok() && again->endpoint.name() == node.endpoint.name());
  }
}

void Run(fuzz::Input input) {
  const std::string_view text = input.rest();
  std::vector<std::string> problems;
  NodeList list = ParseNodeList(text, kDefaultTlsPort, &problems);
  FUZZ_EXPECT(!problems.empty() || !list.nodes.empty());
  FUZZ_EXPECT(problems.size() <= 32);
  // Expanding 65536 names over and over tests nothing more.
  if (list.nodes.size() < 4096) CheckNodes(list);
  Result<SlurmJob> job = FindSlurmJob(text, "42");
  if (job.ok()) FUZZ_EXPECT(!job->nodes.empty());
  Result<SourcedNodes> pods = NodesOfPods(std::string(text), kDefaultTlsPort);
  if (pods.ok()) FUZZ_EXPECT(!pods->list.nodes.empty());
}

}  // namespace
}  // namespace profd::client

void profd::fuzz::Run(Input input) { client::Run(input); }
