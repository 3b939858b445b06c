#include "daemon/rpc/tcp_listener.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/host_port.h"
#include "base/text.h"

namespace profd {
namespace {

constexpr int kBacklog = 128;

}  // namespace

Result<TcpAddress> ParseTcpAddress(const std::string& text, std::string_view key) {
  auto malformed = [&] {
    return InvalidArgument(fmt::format(
        "{} = \"{}\" must be ADDRESS:PORT, as in \"0.0.0.0:9465\" or \"[::]:9465\"", key, text));
  };
  const std::optional<HostPort> split = SplitHostPort(text);
  TcpAddress address;
  if (!split || split->host.empty() || !split->port.starts_with(':') || !ParseNumber(split->port.substr(1), &address.port)) {
    return malformed();
  }
  address.host = split->host;
  return address;
}

Result<UniqueFd> BindTcp(const std::string& text, std::string_view key) {
  Result<TcpAddress> address = ParseTcpAddress(text, key);
  if (!address.ok()) return address.status();
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  int error =
      ::getaddrinfo(address->host.c_str(), std::to_string(address->port).c_str(), &hints, &found);
  if (error != 0) {
    return InvalidArgument(fmt::format("{} = \"{}\": {}", key, text, ::gai_strerror(error)));
  }
  std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  UniqueFd fd(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return Status::FromErrno(errno, fmt::format("socket for {}", key));
  int one = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (::bind(fd.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      ::listen(fd.get(), kBacklog) != 0) {
    return Status::FromErrno(errno, fmt::format("{} = \"{}\"", key, text));
  }
  return fd;
}

std::string AddressText(const sockaddr_storage& address, bool with_port) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &address, sizeof v6);
    ::inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
    return with_port ? fmt::format("[{}]:{}", text.data(), ntohs(v6.sin6_port)) : text.data();
  }
  sockaddr_in v4{};
  std::memcpy(&v4, &address, sizeof v4);
  ::inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
  return with_port ? fmt::format("{}:{}", text.data(), ntohs(v4.sin_port)) : text.data();
}

int PortOf(int fd) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size) != 0) return 0;
  if (bound.ss_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &bound, sizeof v6);
    return ntohs(v6.sin6_port);
  }
  sockaddr_in v4{};
  std::memcpy(&v4, &bound, sizeof v4);
  return ntohs(v4.sin_port);
}

}  // namespace profd
