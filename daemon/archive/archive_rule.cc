#include "daemon/archive/archive_rule.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <utility>

#include "base/host_port.h"
#include "base/text.h"
#include "base/utf8.h"
#include "daemon/config/daemon_config.h"

namespace profd {
namespace {

constexpr std::string_view kJobRule = "job=";
constexpr std::string_view kLabelRule = "label=";
constexpr std::string_view kKinds[] = {"all", "sessions", "recorder", "sampling"};
constexpr std::string_view kVariables[] = {"job", "session", "label", "user", "host"};

bool Fits(std::string_view pattern, std::string_view text) {
  return ::fnmatch(std::string(pattern).c_str(), std::string(text).c_str(), 0) == 0;
}

// Calls text(piece) and variable(name) in their order; false where a brace is not closed.
template <class Text, class Variable>
bool ForEachPart(std::string_view pattern, Text text, Variable variable) {
  while (!pattern.empty()) {
    const size_t open = std::min(pattern.find('{'), pattern.size());
    text(pattern.substr(0, open));
    pattern.remove_prefix(open);
    if (pattern.empty()) break;
    const size_t close = pattern.find('}');
    if (close == std::string_view::npos) return false;
    variable(pattern.substr(1, close - 1));
    pattern.remove_prefix(close + 1);
  }
  return true;
}

std::string_view FaultOfRule(std::string_view rule) {
  if (std::ranges::find(kKinds, rule) != std::end(kKinds)) return {};
  for (std::string_view prefix : {kJobRule, kLabelRule}) {
    if (rule.starts_with(prefix) && rule.size() > prefix.size()) return {};
  }
  return "must be all, sessions, recorder, sampling, job=PATTERN or label=PATTERN";
}

bool IsHostAndPort(std::string_view text) {
  const std::optional<HostPort> split = SplitHostPort(text);
  uint16_t port = 0;
  return split && !split->host.empty() && ParsePort(split->port, &port);
}

// What profctl reads in full (client/clickhouse/url.h); here that there is a host and a database, and no secret.
std::string_view FaultOfAddress(std::string_view text) {
  constexpr std::string_view kShape = "must be clickhouse://HOST[:PORT]/DATABASE, or clickhouses:// over TLS";
  std::string_view rest = text;
  if (rest.starts_with("clickhouse://")) {
    rest.remove_prefix(13);
  } else if (rest.starts_with("clickhouses://")) {
    rest.remove_prefix(14);
  } else {
    return kShape;
  }
  const size_t slash = rest.find('/');
  if (slash == std::string_view::npos) return kShape;
  const std::string_view authority = rest.substr(0, slash);
  const std::string_view database = rest.substr(slash + 1);
  if (const size_t at = authority.rfind('@'); at != std::string_view::npos && authority.substr(0, at).find(':') != std::string_view::npos) {
    return "has a password, which this file is not for: it belongs into the environment of profd-archive.service";
  }
  const auto is_name = [](char c) { return IsLetterOrDigit(c) || c == '_'; };
  const bool plain = std::ranges::all_of(authority, [](unsigned char c) { return c > ' ' && c < 0x7f; });
  if (!plain || authority.empty() || authority.back() == '@' || database.empty()) return kShape;
  if (!IsHostAndPort(authority.substr(authority.rfind('@') + 1))) return "must have HOST or HOST:PORT before its database, with a port of 1..65535";
  if (!std::ranges::all_of(database, is_name)) {
    return "must end with the name of a database, of letters, digits and '_'; archive.run is the run's";
  }
  return {};
}

}  // namespace

bool IsArchived(const std::vector<std::string>& which, const ArchiveSubject& subject) {
  return std::ranges::any_of(which, [&subject](std::string_view rule) {
    if (rule.starts_with(kJobRule)) return Fits(rule.substr(kJobRule.size()), subject.job_id);
    if (rule.starts_with(kLabelRule)) return Fits(rule.substr(kLabelRule.size()), subject.label);
    return rule == "all" || rule == subject.kind;
  });
}

std::string ArchiveRunName(std::string_view pattern, const ArchiveSubject& subject, std::string_view host) {
  std::string name;
  const std::string user = std::to_string(subject.uid);
  const std::pair<std::string_view, std::string_view> values[] = {
      // What belongs to no job is the node's.
      {"job", subject.job_id.empty() ? host : subject.job_id},
      {"session", subject.session},
      {"label", subject.label.empty() ? subject.kind : subject.label},
      {"user", user},
      {"host", host}};
  ForEachPart(pattern, [&name](std::string_view text) { name += text; },
              [&name, &values](std::string_view variable) {
                for (const auto& [known, value] : values) {
                  if (known == variable) name += value;
                }
              });
  if (name.empty()) name = host;
  const std::string suffix = subject.segment > 1 ? fmt::format(".{}", subject.segment) : "";
  const size_t longest = kMaxRunName - suffix.size();
  if (name.size() > longest) name.resize(BytesOfWholeCharacters(name, longest));
  name += suffix;
  std::replace_if(name.begin(), name.end(), IsControl, '_');
  return name;
}

std::string DatabaseOf(std::string_view address) {
  if (!FaultOfAddress(address).empty() && address.find('@') == std::string_view::npos) return {};
  const size_t scheme_end = address.find("://");
  if (scheme_end == std::string_view::npos) return {};
  std::string authority(address.substr(scheme_end + 3));
  const size_t slash = authority.find('/');
  if (slash == std::string::npos) return {};
  const std::string database = authority.substr(slash);
  authority.resize(slash);
  authority.erase(0, authority.rfind('@') + 1);
  const std::string plain = fmt::format("{}://{}{}", address.substr(0, scheme_end), authority, database);
  if (!FaultOfAddress(plain).empty()) return {};
  authority = LowerCase(authority);
  const bool has_port = authority.rfind(':') != std::string::npos && authority.back() != ']';
  if (!has_port) authority += address.starts_with("clickhouses:") ? ":8443" : ":8123";
  return fmt::format("{}://{}{}", address.substr(0, scheme_end), authority, database);
}

std::string FaultOfRunName(std::string_view name) {
  if (name.empty() || name.size() > kMaxRunName) return fmt::format("must have 1 to {} bytes", kMaxRunName);
  if (std::ranges::any_of(name, IsControl)) return "must have no control characters";
  std::string fault;
  const bool closed = ForEachPart(name, [](std::string_view) {}, [&fault](std::string_view variable) {
    if (std::ranges::find(kVariables, variable) == std::end(kVariables)) {
      fault = "may have {job}, {session}, {label}, {user} and {host} in braces, and nothing else";
    }
  });
  return closed ? fault : "has a { without its }";
}

std::string NamedRun(std::string_view pattern, std::string_view name) {
  constexpr std::string_view kUser = "{user}";
  constexpr std::string_view kFirst = "{user}-";
  const bool apart = pattern.find(kUser) != std::string_view::npos;
  return fmt::format("{}{}", apart && !name.starts_with(kFirst) ? kFirst : "", name);
}

void CheckArchive(const DaemonConfig& config, std::vector<std::string>* problems) {
  if (config.archive_to.empty()) return;
  if (const std::string_view fault = FaultOfAddress(config.archive_to); !fault.empty()) {
    // Not shown: there may be a password in it.
    problems->push_back(fmt::format("archive.to {}", fault));
  }
  for (const std::string& rule : config.archive_which) {
    if (const std::string_view fault = FaultOfRule(rule); !fault.empty()) {
      problems->push_back(fmt::format("archive.which: \"{}\" {}", rule, fault));
    }
  }
  if (config.archive_which.empty()) problems->push_back("archive.which must name something; an empty archive.to is off");
  const bool closed = ForEachPart(config.archive_run, [](std::string_view) {}, [problems](std::string_view variable) {
    if (std::ranges::find(kVariables, variable) != std::end(kVariables)) return;
    problems->push_back(fmt::format("archive.run: {{{}}} must be {{job}}, {{session}}, {{label}}, {{user}} or {{host}}", variable));
  });
  if (!closed) problems->push_back("archive.run: a { without its }");
  if (config.archive_run.empty() || config.archive_run.size() > kMaxRunName) {
    problems->push_back(fmt::format("archive.run must have 1 to {} bytes", kMaxRunName));
  }
  if (config.archive_retry_first_s > config.archive_retry_longest_s) {
    problems->push_back(fmt::format("archive.retry_first_s = {} must not be more than archive.retry_longest_s = {}",
                                    config.archive_retry_first_s, config.archive_retry_longest_s));
  }
}

}  // namespace profd
