#include "daemon/config/daemon_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/un.h>

#include <algorithm>
#include <toml++/toml.h>

#include "analysis/rules/limits.h"
#include "base/nearest.h"
#include "base/text.h"
#include "daemon/archive/archive_rule.h"
#include "daemon/config/config_keys.h"
#include "daemon/config/listen_address.h"
#include "daemon/recorder/trigger.h"
#include "daemon/session/sampling_rule.h"

namespace profd {
namespace {

using config::BoolMember;
using config::IntMember;
using config::Key;
using config::kKeys;
using config::ListMember;
using config::StringMember;

// As documented; any other will do.
constexpr int kMetricsPort = 9464;
constexpr int kTlsPort = 9465;

std::string Describe(const Key& key) { return fmt::format("{}.{}", key.section, key.name); }

std::string Range(const Key& key) {
  if (std::holds_alternative<IntMember>(key.member)) {
    return fmt::format("an integer {}..{}", key.min, key.max);
  }
  if (std::holds_alternative<BoolMember>(key.member)) return "true or false";
  if (std::holds_alternative<ListMember>(key.member)) return "a list of strings";
  if (!key.choices.empty()) {
    std::string text = "one of \"";
    for (const char c : key.choices) text += c == ',' ? std::string("\", \"") : std::string(1, c);
    return text + '"';
  }
  return "a string";
}

bool IsChoice(std::string_view choices, std::string_view value) {
  for (std::string_view choice; NextPart(&choices, ',', &choice);) {
    if (choice == value) return true;
  }
  return false;
}

// False if the node is of another type.
template <class T>
bool Store(const toml::node& node, T* out) {
  const toml::value<T>* value = node.as<T>();
  if (value != nullptr) *out = value->get();
  return value != nullptr;
}

bool Store(const toml::node& node, std::vector<std::string>* out) {
  if (!node.is_array()) return false;
  std::vector<std::string> list;
  for (const toml::node& element : *node.as_array()) {
    if (!Store(element, &list.emplace_back())) return false;
  }
  *out = std::move(list);
  return true;
}

const Key* FindKey(std::string_view section, std::string_view name) {
  for (const Key& key : kKeys) {
    if (key.section == section && key.name == name) return &key;
  }
  return nullptr;
}

// "; did you mean metrics.listen?", or nothing.
std::string KeyHint(std::string_view section, std::string_view name) {
  std::vector<std::string_view> names;
  for (const Key& key : kKeys) {
    if (key.section == section) names.push_back(key.name);
  }
  const std::string_view nearest = Nearest(name, names);
  return nearest.empty() ? std::string() : fmt::format("; did you mean {}.{}?", section, nearest);
}

std::string UnknownSection(std::string_view name, bool is_table) {
  std::vector<std::string_view> sections;
  std::vector<std::string_view> with_key;
  for (const Key& key : kKeys) {
    if (sections.empty() || sections.back() != key.section) sections.push_back(key.section);
    if (key.name == name) with_key.push_back(key.section);
  }
  if (!is_table && std::ranges::find(sections, name) != sections.end()) {
    return fmt::format("{0} is a section: its keys stand below [{0}]", name);
  }
  if (is_table) return fmt::format("unknown section [{}]; there are {}{}", name, fmt::join(sections, ", "), DidYouMean(name, sections));
  if (with_key.empty()) return fmt::format("{} is a key without a section; there are {}", name, fmt::join(sections, ", "));
  return fmt::format("{} is a key without a section; it is one of [{}]", name, fmt::join(with_key, "], ["));
}

void ParseSection(std::string_view section, const toml::table& table, std::string_view file,
                  DaemonConfig* config, ConfigPlaces* places, std::vector<std::string>* problems) {
  for (const auto& [name, node] : table) {
    auto where = fmt::format("{}:{}", file, node.source().begin.line);
    const Key* key = FindKey(section, name.str());
    if (key == nullptr) {
      problems->push_back(fmt::format("{}: unknown key {}.{}{}", where, section, name.str(), KeyHint(section, name.str())));
    } else if (!std::visit([&node = node, config](auto member) { return Store(node, &(config->*member)); }, key->member)) {
      problems->push_back(fmt::format("{}: {} must be {}", where, Describe(*key), Range(*key)));
    } else {
      (*places)[Describe(*key)] = where;
    }
  }
}

std::string DefaultOf(const Key& key) {
  const DaemonConfig defaults;
  if (auto* member = std::get_if<StringMember>(&key.member)) return fmt::format("\"{}\"", defaults.*(*member));
  // A list as ["a", "b"].
  return std::visit([&defaults](auto member) { return fmt::format("{}", defaults.*member); }, key.member);
}

bool Same(const DaemonConfig& a, const DaemonConfig& b, const Key& key) {
  return std::visit([&](auto member) { return a.*member == b.*member; }, key.member);
}

// daemon/rpc reads shape and port of tls.listen, and tls.users, when it is on (CheckTls); what is left
// is reported here, so that nothing is reported twice.
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

void CheckSampling(const DaemonConfig& config, std::vector<std::string>* problems) {
  if (Status valid = SamplingOptions(config.sampling_options, config.sampling_collectors).status(); !valid.ok()) {
    problems->push_back(fmt::format("sampling.options: {}", valid.message()));
  }
  ValidateCollectors("sampling.collectors", config.sampling_collectors, problems);
  for (const std::string& text : config.sampling_jobs) {
    if (Status valid = ParseSamplingRule(text, {}).status(); !valid.ok()) {
      problems->push_back(fmt::format("sampling.jobs: {}: {}", text, valid.message()));
    }
  }
}

// An absolute path that ends with a name. `what`: as messages call it.
void CheckName(std::string_view key, std::string_view path, std::string_view what, std::vector<std::string>* problems) {
  if (!path.starts_with('/') || EndsWithName(path)) return;
  problems->push_back(fmt::format("{} = \"{}\" must end with the name of a {}", key, path, what));
}

// Of the sockets profd listens at: an address has space for so much, and the 0 behind it.
void CheckSocketLengths(const DaemonConfig& config, std::vector<std::string>* problems) {
  static constexpr size_t kMost = sizeof(sockaddr_un::sun_path) - 1;
  const std::string attach = AttachSocketOf(config);
  const auto refuse = [problems](std::string_view what, const std::string& path) {
    problems->push_back(fmt::format("{}: \"{}\" has {} bytes, a socket's path at most {}", what, path, path.size(), kMost));
  };
  if (config.socket.size() > kMost) {
    refuse("daemon.socket", config.socket);
  } else if (attach.size() > kMost && config.attach_socket.empty()) {
    refuse("daemon.socket: daemon.attach_socket in its directory", attach);
  }
  if (config.attach_socket.size() > kMost) refuse("daemon.attach_socket", config.attach_socket);
}

void CheckPaths(const DaemonConfig& config, std::vector<std::string>* problems) {
  auto absolute = [problems](std::string_view key, const std::string& path, bool may_be_empty) {
    if (path.empty() ? !may_be_empty : path.front() != '/') {
      problems->push_back(fmt::format("{} = \"{}\" must be an absolute path", key, path));
    }
  };
  absolute("daemon.socket", config.socket, false);
  if (config.attach_socket != "off") absolute("daemon.attach_socket", config.attach_socket, true);
  if (!config.attach_socket.empty() && config.attach_socket == config.socket) {
    problems->push_back(fmt::format("daemon.attach_socket = \"{}\" must be another path than daemon.socket",
                                    config.attach_socket));
  }
  CheckName("daemon.socket", config.socket, "socket", problems);
  CheckName("daemon.attach_socket", config.attach_socket, "socket", problems);
  CheckSocketLengths(config, problems);
  CheckName("dump.root", WithoutLastSlashes(config.dump_root), "directory", problems);
  CheckName("dump.state_dir", WithoutLastSlashes(config.state_dir), "directory", problems);
  absolute("dump.root", config.dump_root, false);
  absolute("dump.state_dir", config.state_dir, true);
  absolute("driver.hal_library", config.hal_library, true);
  absolute("driver.dcmi_library", config.dcmi_library, true);
  absolute("attribution.job_map_dir", config.job_map_dir, true);
  absolute("attribution.pod_resources_socket", config.pod_resources_socket, true);
  if (config.cri_socket != "auto") absolute("attribution.cri_socket", config.cri_socket, true);
  // CheckWebConfig reads the file while /metrics is served, and reports it then.
  if (!config.metrics_enabled) absolute("metrics.web_config", config.metrics_web_config, true);
  if (config.metrics_hccn_tool != "auto" && config.metrics_hccn_tool != "off") {
    absolute("metrics.hccn_tool", config.metrics_hccn_tool, false);
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

void AddPlaces(const ConfigPlaces& places, std::vector<std::string>* problems) {
  for (std::string& problem : *problems) {
    // Its own key is a problem's first word; where that one is at its default, another that it names is in the file.
    std::string_view rest = problem;
    auto place = places.end();
    for (std::string_view word; place == places.end() && NextPart(&rest, ' ', &word);) {
      if (word.ends_with(':')) word.remove_suffix(1);
      place = places.find(word);
    }
    if (place != places.end()) problem.insert(0, place->second + ": ");
  }
}

DaemonConfig ParseDaemonConfig(std::string_view text, std::string_view file_name,
                               std::vector<std::string>* problems, ConfigPlaces* places) {
  DaemonConfig config;
  ConfigPlaces found;
  toml::table root;
  try {
    root = toml::parse(text, file_name);
  } catch (const toml::parse_error& error) {
    problems->push_back(fmt::format("{}:{}: {}", file_name, error.source().begin.line,
                                    error.description()));
    return config;
  }
  for (const auto& [section, node] : root) {
    bool known = std::ranges::any_of(kKeys, [&section = section](const Key& key) {
      return key.section == section.str();
    });
    auto where = fmt::format("{}:{}", file_name, node.source().begin.line);
    if (!known || !node.is_table()) {
      problems->push_back(fmt::format("{}: {}", where, UnknownSection(section.str(), node.is_table())));
      continue;
    }
    ParseSection(section.str(), *node.as_table(), file_name, &config, &found, problems);
  }
  std::vector<std::string> of_values;
  ValidateDaemonConfig(config, &of_values);
  AddPlaces(found, &of_values);
  problems->insert(problems->end(), of_values.begin(), of_values.end());
  if (places != nullptr) *places = std::move(found);
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
  CheckPaths(config, problems);
  for (const std::string& text : config.advice_limits) {
    if (Status set = analysis::Limits().Set(text); !set.ok()) problems->push_back("advice.limits: " + set.message());
  }
  ValidateRecorder(config.recorder_collectors, config.recorder_triggers, problems);
  if (config.recorder_activity != "off" && config.recorder_activity_memory_mb >= config.recorder_memory_mb) {
    problems->push_back(fmt::format("recorder.activity_memory_mb = {} must be less than recorder.memory_mb = {}",
                                    config.recorder_activity_memory_mb, config.recorder_memory_mb));
  }
  CheckSampling(config, problems);
  for (std::string& problem : CheckSettings(SettingsOf(config))) {
    problems->push_back(std::move(problem));
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
  CheckArchive(config, problems);
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
    text += fmt::format("# {}. Value: {}{}\n#{} = {}\n", key.help, Range(key),
                        key.reloadable ? " (reload)" : "", key.name, DefaultOf(key));
  }
  return text;
}

std::string ConfigReference() {
  std::string text =
      "# Configuration\n\nPrinted by `profd --print-config-reference`; do not edit.\n\n"
      "`/etc/profd/profd.toml`, or the file named by `--config`. Flags win over the file. "
      "`profd --check-config` lists every problem at once, and warns of groups and users that the machine does not have.\n\n"
      "| key | value | default | reload | meaning |\n|---|---|---|---|---|\n";
  for (const Key& key : kKeys) {
    text += fmt::format("| `{}` | {} | `{}` | {} | {} |\n", Describe(key), Range(key),
                        DefaultOf(key), key.reloadable ? "yes" : "no", key.help);
  }
  return text;
}

}  // namespace profd
