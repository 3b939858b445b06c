#include "client/fleet/fleet_cli.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

#include "client/cli_message.h"
#include "client/commands/sessions.h"
#include "client/context.h"
#include "client/fleet/fleet.h"
#include "client/fleet/fleet_advice.h"
#include "client/fleet/fleet_stacks.h"
#include "client/parse.h"
#include "client/render.h"

namespace profd::client {
namespace {

constexpr int64_t kDefaultNodeTimeoutMs = 30'000;

// Commands that ask a node something and print its answer.
constexpr std::array<std::string_view, 5> kQuestions = {"jobs", "devices", "top", "check", "show"};

bool IsQuestion(std::string_view command) {
  return std::ranges::find(kQuestions, command) != kQuestions.end();
}

void CheckSources(const FleetCommand& command, std::vector<std::string>* problems) {
  const NodeSource& source = command.fleet.source;
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

FleetExportArgs ExportArgs(const FleetCommand& command, const std::string& source_job) {
  return {command.fleet.fetch_job, command.timeout, command.fleet.no_wait, command.fleet.source.slurm.has_value(), source_job};
}

// What only makes sense on one node, or is missing.
void CheckCommand(const FleetCommand& command, std::vector<std::string>* problems) {
  if (command.name == "start") {
    if (!command.start.pids.empty() || command.start.end_with_pid) {
      problems->push_back("--pid and --end-with-pid name processes of one node; on many, name the "
                          "job (--job)");
    }
  } else if (command.name == "stop") {
    bool job = command.stop.job || command.fleet.source.slurm;
    int ways = (command.stop.ids.empty() ? 0 : 1) + (command.stop.job ? 1 : 0) +
               (command.stop.all_mine ? 1 : 0);
    if (ways > 1 || (ways == 0 && !job) || (command.stop.job && command.stop.job->empty())) {
      problems->push_back("give --job JOB, or --all-mine, or session ids");
    }
  } else if (command.name == "fetch") {
    const bool id = !command.fetch.id.empty();
    bool job = command.fleet.fetch_job ? !command.fleet.fetch_job->empty()
                                         : command.fleet.source.slurm.has_value();
    if (id ? command.fleet.fetch_job.has_value() : !job) {
      problems->push_back("fetch from many nodes needs --job JOB, or the id of a fleet, a session or a dump");
    }
    if (command.fetch.wait || command.fetch.background || command.fetch.keep) {
      problems->push_back("--wait, --background and --keep are of one node; fetch from many once the sessions have ended");
    }
  } else if (command.name == "export") {
    (void)BuildFleetExport(command.export_, ExportArgs(command, ""), problems);
  } else if (command.name == "advise") {
    if (!command.live_advise.live) problems->push_back("advise of many nodes needs --live; without it, advise reads runs on this machine");
    if (command.live_advise.watch) problems->push_back("--watch shows one node; leave it out with many");
  } else if (command.name == "list") {
    if (command.list.dumps) problems->push_back("list --dumps is of one node; on many, list shows sessions, and fetch --job JOB brings their dumps");
  } else if (command.name == "stacks") {
    if (!command.stacks.pids.empty()) problems->push_back("--pid names processes of one node; on many, name the job and ranks (--job, --rank)");
    (void)BuildStacksRequest(command.stacks, problems);
  } else if (command.name == "top") {
    if (!command.top.once) problems->push_back("top of many nodes needs --once; live it shows one");
  } else if (!IsQuestion(command.name) && command.name != "dump" && command.name != "status") {
    problems->push_back(fmt::format(
        "{} works on one node; on many there are start, stop, status, list, dump, fetch, export --to clickhouse://, advise --live, stacks, {}",
        command.name, fmt::join(kQuestions, ", ")));
  }
  if (command.name == "start" && command.start.wait_ranks) {
    problems->push_back("--wait-ranks is of one node; on many, ranks join as they attach");
  }
}

// What the command requests from one node.
int Ask(const FleetCommand& command, const std::string& source_job, const Context& context) {
  if (command.name == "jobs") {
    JobsOptions jobs = command.jobs;
    if (jobs.job.empty()) jobs.job = source_job;
    return RunJobs(context, jobs);
  }
  if (command.name == "top") {
    TopOptions top = command.top;
    if (top.job.empty()) top.job = source_job;
    return RunTop(context, top);
  }
  if (command.name == "devices") return RunDevices(context, command.devices);
  if (command.name == "check") return RunCheck(context, command.check);
  return RunShow(context, command.show_id);
}

// Each node being called costs a few descriptors.
void RaiseFileLimit() {
  struct rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  // Failing, the soft limit stays what it was.
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

// What the nodes have just written, into one directory of ours.
void FetchDumped(const std::string& out, Fleet* fleet, FleetReport* report) {
  std::set<std::string> ids;
  for (const NodeResult& node : report->nodes) {
    for (const v1::Session& session : node.sessions) ids.insert(session.session_id());
  }
  if (ids.empty() || report->interrupted) return;
  auto fetched = FetchFromAll(fleet, {report->job_id, out, std::move(ids)});
  if (!fetched.ok()) {
    report->warnings.push_back("the dumps could not be fetched: " + fetched.status().ToString());
    report->incomplete = true;
    return;
  }
  report->warnings.insert(report->warnings.end(), fetched->warnings.begin(), fetched->warnings.end());
  report->interrupted = fetched->interrupted;
  report->incomplete = fetched->incomplete;
  for (size_t i = 0; i < report->nodes.size(); ++i) {
    NodeResult& node = report->nodes[i];
    if (node.sessions.empty()) continue;
    node.dumps = std::move(fetched->nodes[i].dumps);
    node.partial = fetched->nodes[i].partial;
    if (!fetched->nodes[i].status.ok()) node.status = fetched->nodes[i].status;
  }
}

FleetReport Run(const FleetCommand& command, const v1::SessionSpec& request,
                const std::string& source_job, Fleet* fleet) {
  if (command.name == "start") {
    FleetReport report =
        StartOnAll(fleet, {request, command.fleet.all_or_nothing, command.fleet.keep});
    for (NodeResult& node : report.nodes) node.status = ToCliMessage(node.status, NamesOf(command.start));
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
  if (command.name == "export") {
    std::vector<std::string> checked_before;
    FleetReport report =
        ExportOnAll(fleet, BuildFleetExport(command.export_, ExportArgs(command, source_job), &checked_before));
    for (NodeResult& node : report.nodes) node.status = ToCliMessage(node.status, NameOf("to", "--to", command.export_.to));
    return report;
  }
  if (command.name == "dump") {
    std::vector<std::string> checked_before;
    v1::DumpRecorderRequest dump = BuildDumpRequest(command.dump, &checked_before);
    if (dump.job_id().empty()) dump.set_job_id(source_job);
    FleetReport report = DumpOnAll(fleet, dump);
    for (NodeResult& node : report.nodes) node.status = ToCliMessage(node.status, NamesOf(command.dump));
    if (command.dump.out) FetchDumped(*command.dump.out, fleet, &report);
    return report;
  }
  return StatusOfAll(fleet);
}

int RunAndReport(const FleetCommand& command, v1::SessionSpec request,
                 const SourcedNodes& found, Fleet* fleet, const Environment& environment) {
  if (IsQuestion(command.name)) {
    return AskAll(fleet, {command.name, command.json, [&](const Context& context) {
                            return Ask(command, found.job_id, context);
                          }});
  }
  if (command.name == "advise") {
    const std::string& job = command.live_advise.job;
    return AdviseOnAll(fleet, job.empty() ? found.job_id : job, command.json);
  }
  if (command.name == "stacks") {
    std::vector<std::string> checked_before;
    v1::GetStacksRequest stacks = BuildStacksRequest(command.stacks, &checked_before);
    if (stacks.job_id().empty()) stacks.set_job_id(found.job_id);
    return StacksOfAll(fleet, stacks, command.stacks.all, command.json);
  }
  if (request.target().job_id().empty()) request.mutable_target()->set_job_id(found.job_id);
  if (command.name != "fetch") {
    FleetReport report = Run(command, request, found.job_id, fleet);
    return PrintReport(environment.io, environment.clock, command.json, report);
  }
  std::set<std::string> ids;
  if (!command.fetch.id.empty()) ids.insert(command.fetch.id);
  const std::string job = ids.empty() ? command.fleet.fetch_job.value_or(found.job_id) : "";
  auto report = FetchFromAll(fleet, {job, command.fetch.out, std::move(ids)});
  if (report.ok()) return PrintReport(environment.io, environment.clock, command.json, *report);
  environment.io.err << "profctl: " << PrintableLines(report.status().ToString()) << std::endl;
  return ExitCodeFor(report.status().code());
}

// The same files for every node, which may have a name of its own.
void SetTls(const FleetCommand& command, std::vector<NodeName>* nodes) {
  for (NodeName& node : *nodes) {
    std::string name = command.tls.server_name.empty() ? node.endpoint.tls.server_name
                                                       : command.tls.server_name;
    node.endpoint.tls = command.tls;
    node.endpoint.tls.server_name = std::move(name);
  }
}

// Files that are missing are missing for all of the nodes: reported once, before any is called.
Status CheckTls(const FleetCommand& command, const Environment& environment,
                const std::vector<NodeName>& nodes) {
  const bool remote = std::ranges::any_of(nodes, [](const NodeName& node) { return node.endpoint.remote(); });
  return remote && environment.check_tls ? environment.check_tls(command.tls) : Status::Ok();
}

// What bounds a call to one node bounds one to each. That of an export is for the database.
int64_t NodeTimeoutMs(const FleetCommand& command, std::vector<std::string>* problems) {
  const bool has_timeout = command.timeout && command.name != "export";
  if (has_timeout && command.fleet.node_timeout) {
    problems->push_back("--timeout and --node-timeout are the same for many nodes: give one of them");
  }
  const auto ms = has_timeout ? ReadFlag("--timeout", command.timeout, ParseDurationMs, problems)
                              : ReadFlag("--node-timeout", command.fleet.node_timeout, ParseDurationMs, problems);
  return ms ? static_cast<int64_t>(*ms) : kDefaultNodeTimeoutMs;
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
  if (options.no_wait) return "--no-wait";
  return "";
}

int RunFleet(const FleetCommand& command, const Environment& environment) {
  Io& io = environment.io;
  std::vector<std::string> problems;
  CheckSources(command, &problems);
  CheckCommand(command, &problems);
  const int64_t timeout_ms = NodeTimeoutMs(command, &problems);
  v1::SessionSpec request;
  if (command.name == "start") request = BuildStartRequest(command.start, &problems);
  if (command.name == "dump") (void)BuildDumpRequest(command.dump, &problems);
  // No cluster is queried before the rest of the line is right.
  if (!problems.empty()) return UsageError(io, command.name, problems);
  auto found = FindNodes(command.fleet.source, environment.search_path, &problems);
  if (!found.ok()) {
    io.err << "profctl: " << PrintableLines(found.status().ToString()) << std::endl;
    return ExitCodeFor(found.status().code());
  }
  if (!problems.empty()) return UsageError(io, command.name, problems);
  if (!found->list.duplicates.empty()) {
    found->notes.push_back(fmt::format("more than once in the list, taken once: {}",
                                       fmt::join(found->list.duplicates, ", ")));
  }
  for (const std::string& note : found->notes) {
    io.err << "profctl: note: " << Printable(note) << '\n' << std::flush;
  }
  if (Status files = CheckTls(command, environment, found->list.nodes); !files.ok()) {
    io.err << fmt::format("profctl: {} called: {}\n",
                          found->list.nodes.size() == 1 ? "the node was not" : fmt::format("none of the {} nodes was", found->list.nodes.size()),
                          PrintableLines(files.message()))
           << std::flush;
    return ExitCodeFor(files.code());
  }
  RaiseFileLimit();
  SignalWatch signals;
  SetTls(command, &found->list.nodes);
  Fleet::Setup setup{io, environment.clock,
                     [&](const Endpoint& endpoint) { return environment.make_api(endpoint, timeout_ms); },
                     found->list.nodes, timeout_ms * kNsPerMs, &signals};
  setup.diagnose = environment.diagnose;
  Fleet fleet(std::move(setup));
  return RunAndReport(command, std::move(request), *found, &fleet, environment);
}

}  // namespace profd::client
