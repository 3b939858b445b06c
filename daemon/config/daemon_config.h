// The daemon's configuration: one TOML file, validated completely (every problem at once). The table
// of keys in daemon_config.cc is the only place where a key, its range and its meaning stand;
// `profd --check-config` and docs/configuration.md are printed from it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "collectors/collector.h"

namespace profd {

struct DaemonConfig {
  // [daemon]
  std::string socket = "/run/profd/profd.sock";
  std::string socket_group = "HwHiAiUser";
  std::string admin_group = "profd-admin";
  std::string log_level = "info";
  int64_t max_connections = 256;
  std::string attach_socket;  // as given; see AttachSocketOf
  int64_t max_attached = 1024;
  // [driver]
  std::string hal_library;   // empty: soname, then the usual folders
  std::string dcmi_library;
  bool require_safe_library = true;
  int64_t poll_interval_ms = 50;
  int64_t relaxed_poll_interval_ms = 200;
  int64_t stuck_after_ms = 5000;
  int64_t buffer_mb = 64;
  // [dump]
  std::string dump_root = "/var/lib/profd";
  int64_t min_free_mb = 20;
  int64_t max_session_mb = 65536;
  int64_t queue_mb = 64;
  int64_t flush_interval_ms = 1000;
  int64_t max_total_mb = 524288;
  std::string state_dir;  // as given; see StateDirOf
  bool resume = true;
  int64_t sync_interval_ms = 15000;
  // [metrics]
  bool metrics_enabled = true;
  std::string metrics_listen = "127.0.0.1:9464";
  std::vector<std::string> metrics_disable;  // collectors kept off outside sessions
  std::vector<std::string> metrics_names = {"atlas"};
  std::string metrics_web_config;
  int64_t metrics_max_connections = 64;
  int64_t metrics_max_connections_per_address = 16;
  std::string metrics_hccn_tool = "auto";
  std::vector<std::string> metrics_npu_extra;  // CollectorSpec::settings
  // No key: --simulate's scenario, for the simulator's stand-in of that program.
  std::string simulator_scenario;
  // [attribution]
  bool attribution_enabled = true;
  std::string job_map_dir;
  std::string pod_resources_socket = "/var/lib/kubelet/pod-resources/kubelet.sock";
  std::string cri_socket = "auto";
  int64_t attribution_max_processes = 512;
  int64_t attribution_max_jobs = 256;
  // [advice]
  bool advice_enabled = true;
  std::vector<std::string> advice_limits;
  // [recorder]
  bool recorder_enabled = false;
  std::vector<std::string> recorder_collectors = {"hbm=10", "hccs=10", "pcie=10", "roce=10",
                                                  "nic=10", "aicore_freq", "npu_state=1",
                                                  "host_cpu=1", "host_mem=1"};
  int64_t recorder_seconds = 120;
  int64_t recorder_memory_mb = 64;
  std::string recorder_activity = "off";
  int64_t recorder_activity_memory_mb = 32;
  std::vector<std::string> recorder_triggers;
  int64_t recorder_dump_seconds = 60;
  int64_t recorder_cooldown_s = 300;
  int64_t recorder_max_dumps = 16;
  // [overhead]
  int64_t overhead_max_daemon_permille = 500;
  int64_t overhead_max_process_permille = 100;
  // [sampling]
  bool sampling_enabled = false;
  int64_t sampling_every_minutes = 30;
  int64_t sampling_every_steps = 0;
  int64_t sampling_steps = 3;
  int64_t sampling_max_seconds = 30;
  int64_t sampling_max_percent = 1;
  int64_t sampling_keep = 5;
  std::vector<std::string> sampling_options = {"task_time=l1"};
  std::vector<std::string> sampling_collectors = {"aicore_freq"};
  std::vector<std::string> sampling_jobs;
  // [tls]
  std::string tls_listen;
  std::string tls_certificate = "/etc/profd/tls/server.crt";
  std::string tls_key = "/etc/profd/tls/server.key";
  std::string tls_client_ca = "/etc/profd/tls/ca.crt";
  std::vector<std::string> tls_users;
  // [push]
  std::string push_otlp_url;
  std::string push_remote_write_url;
  int64_t push_interval_s = 15;
  int64_t push_timeout_ms = 5000;
  int64_t push_queue_mb = 16;
  std::vector<std::string> push_labels;
  std::string push_ca;
  std::string push_certificate;
  std::string push_key;
  std::string push_headers_file;
  // [archive]
  std::string archive_to;
  std::vector<std::string> archive_which = {"all"};
  std::string archive_run = "{user}-{job}-{session}";
  std::string archive_cluster;
  std::string archive_user = "profd-archive";
  int64_t archive_max_waiting = 1000;
  int64_t archive_max_waiting_mb = 131072;
  int64_t archive_mb_per_s = 0;
  int64_t archive_retry_first_s = 30;
  int64_t archive_retry_longest_s = 1800;
  int64_t archive_give_up_after_h = 168;
  // [limits]
  int64_t max_sessions = 64;
  int64_t max_sessions_per_uid = 16;
  int64_t max_duration_s = 2592000;
  int64_t keep_finished = 256;
  int64_t stop_deadline_s = 10;
  int64_t max_dump_mb_per_uid = 262144;
  int64_t max_starts_per_minute = 60;
  int64_t max_user_hz = 1000;
  int64_t max_start_delay_s = 86400;
  int64_t max_kept_mb_per_uid = 262144;
  int64_t max_pinned_mb_per_uid = 65536;
};

// Where sessions and pins are kept: .state in the dump root unless configured.
std::string StateDirOf(const DaemonConfig& config);

// Where training processes attach: beside `socket` as attach.sock unless configured; "" = off.
std::string AttachSocketOf(const DaemonConfig& config);

// Where a file has the value of each of its keys: "section.name" to "file:line".
using ConfigPlaces = std::map<std::string, std::string, std::less<>>;

// Parses `text` over the defaults. Every problem is one element of `*problems`, each naming key, value,
// allowed range and line; the result is meaningful only if there is none.
DaemonConfig ParseDaemonConfig(std::string_view text, std::string_view file_name,
                               std::vector<std::string>* problems, ConfigPlaces* places = nullptr);

// Begins each problem with the place of the key that it is about, if the file has it.
void AddPlaces(const ConfigPlaces& places, std::vector<std::string>* problems);

// The lists of [metrics], for the collectors that read one.
CollectorSettings SettingsOf(const DaemonConfig& config);

// Checks values of either source (file or flags); appends to `*problems`.
void ValidateDaemonConfig(const DaemonConfig& config, std::vector<std::string>* problems);

// True if the two differ only in keys that SIGHUP can change; the names of those that need a restart
// are appended to `*restart_needed`.
bool OnlyReloadableDiffers(const DaemonConfig& before, const DaemonConfig& after,
                           std::vector<std::string>* restart_needed);

// What runs after SIGHUP: `running` with the reloadable keys of `fresh`.
DaemonConfig WithReloadableOf(const DaemonConfig& running, const DaemonConfig& fresh);

// The commented default file, from the same table.
std::string DefaultConfigText();
// docs/configuration.md.
std::string ConfigReference();

}  // namespace profd
