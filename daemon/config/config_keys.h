// THE table of configuration keys: what each is called, its range, whether it follows a reload, what it means. Parsing,
// checks, the default file and docs/configuration.md are made of it (daemon_config.cc).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "daemon/config/daemon_config.h"
#include "daemon/session/sampling_rule.h"

namespace profd::config {

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

inline constexpr int64_t kDay = 86400;
inline const auto kKeys = std::to_array<Key>({
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
     "With less free space on the volume no session starts, and running ones lose their oldest data; when nothing more may go, they end", 1,
     1048576},
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
     "Socket of the container runtime (CRI), for the names of pods and containers: a path, "
     "\"auto\" (containerd, CRI-O, iSulad) or empty = never"},
    {"attribution", "max_processes", &DaemonConfig::attribution_max_processes, false,
     "Processes that have series at once; more are counted, not shown", 0, 65536},
    {"attribution", "max_jobs", &DaemonConfig::attribution_max_jobs, false,
     "Jobs that have series at once; more are counted, not shown", 0, 65536},
    {"advice", "enabled", &DaemonConfig::advice_enabled, false,
     "Watch jobs and report what is wrong with them now"},
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
    {"overhead", "max_daemon_permille", &DaemonConfig::overhead_max_daemon_permille, true,
     "CPU time that the daemon may take, thousandths of one core over 10 s; above it host and DCMI collectors are "
     "read less often. 0 = no limit", 0, 100000},
    {"overhead", "max_process_permille", &DaemonConfig::overhead_max_process_permille, true,
     "The same of collecting kernels, communication and calls inside one training process; above it calls, memory, "
     "marks and at last kernels are left out. 0 = no limit", 0, 1000},
    {"sampling", "enabled", &DaemonConfig::sampling_enabled, true,
     "Scheduled recording: record a few steps of each attached job's operators from time to time"},
    {"sampling", "every_minutes", &DaemonConfig::sampling_every_minutes, true,
     "Minutes from one recording of a job to the next; 0 = not by time", 0, kMostSamplingMinutes},
    {"sampling", "every_steps", &DaemonConfig::sampling_every_steps, true,
     "Steps from one recording of a job to the next; 0 = not by steps", 0, kMostSamplingEverySteps},
    {"sampling", "steps", &DaemonConfig::sampling_steps, true, "Steps of one recording", 1, kMostSamplingSteps},
    {"sampling", "max_seconds", &DaemonConfig::sampling_max_seconds, true,
     "A recording ends after so many seconds even if its steps have not", 1, 600},
    {"sampling", "max_percent", &DaemonConfig::sampling_max_percent, true,
     "Recordings take at most this share of a job's time, percent", 1, 100},
    {"sampling", "keep", &DaemonConfig::sampling_keep, true,
     "Recordings of one job that are kept; the oldest is removed first", 1, 1000},
    {"sampling", "options", &DaemonConfig::sampling_options, true,
     "What is recorded: options with their values, e.g. [\"task_time=l1\", \"hccl=on\"]"},
    {"sampling", "collectors", &DaemonConfig::sampling_collectors, true,
     "And which collectors, with a rate in Hz if other than the default"},
    {"sampling", "jobs", &DaemonConfig::sampling_jobs, true,
     "Other rules by job id, e.g. [\"debug-* off\", \"llm-* every_steps=1000 steps=5\"]; the first that matches counts"},
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
    {"archive", "to", &DaemonConfig::archive_to, true,
     "ClickHouse database finished dumps are loaded into by profd-archive.service, as in "
     "\"clickhouse://db.example.com:8123/profiles\", without a password, which the environment of profd-archive.service has; empty = off"},
    {"archive", "which", &DaemonConfig::archive_which, true,
     "Which: \"all\", or \"sessions\" (that users start), \"recorder\" (the flight recorder's), \"sampling\" "
     "(scheduled recording), \"job=PATTERN\", \"label=PATTERN\""},
    {"archive", "run", &DaemonConfig::archive_run, true,
     "Name of the run, with {job}, {session} (sessions started together on several nodes have one), {label}, {user} "
     "(the number) and {host}; a later dump of the same rank and run replaces the earlier one"},
    {"archive", "cluster", &DaemonConfig::archive_cluster, true,
     "Cluster of the server's configuration, for replicated and distributed tables; empty = one server"},
    {"archive", "user", &DaemonConfig::archive_user, true,
     "User of profd-archive.service: may fetch dumps that wait for the database, and call nothing else"},
    {"archive", "max_waiting", &DaemonConfig::archive_max_waiting, true,
     "Dumps that may wait; beyond it the oldest ones lose their protection from quotas, and are not loaded", 1, 5000},
    {"archive", "max_waiting_mb", &DaemonConfig::archive_max_waiting_mb, true,
     "What they may take; beyond it likewise; 0 = no limit", 0, 1073741824},
    {"archive", "mb_per_s", &DaemonConfig::archive_mb_per_s, true,
     "Limit of what is fetched and sent, MiB per second; 0 = none", 0, 1048576},
    {"archive", "retry_first_s", &DaemonConfig::archive_retry_first_s, true,
     "Seconds after the first failure; twice as many after each further one", 1, kDay},
    {"archive", "retry_longest_s", &DaemonConfig::archive_retry_longest_s, true, "At most so many seconds", 1, kDay},
    {"archive", "give_up_after_h", &DaemonConfig::archive_give_up_after_h, true,
     "Hours after which a dump that waits is given up; 0 = never", 0, 8760},
    {"limits", "max_sessions", &DaemonConfig::max_sessions, true, "Sessions at once", 1, 1024},
    {"limits", "max_sessions_per_uid", &DaemonConfig::max_sessions_per_uid, true,
     "Sessions at once of one user (root excepted)", 1, 1024},
    {"limits", "max_duration_s", &DaemonConfig::max_duration_s, true,
     "Longest duration a session may be given, seconds; without one it runs until it is stopped", 1, 365 * kDay},
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

}  // namespace profd::config
