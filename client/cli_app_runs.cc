// The commands that read runs: analysis, advice, the page, tuning.
#include "client/cli_app.h"

namespace profd::client {
namespace {

// Of commands that read runs, from a database in place of a path.
void AddStoreOptions(CLI::App* command, StoreOptions* options) {
  AddValue(command, "--from", options->from,
           "A run that profctl export --to has loaded: clickhouse://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE[/RUN]", "URL");
  AddValue(command, "--run", options->run, "The run of --from", "NAME");
  AddValue(command, "--ranks", options->ranks, "Of --from only these ranks, for example 0,4-7", "LIST");
}

void AddAnalyzeCommand(CLI::App* app, AnalyzeCommand* a) {
  CLI::App* command = AddCommand(
      app, "analyze", "Steps, operators, data pipeline, communication, memory and hardware of a run; needs no daemon",
      "  $ profctl analyze PROF_000001_20260101000000000_ABCDEFGHIJKLMNOP\n"
      "  $ profctl analyze run1 --only overall,steps,operator_types\n"
      "  $ profctl analyze logs/worker_ascend_pt --json\n"
      "  $ profctl analyze run2 --baseline run1\n"
      "  $ profctl analyze ranks --only cluster --cluster-out out\n"
      "  $ profctl analyze --from clickhouse://db.example.com/profiles/run1 --overview\n");
  AddValue(command, "RUN", a->runs,
           "Dumps, PROF directories, *_ascend_pt and *_ascend_ms directories, databases, MindSpore's raw logs, or folders of them", " ");
  AddValue(command, "--only", a->only, "Only these analyses, for example overall,steps", "LIST");
  AddValue(command, "--baseline", a->baseline, "Another run: also what takes longer or shorter than in it", "RUN");
  AddValue(command, "--cluster-out", a->cluster_out, "Also writes DIR/cluster_analysis_output, for tools that read it", "DIR");
  command->add_flag("--force", a->force, "Replace the files of --cluster-out where they are there");
  AddStoreOptions(command, &a->store);
  command->add_flag("--overview", a->overview, "Of --from: all ranks of the run in few figures, which the server adds up");
}

void AddAdviseCommand(CLI::App* app, AdviseCommand* a) {
  CLI::App* command = AddCommand(
      app, "advise", "What is slow in a run, or in a job now (--live), what it costs and what to do about it",
      "  $ profctl advise logs/worker_ascend_pt\n"
      "  $ profctl advise run2 --baseline run1 -o advice\n"
      "  $ profctl advise run1 --json --fail-on high && echo nothing of high priority\n"
      "  $ profctl advise run1 --format sarif > advice.sarif\n"
      "  $ profctl advise --list\n"
      "  $ profctl advise --live --job j42\n"
      "  $ profctl --nodes 'n[01-64]' advise --live --job j42\n"
      "Without --live no daemon is needed. Exit code: 7 if --fail-on finds something of that priority or a higher one.\n");
  AddValue(command, "RUN", a->runs, "As for profctl analyze; several ranks are a cluster", " ");
  AddValue(command, "--baseline", a->baseline, "Another run: also what is slower than in it", "RUN");
  AddStoreOptions(command, &a->store);
  AddValue(command, "--limits", a->limits, "A TOML file with limits of your own, [check] name = value; --list prints all", "FILE");
  AddValue(command, "-o,--out", a->out, "A directory for advice.html, advice.xlsx, advice.json and advice.sarif", "DIR");
  AddValue(command, "--fail-on", a->fail_on, "high, medium or low", "PRIORITY");
  AddValue(command, "--language", a->language, "Language of all text: en or zh (en)", "LANGUAGE");
  AddValue(command, "--format", a->format, "What is printed: text, json, or sarif for editors (text)", "FORMAT");
  command->add_flag("--force", a->force, "Replace the files where they are there");
  command->add_flag("--list", a->list, "Print the checks and their limits");
}

void AddLiveAdviseFlags(CLI::App* command, LiveAdviseOptions* o) {
  CLI::Option* live = command->add_flag("--live", o->live, "What is wrong with the jobs of this node now, by the daemon; with --nodes: of many");
  live->excludes("RUN");
  AddValue(command, "--job", o->job, "With --live: only this job", "JOB")->needs(live);
  command->add_flag("--watch", o->watch, "With --live: changes, until Ctrl-C")->needs(live);
  for (const char* of_runs : {"--baseline", "--from", "--run", "--ranks", "--limits", "--out", "--fail-on", "--language", "--format", "--force", "--list"}) live->excludes(of_runs);
}

void AddReportCommand(CLI::App* app, ReportCommand* r) {
  CLI::App* command = AddCommand(
      app, "report", "A run as one HTML file with graphs, tables and a timeline; needs no daemon",
      "  $ profctl report PROF_000001_20260101000000000_ABCDEFGHIJKLMNOP -o report.html\n"
      "  $ profctl report run2 --baseline run1 -o slower.html\n");
  AddValue(command, "RUN", r->runs, "As for profctl analyze", " ");
  AddStoreOptions(command, &r->store);
  AddValue(command, "-o,--out", r->out, "The file (report.html)", "FILE");
  AddValue(command, "--baseline", r->baseline, "Another run: also what takes longer or shorter than in it", "RUN");
  AddValue(command, "--slices", r->slices, "At most so many slices on the timelines, the longest ones (1000000)", "N");
  AddValue(command, "--language", r->language, "Of the advice: en or zh (en)", "LANGUAGE");
  AddValue(command, "--tuning", r->tuning, "Results of tuning, or folders with them (those in RUN)", "FILE");
  command->add_flag("--force", r->force, "Replace the file where it is there");
}

void AddServeCommand(CLI::App* app, ServeCommand* s) {
  CLI::App* command = AddCommand(
      app, "serve", "A page on this machine over all runs below folders and on the daemon",
      "  $ profctl serve\n"
      "  $ profctl serve /data/runs ~/profiles --listen 127.0.0.1:8080\n"
      "  $ curl -H \"Authorization: Bearer $TOKEN\" http://127.0.0.1:9466/api/runs\n"
      "Prints the address to open. It has a token in it: other users of the machine cannot read your runs.\n");
  AddValue(command, "DIR", s->folders, "Folders with runs, as for profctl analyze (.)", " ");
  AddValue(command, "--listen", s->listen, "Where (127.0.0.1:9466, or any free port)", "ADDRESS:PORT");
  AddValue(command, "--slices", s->slices, "At most so many slices on the timelines of a run, the longest ones (1000000)", "N");
  AddValue(command, "--language", s->language, "Of the advice: en or zh (en)", "LANGUAGE");
  command->add_flag("--no-token", s->no_token, "Answer every program of this machine");
  command->add_flag("--no-daemon", s->no_daemon, "Only folders, not the dumps of the daemon");
}

void AddTuneFlags(CLI::App* command, TuneCommand* t) {
  AddValue(command, "--mode", t->mode, "What is tuned (AOE_MODE, else operator)", "operator|subgraph");
  AddValue(command, "--devices", t->devices, "Devices to keep for tuning (ASCEND_DEVICE_ID, else 0)", "LIST");
  AddValue(command, "--job", t->job, "Name of the job, shown to others", "NAME");
  AddValue(command, "--model-memory", t->model_memory, "What the training needs of the host's memory, for example 12G", "SIZE");
  AddValue(command, "--parallel-num", t->parallel_num, "TUNING_PARALLEL_NUM of AOE's configuration", "N");
  AddValue(command, "--te-parallel", t->te_parallel, "TE_PARALLEL_COMPILER for the command", "N");
  AddValue(command, "--processes", t->processes, "Processes of the training script (1)", "N");
  AddValue(command, "--bank", t->bank, "TUNE_BANK_PATH for the command", "DIR");
  AddValue(command, "--repeat", t->repeat, "REPEAT_TUNE for the command", "true|false");
  AddValue(command, "--profile", t->profile, "A run of this training: shapes, cores and ranks are looked up in it", "RUN");
  command->add_flag("--force", t->force, "Tune also where a condition that is advice does not hold");
}

// The arguments behind -- are the command's.
void AddTuneCommand(CLI::App* app, TuneCommand* t) {
  CLI::App* tune = AddCommand(
      app, "tune", "Run a training under the vendor's tuning tool (AOE), or read what it wrote",
      "  $ profctl tune --mode operator --devices 0 --job bert -- python train.py\n"
      "  $ profctl tune check --model-memory 12G -- python train.py\n"
      "  $ profctl tune show aoe_result_opat_20240101120000123_pid4242.json\n"
      "  $ profctl tune verify --before run1 --after run2 aoe_result_opat_*.json\n"
      "The exit code is the command's (128+signal when killed, 127 when it is not found, 126 when it\n"
      "may not be executed), 3 when a condition does not hold.\n");
  AddTuneFlags(tune, t);
  AddValue(tune, "--interval", t->interval, "Time between lines of progress (10s)", "DURATION");
  const auto action = [tune, t](const char* name, const char* description, TuneCommand::Action value, const std::string& examples) {
    CLI::App* command = AddCommand(tune, name, description, examples);
    command->fallthrough();
    command->parse_complete_callback([t, value] { t->action = value; });
    return command;
  };
  AddTuneFlags(action("check", "Only check the conditions of tuning", TuneCommand::Action::kCheck,
                      "  $ profctl tune check --mode operator --devices 0 -- python train.py\n"
                      "Exit code: 0 if tuning would start, 3 if not.\n"), t);
  CLI::App* show = action("show", "Tables of tuning results; needs no daemon", TuneCommand::Action::kShow,
                          "  $ profctl tune show .\n  $ profctl tune show --csv aoe_result_*.json > tuned.csv\n");
  AddValue(show, "FILE", t->results, "Result files, or folders with them", " ")->required();
  show->add_flag("--csv", t->csv, "CSV: a line for each operator and subgraph");
  CLI::App* verify = action("verify", "Whether promised gains are seen in profiles; needs no daemon", TuneCommand::Action::kVerify,
                            "  $ profctl tune verify --before run1 --after run2 aoe_result_opat_*.json\n"
                            "Exit code: 7 if a promised gain is not seen, 4 if nothing could be compared.\n");
  AddValue(verify, "RESULT", t->results, "Result files, or folders with them (those in the runs)", " ");
  AddValue(verify, "--before", t->before, "A run before tuning, as for profctl analyze", "RUN")->required();
  AddValue(verify, "--after", t->after, "One with the tuned bank", "RUN")->required();
  action("leases", "Devices that are kept for tuning on this node", TuneCommand::Action::kLeases, "  $ profctl tune leases\n");
  CLI::App* release = action("release", "End a lease of your own before its process does", TuneCommand::Action::kRelease,
                             "  $ profctl tune release t71bd0e29b475\n");
  AddValue(release, "LEASE", t->lease, "As profctl tune leases prints it", " ")->required();
}

}  // namespace

void AddRunsCommands(CLI::App* app, Parsed* p) {
  AddAnalyzeCommand(app, &p->analyze);
  AddAdviseCommand(app, &p->advise);
  AddLiveAdviseFlags(app->get_subcommand("advise"), &p->live_advise);
  AddReportCommand(app, &p->report);
  AddServeCommand(app, &p->serve);
  AddTuneCommand(app, &p->tune);
}

}  // namespace profd::client
