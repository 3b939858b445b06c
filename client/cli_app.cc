#include "client/cli_app.h"

#include "client/connection.h"

#ifndef PROFD_VERSION
#error "the build defines PROFD_VERSION"
#endif

namespace profd::client {

CLI::App* AddCommand(CLI::App* app, const char* name, const char* description, const std::string& examples) {
  constexpr const char* kGlobalFooter =
      "\nGlobal options: --socket PATH or --address HOST:PORT, --json, --timeout DURATION (profctl --help).";
  CLI::App* command = app->add_subcommand(name, description);
  command->fallthrough();
  command->footer("Examples:\n" + examples + kGlobalFooter);
  return command;
}

namespace {

void AddChannelsCommand(CLI::App* app, ChannelsOptions* o) {
  CLI::App* channels = AddCommand(app, "channels", "List driver channels, or release them to other tools for a time",
                                  "  $ profctl channels\n"
                                  "  $ profctl channels release --devices 0-3 --for 10m && msprof ...\n"
                                  "  $ profctl channels acquire --devices 0-3\n");
  channels->require_subcommand(0, 1);
  auto add = [&](const char* name, const char* description) {
    CLI::App* action = channels->add_subcommand(name, description);
    action->fallthrough();
    AddValue(action, "--devices", o->devices, "Needed: logical ids, for example 0,1,4-7", "LIST");
    AddValue(action, "CHANNEL", o->channels, "Numbers or names; default: all that profd uses", " ");
    action->parse_complete_callback([o, name] { o->action = name; });
    return action;
  };
  CLI::App* release = add("release", "Stop channels, so that the vendor's tools can have them; sessions get a gap");
  AddValue(release, "--for", o->length, "Until profd takes them back (10m; 1h at most, 24h for administrators)", "DURATION");
  add("acquire", "Take released channels back before their time is over");
}

void AddNodeCommands(CLI::App* app, Parsed* p) {
  AddCommand(app, "status", "Show daemon, driver, devices and limits of this node",
             "  $ profctl status\n  $ profctl status --json | jq .driver\n");
  CLI::App* devices = AddCommand(app, "devices", "List the devices of this node and their state",
                                 "  $ profctl devices\n  $ profctl devices --channels\n");
  devices->add_flag("--channels", p->devices.channels, "One row per driver channel");
  AddChannelsCommand(app, &p->channels);
  CLI::App* health = AddCommand(
      app, "health", "Which devices are fit for work, and why the others are not",
      "  $ profctl health\n  $ profctl health --devices 0-3 || scontrol update node=... state=drain\n"
      "  $ profctl health --json | jq -r .verdict\n"
      "The exit code is 0 when all are ok, 7 when one is degraded (throttled, a minor alarm), 8 when\n"
      "one is faulty or down, 9 when it is not known.\n");
  AddValue(health, "--devices", p->health.devices, "Only these, for example 0,1,4-7", "LIST");
  CLI::App* faults = AddCommand(app, "faults", "Faults the devices report now: code, severity, since when",
                                "  $ profctl faults\n  $ profctl faults --json | jq -r '.faults[].code'\n"
                                "The exit code is 9 where there is no usable device: the faults are not known.\n");
  AddValue(faults, "--devices", p->health.devices, "Only these, for example 0,1,4-7", "LIST");
  CLI::App* topology = AddCommand(
      app, "topology", "How the devices are connected: to each other, to NUMA nodes and CPUs",
      "  $ profctl topology\n  $ profctl topology --links\n"
      "  $ profctl topology --json | jq '.devices[] | {id, numa_node, cpus}'\n");
  topology->add_flag("--links", p->topology.links, "Also each link: state, speed, lanes, error counters");
  CLI::App* selftest = AddCommand(
      app, "selftest", "What only a real node can answer about driver and libraries, and a report to send back",
      "  $ profctl selftest\n  $ profctl selftest -o report.json\n"
      "  $ profctl selftest --active --job j42 -o report.json\n"
      "  $ profctl selftest --list\n"
      "Reads only, unless --active is given. Run it as the user who trains: as root the vendor's libraries\n"
      "are not asked. The exit code is 0 whatever the answers are.\n");
  selftest->add_flag("--active", p->selftest.active, "Also start sessions of 5 s, and open channels in processes of their own; reports each before it begins");
  AddValue(selftest, "--job", p->selftest.job, "With --active: also sessions inside the processes of this job", "JOB");
  AddValue(selftest, "--only", p->selftest.only, "Only these questions, for example hal_is_real,mspti_new", "LIST");
  AddValue(selftest, "-o,--out", p->selftest.out, "Write the answers with their evidence to this new file", "FILE");
  selftest->add_flag("--list", p->selftest.list, "Print the questions and ask none");
  AddCommand(app, "collectors", "List collectors, and why unavailable ones are unavailable",
             "  $ profctl collectors\n"
             "  $ profctl collectors --json | jq '.collectors[] | select(.available|not)'\n");
}

void AddJobCommands(CLI::App* app, Parsed* p) {
  CLI::App* jobs = AddCommand(
      app, "jobs", "List training jobs of this node: ranks, processes, devices, steps",
      "  $ profctl jobs\n  $ profctl jobs --job j42\n");
  AddValue(jobs, "--job", p->jobs.job, "Only this job, one line per process", "JOB");
  jobs->add_flag("--attached", p->jobs.attached, "Only processes that have attached");

  CLI::App* stacks = AddCommand(
      app, "stacks", "Where the threads of training processes stand now, for jobs that hang",
      "  $ profctl stacks --job j42\n  $ profctl stacks --job j42 --rank 3 --all\n"
      "  $ profctl --nodes 'n[01-64]' stacks --job j42\n"
      "Frames are of Python, innermost first, of processes that use the package profd; states, system calls\n"
      "and functions are the kernel's. Ranks that stand at the same place are one entry, the fewest first.\n");
  AddValue(stacks, "--job", p->stacks.job, "Only of this job; default: of all of yours", "JOB");
  AddValue(stacks, "--rank", p->stacks.ranks, "Only these ranks, for example 0,8-15", "LIST");
  AddValue(stacks, "--pid", p->stacks.pids, "Only these processes", "PID");
  stacks->add_flag("--all", p->stacks.all, "Every thread; without: the main one, those that train, those blocked in the kernel");
}

// Of commands for the runs of a database, in place of the node's sessions.
void AddStoreRunsOptions(CLI::App* command, StoreRunsCommand* o) {
  AddValue(command, "--from", o->from, "Runs of a database instead: clickhouse://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE", "URL");
  AddValue(command, "--older-than", o->older_than,
           "With --from: only runs that were last loaded more than this many days ago", "DAYS");
}

void AddSessionCommands(CLI::App* app, Parsed* p) {
  CLI::App* start = AddCommand(
      app, "start", "Start a session; prints its id and the outcome of each collector",
      "  $ profctl start --job j42 --sys-interconnection-freq 50 --duration 30s\n"
      "  $ profctl start --job j42 --rank 0,8-15 --start-step 11 --steps 2\n"
      "  $ profctl start --all --collector hbm=100 --collector host_cpu --in 5s --detach\n"
      "  $ profctl start --all --options-json '{\"l2\":\"on\"}' --acl aiCoreMetricsType=2\n"
      "  $ id=$(profctl start --job j42 --dvpp-freq 10 --json | jq -r .session_id)\n");
  AddSessionFlags(start, &p->start);
  AddStartFlags(start, &p->start);

  start->add_flag("--all-or-nothing", p->fleet.all_or_nothing,
                  "With --nodes: if one node fails to start, stop the others");
  start->add_flag("--keep", p->fleet.keep, "With --nodes: Ctrl-C leaves started sessions running");

  CLI::App* stop = AddCommand(app, "stop", "Stop sessions and complete their dumps",
                              "  $ profctl stop 71bd0e29b475\n  $ profctl stop --job j42\n"
                              "  $ profctl stop --all-mine\n");
  AddValue(stop, "ID", p->stop.ids, "Session ids; with --nodes also fleet ids", " ");
  AddValue(stop, "--job", p->stop.job, "All of your sessions of this job that have not ended", "JOB");
  stop->add_flag("--all-mine", p->stop.all_mine, "All of your sessions that have not ended");

  CLI::App* list = AddCommand(app, "list", "List your sessions; administrators see all users' sessions",
                              "  $ profctl list\n  $ profctl list --active --job j42\n"
                              "  $ profctl list --from clickhouse://db.example.com/profiles\n");
  AddValue(list, "--job", p->list.job, "Only of this job", "JOB");
  list->add_flag("--active", p->list.active, "Only sessions that have not ended");
  list->add_flag("--dumps", p->list.dumps, "List the dumps on the node's disk instead, by name");
  AddStoreRunsOptions(list, &p->store_runs);

  CLI::App* show = AddCommand(app, "show", "Show one session in full, or the contents of a dump directory",
                              "  $ profctl show 71bd0e29b475\n"
                              "  $ profctl show 71bd0e29b475 --json | jq -r .dump_path\n"
                              "  $ profctl show ./PROF_000001_20260101000000000_ABCDEFGHIJKLMNOP\n");
  AddValue(show, "ID", p->show_id, "Session id, or a dump's directory", " ")->required();
  show->add_flag("--ascii", p->show_dump.ascii, "For a dump: no Unicode blocks");
  show->add_flag("--all", p->show_dump.all, "For a dump: every series");

  CLI::App* watch = AddCommand(app, "watch", "Follow a session until it ends, or Ctrl-C",
                               "  $ profctl watch 71bd0e29b475\n"
                               "  $ profctl watch 71bd0e29b475 --interval 200ms --json\n");
  AddValue(watch, "ID", p->watch.id, "Session id", " ")->required();
  AddValue(watch, "--interval", p->watch.interval, "Longest time between updates", "DURATION");
}

void AddRmCommand(CLI::App* app, Parsed* p) {
  CLI::App* rm = AddCommand(app, "rm", "Remove finished sessions and their dumps from the node, or runs from a database",
                            "  $ profctl rm 71bd0e29b475\n"
                            "  $ profctl rm --from clickhouse://db.example.com/profiles llama-7b-0412\n"
                            "  $ profctl rm --from clickhouse://db.example.com/profiles --older-than 90\n");
  AddValue(rm, "ID", p->rm_ids, "Session ids, or names of dumps; with --from names of runs", " ");
  AddStoreRunsOptions(rm, &p->store_runs);
  AddValue(rm, "--cluster", p->store_runs.cluster, "With --from: the cluster its tables are on, if they are on one", "NAME");
}

void AddOptionCommands(CLI::App* app, Parsed* p) {
  CLI::App* options = AddCommand(
      app, "options", "List the profiling options and which of them this node supports",
      "  $ profctl options\n  $ profctl options --offline --chip 910\n"
      "  $ profctl options --json | jq -r '.options[] | select(.supported|not) | .reason'\n");
  AddOptionsFlags(options, &p->options);
  CLI::App* check =
      AddCommand(app, "check", "Validate options without starting a session",
                 "  $ profctl check --options-json options.json\n"
                 "  $ profctl check --options-env --offline --chip 910B\n"
                 "  $ profctl check --sys-io-sampling-freq 50 --acl ACL_PROF_L2CACHE=on\n"
                 "Exit code: 0 if valid, 3 if not.\n");
  AddCheckFlags(check, &p->check);
}

void AddKeepCommands(CLI::App* app, Parsed* p) {
  AddRmCommand(app, p);
  CLI::App* pin = AddCommand(app, "pin", "Protect dumps from removal by retention",
                             "  $ profctl pin 71bd0e29b475\n"
                             "  $ profctl pin PROF_000001_20260101000000000_ABCDEFGHIJKLMNOP\n");
  AddValue(pin, "ID", p->pin_ids, "Session ids, or names of dumps", " ")->required();
  CLI::App* unpin = AddCommand(app, "unpin", "Unpin dumps: retention may remove them again",
                               "  $ profctl unpin 71bd0e29b475\n");
  AddValue(unpin, "ID", p->pin_ids, "Session ids, or names of dumps", " ")->required();

  CLI::App* archive = AddCommand(app, "archive", "Load the dumps that wait in profd's queue into its database: what profd-archive.service runs",
                                 "  $ profctl archive\n"
                                 "  $ sudo -u profd-archive profctl archive --once\n"
                                 "User and password of the database: PROFCTL_CLICKHOUSE_USER, PROFCTL_CLICKHOUSE_PASSWORD.\n");
  archive->add_flag("--once", p->archive.once, "Load what waits now, then end");
  AddValue(archive, "--every", p->archive.every, "How often profd is queried (10s)", "DURATION");
  AddValue(archive, "--work-dir", p->archive.work_dir, "Where a dump lies while it is loaded (/var/lib/profd-archive)", "DIR");
}

void AddTopCommand(CLI::App* app, TopOptions* o) {
  CLI::App* top = AddCommand(
      app, "top", "Live view of devices, jobs and sessions in the terminal (press h for keys)",
      "  $ profctl top\n  $ profctl top --interval 200ms --sort power --job j42\n"
      "  $ profctl top --once --sort hbm\n"
      "  $ profctl top --once --json | jq '.devices[] | {id, utilization_ratio}'\n"
      "With --json: one object per line and refresh, until Ctrl-C.\n");
  AddValue(top, "--interval", o->interval, "Refresh interval: 100ms..10s (1s)", "DURATION");
  AddValue(top, "--sort", o->sort, "id, util, hbm, power, temp, freq, hccs, roce, pcie, bw, hbm-temp; with :asc or :desc", "KEY");
  AddValue(top, "--devices", o->devices, "Only these, for example 0,1,4-7", "LIST");
  AddValue(top, "--job", o->job, "Only the devices, processes and sessions of this job", "JOB");
  top->add_flag("--once", o->once, "One snapshot as plain text (with --json: one object)");
  top->add_flag("--ascii", o->ascii, "No Unicode blocks");
  top->add_flag("--no-color", o->no_color, "No colours; same as NO_COLOR in the environment");
}

void AddDataCommands(CLI::App* app, Parsed* p) {
  CLI::App* stream =
      AddCommand(app, "stream", "Print samples as they are taken, one per line, until Ctrl-C",
                 "  $ profctl stream --collectors hccs,hbm --devices 0\n"
                 "  $ profctl stream --format csv --count 1000 > samples.csv\n"
                 "  $ profctl stream --activity --job j42\n");
  stream->add_flag("--activity", p->stream.activity,
                   "Instead: each second of what training processes do (kernels, communication)");
  AddValue(stream, "--job", p->stream.job, "With --activity: only this job", "JOB");
  AddValue(stream, "--collectors", p->stream.collectors, "Only these, for example hccs,hbm", "LIST");
  AddValue(stream, "--devices", p->stream.devices, "Only these, for example 0,1,4-7", "LIST");
  stream->add_flag("--devices-only", p->stream.devices_only, "No host samples");
  AddValue(stream, "--interval", p->stream.interval, "Batch interval", "DURATION");
  AddValue(stream, "--count", p->stream.count, "Stop after this many samples or seconds", "N");
  AddValue(stream, "--format", p->stream.format, "text, json or csv", "FORMAT");
  stream->add_flag("--raw-time", p->stream.raw_time,
                   "Times of CLOCK_MONOTONIC_RAW, as in dumps (JSON has both)");

  CLI::App* dump =
      AddCommand(app, "dump", "Save the last seconds of the flight recorder as a dump",
                 "  $ profctl dump --last 60s\n"
                 "  $ profctl dump --last 30s --job j42 --reason \"slow step\" --out ~/profiles\n");
  AddValue(dump, "--last", p->dump.last, "How far back; default: everything the recorder holds", "DURATION");
  AddValue(dump, "--job", p->dump.job, "Only the devices of this job", "JOB");
  AddValue(dump, "--devices", p->dump.devices, "Only these, for example 0,1,4-7", "LIST");
  AddValue(dump, "--reason", p->dump.reason, "Stored in the dump", "TEXT");
  AddValue(dump, "--label", p->dump.label, "Shown in lists", "TEXT");
  AddValue(dump, "--out", p->dump.out, "Copy it to this directory, owned by you", "DIR");

  CLI::App* fetch = AddCommand(app, "fetch", "Copy the dump of a finished session, owned by you",
                               "  $ profctl fetch 71bd0e29b475\n"
                               "  $ profctl fetch 71bd0e29b475 --out ~/profiles\n"
                               "  $ profctl --nodes 'n[01-64]' fetch --job j42 --out j42-profiles\n");
  AddValue(fetch, "ID", p->fetch.id, "Session id, or name of a dump; with --nodes also a fleet id", " ");
  AddValue(fetch, "--job", p->fleet.fetch_job, "With --nodes: every dump of this job", "JOB");
  AddValue(fetch, "--out", p->fetch.out, "Target directory; default: the session's output, or the current directory", "DIR")
      ->each([p](const std::string&) { p->fetch.out_given = true; });
  fetch->add_flag("--wait", p->fetch.wait, "Wait for the end of a session that still runs");
  fetch->add_flag("--background", p->fetch.background, "Return at once; wait for the session's end and copy in the background");
  fetch->add_flag("--keep", p->fetch.keep, "Keep partial results when the fetch fails");
}

void AddRunCommand(CLI::App* app, Parsed* p) {
  CLI::App* run = AddCommand(
      app, "run", "Run a command and profile it for exactly its lifetime",
      "  $ profctl run --job j42 --sys-interconnection-freq 50 python train.py\n"
      "  $ profctl run --anyway --host-sys cpu,mem -- ./train --epochs 1\n"
      "The command begins with the first word that is not a flag, or after --.\n"
      "The exit code is the command's (128+signal when killed, 127 when it is not found, 126 when it\n"
      "may not be executed).\n");
  AddSessionFlags(run, &p->run.start);
  AddValue(run, "--export", p->run.export_formats,
           "Afterwards, export the dump: csv, trace, perfetto, sqlite, jsonl, samples, openmetrics, folded", "LIST");
  run->add_flag("--anyway", p->run.anyway, "Run the command even if it cannot be profiled");

  CLI::App* completion =
      AddCommand(app, "completion", "Print a shell completion script",
                 "  $ source <(profctl completion bash)\n"
                 "  $ profctl completion zsh > ~/.zfunc/_profctl\n"
                 "  $ profctl completion fish > ~/.config/fish/completions/profctl.fish\n");
  AddValue(completion, "SHELL", p->completion_shell, "bash, zsh or fish", " ")->required();
}

// Commands on directories; they need no profd.
void AddDumpDirectoryCommands(CLI::App* app, Parsed* p) {
  CLI::App* verify = AddCommand(
      app, "verify", "Check the integrity of dumps: checksums, framing, clocks, accounting of lost records",
      "  $ profctl verify PROF_000001_20260101000000000_ABCDEFGHIJKLMNOP\n"
      "  $ profctl verify --quiet run1/* && echo all valid\n"
      "  $ profctl verify --json DUMP | jq '.dumps[].problems'\n"
      "Reads the directories; needs no daemon. Exit code: 0 if every dump is valid, 5 if not,\n"
      "4 when a directory is not a dump.\n");
  AddValue(verify, "DUMP", p->verify.dumps, "Directories of dumps", " ")->required();
  verify->add_flag("--quiet", p->verify.quiet, "Only problems");
  verify->add_flag("--verbose", p->verify.verbose, "One row per file");
}

void AddExportCommand(CLI::App* app, ExportCommand* e, FleetOptions* fleet) {
  CLI::App* command = AddCommand(
      app, "export", "Convert dumps to CSV, timelines, a database or rows; needs no daemon except with --nodes",
      "  $ profctl export PROF_000001_20260101000000000_ABCDEFGHIJKLMNOP\n"
      "  $ profctl export run1/* --format trace,sqlite --out run1.export\n"
      "  $ profctl export PROF_* --format perfetto --gzip --devices 0-3,host --from +10s --to +20s\n"
      "  $ profctl export PROF_* --format jsonl --channels hccs,hbm --from 2026-01-01T00:00:00Z\n"
      "  $ profctl export run1 --format trace --step 20-21 --rank 0 --top 30\n"
      "  $ profctl export run1 --to clickhouse://loader@db.example.com:8123/profiles --run run1\n"
      "  $ profctl --nodes 'n[01-64]' export --job j42 --to clickhouse://db.example.com/profiles --run llama\n");
  AddValue(command, "DUMP", e->dumps,
           "Directories of dumps, or directories with dumps; with --nodes: ids of sessions, fleets or dumps", " ");
  AddValue(command, "--format", e->format, "csv, trace, perfetto, sqlite, jsonl, samples, openmetrics, folded (csv)", "LIST");
  AddValue(command, "--out", e->out, "Output directory; default: ./<first dump>.export", "DIR");
  AddValue(command, "--devices", e->devices, "Only these, for example 0,1,4-7,host", "LIST");
  AddValue(command, "--channels", e->channels, "Only these, for example hccs,hbm,events", "LIST");
  AddValue(command, "--from", e->from, "Start of the range: a date, seconds since 1970, +10s, or -5s from the end", "TIME");
  AddValue(command, "--to", e->to,
           "End of the range; or a database to load runs of any kind into: clickhouse://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE, clickhouses:// over TLS", "TIME|URL");
  AddValue(command, "--run", e->run_name, "With a database: the run's name there (that of the first directory)", "NAME");
  AddValue(command, "--cluster", e->cluster,
           "With a database: replicated and distributed tables on this cluster of the server's configuration", "NAME");
  AddValue(command, "--job", fleet->fetch_job,
           "With --nodes and a database: the finished sessions of this job; each node loads its own into the database of its [archive]", "JOB");
  command->add_flag("--no-wait", fleet->no_wait, "With --nodes: do not wait until the database has confirmed what was queued (--timeout, 10m)");
  command->add_flag("--resume", e->resume, "With a database: leave out what is loaded and has not changed since");
  AddValue(command, "--step", e->step, "Only from the begin of training step N to the end of M", "N[-M]");
  AddValue(command, "--rank", e->rank, "Only these ranks, for example 0,4-7", "LIST");
  AddValue(command, "--top", e->top, "Of operators, collectives and APIs only the N longest", "N");
  AddValue(command, "--threads", e->threads, "Number of threads; default: one per core", "N");
  AddValue(command, "--clock", e->clock,
           "all: times corrected with every clock pair of the session; start: with the first one only, as the vendor's (all)", "WHICH");
  AddValue(command, "--names", e->names, "legacy: the files of earlier releases of the vendor's analyser as well", "WHICH");
  AddValue(command, "--compat", e->compat,
           "msprof: with the known defects of the vendor's analyser that are corrected otherwise", "WHICH");
  command->add_flag("--allow-damaged", e->allow_damaged,
                    "Exit code 0 also when a dump is damaged; else 5");
  command->add_flag("--gzip", e->gzip, "Compress the perfetto file");
  command->add_flag("--force", e->force, "Write into a directory that is not empty");
  command->add_flag("--open", e->open,
                    "Serve the perfetto trace on 127.0.0.1:9001 until ui.perfetto.dev has taken it");
}

void AddNodesOptions(CLI::App* app, FleetOptions* fleet) {
  auto add = [app](const char* name, std::optional<std::string>* value, const char* text, const char* type) {
    AddValue(app, name, *value, text, type)->group("Many nodes");
  };
  add("--nodes", &fleet->source.nodes, "Run the command on all of these nodes: 'n[01-64],m[1-2]:9465'", "LIST");
  add("--nodes-file", &fleet->source.nodes_file, "The same list from a file, with # comments", "FILE");
  add("--slurm", &fleet->source.slurm, "The nodes of this Slurm job", "JOBID");
  add("--k8s", &fleet->source.k8s, "The nodes with running pods of this label selector", "SELECTOR");
  add("--k8s-namespace", &fleet->source.k8s_namespace, "Namespace of the pods", "NAME");
  add("--node-port", &fleet->source.port, "Port of nodes without one in the list (9465)", "PORT");
  add("--node-timeout", &fleet->node_timeout, "Timeout per node; for fetch: longest silence (30s)", "DURATION");
}

void AddTlsCommands(CLI::App* app, Parsed* p) {
  CLI::App* tls = app->add_subcommand("tls", "Certificates for reaching other machines");
  tls->fallthrough();
  tls->require_subcommand(1);
  // The arguments, --help too, are of profctl-tls-init.
  CLI::App* init = tls->add_subcommand("init", "Create a test CA and certificates for nodes and clients");
  init->set_help_flag();
  init->prefix_command();
  init->fallthrough(false);
  init->parse_complete_callback([init, p] { p->tls_init = init->remaining(); });
}

}  // namespace

void BuildApp(CLI::App* app, Parsed* p) {
  app->name("profctl");
  app->description("Profiles this node's NPUs through profd.");
  app->set_version_flag("--version", "profctl " PROFD_VERSION);
  app->require_subcommand(1);
  AddValue(app, "--socket", p->socket, std::string("Socket of profd; default: PROFD_SOCKET, then ") + kDefaultSocket, "PATH");
  AddValue(app, "--address", p->address,
           "profd on another machine, over mutual TLS; default: PROFD_ADDRESS", "HOST:PORT")->excludes("--socket");
  AddValue(app, "--tls-dir", p->tls_dir,
           "Directory with ca.crt, client.crt, client.key; default: PROFD_TLS_DIR, ~/.config/profd/tls, /etc/profd/tls", "DIR");
  AddValue(app, "--tls-ca", p->tls_ca, "CA certificates that sign nodes (PEM)", "FILE");
  AddValue(app, "--tls-cert", p->tls_cert, "Your certificate (PEM)", "FILE");
  AddValue(app, "--tls-key", p->tls_key, "Its key (PEM)", "FILE");
  AddValue(app, "--tls-server-name", p->tls_server_name, "Name in the node's certificate, if it differs from the address", "NAME");
  app->add_flag("--json", p->json, "Print JSON with stable field names");
  AddValue(app, "--timeout", p->timeout, "Timeout (for streams: longest silence)", "DURATION");
  app->footer(
      "Exit codes: 0 ok, 1 internal error, 2 usage, 3 refused, 4 not found, 5 partial,\n"
      "6 profd unreachable, 7 degraded or findings, 8 faulty or down, 9 health unknown.\n"
      "Examples: profctl COMMAND --help");
  AddNodesOptions(app, &p->fleet);
  AddNodeCommands(app, p);
  AddSessionCommands(app, p);
  AddJobCommands(app, p);
  AddOptionCommands(app, p);
  AddTopCommand(app, &p->top);
  AddDataCommands(app, p);
  AddRunCommand(app, p);
  AddKeepCommands(app, p);
  AddDumpDirectoryCommands(app, p);
  AddExportCommand(app, &p->export_, &p->fleet);
  AddRunsCommands(app, p);
  AddTlsCommands(app, p);
}

}  // namespace profd::client
