#include "client/fleet/fleet_cli.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "client/context.h"
#include "client/fleet/fleet.h"
#include "client/order_words.h"
#include "client/parse.h"
#include "client/render.h"

namespace profd::client {
namespace {

constexpr int64_t kDefaultNodeTimeoutMs = 30'000;

int Refuse(Io& io, const std::string& command, const std::vector<std::string>& problems) {
  for (const std::string& problem : problems) {
    io.err << "profctl: " << PrintableLines(problem) << '\n';
  }
  io.err << fmt::format("Try \"profctl {} --help\".\n", command) << std::flush;
  return kExitUsage;
}

void CheckSources(const FleetCommand& command, std::vector<std::string>* problems) {
  const NodeSource& source = command.options.source;
  int given = 0;
  for (const auto* one : {&source.nodes, &source.nodes_file, &source.slurm, &source.k8s}) {
    if (*one) ++given;
  }
  if (given > 1) problems->push_back("give one of --nodes, --nodes-file, --slurm and --k8s");
  if (source.k8s_namespace && !source.k8s) problems->push_back("--k8s-namespace belongs to --k8s");
  if (command.one_node_named) {
    problems->push_back("--socket and --address name one node; leave them out, or write unix:/PATH "
                        "or HOST:PORT in the list");
  }
}

// What only makes sense on one node, or is missing.
void CheckCommand(const FleetCommand& command, std::vector<std::string>* problems) {
  if (command.name == "start") {
    if (!command.start.pids.empty() || command.start.end_with_pid) {
      problems->push_back("--pid and --end-with-pid name processes of one node; on many, name the "
                          "job (--job)");
    }
  } else if (command.name == "stop") {
    bool job = command.stop.job || command.options.source.slurm;
    int ways = (command.stop.ids.empty() ? 0 : 1) + (command.stop.job ? 1 : 0) +
               (command.stop.all_mine ? 1 : 0);
    if (ways > 1 || (ways == 0 && !job) || (command.stop.job && command.stop.job->empty())) {
      problems->push_back("give --job JOB, or --all-mine, or session ids");
    }
  } else if (command.name == "fetch") {
    if (!command.fetch.id.empty()) {
      problems->push_back("a session's id belongs to one node; fetch from many with --job JOB");
    }
    bool job = command.options.fetch_job ? !command.options.fetch_job->empty()
                                         : command.options.source.slurm.has_value();
    if (!job) problems->push_back("fetch from many nodes needs --job JOB");
  } else if (command.name == "dump") {
    if (command.dump.out) {
      problems->push_back("--out is of one node; fetch from many with profctl fetch --job");
    }
  } else if (command.name != "status" && command.name != "list") {
    problems->push_back(fmt::format(
        "{} works on one node; on many there are start, stop, status, list, dump and fetch", command.name));
  }
}

// Each node being asked costs a few descriptors.
void RaiseFileLimit() {
  struct rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  // Failing, the soft limit stays what it was.
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

FleetReport Run(const FleetCommand& command, const v1::StartSessionRequest& request,
                const std::string& source_job, Fleet* fleet) {
  if (command.name == "start") {
    FleetReport report =
        StartOnAll(fleet, {request, command.options.all_or_nothing, command.options.keep});
    for (NodeResult& node : report.nodes) node.status = InWordsOfFlags(node.status, command.start);
    return report;
  }
  if (command.name == "stop") {
    bool by_job = command.stop.ids.empty() && !command.stop.all_mine;
    return StopOnAll(fleet, {command.stop.ids, by_job ? command.stop.job.value_or(source_job) : "",
                             command.stop.all_mine});
  }
  if (command.name == "list") {
    v1::ListSessionsRequest list;
    list.set_job_id(command.list.job.empty() ? source_job : command.list.job);
    list.set_active_only(command.list.active);
    return ListOnAll(fleet, list);
  }
  if (command.name == "dump") {
    std::vector<std::string> checked_before;
    v1::DumpRecorderRequest dump = BuildDumpRequest(command.dump, &checked_before);
    if (dump.job_id().empty()) dump.set_job_id(source_job);
    return DumpOnAll(fleet, dump);
  }
  return StatusOfAll(fleet);
}

int RunAndReport(const FleetCommand& command, v1::StartSessionRequest request,
                 const SourcedNodes& found, Fleet* fleet, const Environment& environment) {
  if (request.job_id().empty()) request.set_job_id(found.job_id);
  if (command.name != "fetch") {
    FleetReport report = Run(command, request, found.job_id, fleet);
    return PrintReport(environment.io, environment.clock, command.json, report);
  }
  auto report = FetchFromAll(
      fleet, {command.options.fetch_job.value_or(found.job_id), command.fetch.out});
  if (report.ok()) return PrintReport(environment.io, environment.clock, command.json, *report);
  environment.io.err << "profctl: " << PrintableLines(report.status().ToString()) << std::endl;
  return kExitInternal;
}

Endpoint WithTls(const FleetCommand& command, Endpoint endpoint) {
  std::string name = command.tls.server_name.empty() ? endpoint.tls.server_name
                                                     : command.tls.server_name;
  endpoint.tls = command.tls;
  endpoint.tls.server_name = std::move(name);
  return endpoint;
}

Fleet::MakeApi ApiMaker(const FleetCommand& command, const Environment& environment,
                        int64_t timeout_ms) {
  return [&command, &environment, timeout_ms](const Endpoint& endpoint) {
    return environment.make_api(WithTls(command, endpoint), timeout_ms);
  };
}

// Files that are missing are missing for all of the nodes: said once, before any is asked.
Status CheckTls(const FleetCommand& command, const Environment& environment,
                const std::vector<NodeName>& nodes) {
  const bool remote = std::any_of(nodes.begin(), nodes.end(),
                                  [](const NodeName& node) { return node.endpoint.remote(); });
  return remote && environment.check_tls ? environment.check_tls(command.tls) : Status::Ok();
}

}  // namespace

std::string FleetOptionWithoutNodes(const FleetOptions& options) {
  if (options.source.any()) return "";
  if (options.source.k8s_namespace) return "--k8s-namespace";
  if (options.source.port) return "--node-port";
  if (options.node_timeout) return "--node-timeout";
  if (options.all_or_nothing) return "--all-or-nothing";
  if (options.keep) return "--keep";
  if (options.fetch_job) return "--job";
  return "";
}

int RunFleet(const FleetCommand& command, const Environment& environment) {
  Io& io = environment.io;
  std::vector<std::string> problems;
  CheckSources(command, &problems);
  CheckCommand(command, &problems);
  int64_t timeout_ms = kDefaultNodeTimeoutMs;
  if (command.options.node_timeout) {
    auto ms = ParseDurationMs(*command.options.node_timeout);
    if (ms.ok()) timeout_ms = static_cast<int64_t>(*ms);
    if (!ms.ok()) problems.push_back("--node-timeout " + ms.status().message());
  }
  v1::StartSessionRequest request;
  if (command.name == "start") request = BuildStartRequest(command.start, &problems);
  if (command.name == "dump") (void)BuildDumpRequest(command.dump, &problems);
  // Nothing is asked of a cluster before the rest of the line is right.
  if (!problems.empty()) return Refuse(io, command.name, problems);
  auto found = FindNodes(command.options.source, environment.search_path, &problems);
  if (!found.ok()) {
    io.err << "profctl: " << PrintableLines(found.status().ToString()) << std::endl;
    return ExitCodeFor(found.status().code());
  }
  if (!problems.empty()) return Refuse(io, command.name, problems);
  if (!found->list.duplicates.empty()) {
    found->notes.push_back(fmt::format("more than once in the list, taken once: {}",
                                       fmt::join(found->list.duplicates, ", ")));
  }
  for (const std::string& note : found->notes) {
    io.err << "profctl: note: " << Printable(note) << '\n' << std::flush;
  }
  if (Status files = CheckTls(command, environment, found->list.nodes); !files.ok()) {
    io.err << fmt::format("profctl: none of the {} nodes was asked: {}\n", found->list.nodes.size(),
                          PrintableLines(files.message()))
           << std::flush;
    return ExitCodeFor(files.code());
  }
  RaiseFileLimit();
  SignalWatch signals({SIGINT, SIGTERM, SIGHUP});
  Fleet::Setup setup{io, environment.clock, ApiMaker(command, environment, timeout_ms), found->list.nodes,
                     timeout_ms * kNsPerMs, &signals};
  if (environment.diagnose) {
    setup.diagnose = [&](const Endpoint& endpoint) {
      return environment.diagnose(WithTls(command, endpoint));
    };
  }
  Fleet fleet(std::move(setup));
  return RunAndReport(command, std::move(request), *found, &fleet, environment);
}

}  // namespace profd::client
