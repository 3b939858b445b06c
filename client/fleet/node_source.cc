#include "client/fleet/node_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "client/fleet/run_program.h"

namespace profd::client {
namespace {

// A list of kMaxNodes long names with comments.
constexpr std::streamsize kMaxFileBytes = std::streamsize{32} << 20;
constexpr size_t kMaxSelector = 1024;

Result<std::string> ReadList(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Status::FromErrno(errno, "--nodes-file " + path);
  std::string text(static_cast<size_t>(kMaxFileBytes) + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return Status::FromErrno(errno != 0 ? errno : EIO, "--nodes-file " + path);
  if (file.gcount() > kMaxFileBytes) {
    return InvalidArgument(fmt::format("--nodes-file {}: longer than {} bytes", path, kMaxFileBytes));
  }
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

// "123", "123_4" (array), "123+1" (heterogeneous), "123.0" (step).
bool IsSlurmJob(std::string_view text) {
  return !text.empty() && text.size() <= 32 && IsDigit(text.front()) &&
         std::ranges::all_of(text, [](char c) { return IsDigit(c) || c == '_' || c == '+' || c == '.'; });
}

Result<SourcedNodes> AskSlurm(const std::string& job, int port, const std::string& search_path,
                              std::vector<std::string>* problems) {
  if (!IsSlurmJob(job)) {
    problems->push_back(fmt::format("--slurm \"{}\" is not a Slurm job id, for example 1234", job));
    return SourcedNodes{};
  }
  // A step's nodes are its job's.
  const std::string without_step = job.substr(0, job.find('.'));
  auto lines = RunProgram({"scontrol", "show", "job", "-o", without_step}, search_path);
  if (!lines.ok()) return lines.status();
  auto known = FindSlurmJob(*lines, without_step);
  if (!known.ok()) return known.status().Annotate("Slurm job " + job);
  // "--" is not understood by scontrol; a list never begins with '-'.
  auto names = RunProgram({"scontrol", "show", "hostnames", known->nodes}, search_path);
  if (!names.ok()) return names.status();
  SourcedNodes found;
  found.list = ParseNodeList(*names, port, problems);
  found.job_id = known->id;
  return found;
}

Result<SourcedNodes> AskKubernetes(const NodeSource& source, int port,
                                   const std::string& search_path,
                                   std::vector<std::string>* problems) {
  for (const auto* text : {&source.k8s, &source.k8s_namespace}) {
    if (*text && ((*text)->empty() || (*text)->size() > kMaxSelector || (*text)->front() == '-')) {
      problems->push_back(fmt::format("\"{}\" is not a {}", **text,
                                      text == &source.k8s ? "label selector; write --k8s app=train"
                                                          : "namespace"));
    }
  }
  if (!problems->empty()) return SourcedNodes{};
  std::vector<std::string> argv = {"kubectl", "get", "pods", "--selector=" + *source.k8s, "--output=json"};
  if (source.k8s_namespace) argv.push_back("--namespace=" + *source.k8s_namespace);
  auto json = RunProgram(argv, search_path);
  if (!json.ok()) return json.status();
  auto found = NodesOfPods(*json, port);
  if (!found.ok()) return found.status().Annotate("pods with " + *source.k8s);
  return found;
}

// What `scontrol show job -o` prints of one job, task of an array, or component of a heterogeneous job.
struct SlurmLine {
  std::string_view job_id;
  std::string_view het_job_id;  // empty: not heterogeneous
  std::string_view nodes;
  std::string_view state = "UNKNOWN";
  bool array = false;

  // SLURM_JOB_ID of its processes.
  std::string_view id() const { return het_job_id.empty() ? job_id : het_job_id; }
};

SlurmLine ReadSlurmLine(std::string_view text) {
  SlurmLine line;
  bool ids = true;
  while (!text.empty()) {
    const std::string_view token = NextToken(&text);
    const size_t equals = std::min(token.find('='), token.size());
    const std::string_view key = token.substr(0, equals);
    const std::string_view value = token.substr(std::min(equals + 1, token.size()));
    // The ids come first; what follows has the user's words.
    ids &= key != "JobName";
    if (ids && key == "JobId") line.job_id = value;
    if (ids && key == "HetJobId") line.het_job_id = value;
    if (ids && key == "ArrayTaskId") line.array = true;
    if (key == "NodeList") line.nodes = value;
    if (key == "JobState") line.state = value;
  }
  return line;
}

std::string TextAt(const nlohmann::json& object, const char* outer, const char* inner) {
  auto found = object.find(outer);
  if (found == object.end() || !found->is_object()) return "";
  auto value = found->find(inner);
  return value != found->end() && value->is_string() ? value->get<std::string>() : "";
}

}  // namespace

Result<SlurmJob> FindSlurmJob(std::string_view scontrol_lines, std::string_view job) {
  // Of an array scontrol prints every task: the number alone is that of one of them.
  const bool number = IsDigits(job);
  SlurmJob found;
  std::string state = "UNKNOWN";
  bool array = false;
  while (!scontrol_lines.empty()) {
    const size_t end = std::min(scontrol_lines.find('\n'), scontrol_lines.size());
    const SlurmLine line = ReadSlurmLine(scontrol_lines.substr(0, end));
    scontrol_lines.remove_prefix(std::min(end + 1, scontrol_lines.size()));
    array |= line.array;
    if (number && line.job_id != job && line.id() != job) continue;
    state = line.state;
    if (line.nodes.empty() || line.nodes.starts_with('(') || line.nodes.starts_with('-')) continue;
    found.id = line.id();
    found.nodes += fmt::format("{}{}", found.nodes.empty() ? "" : ",", line.nodes);
  }
  if (!found.nodes.empty()) return found;
  return FailedPrecondition(fmt::format("has no nodes (state {}){}", state,
                                        array && number ? fmt::format("; of an array name a task: {}_0", job) : ""));
}

Result<SourcedNodes> NodesOfPods(const std::string& kubectl_json, int port) {
  auto json = nlohmann::json::parse(kubectl_json, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("items") || !json["items"].is_array()) {
    return Internal("kubectl printed no list of pods");
  }
  // By node's name: the order is the same whatever the order of the pods.
  std::map<std::string, NodeName> nodes;
  size_t waiting = 0;
  for (const auto& pod : json["items"]) {
    if (!pod.is_object()) continue;
    std::string address = TextAt(pod, "status", "hostIP");
    std::string name = TextAt(pod, "spec", "nodeName");
    if (TextAt(pod, "status", "phase") != "Running" || address.empty()) {
      ++waiting;
      continue;
    }
    bool v6 = address.find(':') != std::string::npos;
    auto node = ParseNodeName(fmt::format("{}{}{}:{}", v6 ? "[" : "", address, v6 ? "]" : "", port), port);
    if (!node.ok()) return node.status();
    if (!name.empty()) {
      node->text = name;
      // Certificates of nodes carry names; addresses of nodes change.
      node->endpoint.tls.server_name = name;
    }
    nodes.emplace(node->text, std::move(*node));
  }
  if (nodes.empty()) return FailedPrecondition(fmt::format("none of {} is running", waiting));
  if (nodes.size() > kMaxNodes) return InvalidArgument("too many nodes");
  SourcedNodes found;
  for (auto& [name, node] : nodes) found.list.nodes.push_back(std::move(node));
  if (waiting > 0) found.notes.push_back(fmt::format("{} pods that are not running were skipped", waiting));
  return found;
}

Result<SourcedNodes> FindNodes(const NodeSource& source, const std::string& search_path,
                               std::vector<std::string>* problems) {
  int port = kDefaultTlsPort;
  if (source.port && (!ParseNumber(*source.port, &port) || port < 1 || port > 65535)) {
    problems->push_back(fmt::format("--node-port \"{}\" is not a port: must be 1..65535", *source.port));
    port = kDefaultTlsPort;
  }
  if (source.slurm) return AskSlurm(*source.slurm, port, search_path, problems);
  if (source.k8s) return AskKubernetes(source, port, search_path, problems);
  SourcedNodes found;
  std::string text = source.nodes.value_or("");
  if (source.nodes_file) {
    auto read = ReadList(*source.nodes_file);
    if (!read.ok()) {
      problems->push_back(read.status().message());
      return found;
    }
    text = std::move(*read);
  }
  found.list = ParseNodeList(text, port, problems);
  return found;
}

}  // namespace profd::client
