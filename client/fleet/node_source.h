// Sources of the list of nodes: the command line, a file, Slurm or Kubernetes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "client/fleet/hostlist.h"

namespace profd::client {

// As typed; at most one of the four sources.
struct NodeSource {
  std::optional<std::string> nodes;
  std::optional<std::string> nodes_file;
  std::optional<std::string> slurm;
  std::optional<std::string> k8s;
  std::optional<std::string> k8s_namespace;
  std::optional<std::string> port;

  bool any() const { return nodes || nodes_file || slurm || k8s; }
};

struct SourcedNodes {
  NodeList list;
  // The job whose nodes were listed; empty when the source knows none.
  std::string job_id;
  // Things to say that are no errors.
  std::vector<std::string> notes;
};

// Every problem of the list at once goes to `problems`; a program that fails is the error.
Result<SourcedNodes> FindNodes(const NodeSource& source, const std::string& search_path,
                               std::vector<std::string>* problems);

struct SlurmJob {
  std::string id;     // SLURM_JOB_ID of its processes, also where the job is named "123_4" or "123+1"
  std::string nodes;  // as Slurm writes them
};

// `job` in what `scontrol show job -o` prints of it; an error when it has no nodes.
Result<SlurmJob> FindSlurmJob(std::string_view scontrol_lines, std::string_view job);

// hostIP and nodeName of the running pods of `kubectl get pods -o json`, each node once.
Result<SourcedNodes> NodesOfPods(const std::string& kubectl_json, int port);

}  // namespace profd::client
