// The daemon's configuration: one TOML file, validated as a whole (every problem at once). The table
// of keys in daemon_config.cc is the only place where a key, its range and its meaning stand;
// `profd --check-config` and docs/configuration.md are printed from it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace profd {

struct DaemonConfig {
  // [daemon]
  std::string socket = "/run/profd/profd.sock";
  std::string socket_group = "HwHiAiUser";
  std::string admin_group = "profd-admin";
  std::string log_level = "info";
  int64_t max_connections = 256;
  // [driver]
  std::string hal_library;   // empty: soname, then the usual folders
  std::string dcmi_library;
  bool require_safe_library = true;
  int64_t poll_interval_ms = 50;
  int64_t stuck_after_ms = 5000;
  int64_t buffer_mb = 64;
  // [dump]
  std::string dump_root = "/var/lib/profd";
  int64_t min_free_mb = 20;
  int64_t max_session_mb = 65536;
  int64_t queue_mb = 64;
  int64_t flush_interval_ms = 1000;
  // [metrics]
  bool metrics_enabled = true;
  std::string metrics_listen = "127.0.0.1:9464";
  std::vector<std::string> metrics_disable;  // collectors kept off outside sessions
  // [limits]
  int64_t max_sessions = 64;
  int64_t max_sessions_per_uid = 16;
  int64_t max_duration_s = 2592000;
  int64_t keep_finished = 256;
  int64_t stop_deadline_s = 10;
};

// Parses `text` over the defaults. Every problem is one element of `*problems`, each naming key, value,
// allowed range and line; the result is meaningful only if there is none.
DaemonConfig ParseDaemonConfig(std::string_view text, std::string_view file_name,
                               std::vector<std::string>* problems);

// Checks values wherever they came from (file or flags); appends to `*problems`.
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
