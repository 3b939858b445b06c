#include "client/cli.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <sstream>
#include <string_view>

#include "base/nearest.h"
#include "client/background.h"
#include "client/cli_app.h"
#include "client/commands/advise.h"
#include "client/commands/analyze.h"
#include "client/commands/export.h"
#include "client/commands/keep.h"
#include "client/commands/node.h"
#include "client/commands/report.h"
#include "client/commands/serve.h"
#include "client/commands/sessions.h"
#include "client/commands/tls.h"
#include "client/commands/tune.h"
#include "client/fleet/fleet_cli.h"
#include "client/parse.h"
#include "client/render.h"

namespace profd::client {
namespace {

// The command the parse reached; the application itself when there was none.
const CLI::App* Reached(const CLI::App& app) {
  const CLI::App* reached = &app;
  for (auto commands = app.get_subcommands(); !commands.empty(); commands = reached->get_subcommands()) reached = commands.back();
  return reached;
}

// "tune show"
std::string HelpName(const CLI::App& app) {
  std::string name;
  for (const CLI::App* at = Reached(app); at != &app; at = at->get_parent()) {
    name = name.empty() ? at->get_name() : fmt::format("{} {}", at->get_name(), name);
  }
  return name;
}

std::string Help(const CLI::App& app) {
  const CLI::App* reached = Reached(app);
  if (reached == &app) return app.help();
  std::string help = reached->help(reached->get_parent() == &app ? app.get_name() : app.get_name() + " " + reached->get_parent()->get_name());
  constexpr std::string_view kOptions = "[OPTIONS]";
  const size_t after = help.find(kOptions) + kOptions.size();
  const std::string name = HelpName(app);
  if (name == "run") help.insert(after, " COMMAND...");
  if (name == "tune") help.replace(after, std::string_view(" [SUBCOMMAND]").size(), " -- COMMAND... | SUBCOMMAND");
  if (name == "tune check") help.insert(after, " [-- COMMAND...]");
  return help;
}

std::vector<std::string_view> LongFlags(const CLI::App& app) {
  std::vector<std::string_view> names;
  for (const CLI::Option* option : app.get_options()) {
    names.insert(names.end(), option->get_lnames().begin(), option->get_lnames().end());
  }
  return names;
}

// "; did you mean --interval?" for "--intervall=5s", or nothing.
std::string FlagHint(const CLI::App& app, const CLI::App& command, const std::string& argument) {
  if (!argument.starts_with("--")) return "";
  std::vector<std::string_view> names = LongFlags(command);
  const std::vector<std::string_view> of_all = LongFlags(app);
  names.insert(names.end(), of_all.begin(), of_all.end());
  const std::string_view word = std::string_view(argument).substr(2);
  const std::string_view nearest = Nearest(word.substr(0, word.find('=')), names);
  return nearest.empty() ? "" : fmt::format("did you mean --{}?", nearest);
}

std::string CommandHint(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* command :
       app.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); })) {
    names.push_back(command->get_name());
  }
  return DidYouMean(word, std::vector<std::string_view>(names.begin(), names.end()));
}

// The flag that was meant by one spelled as the key it stands for, "--sys_hardware_mem_freq=50";
// empty when there is none.
std::string DashedFlag(const CLI::App& command, const std::string& argument) {
  std::string flag = argument.substr(0, argument.find('='));
  if (!flag.starts_with("--") || flag.find('_') == std::string::npos) return "";
  std::ranges::replace(flag, '_', '-');
  const bool known = command.get_option_no_throw(flag) != nullptr;
  return known ? flag : "";
}

// CLI11's message, except where it misses the point: an unknown command is not a missing one, and an
// option with underscores is the vendor's spelling of one of ours.
std::string Problem(const CLI::App& app, const CLI::ParseError& error) {
  std::vector<std::string> unknown = app.remaining(/*recurse=*/true);
  const CLI::App* reached = Reached(app);
  // Also before or behind the name of a command.
  if (!unknown.empty() && unknown.front() == "help") {
    return "unknown command \"help\"; for help write profctl --help, or profctl COMMAND --help";
  }
  if (reached == &app && !unknown.empty() && !unknown.front().starts_with('-')) {
    return "unknown command \"" + unknown.front() + "\"" + CommandHint(app, unknown.front());
  }
  if (HelpName(app) == "tune" && !unknown.empty() && !unknown.front().starts_with('-')) {
    return fmt::format("unknown subcommand \"{}\"; the training's command follows --, as in: profctl tune -- {}", unknown.front(), fmt::join(unknown, " "));
  }
  std::string text = error.what();
  constexpr std::string_view kRequired = ": 1 required ";
  constexpr std::string_view kMissing = " missing";
  if (const size_t at = text.find(kRequired); at != std::string::npos && text.ends_with(kMissing)) {
    const size_t value = at + kRequired.size();
    return fmt::format("{} needs a value: {}", text.substr(0, at), text.substr(value, text.size() - kMissing.size() - value));
  }
  // CLI11 lists them from the last to the first.
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError) && unknown.size() > 1) {
    text = fmt::format("The following arguments were not expected: {}", fmt::join(unknown, " "));
  }
  constexpr std::string_view kRepeated = ": At Most 1 required but received ";
  if (const size_t at = text.find(kRepeated); at != std::string::npos) {
    return fmt::format("{} is given {} times; give it once", text.substr(0, at), text.substr(at + kRepeated.size()));
  }
  for (const std::string& argument : unknown) {
    std::string meant = DashedFlag(*reached, argument);
    if (meant.empty()) meant = DashedFlag(app, argument);
    const std::string hint = meant.empty() ? FlagHint(app, *reached, argument)
                                           : "options have dashes, write " + meant;
    if (hint.empty()) continue;
    text += "\n         " + argument.substr(0, argument.find('=')) + ": " + hint;
  }
  return text;
}

// Is this argument a flag whose value is the next one?
bool TakesNext(const CLI::App& app, const CLI::App& command, const std::string& argument) {
  if (argument.find('=') != std::string::npos) return false;
  const CLI::Option* option = command.get_option_no_throw(argument);
  if (option == nullptr) option = app.get_option_no_throw(argument);
  return option != nullptr && option->get_items_expected_min() > 0;
}

// Where the command of `profctl run` begins: behind "--", or with the first word that is not a flag and
// no flag's value; the end when the arguments are of another command.
std::vector<std::string>::const_iterator CommandOfRun(const CLI::App& app,
                                                      const std::vector<std::string>& arguments) {
  const CLI::App* command = &app;
  for (auto it = arguments.begin(); it != arguments.end(); ++it) {
    if (*it == "--") return it;
    if (it->starts_with('-')) {
      if (TakesNext(app, *command, *it) && std::next(it) != arguments.end()) ++it;
    } else if (command != &app) {
      return it;
    } else if (*it == "run") {
      command = app.get_subcommand(*it);
    } else {
      return std::find(it, arguments.end(), "--");
    }
  }
  return arguments.end();
}

// CLI11 speaks in exceptions; they end here. -1 = go on.
int Parse(CLI::App* app, std::vector<std::string> arguments, const Io& io) {
  // CLI11 takes them from the back.
  std::ranges::reverse(arguments);
  try {
    app->parse(std::move(arguments));
    return -1;
  } catch (const CLI::CallForHelp&) {
    io.out << Help(*app) << std::flush;
    return kExitOk;
  } catch (const CLI::CallForVersion& version) {
    io.out << version.what() << std::endl;
    return kExitOk;
  } catch (const CLI::ParseError& error) {
    std::string command = HelpName(*app);
    io.err << "profctl: " << PrintableLines(Problem(*app, error)) << "\nTry \"profctl "
           << (command.empty() ? "" : command + " ") << "--help\"." << std::endl;
    return kExitUsage;
  }
}

int RunCommand(const Context& context, const std::string& name, Parsed* parsed) {
  if (name == "status") return RunStatus(context);
  if (name == "devices") return RunDevices(context, parsed->devices);
  if (name == "channels") return RunChannels(context, parsed->channels);
  if (name == "health") return RunHealth(context, parsed->health);
  if (name == "faults") return RunFaults(context, parsed->health);
  if (name == "topology") return RunTopology(context, parsed->topology);
  if (name == "collectors") return RunCollectors(context);
  if (name == "start") return RunStart(context, parsed->start);
  if (name == "stop") return RunStop(context, parsed->stop);
  if (name == "jobs") return RunJobs(context, parsed->jobs);
  if (name == "stacks") return RunStacks(context, parsed->stacks);
  if (name == "advise") return RunLiveAdvise(context, parsed->live_advise);
  if (name == "list") return RunList(context, parsed->list);
  if (name == "show") return RunShow(context, parsed->show_id);
  if (name == "watch") return RunWatch(context, parsed->watch);
  if (name == "top") return RunTop(context, parsed->top);
  if (name == "stream") return RunStream(context, parsed->stream);
  if (name == "dump") return RunDump(context, parsed->dump);
  if (name == "fetch") return RunFetch(context, parsed->fetch);
  if (name == "rm") return RunRm(context, parsed->rm_ids);
  if (name == "pin") return RunPin(context, parsed->pin_ids, false);
  if (name == "unpin") return RunPin(context, parsed->pin_ids, true);
  if (name == "archive") {
    // The endpoint's have the files of a client of other nodes where none are named.
    parsed->archive.tls = {parsed->tls_ca.value_or(""), parsed->tls_cert.value_or(""), parsed->tls_key.value_or(""), ""};
    return RunArchive(context, parsed->archive);
  }
  if (name == "options") return RunListOptions(context, parsed->options);
  if (name == "check") return RunCheck(context, parsed->check);
  if (name == "selftest") return RunSelftest(context, parsed->selftest);
  if (name == "run") return RunRun(context, parsed->run);
  if (name == "tune") return RunTune(context, parsed->tune);
  return kExitInternal;
}

// The user's own files where there are any, else the machine's.
std::string TlsDirectory(const Parsed& parsed, const Environment& environment) {
  if (parsed.tls_dir) return *parsed.tls_dir;
  if (!environment.default_tls_dir.empty()) return environment.default_tls_dir;
  std::string own = environment.home + "/.config/profd/tls";
  if (!environment.home.empty() && access(own.c_str(), F_OK) == 0) return own;
  return "/etc/profd/tls";
}

Result<Endpoint> EndpointOf(const Parsed& parsed, const Environment& environment) {
  Endpoint endpoint;
  endpoint.socket =
      environment.default_socket.empty() ? kDefaultSocket : environment.default_socket;
  if (parsed.socket) endpoint.socket = *parsed.socket;
  // As gRPC's other clients write it.
  if (endpoint.socket.starts_with("unix:")) endpoint.socket.erase(0, sizeof "unix:" - 1);
  endpoint.tls = TlsFilesOf(TlsDirectory(parsed, environment));
  if (parsed.tls_ca) endpoint.tls.ca = *parsed.tls_ca;
  if (parsed.tls_cert) endpoint.tls.certificate = *parsed.tls_cert;
  if (parsed.tls_key) endpoint.tls.key = *parsed.tls_key;
  endpoint.tls.server_name = parsed.tls_server_name.value_or("");
  // A socket that was named wins over an address of the environment.
  std::string address = parsed.address.value_or(parsed.socket ? "" : environment.default_address);
  if (address.empty() && !parsed.address) return endpoint;
  Result<std::string> full = ParseAddress(address);
  if (!full.ok()) {
    return full.status().Annotate(parsed.address ? "--address" : "PROFD_ADDRESS");
  }
  endpoint.address = *full;
  return endpoint;
}

bool HasNodes(const Parsed& parsed) { return parsed.fleet.source.any(); }

int RunOnNodes(const std::string& name, const TlsFiles& tls, const Environment& environment, Parsed* parsed) {
  parsed->name = name;
  parsed->one_node_named = parsed->socket || parsed->address;
  parsed->tls = tls;
  return RunFleet(*parsed, environment);
}

void TakeEnvironment(const Environment& environment, Parsed* parsed) {
  parsed->run.search_path = environment.search_path;
  for (OptionSource* source :
       {&parsed->start.options, &parsed->run.start.options, &parsed->check.options}) {
    source->environment_json = environment.profiling_options;
    source->ascend_work_path = environment.ascend_work_path;
    source->working_directory = environment.working_directory;
  }
  parsed->tune.surroundings = {environment.home, environment.search_path, environment.ascend_work_path,
                               environment.working_directory, environment.variable};
}

int PrintCompletion(const std::string& shell, const Io& io) {
  if (shell != "bash" && shell != "zsh" && shell != "fish") {
    io.err << "profctl: there is a completion for bash, zsh and fish, not for \"" << Printable(shell)
           << "\"" << std::endl;
    return kExitUsage;
  }
  io.out << CompletionScript(shell) << std::flush;
  return kExitOk;
}

// `words`: the command line that is being typed.
int PrintCompletions(CLI::App* app, const Parsed& parsed, const std::vector<std::string>& words,
                     const Environment& environment) {
  constexpr int64_t kTimeoutMs = 1000;
  auto connect = [&](std::vector<std::string> flags) -> std::unique_ptr<ProfdApi> {
    std::ostringstream ignored;
    flags.emplace_back("status");
    if (Parse(app, std::move(flags), Io{ignored, ignored}) >= 0) return nullptr;
    Result<Endpoint> endpoint = EndpointOf(parsed, environment);
    return endpoint.ok() ? environment.make_api(*endpoint, kTimeoutMs) : nullptr;
  };
  environment.io.out << Completions(*app, words, connect) << std::flush;
  return kExitOk;
}

// Of a daemon on this machine only: dumps of another node are not on this disk.
int Serve(const Parsed& parsed, const Environment& environment) {
  constexpr int kTimeoutMs = 1000;
  ServeCommand command = parsed.serve;
  const Result<Endpoint> endpoint = EndpointOf(parsed, environment);
  std::unique_ptr<ProfdApi> daemon;
  if (endpoint.ok() && !endpoint->remote()) daemon = environment.make_api(*endpoint, kTimeoutMs);
  command.no_daemon = command.no_daemon || daemon == nullptr;
  return RunServe(environment.io, environment.clock, command, std::move(daemon), endpoint.ok() ? *endpoint : Endpoint(), parsed.json);
}

bool IsAboutStore(const Parsed& parsed) { return !parsed.store_runs.from.empty() || parsed.store_runs.older_than || !parsed.store_runs.cluster.empty(); }

// list and rm of a database's runs.
int RunOnStore(const std::string& name, const Parsed& parsed, const TlsFiles& tls, const Environment& environment) {
  const auto refuse = [&](const char* why) { return FailWith(environment.io, InvalidArgument(why), kExitUsage, parsed.json); };
  StoreRunsCommand command = parsed.store_runs;
  if (command.from.empty()) return refuse("--older-than and --cluster are for --from with the address of a database");
  if (HasNodes(parsed)) return refuse("--from reads a database, not nodes: leave out --nodes");
  if (parsed.list.active || parsed.list.dumps || !parsed.list.job.empty()) return refuse("--active, --dumps and --job are of a node, not of --from");
  command.runs = parsed.rm_ids;
  command.tls = tls;
  return name == "list" ? RunListRuns(environment.io, environment.clock, command, parsed.json)
                        : RunRemoveRuns(environment.io, environment.clock, command, parsed.json);
}

// Commands that need no daemon; nothing = another one.
std::optional<int> RunLocally(const std::string& name, const Parsed& parsed,
                              const Environment& environment) {
  const Io& io = environment.io;
  // Those of many nodes refuse what works on one only.
  if (HasNodes(parsed) && name != "list" && name != "rm" && name != "show") return std::nullopt;
  const TlsFiles tls{parsed.tls_ca.value_or(""), parsed.tls_cert.value_or(""), parsed.tls_key.value_or(""), ""};
  const auto with_tls = [&tls](auto command) {
    command.store.tls = tls;
    return command;
  };
  if (name == "tls") return RunTlsInit(io, parsed.tls_init, parsed.json);
  if (name == "verify") return RunVerify(io, parsed.verify, parsed.json);
  if (name == "export" && !parsed.fleet.fetch_job && !parsed.fleet.no_wait) {
    ExportCommand command = parsed.export_;
    command.tls = tls;
    return RunExport(io, environment.clock, environment.working_directory, command, parsed.json);
  }
  if ((name == "list" || name == "rm") && IsAboutStore(parsed)) return RunOnStore(name, parsed, tls, environment);
  if (name == "analyze") return RunAnalyze(io, with_tls(parsed.analyze), parsed.json);
  if (name == "advise" && !parsed.live_advise.live) return RunAdvise(io, environment.clock, with_tls(parsed.advise), parsed.json);
  if (name == "report") return RunReport(io, environment.clock, with_tls(parsed.report), parsed.json);
  if (name == "serve") return Serve(parsed, environment);
  if (name == "tune" && parsed.tune.action == TuneCommand::Action::kShow) return RunTuneShow(io, parsed.tune, parsed.json);
  if (name == "tune" && parsed.tune.action == TuneCommand::Action::kVerify) return RunTuneVerify(io, parsed.tune, parsed.json);
  if (name == "show" && IsDumpArgument(parsed.show_id)) {
    return RunShowDump(io, environment.clock, parsed.show_id, parsed.show_dump, parsed.json);
  }
  if (name == "completion") return PrintCompletion(parsed.completion_shell, io);
  return std::nullopt;
}

// The command of `run` or `tune`, with or without "--" before it. False: no other command has one.
bool TakeCommand(const std::string& name, std::span<const std::string> rest, Parsed* parsed) {
  if (rest.empty()) return true;
  if (name != "run" && name != "tune") return false;
  if (rest.front() == "--") rest = rest.subspan(1);
  (name == "run" ? parsed->run.command : parsed->tune.command).assign(rest.begin(), rest.end());
  return true;
}

}  // namespace

int RunProfctl(const std::vector<std::string>& arguments, const Environment& environment) {
  const Io& io = environment.io;
  Parsed parsed;
  CLI::App app;
  BuildApp(&app, &parsed);
  if (arguments.empty()) {
    io.err << app.help() << std::flush;
    return kExitUsage;
  }
  if (arguments.front() == "__complete") {
    return PrintCompletions(&app, parsed, {std::next(arguments.begin()), arguments.end()}, environment);
  }
  auto rest = CommandOfRun(app, arguments);
  std::vector<std::string> ours(arguments.begin(), rest);
  int code = Parse(&app, std::move(ours), io);
  if (code >= 0) return code;
  std::string name = app.get_subcommands().front()->get_name();
  if (!TakeCommand(name, {rest, arguments.end()}, &parsed)) {
    io.err << "profctl: \"--\" belongs to \"profctl run\" and \"profctl tune\" only" << std::endl;
    return kExitUsage;
  }
  TakeEnvironment(environment, &parsed);
  if (std::optional<int> local = RunLocally(name, parsed, environment)) return *local;

  Result<Endpoint> endpoint = EndpointOf(parsed, environment);
  if (!endpoint.ok()) {
    io.err << "profctl: " << PrintableLines(endpoint.status().message()) << std::endl;
    return kExitUsage;
  }
  if (HasNodes(parsed)) return RunOnNodes(name, endpoint->tls, environment, &parsed);
  if (std::string option = FleetOptionWithoutNodes(parsed.fleet); !option.empty()) {
    io.err << "profctl: " << option << " belongs to --nodes, --nodes-file, --slurm or --k8s"
           << std::endl;
    return kExitUsage;
  }
  std::optional<int64_t> timeout_ms;
  if (parsed.timeout) {
    auto ms = ParseDurationMs(*parsed.timeout);
    if (!ms.ok()) {
      io.err << "profctl: --timeout " << Printable(ms.status().message()) << std::endl;
      return kExitUsage;
    }
    timeout_ms = static_cast<int64_t>(*ms);
  }
  // Before gRPC has threads, which a fork would lose; the child continues. What is wrong with the line is said before.
  if (name == "fetch" && parsed.fetch.background && !parsed.fetch.id.empty()) {
    if (std::optional<int> parent = GoToBackground(io)) return *parent;
  }
  auto api = environment.make_api(*endpoint, timeout_ms);
  Context context{*api, environment.io, environment.clock, *endpoint, parsed.json,
                  [&](std::optional<int64_t> ms) {
                    return environment.make_api(*endpoint, ms ? ms : timeout_ms);
                  },
                  timeout_ms};
  code = RunCommand(context, name, &parsed);
  io.out.flush();
  io.err.flush();
  return code;
}

}  // namespace profd::client
