// The flags of a session: what start, run and check share.
#include "client/cli_app.h"

#include <fmt/format.h>

#include <algorithm>

#include "proto/options/options.h"
#include "proto/options/presets.h"

namespace profd::client {
namespace {

constexpr const char* kVendorJson = "PROFILING_OPTIONS";

std::string FlagOf(std::string_view key) {
  std::string flag = "--" + std::string(key);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

std::string TypeOf(const options::Option& option) {
  switch (option.type) {
    case options::Type::kSwitch:
      return "on|off";
    case options::Type::kLevel:
      return "on|off|l0|l1";
    case options::Type::kFrequency:
      return "HZ";
    case options::Type::kCycles:
      return "CYCLES";
    case options::Type::kSize:
      return "SIZE";
    case options::Type::kChoice:
      return "WHICH";
    case options::Type::kList:
      return "LIST";
    case options::Type::kMetrics:
      return "METRICS";
    case options::Type::kText:
      return "OPERATOR";
    case options::Type::kPath:
      return "DIR";
  }
  return "VALUE";
}

std::string HelpOf(const options::Option& option) {
  std::string unit(option.unit);
  bool number = option.type == options::Type::kFrequency || option.type == options::Type::kCycles;
  std::string help = fmt::format("{};\n{}{}; default {}", option.effect, options::RangeText(option),
                                 number ? " " + unit : "", options::DefaultText(option));
  if (!option.conflicts.empty()) help += fmt::format(";\n{}", option.conflicts);
  if (!option.chips.empty()) help += fmt::format(";\nchips: {}", option.chips);
  return help;
}

std::string GroupOf(const options::Option& option) {
  switch (option.origin) {
    case options::Origin::kDevice:
      return "Profiling options: devices";
    case options::Origin::kHost:
      return "Profiling options: host";
    case options::Origin::kApplication:
      return "Profiling options: application";
    case options::Origin::kClient:
      return "Profiling options: dump";
  }
  return "Profiling options";
}

void AddVendorFlags(CLI::App* command, OptionSource* source) {
  for (const options::Option& option : options::Table()) {
    command->add_option(FlagOf(option.key), source->flags[std::string(option.key)], HelpOf(option))
        ->type_name(TypeOf(option))
        ->group(GroupOf(option));
  }
  std::string presets = "Common sets of options, where the chip supports them; options given by name win:";
  for (const options::Preset& preset : options::Presets()) {
    presets += fmt::format("{}\n{}: {}", presets.ends_with(':') ? "" : ";", preset.name, preset.what);
  }
  AddValue(command, "--preset", source->preset, presets, "NAME");
  const std::string group = "Profiling options in the vendor's formats";
  AddValue(command, "--options-json", source->json,
           fmt::format("{} as JSON text, a FILE, or - for stdin", kVendorJson), "JSON")->group(group);
  command
      ->add_flag("--options-env", source->from_environment,
                 fmt::format("Read {} from the environment", kVendorJson))
      ->group(group);
  std::string names;
  for (const options::AclSwitch& known : options::AclSwitches()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", known.name);
  }
  AddValue(command, "--acl", source->acl,
           "A switch of PyTorch's profiler; repeatable: " + names, "NAME=VALUE")->allow_extra_args(false)->group(group);
  command
      ->add_flag("--best-effort", source->best_effort,
                 "Treat options this chip lacks as warnings")
      ->group(group);
}

void AddCollector(CLI::App* command, std::vector<std::string>* collectors) {
  AddValue(command, "--collector", *collectors,
           "A collector by name, with its rate; repeatable", "NAME[=HZ]")->allow_extra_args(false);
}

void AddWhat(CLI::App* command, StartOptions* o) {
  AddValue(command, "--job", o->job, "Training job to profile: its devices and processes", "JOB");
  AddValue(command, "--rank,--ranks", o->rank,
           "Only these ranks of the job, for example 0,8-15; if --job is only a label, the session's rank", "LIST");
  AddValue(command, "--label", o->label, "Free text shown in lists", "TEXT");
  AddValue(command, "--devices", o->devices,
           "Logical device ids, for example 0,1,4-7; --job is then only a label. Default: the job's devices, or all", "LIST");
  command->add_flag("--all", o->all, "All devices; --job is only a label");
  AddCollector(command, &o->collectors);
  AddValue(command, "--pid", o->pids,
           "A process of the job, for example for --host-sys; repeatable", "PID")->allow_extra_args(false);
}

void AddWhen(CLI::App* command, StartOptions* o) {
  const char* group = "When";
  auto add = [command, group](const char* name, std::optional<std::string>* value, const char* text, const char* type) {
    AddValue(command, name, *value, text, type)->group(group);
  };
  add("--at", &o->at, "Start at this time: 2026-01-01T00:00:00Z, local time without a zone, or seconds since the epoch", "TIME");
  add("--in", &o->in, "Start after this delay", "DURATION");
  add("--start-step", &o->start_step, "Start when the job begins this step, or +20: that many steps from now", "N");
  add("--steps", &o->steps, "Stop after this many steps of the job", "N");
  add("--since", &o->since, "Include this much of the flight recorder: 30s or -30s", "DURATION");
  add("--duration", &o->duration, "Stop after 500ms, 30s, 5m, 1h", "DURATION");
  add("--lease", &o->lease,
      "Stop this long after the caller and the job have exited (60s where their exit can be detected)", "DURATION");
  command->add_flag("--detach", o->detach, "Keep running after the caller exits; a session of a job's processes ends with them")
      ->group(group);
}

}  // namespace

void AddSessionFlags(CLI::App* command, StartOptions* o) {
  AddWhat(command, o);
  AddWhen(command, o);
  AddValue(command, "--priority", o->priority, "0..9; above 5 for administrators", "N");
  command->add_flag("--preempt", o->preempt,
                    "Administrators: preempt sessions of lower priority when the node is full");
  AddValue(command, "--provider", o->provider,
           "Who collects inside the application: auto, mspti (live), aclprof (files at the end), off", "WHO");
  AddValue(command, "--metadata", o->metadata, "Stored in the manifest; repeatable", "NAME=VALUE")->allow_extra_args(false);
  command->add_flag("--require-all", o->require_all,
                    "Start nothing unless everything asked for can run");
  command->add_flag("--no-dump", o->no_dump, "Write no dump; only /metrics and live streams");
  command->add_flag("--compress", o->compress,
                    "Compress the dump while writing (zstd); only profctl reads it");
  command->add_flag("-v,--verbose", o->verbose, "Show every effective option, including defaults");
  AddVendorFlags(command, &o->options);
}

void AddStartFlags(CLI::App* command, StartOptions* o) {
  command->add_flag("--follow", o->follow,
                    "The job need not run yet: its ranks and their devices join the session as they come")
      ->group("When");
  AddValue(command, "--wait-ranks", o->wait_ranks,
           "Wait at most this long until all ranks of the job have attached", "DURATION")->group("When");
  AddValue(command, "--end-with-pid", o->end_with_pid, "Stop when this process exits", "PID")->group("When");
}

void AddCheckFlags(CLI::App* command, CheckOptions* o) {
  AddCollector(command, &o->collectors);
  AddVendorFlags(command, &o->options);
  command->add_flag("--no-job", o->no_job, "Check as for a request without job or process");
  command->add_flag("--offline", o->offline, "Without a daemon: the rules, and the limits of --chip");
  AddValue(command, "--chip", o->chip, "With --offline: as on this chip, for example 910B", "CHIP");
  command->add_flag("-v,--verbose", o->verbose, "Show every effective option, including defaults");
}

void AddOptionsFlags(CLI::App* command, ListOptionsOptions* o) {
  command->add_flag("--offline", o->offline, "Without a daemon: the documented ranges");
  AddValue(command, "--chip", o->chip, "With --offline: as on this chip, for example 910B", "CHIP");
}

}  // namespace profd::client
