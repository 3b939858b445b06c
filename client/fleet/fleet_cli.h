// The command line's part of the fleet: --nodes and its kin.
#pragma once

#include <optional>
#include <string>

#include "client/cli.h"
#include "client/commands/advise_live.h"
#include "client/commands/dump.h"
#include "client/commands/export_parse.h"
#include "client/commands/fetch.h"
#include "client/commands/node.h"
#include "client/commands/options.h"
#include "client/commands/sessions.h"
#include "client/commands/stacks.h"
#include "client/commands/start.h"
#include "client/commands/top.h"
#include "client/fleet/node_source.h"

namespace profd::client {

// As typed.
struct FleetOptions {
  NodeSource source;
  std::optional<std::string> node_timeout;
  // Of start.
  bool all_or_nothing = false;
  bool keep = false;
  // Of fetch and export.
  std::optional<std::string> fetch_job;
  // Of export.
  bool no_wait = false;
};

// What profctl was called with, of the commands for many nodes; their own options are those of one node.
struct FleetCommand {
  // "start"
  std::string name;
  FleetOptions fleet;
  StartOptions start;
  StopOptions stop;
  ListOptions list;
  FetchOptions fetch;
  DumpOptions dump;
  ExportCommand export_;
  JobsOptions jobs;
  DevicesOptions devices;
  TopOptions top;
  CheckOptions check;
  LiveAdviseOptions live_advise;
  StacksOptions stacks;
  std::string show_id;
  // --socket or --address was given beside the nodes.
  bool one_node_named = false;
  bool json = false;
  std::optional<std::string> timeout;
  // The same for all nodes.
  TlsFiles tls;
};

// Options that mean nothing without nodes; empty when there is none.
std::string FleetOptionWithoutNodes(const FleetOptions& options);

int RunFleet(const FleetCommand& command, const Environment& environment);

}  // namespace profd::client
