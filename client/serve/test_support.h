// For tests only: connections to a server of this machine.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "base/fd.h"

namespace profd::client {

inline UniqueFd ConnectTo(uint16_t port) {
  UniqueFd client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return client;
}

inline void SendText(const UniqueFd& client, const std::string& text) {
  EXPECT_EQ(send(client.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
}

// All until the server closes.
inline std::string Rest(const UniqueFd& client) {
  std::string answer;
  char buffer[65536];
  for (ssize_t count = 0; (count = recv(client.get(), buffer, sizeof buffer, 0)) > 0;) {
    answer.append(buffer, static_cast<size_t>(count));
  }
  return answer;
}

}  // namespace profd::client
