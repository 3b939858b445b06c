// The CLI11 application: every command, option and example. Included by cli.cc and completion.cc
// only, as CLI11 is slow to compile.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/api.h"
#include "client/commands/advise.h"
#include "client/commands/analyze.h"
#include "client/commands/archive.h"
#include "client/commands/node.h"
#include "client/commands/options.h"
#include "client/commands/report.h"
#include "client/commands/run.h"
#include "client/commands/selftest.h"
#include "client/commands/serve.h"
#include "client/commands/sessions.h"
#include "client/commands/show_dump.h"
#include "client/commands/start.h"
#include "client/commands/store_runs.h"
#include "client/commands/stream.h"
#include "client/commands/tune.h"
#include "client/commands/verify.h"
#include "client/fleet/fleet_cli.h"

namespace profd::client {

// Where the parsed values end up.
struct Parsed : FleetCommand {
  std::optional<std::string> socket;
  std::optional<std::string> address;
  std::optional<std::string> tls_dir;
  std::optional<std::string> tls_ca;
  std::optional<std::string> tls_cert;
  std::optional<std::string> tls_key;
  std::optional<std::string> tls_server_name;

  ChannelsOptions channels;
  HealthOptions health;
  TopologyOptions topology;
  ShowDumpOptions show_dump;
  AnalyzeCommand analyze;
  AdviseCommand advise;
  ReportCommand report;
  ServeCommand serve;
  WatchOptions watch;
  StreamOptions stream;
  std::vector<std::string> rm_ids;
  StoreRunsCommand store_runs;
  std::vector<std::string> pin_ids;
  ArchiveOptions archive;
  RunOptions run;
  ListOptionsOptions options;
  std::string completion_shell;
  std::vector<std::string> tls_init;
  VerifyOptions verify;
  SelftestOptions selftest;
  TuneCommand tune;
};

// A command with its description and examples.
CLI::App* AddCommand(CLI::App* app, const char* name, const char* description, const std::string& examples);
// An option or argument with a value; `type` is its word in the help.
template <class T>
CLI::Option* AddValue(CLI::App* command, const std::string& name, T& value, const std::string& text,
                      const std::string& type) {
  return command->add_option(name, value, text)->type_name(type);
}
// session_flags.cc: of `start` and `run`. `options` must outlive the command.
void AddSessionFlags(CLI::App* command, StartOptions* options);
// What only a session has that profctl does not wait for.
void AddStartFlags(CLI::App* command, StartOptions* options);
void AddCheckFlags(CLI::App* command, CheckOptions* options);
void AddOptionsFlags(CLI::App* command, ListOptionsOptions* options);
// cli_app_runs.cc: the commands that read runs.
void AddRunsCommands(CLI::App* app, Parsed* parsed);

// `parsed` must outlive the application.
void BuildApp(CLI::App* app, Parsed* parsed);

// The script that completes command lines of profctl; `shell` is "bash", "zsh" or "fish".
std::string CompletionScript(std::string_view shell);

// A connection to the daemon that `flags` name ("--socket=/x"); null when they are invalid.
using ConnectForCompletion = std::function<std::unique_ptr<ProfdApi>(const std::vector<std::string>& flags)>;
// What the last of `typed` can be completed to, one per line, with a description behind a tab.
std::string Completions(const CLI::App& app, const std::vector<std::string>& typed,
                        const ConnectForCompletion& connect);

}  // namespace profd::client
