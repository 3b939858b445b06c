#include "daemon/config/daemon_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <toml++/toml.h>
#include <variant>

#include "analysis/rules/limits.h"
#include "daemon/config/listen_address.h"
#include "daemon/recorder/trigger.h"

namespace profd {
namespace {

using StringMember = std::string DaemonConfig::*;
using IntMember = int64_t DaemonConfig::*;
using BoolMember = bool DaemonConfig::*;
using ListMember = std::vector<std::string> DaemonConfig::*;

struct Key {
  std::string_view section;
  std::string_view name;
  std::variant<StringMember, IntMember, BoolMember, ListMember> member;
  bool reloadable;
  std::string_view help;
  int64_t min = 0;
  int64_t max = 0;
  std::string_view choices = {};  // comma-separated; empty = any text
};

constexpr int64_t kDay = 86400;
// As documented; any other will do.
constexpr int kMetricsPort = 9464;
constexpr int kTlsPort = 9465;

const auto kKeys = std::to_array<Key>({
    {"daemon", "socket", &DaemonConfig::socket, false,
     "Unix socket clients connect to; its directory must exist (systemd creates /run/profd)"},
    {"daemon", "socket_group", &DaemonConfig::socket_group, false,
     "Group whose members may connect (mode 0660); empty = root only"},
    {"daemon", "admin_group", &DaemonConfig::admin_group, true,
     "Group whose members see and stop all sessions; empty = root only"},
    {"daemon", "log_level", &DaemonConfig::log_level, true, "Minimum severity of log lines", 0, 0,
     "debug,info,warning,error"},
    {"daemon", "max_connections", &DaemonConfig::max_connections, true,
     "Client connections open at once, half of them of one user; more are refused", 1, 4096},
    {"daemon", "attach_socket", &DaemonConfig::attach_socket, false,
     "Unix socket training processes attach to (libprofd); empty = attach.sock in the directory of "
     "daemon.socket, \"off\" = disabled"},
    {"daemon", "max_attached", &DaemonConfig::max_attached, true,
     "Training processes attached at once; more are refused", 0, 16384},
    {"driver", "hal_library", &DaemonConfig::hal_library, false,
     "Path of libascend_hal.so; empty = by name, then the directories of /usr/local/Ascend/driver/lib64"},
    {"driver", "dcmi_library", &DaemonConfig::dcmi_library, false,
     "Path of libdcmi.so; empty = by name, then /usr/local/dcmi and the driver's directories"},
    {"driver", "require_safe_library", &DaemonConfig::require_safe_library, false,
     "As root, refuse a library that another user could have written"},
    {"driver", "poll_interval_ms", &DaemonConfig::poll_interval_ms, false,
     "Minimum time between two reads of the driver's channels", 0, 100},
    {"driver", "relaxed_poll_interval_ms", &DaemonConfig::relaxed_poll_interval_ms, false,
     "The same while no live stream and no flight recorder runs, if longer; at most a quarter of "
     "dump.flush_interval_ms, and 10 ms per MB of dump.queue_mb and driver.buffer_mb",
     0, 1000},
    {"driver", "stuck_after_ms", &DaemonConfig::stuck_after_ms, false,
     "A driver call that has not returned for this long marks its device stuck", 100, 60000},
    {"driver", "buffer_mb", &DaemonConfig::buffer_mb, false,
     "Memory for driver bytes on their way to dumps; when it is full, bytes are dropped and counted",
     4, 4096},
    {"dump", "root", &DaemonConfig::dump_root, false,
     "Directory below which all dumps are written"},
    {"dump", "min_free_mb", &DaemonConfig::min_free_mb, true,
     "Sessions do not start, and stop, with less free space on the volume", 1, 1048576},
    {"dump", "max_session_mb", &DaemonConfig::max_session_mb, true,
     "A session ends when its dump has grown to this", 1, 16777216},
    {"dump", "queue_mb", &DaemonConfig::queue_mb, true,
     "Bytes of one session that may wait for the disk; more are dropped and counted", 1, 4096},
    {"dump", "flush_interval_ms", &DaemonConfig::flush_interval_ms, true,
     "Longest time before data is written", 50, 60000},
    {"dump", "sync_interval_ms", &DaemonConfig::sync_interval_ms, true,
     "Interval of syncs to disk, which bounds the loss at a power failure; 0 = only when a session ends", 0, 3600000},
    {"dump", "max_total_mb", &DaemonConfig::max_total_mb, true,
     "Limit of all dumps together; the oldest finished ones that are not pinned are removed, then starts "
     "are refused and the youngest session ends; 0 = no limit",
     0, 1073741824},
    {"dump", "state_dir", &DaemonConfig::state_dir, false,
     "Private directory for the state of active sessions, and pins; empty = .state in dump.root"},
    {"dump", "resume", &DaemonConfig::resume, false,
     "Sessions of a killed daemon resume, as a new segment, at its next start"},
    {"metrics", "enabled", &DaemonConfig::metrics_enabled, false, "Serve /metrics"},
    {"metrics", "listen", &DaemonConfig::metrics_listen, false,
     "Address and port of /metrics; without metrics.web_config it is plain HTTP, with a warning "
     "for other addresses than loopback"},
    {"metrics", "disable", &DaemonConfig::metrics_disable, false,
     "Collectors that do not run outside sessions, for example [\"host_net\"] with a node_exporter"},
    {"metrics", "names", &DaemonConfig::metrics_names, false,
     "Names in /metrics: \"atlas\" (profd's), \"npu-exporter\" (that exporter's names, labels and units), "
     "or both"},
    {"metrics", "web_config", &DaemonConfig::metrics_web_config, false,
     "File with TLS and basic authentication for /metrics, in the format of Prometheus's exporters "
     "(web.yml); read again when it changes; empty = plain HTTP"},
    {"metrics", "max_connections", &DaemonConfig::metrics_max_connections, false,
     "HTTP connections at once; more are answered with 503", 1, 4096},
    {"metrics", "max_connections_per_address", &DaemonConfig::metrics_max_connections_per_address, false,
     "HTTP connections at once from one address; more are answered with 429", 1, 4096},
    {"metrics", "hccn_tool", &DaemonConfig::metrics_hccn_tool, false,
     "Vendor's program for optics and link state of the NPUs' network ports, which libdcmi does not "
     "provide: a path, \"auto\" (the driver's, if it exists) or \"off\""},
    {"metrics", "npu_extra", &DaemonConfig::metrics_npu_extra, false,
     "Samples of libdcmi that are off by default: [\"core_utilization\", \"serdes\", \"call_buckets\", "
     "\"pcie_bandwidth=100\", \"hccs_bandwidth=100\", \"rdma_bandwidth=100\"]; a bandwidth keeps the "
     "library busy for that many ms (default 100) per NPU and minute"},
    {"attribution", "enabled", &DaemonConfig::attribution_enabled, false,
     "Show jobs, processes and containers of the NPUs in /metrics"},
    {"attribution", "job_map_dir", &DaemonConfig::job_map_dir, false,
     "Directory with one file per NPU, named by its number, with a job id per line, as a scheduler's "
     "prolog writes for dcgm-exporter; empty = none"},
    {"attribution", "pod_resources_socket", &DaemonConfig::pod_resources_socket, false,
     "The kubelet's pod-resources socket, used if it exists; empty = never"},
    {"attribution", "cri_socket", &DaemonConfig::cri_socket, false,
     "Socket of the container runtime (CRI), asked for the names of pods and containers: a path, "
     "\"auto\" (containerd, CRI-O, iSulad) or empty = never"},
    {"attribution", "max_processes", &DaemonConfig::attribution_max_processes, false,
     "Processes that have series at once; more are counted, not shown", 0, 65536},
    {"attribution", "max_jobs", &DaemonConfig::attribution_max_jobs, false,
     "Jobs that have series at once; more are counted, not shown", 0, 65536},
    {"advice", "enabled", &DaemonConfig::advice_enabled, false,
     "Watch jobs and say what is wrong with them now"},
    {"advice", "limits", &DaemonConfig::advice_limits, true,
     "Limits of the checks other than the defaults, e.g. [\"hang.least_s=300\", \"slow_rank.difference=0.1\"]; "
     "profctl advise --list prints all"},
    {"recorder", "enabled", &DaemonConfig::recorder_enabled, false,
     "Flight recorder: keep the last seconds of the collectors below in memory"},
    {"recorder", "collectors", &DaemonConfig::recorder_collectors, false,
     "What it records: collector names, with a rate in Hz if other than the default"},
    {"recorder", "seconds", &DaemonConfig::recorder_seconds, false,
     "How far back it reaches, if memory_mb allows", 5, 3600},
    {"recorder", "memory_mb", &DaemonConfig::recorder_memory_mb, false,
     "Memory for it; the oldest data is dropped first", 1, 65536},
    {"recorder", "activity", &DaemonConfig::recorder_activity, false,
     "What it records of the processes of jobs: nothing; kernels and communication; also API calls, markers "
     "and memory",
     0, 0, "off,l0,l1"},
    {"recorder", "activity_memory_mb", &DaemonConfig::recorder_activity_memory_mb, false,
     "How much of memory_mb that may take", 1, 65535},
    {"recorder", "triggers", &DaemonConfig::recorder_triggers, true,
     "Conditions for a dump, e.g. [\"atlas_npu_temperature_celsius > 90 for 10s\", "
     "\"error_code\", \"crash\", \"step > 2x median\", \"advice\", \"advice hang\"]"},
    {"recorder", "dump_seconds", &DaemonConfig::recorder_dump_seconds, true,
     "Seconds in a dump of a trigger", 1, 3600},
    {"recorder", "cooldown_s", &DaemonConfig::recorder_cooldown_s, true,
     "Minimum time between two dumps of triggers, seconds", 0, kDay},
    {"recorder", "max_dumps", &DaemonConfig::recorder_max_dumps, true,
     "Dumps of triggers that are kept; the oldest is removed first", 1, 1000},
    {"tls", "listen", &DaemonConfig::tls_listen, false,
     "Address and port for remote clients with mutual TLS, e.g. \"0.0.0.0:9465\"; empty = off"},
    {"tls", "certificate", &DaemonConfig::tls_certificate, false,
     "The node's certificate chain (PEM); read again when it changes"},
    {"tls", "key", &DaemonConfig::tls_key, false, "Its key (PEM)"},
    {"tls", "client_ca", &DaemonConfig::tls_client_ca, false,
     "Certificates of the authorities that sign clients (PEM)"},
    {"tls", "users", &DaemonConfig::tls_users, true,
     "Local user of a client certificate, by its common name: [\"alice=1000\", \"ci=profd-ci\"]"},
    {"push", "otlp_url", &DaemonConfig::push_otlp_url, false,
     "OTLP/HTTP receiver of pushed metrics, as in \"http://collector:4318\"; empty = off"},
    {"push", "remote_write_url", &DaemonConfig::push_remote_write_url, false,
     "Prometheus remote write receiver, as in \"https://prometheus:9090/api/v1/write\"; empty = off"},
    {"push", "interval_s", &DaemonConfig::push_interval_s, false, "Interval, seconds", 1, 3600},
    {"push", "timeout_ms", &DaemonConfig::push_timeout_ms, false, "Deadline of one attempt", 100, 60000},
    {"push", "queue_mb", &DaemonConfig::push_queue_mb, false,
     "Limit of the queue of one receiver; beyond it the oldest is dropped and counted", 1, 1024},
    {"push", "labels", &DaemonConfig::push_labels, false, "Labels added to all series, as in [\"cluster=a\"]"},
    {"push", "ca", &DaemonConfig::push_ca, false, "Authorities of receivers (PEM); empty = the system's"},
    {"push", "certificate", &DaemonConfig::push_certificate, false, "Client certificate (PEM), if required"},
    {"push", "key", &DaemonConfig::push_key, false, "Its key (PEM)"},
    {"push", "headers_file", &DaemonConfig::push_headers_file, false,
     "File of \"Name: value\" lines, sent as headers such as Authorization; readable by its owner only"},
    {"limits", "max_sessions", &DaemonConfig::max_sessions, true, "Sessions at once", 1, 1024},
    {"limits", "max_sessions_per_uid", &DaemonConfig::max_sessions_per_uid, true,
     "Sessions at once of one user (root excepted)", 1, 1024},
    {"limits", "max_duration_s", &DaemonConfig::max_duration_s, true,
     "Longest duration of a session, seconds", 1, 365 * kDay},
    {"limits", "keep_finished", &DaemonConfig::keep_finished, true,
     "Finished sessions kept in the list; the oldest is forgotten first (its dump stays)", 1, 10000},
    {"limits", "stop_deadline_s", &DaemonConfig::stop_deadline_s, true,
     "Deadline for the end of a session, seconds; then it is cut off", 1, 300},
    {"limits", "max_dump_mb_per_uid", &DaemonConfig::max_dump_mb_per_uid, true,
     "Bytes the running sessions of one user may write together (root excepted); a start beyond it is "
     "refused",
     1, 16777216},
    {"limits", "max_starts_per_minute", &DaemonConfig::max_starts_per_minute, true,
     "Sessions one user may start within a minute (root excepted)", 1, 100000},
    {"limits", "max_user_hz", &DaemonConfig::max_user_hz, true,
     "Highest rate a user may request of a collector (administrators excepted)", 1, 1000},
    {"limits", "max_start_delay_s", &DaemonConfig::max_start_delay_s, true,
     "How far ahead a start may be scheduled, seconds", 1, 30 * kDay},
    {"limits", "max_kept_mb_per_uid", &DaemonConfig::max_kept_mb_per_uid, true,
     "Limit of all dumps of one user together, as dump.max_total_mb (root excepted); 0 = no limit", 0,
     1073741824},
    {"limits", "max_pinned_mb_per_uid", &DaemonConfig::max_pinned_mb_per_uid, true,
     "Dumps one user may pin (administrators excepted); 0 = no limit", 0, 1073741824},
});

std::string Describe(const Key& key) { return fmt::format("{}.{}", key.section, key.name); }

std::string Range(const Key& key) {
  if (std::holds_alternative<IntMember>(key.member)) {
    return fmt::format("a whole number {}..{}", key.min, key.max);
  }
  if (std::holds_alternative<BoolMember>(key.member)) return "true or false";
  if (std::holds_alternative<ListMember>(key.member)) return "a list of strings";
  if (!key.choices.empty()) return fmt::format("one of \"{}\"", key.choices);
  return "a string";
}

bool IsChoice(std::string_view choices, std::string_view value) {
  while (!choices.empty()) {
    size_t comma = choices.find(',');
    if (choices.substr(0, comma) == value) return true;
    choices = comma == std::string_view::npos ? std::string_view() : choices.substr(comma + 1);
  }
  return false;
}

// Stores the node into the key's member; false if its type does not fit.
bool Store(const toml::node& node, const Key& key, DaemonConfig* config) {
  if (auto* member = std::get_if<StringMember>(&key.member)) {
    if (!node.is_string()) return false;
    config->*(*member) = node.as_string()->get();
    return true;
  }
  if (auto* member = std::get_if<IntMember>(&key.member)) {
    if (!node.is_integer()) return false;
    config->*(*member) = node.as_integer()->get();
    return true;
  }
  if (auto* member = std::get_if<BoolMember>(&key.member)) {
    if (!node.is_boolean()) return false;
    config->*(*member) = node.as_boolean()->get();
    return true;
  }
  if (!node.is_array()) return false;
  std::vector<std::string> list;
  for (const toml::node& element : *node.as_array()) {
    if (!element.is_string()) return false;
    list.push_back(element.as_string()->get());
  }
  config->*std::get<ListMember>(key.member) = std::move(list);
  return true;
}

const Key* FindKey(std::string_view section, std::string_view name) {
  for (const Key& key : kKeys) {
    if (key.section == section && key.name == name) return &key;
  }
  return nullptr;
}

void ParseSection(std::string_view section, const toml::table& table, std::string_view file,
                  DaemonConfig* config, std::vector<std::string>* problems) {
  for (const auto& [name, node] : table) {
    auto where = fmt::format("{}:{}", file, node.source().begin.line);
    const Key* key = FindKey(section, name.str());
    if (key == nullptr) {
      problems->push_back(fmt::format("{}: unknown key {}.{}", where, section, name.str()));
    } else if (!Store(node, *key, config)) {
      problems->push_back(fmt::format("{}: {} must be {}", where, Describe(*key), Range(*key)));
    }
  }
}

std::string DefaultOf(const Key& key) {
  const DaemonConfig defaults;
  if (auto* member = std::get_if<StringMember>(&key.member)) {
    return fmt::format("\"{}\"", defaults.*(*member));
  }
  if (auto* member = std::get_if<IntMember>(&key.member)) {
    return fmt::format("{}", defaults.*(*member));
  }
  if (auto* member = std::get_if<BoolMember>(&key.member)) {
    return defaults.*(*member) ? "true" : "false";
  }
  const auto& list = defaults.*std::get<ListMember>(key.member);
  std::string text;
  for (const std::string& item : list) text += fmt::format("{}\"{}\"", text.empty() ? "" : ", ", item);
  return "[" + text + "]";
}

bool Same(const DaemonConfig& a, const DaemonConfig& b, const Key& key) {
  return std::visit([&](auto member) { return a.*member == b.*member; }, key.member);
}

// daemon/rpc reads shape and port of tls.listen, and tls.users, when it is on (CheckTls); what is left
// is said here, so that nothing is said twice.
void CheckTlsKeys(const DaemonConfig& config, std::vector<std::string>* problems) {
  if (!config.tls_listen.empty()) {
    const ListenFault fault = FaultOfListen(config.tls_listen);
    if (fault == ListenFault::kHost) {
      CheckListen("tls.listen", config.tls_listen, fault, kTlsPort, problems);
    }
    return;
  }
  for (const std::string& entry : config.tls_users) {
    const size_t equals = entry.find('=');
    if (equals != std::string::npos && equals > 0 && equals + 1 < entry.size() &&
        entry.find('=', equals + 1) == std::string::npos) {
      continue;
    }
    problems->push_back(fmt::format(
        "tls.users: \"{}\" must be CN=USER, as in \"alice=1000\" or \"ci=profd-ci\"", entry));
  }
}

}  // namespace

std::string AttachSocketOf(const DaemonConfig& config) {
  if (config.attach_socket == "off") return {};
  if (!config.attach_socket.empty()) return config.attach_socket;
  size_t slash = config.socket.rfind('/');
  return (slash == std::string::npos ? std::string() : config.socket.substr(0, slash + 1)) +
         "attach.sock";
}

std::string StateDirOf(const DaemonConfig& config) {
  return config.state_dir.empty() ? config.dump_root + "/.state" : config.state_dir;
}

DaemonConfig ParseDaemonConfig(std::string_view text, std::string_view file_name,
                               std::vector<std::string>* problems) {
  DaemonConfig config;
  toml::table root;
  try {
    root = toml::parse(text, file_name);
  } catch (const toml::parse_error& error) {
    problems->push_back(fmt::format("{}:{}: {}", file_name, error.source().begin.line,
                                    error.description()));
    return config;
  }
  for (const auto& [section, node] : root) {
    bool known = std::any_of(kKeys.begin(), kKeys.end(), [&section = section](const Key& key) {
      return key.section == section.str();
    });
    auto where = fmt::format("{}:{}", file_name, node.source().begin.line);
    if (!known || !node.is_table()) {
      problems->push_back(fmt::format(
          "{}: unknown section [{}]; there are daemon, driver, dump, metrics, attribution, "
          "advice, recorder, tls, push, limits", where,
          section.str()));
      continue;
    }
    ParseSection(section.str(), *node.as_table(), file_name, &config, problems);
  }
  ValidateDaemonConfig(config, problems);
  return config;
}

CollectorSettings SettingsOf(const DaemonConfig& config) {
  CollectorSettings settings;
  for (const Key& key : kKeys) {
    const ListMember* list = std::get_if<ListMember>(&key.member);
    if (list == nullptr || key.section != "metrics") continue;
    settings[std::string(key.name)] = config.**list;
  }
  return settings;
}

void ValidateDaemonConfig(const DaemonConfig& config, std::vector<std::string>* problems) {
  for (const Key& key : kKeys) {
    if (auto* member = std::get_if<IntMember>(&key.member)) {
      int64_t value = config.*(*member);
      if (value < key.min || value > key.max) {
        problems->push_back(
            fmt::format("{} = {} must be {}", Describe(key), value, Range(key)));
      }
    } else if (auto* text = std::get_if<StringMember>(&key.member); text && !key.choices.empty()) {
      if (!IsChoice(key.choices, config.*(*text))) {
        problems->push_back(
            fmt::format("{} = \"{}\" must be {}", Describe(key), config.*(*text), Range(key)));
      }
    }
  }
  auto absolute = [problems](std::string_view key, const std::string& path, bool may_be_empty) {
    if (path.empty() ? !may_be_empty : path.front() != '/') {
      problems->push_back(fmt::format("{} = \"{}\" must be an absolute path", key, path));
    }
  };
  absolute("daemon.socket", config.socket, false);
  absolute("dump.root", config.dump_root, false);
  absolute("dump.state_dir", config.state_dir, true);
  absolute("driver.hal_library", config.hal_library, true);
  absolute("driver.dcmi_library", config.dcmi_library, true);
  for (const std::string& text : config.advice_limits) {
    if (Status set = analysis::Limits().Set(text); !set.ok()) problems->push_back("advice.limits: " + set.message());
  }
  ValidateRecorder(config.recorder_collectors, config.recorder_triggers, problems);
  if (config.recorder_activity != "off" && config.recorder_activity_memory_mb >= config.recorder_memory_mb) {
    problems->push_back(fmt::format("recorder.activity_memory_mb = {} must be less than recorder.memory_mb = {}",
                                    config.recorder_activity_memory_mb, config.recorder_memory_mb));
  }
  for (std::string& problem : CheckSettings(SettingsOf(config))) {
    problems->push_back(std::move(problem));
  }
  absolute("metrics.web_config", config.metrics_web_config, true);
  if (config.metrics_hccn_tool != "auto" && config.metrics_hccn_tool != "off") {
    absolute("metrics.hccn_tool", config.metrics_hccn_tool, false);
  }
  for (const std::string& name : config.metrics_names) {
    if (name != "atlas" && name != "npu-exporter") {
      problems->push_back(
          fmt::format("metrics.names: \"{}\" must be \"atlas\" or \"npu-exporter\"", name));
    }
  }
  if (config.metrics_names.empty()) problems->push_back("metrics.names must name one at least");
  CheckListen("metrics.listen", config.metrics_listen, FaultOfListen(config.metrics_listen),
              kMetricsPort, problems);
  CheckTlsKeys(config, problems);
}

bool OnlyReloadableDiffers(const DaemonConfig& before, const DaemonConfig& after,
                           std::vector<std::string>* restart_needed) {
  for (const Key& key : kKeys) {
    if (!key.reloadable && !Same(before, after, key)) restart_needed->push_back(Describe(key));
  }
  return restart_needed->empty();
}

DaemonConfig WithReloadableOf(const DaemonConfig& running, const DaemonConfig& fresh) {
  DaemonConfig merged = running;
  for (const Key& key : kKeys) {
    if (!key.reloadable) continue;
    std::visit([&](auto member) { merged.*member = fresh.*member; }, key.member);
  }
  return merged;
}

std::string DefaultConfigText() {
  std::string text =
      "# profd's configuration. Every key with its default; unknown keys and values out of range are\n"
      "# errors: try `profd --check-config`. Keys marked (reload) follow `systemctl reload profd`.\n";
  std::string_view section;
  for (const Key& key : kKeys) {
    if (key.section != section) {
      section = key.section;
      text += fmt::format("\n[{}]\n", section);
    }
    text += fmt::format("# {}.{} {}{}\n#{} = {}\n", key.help, "", Range(key),
                        key.reloadable ? " (reload)" : "", key.name, DefaultOf(key));
  }
  return text;
}

std::string ConfigReference() {
  std::string text =
      "# Configuration\n\nPrinted by `profd --print-config-reference`; do not edit.\n\n"
      "`/etc/profd/profd.toml`, or the file named by `--config`. Flags win over the file. "
      "`profd --check-config` lists every problem at once.\n\n"
      "| key | value | default | reload | meaning |\n|---|---|---|---|---|\n";
  for (const Key& key : kKeys) {
    text += fmt::format("| `{}` | {} | `{}` | {} | {} |\n", Describe(key), Range(key),
                        DefaultOf(key), key.reloadable ? "yes" : "no", key.help);
  }
  return text;
}

}  // namespace profd
