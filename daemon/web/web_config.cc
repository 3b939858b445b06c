#include "daemon/web/web_config.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <exception>
#include <optional>
#include <set>
#include <span>

#include "base/text.h"
#include "daemon/web/credentials.h"

namespace profd {
namespace {

constexpr size_t kMaxText = 256 * 1024;
constexpr size_t kMaxUsers = 64;
constexpr size_t kMaxName = 128;
constexpr size_t kMaxHeader = 1024;

struct Unsupported {
  std::string_view key;
  std::string_view why;
};
constexpr auto kUnsupportedTls = std::to_array<Unsupported>({
    {"cipher_suites", "profd takes OpenSSL's choice for TLS 1.2 and 1.3"},
    {"curve_preferences", "profd takes OpenSSL's choice"},
    {"prefer_server_cipher_suites", "profd takes OpenSSL's choice"},
    {"client_allowed_sans", "sign those who may read with an authority of their own"},
    {"cert", "name a file with cert_file"},
    {"key", "name a file with key_file"},
    {"client_ca", "name a file with client_ca_file"},
});
constexpr auto kUnsupportedTop = std::to_array<Unsupported>({
    {"rate_limit", "connections are limited by metrics.max_connections"},
});

struct Choice {
  std::string_view name;
  ClientAuth value;
};
constexpr auto kClientAuth = std::to_array<Choice>({
    {"NoClientCert", ClientAuth::kNone},
    {"RequestClientCert", ClientAuth::kRequest},
    {"RequireAnyClientCert", ClientAuth::kRequireAny},
    {"RequireClientCert", ClientAuth::kRequireAny},
    {"VerifyClientCertIfGiven", ClientAuth::kVerifyIfGiven},
    {"RequireAndVerifyClientCert", ClientAuth::kRequireAndVerify},
});
constexpr std::array<std::string_view, 5> kHeaders = {
    "Content-Security-Policy", "Strict-Transport-Security", "X-Content-Type-Options",
    "X-Frame-Options", "X-XSS-Protection"};

class Parser {
 public:
  Parser(const std::string& path, std::vector<std::string>* problems)
      : path_(path), problems_(problems) {}

  WebConfig Parse(const YAML::Node& root);

 private:
  void Problem(const YAML::Node& node, std::string_view what) {
    problems_->push_back(fmt::format("{}:{}: {}", path_, node.Mark().line + 1, what));
  }
  // `visit(name, value)` for each key of a mapping; it returns false for an unknown key.
  template <class Visit>
  void EachKey(const YAML::Node& map, std::string_view section, Visit visit);
  bool Refuse(std::span<const Unsupported> table, const YAML::Node& value, std::string_view name);
  // Of a scalar; "" for one that is not there. Other nodes are a problem.
  std::optional<std::string> Text(const YAML::Node& node, std::string_view name);
  std::string File(const YAML::Node& node, std::string_view name);
  TlsVersion Version(const YAML::Node& node, std::string_view name, TlsVersion otherwise);
  void Tls(const YAML::Node& node);
  // False for an unknown key.
  bool TlsKey(std::string_view name, const YAML::Node& value);
  void SetClientAuth(std::string_view name, const YAML::Node& value);
  void CheckTls(const YAML::Node& node);
  void Users(const YAML::Node& node);
  void Http(const YAML::Node& node);
  void Header(std::string_view name, const YAML::Node& value);

  const std::string& path_;
  std::vector<std::string>* problems_;
  WebConfig config_;
};

template <class Visit>
void Parser::EachKey(const YAML::Node& map, std::string_view section, Visit visit) {
  if (map.IsNull()) return;
  std::string name_of_map = section.empty() ? "the file" : std::string(section);
  if (!map.IsMap()) {
    Problem(map, fmt::format("{} must be a mapping (key: value)", name_of_map));
    return;
  }
  std::set<std::string> seen;
  for (auto entry = map.begin(); entry != map.end(); ++entry) {
    if (!entry->first.IsScalar()) {
      Problem(map, fmt::format("{} has a key that is not a string", name_of_map));
      continue;
    }
    const std::string& name = entry->first.Scalar();
    std::string full = section.empty() ? name : fmt::format("{}.{}", section, name);
    if (!seen.insert(name).second) Problem(entry->first, fmt::format("{} is there twice", full));
    if (!visit(std::string_view(name), entry->second)) {
      Problem(entry->first, fmt::format("unknown key {}", full));
    }
  }
}

bool Parser::Refuse(std::span<const Unsupported> table, const YAML::Node& value,
                    std::string_view name) {
  for (const Unsupported& one : table) {
    if (one.key != name) continue;
    Problem(value, fmt::format("{} is not supported: {}", name, one.why));
    return true;
  }
  return false;
}

std::optional<std::string> Parser::Text(const YAML::Node& node, std::string_view name) {
  if (node.IsNull()) return std::string();
  if (node.IsScalar()) return node.Scalar();
  Problem(node, fmt::format("{} must be a text", name));
  return std::nullopt;
}

std::string Parser::File(const YAML::Node& node, std::string_view name) {
  std::string file = Text(node, name).value_or("");
  if (file.empty() || file.front() == '/') return file;
  size_t slash = path_.rfind('/');
  return (slash == std::string::npos ? std::string() : path_.substr(0, slash + 1)) + file;
}

TlsVersion Parser::Version(const YAML::Node& node, std::string_view name, TlsVersion otherwise) {
  std::optional<std::string> text = Text(node, name);
  if (!text || text->empty()) return otherwise;
  if (*text == "TLS12") return TlsVersion::k12;
  if (*text == "TLS13") return TlsVersion::k13;
  bool old = *text == "TLS10" || *text == "TLS11";
  Problem(node, fmt::format("{} = \"{}\" {}; it must be TLS12 or TLS13", name, *text,
                            old ? "is too old to be safe" : "is not a TLS version"));
  return otherwise;
}

bool Parser::TlsKey(std::string_view name, const YAML::Node& value) {
  if (name == "cert_file") {
    config_.files.certificate = File(value, name);
  } else if (name == "key_file") {
    config_.files.key = File(value, name);
  } else if (name == "client_ca_file") {
    config_.files.client_ca = File(value, name);
  } else if (name == "min_version") {
    config_.min_version = Version(value, name, TlsVersion::k12);
  } else if (name == "max_version") {
    config_.max_version = Version(value, name, TlsVersion::k13);
  } else if (name == "client_auth_type") {
    SetClientAuth(name, value);
  } else {
    return false;
  }
  return true;
}

void Parser::SetClientAuth(std::string_view name, const YAML::Node& value) {
  const std::string text = Text(value, name).value_or("");
  if (text.empty()) return;
  const auto* found = std::ranges::find(kClientAuth, text, &Choice::name);
  if (found == kClientAuth.end()) {
    Problem(value, fmt::format("{} = \"{}\" must be NoClientCert, RequestClientCert, RequireAnyClientCert, "
                               "VerifyClientCertIfGiven or RequireAndVerifyClientCert", name, text));
    return;
  }
  config_.client_auth = found->value;
}

void Parser::Tls(const YAML::Node& node) {
  EachKey(node, "tls_server_config", [&](std::string_view name, const YAML::Node& value) {
    config_.tls = true;
    return Refuse(kUnsupportedTls, value, name) || TlsKey(name, value);
  });
  if (config_.tls) CheckTls(node);
}

void Parser::CheckTls(const YAML::Node& node) {
  const TlsPaths& files = config_.files;
  if (files.certificate.empty()) Problem(node, "tls_server_config needs cert_file");
  if (files.key.empty()) Problem(node, "tls_server_config needs key_file");
  bool verifies = config_.client_auth == ClientAuth::kVerifyIfGiven ||
                  config_.client_auth == ClientAuth::kRequireAndVerify;
  if (verifies && files.client_ca.empty()) {
    Problem(node, "client_auth_type verifies clients: it needs client_ca_file");
  }
  if (!verifies && !files.client_ca.empty()) {
    Problem(node, "client_ca_file has no effect with this client_auth_type; "
                  "RequireAndVerifyClientCert is the usual one");
  }
  if (config_.min_version > config_.max_version) {
    Problem(node, "min_version is above max_version");
  }
}

void Parser::Users(const YAML::Node& node) {
  EachKey(node, "basic_auth_users", [&](std::string_view name, const YAML::Node& value) {
    std::optional<std::string> hash = Text(value, "a bcrypt hash");
    bool good_name = !name.empty() && name.size() <= kMaxName && std::ranges::none_of(name, [](char c) { return c == ':' || IsControl(c); });
    if (!good_name) {
      Problem(value, fmt::format("a user's name has 1 to {} characters, no colon among them",
                                 kMaxName));
    }
    if (!hash) return true;
    std::optional<int> cost = BcryptCost(*hash);
    if (!cost) {
      Problem(value, fmt::format("the password of \"{}\" must be a bcrypt hash, as "
                                 "`htpasswd -nBC 10 USER` prints it ($2y$10$...)", name));
    } else if (*cost > kMaxBcryptCost) {
      Problem(value, fmt::format("the bcrypt hash of \"{}\" has cost {}; more than {} would take "
                                 "seconds for each attempt", name, *cost, kMaxBcryptCost));
    }
    if (config_.users.size() < kMaxUsers) {
      config_.users.emplace(name, *hash);
    } else {
      Problem(value, fmt::format("there can be at most {} users", kMaxUsers));
    }
    return true;
  });
}

void Parser::Header(std::string_view name, const YAML::Node& value) {
  std::optional<std::string> text = Text(value, name);
  if (!text) return;
  bool plain = std::ranges::all_of(*text, [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x7f;
  });
  if (!plain || text->size() > kMaxHeader) {
    Problem(value, fmt::format("{} must be one line of at most {} characters", name, kMaxHeader));
    return;
  }
  config_.headers.emplace_back(name, *text);
}

void Parser::Http(const YAML::Node& node) {
  EachKey(node, "http_server_config", [&](std::string_view name, const YAML::Node& value) {
    if (name == "http2") {  // profd speaks HTTP/1.1, which every client of HTTP/2 does too
      bool flag = false;
      if (!value.IsNull() && !YAML::convert<bool>::decode(value, flag)) {
        Problem(value, "http2 must be true or false");
      }
      return true;
    }
    if (name != "headers") return false;
    EachKey(value, "http_server_config.headers",
            [&](std::string_view header, const YAML::Node& content) {
              if (std::ranges::find(kHeaders, header) == kHeaders.end()) {
                return false;
              }
              Header(header, content);
              return true;
            });
    return true;
  });
}

WebConfig Parser::Parse(const YAML::Node& root) {
  EachKey(root, "", [&](std::string_view name, const YAML::Node& value) {
    if (Refuse(kUnsupportedTop, value, name)) return true;
    if (name == "tls_server_config") {
      Tls(value);
    } else if (name == "basic_auth_users") {
      Users(value);
    } else if (name == "http_server_config") {
      Http(value);
    } else {
      return false;
    }
    return true;
  });
  return std::move(config_);
}

}  // namespace

WebConfig ParseWebConfig(std::string_view text, const std::string& path,
                         std::vector<std::string>* problems) {
  if (text.size() > kMaxText) {
    problems->push_back(fmt::format("{}: is larger than {} bytes", path, kMaxText));
    return {};
  }
  try {
    return Parser(path, problems).Parse(YAML::Load(std::string(text)));
  } catch (const YAML::Exception& error) {
    problems->push_back(fmt::format("{}:{}: {}", path, error.mark.line + 1, error.msg));
  } catch (const std::exception& error) {
    problems->push_back(fmt::format("{}: {}", path, error.what()));
  }
  return {};
}

WebConfig ReadWebConfig(const std::string& path, TlsMaterial* material,
                        std::vector<std::string>* problems) {
  if (path.empty()) return {};
  Result<std::string> text = ReadTrustedFile(path, false);
  if (!text.ok()) {
    problems->push_back(
        fmt::format("metrics.web_config = \"{}\": {}", path, text.status().message()));
    return {};
  }
  WebConfig config = ParseWebConfig(*text, path, problems);
  if (!config.tls || config.files.certificate.empty() || config.files.key.empty()) return config;
  TlsFileNames names{"cert_file", "key_file", config.files.client_ca.empty() ? "" : "client_ca_file"};
  std::vector<std::string> wrong;
  *material = LoadTlsFiles(config.files, &wrong, names);
  for (const std::string& one : wrong) problems->push_back(fmt::format("{}: {}", path, one));
  return config;
}

}  // namespace profd
