#include "client/commands/tls.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <string_view>
#include <utility>

#include "base/fd.h"
#include "base/text.h"
#include "client/parse.h"
#include "client/render.h"
#include "client/tls_authority.h"

namespace profd::client {
namespace {

constexpr int kDefaultDays = 365;
constexpr int kMaxDays = 3650;

struct Client {
  std::string name;
  std::string role;
};

struct TlsPlan {
  std::vector<std::string> hosts;
  std::vector<Client> clients;
  int days = kDefaultDays;
};

struct TlsFile {
  std::string path;
  std::string content;
  mode_t mode = 0600;
};

void AddClient(const std::string& name, const char* role, TlsPlan* plan,
               std::vector<std::string>* problems) {
  if (!IsClientName(name)) {
    problems->push_back(fmt::format(
        "\"{}\" is not a valid certificate name: use 1 to 64 letters, digits, '.', '_', '@', '-'", name));
    return;
  }
  bool twice = std::any_of(plan->clients.begin(), plan->clients.end(),
                           [&name](const Client& c) { return c.name == name; });
  if (twice) problems->push_back(fmt::format("\"{}\" is named twice; one role each", name));
  plan->clients.push_back({name, role});
}

TlsPlan PlanOf(const TlsInitOptions& options, std::vector<std::string>* problems) {
  TlsPlan plan;
  Result<std::vector<std::string>> hosts = ParseList(options.hosts);
  if (hosts.ok()) plan.hosts = std::move(hosts).value();
  if (plan.hosts.empty()) problems->push_back("--hosts: names or addresses, as in node1,10.0.0.7");
  for (const std::string& host : plan.hosts) {
    if (!IsHostName(host)) {
      problems->push_back(fmt::format("--hosts: \"{}\" is not a host name or address", host));
    }
  }
  if (options.users) {
    Result<std::vector<std::string>> users = ParseList(*options.users);
    if (!users.ok()) problems->push_back("--users: " + users.status().message());
    if (users.ok()) {
      for (const std::string& user : *users) AddClient(user, "profd-user", &plan, problems);
    }
  }
  if (options.admin) AddClient(*options.admin, "profd-admin", &plan, problems);
  if (options.viewer) AddClient(*options.viewer, "profd-viewer", &plan, problems);
  if (plan.clients.empty() && problems->empty()) {
    problems->push_back("no certificate requested: use --users, --admin or --viewer");
  }
  if (options.days && (!ParseNumber(std::string_view(*options.days), &plan.days) || plan.days < 1 ||
                       plan.days > kMaxDays)) {
    problems->push_back(fmt::format("--days: 1..{}, not \"{}\"", kMaxDays, *options.days));
  }
  return plan;
}

Result<std::vector<TlsFile>> MakeFiles(const std::string& directory, const TlsPlan& plan,
                                       std::string* valid_until) {
  Result<TlsAuthority> authority = TlsAuthority::Make(plan.days);
  if (!authority.ok()) return authority.status();
  *valid_until = authority->valid_until();
  Result<IssuedPair> node = authority->IssueNode(plan.hosts);
  if (!node.ok()) return node.status();
  std::vector<TlsFile> files = {
      {directory + "/ca.key", authority->key_pem(), 0600},
      {directory + "/ca.crt", authority->certificate_pem(), 0600},
      {directory + "/server.key", node->key, 0600},
      {directory + "/server.crt", node->certificate, 0600},
  };
  for (const Client& client : plan.clients) {
    Result<IssuedPair> pair = authority->IssueClient(client.name, client.role);
    if (!pair.ok()) return pair.status();
    std::string folder = directory + "/clients/" + client.name;
    files.push_back({folder + "/client.key", pair->key, 0600});
    files.push_back({folder + "/client.crt", pair->certificate, 0600});
    files.push_back({folder + "/ca.crt", authority->certificate_pem(), 0600});
  }
  return files;
}

Status MakeFolder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0) return Status::Ok();
  struct stat info {};
  if (errno == EEXIST && ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
    return Status::Ok();
  }
  return Status::FromErrno(errno, path);
}

// Never through a link, never into a file that was there: with --force that one goes first.
Status WriteFile(const TlsFile& file, bool force) {
  if (force && ::unlink(file.path.c_str()) != 0 && errno != ENOENT) {
    return Status::FromErrno(errno, file.path);
  }
  UniqueFd fd(
      ::open(file.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, file.mode));
  if (!fd.valid()) return Status::FromErrno(errno, file.path);
  std::string_view rest = file.content;
  while (!rest.empty()) {
    ssize_t wrote = ::write(fd.get(), rest.data(), rest.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return Status::FromErrno(errno, file.path);
    rest.remove_prefix(static_cast<size_t>(wrote));
  }
  return Status::Ok();
}

Status WriteAll(const std::string& directory, const std::vector<TlsFile>& files, bool force) {
  if (!force) {
    for (const TlsFile& file : files) {
      struct stat info {};
      if (::lstat(file.path.c_str(), &info) == 0) {
        return AlreadyExists(fmt::format(
            "{} is there already; --force replaces it (certificates made before will not work "
            "with the new authority)",
            file.path));
      }
    }
  }
  std::set<std::string> folders = {directory, directory + "/clients"};
  for (const TlsFile& file : files) folders.insert(file.path.substr(0, file.path.rfind('/')));
  for (const std::string& folder : folders) RETURN_IF_ERROR(MakeFolder(folder));
  for (const TlsFile& file : files) RETURN_IF_ERROR(WriteFile(file, force));
  return Status::Ok();
}

void PrintAdvice(const Io& io, const std::string& directory, const TlsPlan& plan,
                 const std::string& valid_until) {
  std::vector<std::string> users;
  for (const Client& client : plan.clients) {
    if (client.role == "profd-user") users.push_back(fmt::format("\"{0}={0}\"", client.name));
  }
  io.out << fmt::format(
      "Made an authority, a node's certificate for {} and {} client certificate{}; valid until "
      "{}.\n"
      "\nOn each node, as root:\n"
      "  install -d -m 0755 /etc/profd/tls\n"
      "  install -m 0644 {}/ca.crt {}/server.crt /etc/profd/tls/\n"
      "  install -m 0600 {}/server.key /etc/profd/tls/\n"
      "and in /etc/profd/profd.toml (then: profd --check-config; systemctl restart profd):\n"
      "  [tls]\n"
      "  listen = \"0.0.0.0:{}\"\n"
      "  users = [{}]\n"
      "where \"NAME=USER\" gives the certificate's NAME a local user or uid of that node.\n\n"
      "Each client gets its own folder, as ~/.config/profd/tls or with --tls-dir:\n",
      fmt::join(plan.hosts, ", "), plan.clients.size(), plan.clients.size() == 1 ? "" : "s",
      valid_until, directory, directory, directory, kDefaultTlsPort, fmt::join(users, ", "));
  for (const Client& client : plan.clients) {
    io.out << fmt::format("  {}/clients/{}  ({})\n", directory, client.name, client.role);
  }
  io.out << fmt::format(
      "  profctl --address {}:{} --tls-dir {}/clients/{} status\n\n"
      "Keep {}/ca.key off the nodes: anyone holding it is an administrator of all of them.\n",
      plan.hosts.front(), kDefaultTlsPort, directory, plan.clients.front().name, directory);
}

}  // namespace

int RunTlsInit(const Io& io, const TlsInitOptions& options, bool json) {
  std::vector<std::string> problems;
  TlsPlan plan = PlanOf(options, &problems);
  std::string directory = options.directory;
  while (directory.size() > 1 && directory.back() == '/') directory.pop_back();
  if (directory.empty()) problems.emplace_back("DIR must not be empty");
  for (const std::string& problem : problems) {
    io.err << "profctl: " << PrintableLines(problem) << '\n';
  }
  if (!problems.empty()) {
    io.err << "Try \"profctl tls init --help\"." << std::endl;
    return kExitUsage;
  }
  std::string valid_until;
  Result<std::vector<TlsFile>> files = MakeFiles(directory, plan, &valid_until);
  Status status = files.ok() ? WriteAll(directory, *files, options.force) : files.status();
  if (!status.ok()) {
    io.err << "profctl: " << PrintableLines(status.message()) << std::endl;
    return status.code() == StatusCode::kInternal ? kExitInternal : kExitRefused;
  }
  if (json) {
    Json out = {{"directory", directory}, {"valid_until", valid_until}, {"hosts", plan.hosts}};
    for (const TlsFile& file : *files) out["files"].push_back(file.path);
    for (const Client& client : plan.clients) {
      out["clients"].push_back({{"name", client.name},
                                {"role", client.role},
                                {"directory", directory + "/clients/" + client.name}});
    }
    io.out << JsonText(out, /*indent=*/true) << std::endl;
  } else {
    PrintAdvice(io, directory, plan, valid_until);
  }
  return kExitOk;
}

}  // namespace profd::client
