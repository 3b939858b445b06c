#include "daemon/rpc/acceptor.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <future>

#include "base/fd.h"
#include "base/testing/eventually.h"
#include "dump/test_support.h"

namespace profd {
namespace {

struct FirstConnection final : Acceptor::Handler {
  void Adopt(int fd) override { accepted.set_value(fd); }
  bool Rest() override { return true; }
  std::promise<int> accepted;
};

class AcceptorTest : public ::testing::Test {
 protected:
  AcceptorTest() {
    options_.socket_path = tmp_ / "s";
    acceptor_ = Acceptor::Listen(options_, server_, &warning_).value();
    acceptor_->Start();
  }

  UniqueFd Connect() {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, options_.socket_path.c_str(), sizeof address.sun_path - 1);
    if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fd.Reset();
    return fd;
  }

  TempDir tmp_;
  AcceptorOptions options_;
  std::string warning_;
  FirstConnection server_;
  std::unique_ptr<Acceptor> acceptor_;  // its thread calls the server until it is destroyed
};

TEST_F(AcceptorTest, TheCallerIsTakenFromTheKernel) {
  UniqueFd client = Connect();
  UniqueFd server(server_.accepted.get_future().get());
  std::optional<Peer> peer = acceptor_->Identify(fmt::format("fd:{}", server.get()));
  ASSERT_TRUE(peer.has_value());
  EXPECT_EQ(peer->pid, ::getpid());
  EXPECT_EQ(peer->uid, ::getuid());
  EXPECT_TRUE(peer->admin);  // the daemon's own user
  EXPECT_FALSE(acceptor_->Identify(fmt::format("fd:{}", server.get() + 1)).has_value());
  EXPECT_FALSE(acceptor_->Identify("unix:").has_value());
  EXPECT_FALSE(acceptor_->Identify("fd:x").has_value());
}

TEST_F(AcceptorTest, WithoutAGroupTheSocketIsTheDaemonsOwn) {
  struct stat info {};
  ASSERT_EQ(::stat(options_.socket_path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
}

// As a cleaner of temporary files does it.
TEST_F(AcceptorTest, ASocketThatWasRemovedIsBoundAgain) {
  ASSERT_EQ(::unlink(options_.socket_path.c_str()), 0);
  acceptor_->CheckPath();
  ASSERT_TRUE(Eventually([this] { return Connect().valid(); }));
  struct stat info {};
  ASSERT_EQ(::stat(options_.socket_path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
}

// While the daemon ends its sessions, calls on open connections go on.
TEST_F(AcceptorTest, AfterStopCallersAreStillKnown) {
  UniqueFd client = Connect();
  UniqueFd server(server_.accepted.get_future().get());
  acceptor_->Stop();
  EXPECT_NE(::access(options_.socket_path.c_str(), F_OK), 0);
  EXPECT_FALSE(Connect().valid());
  EXPECT_TRUE(acceptor_->Identify(fmt::format("fd:{}", server.get())).has_value());
}

// Does not rest before it is asked for the third time.
struct TiredHandler final : Acceptor::Handler {
  void Adopt(int fd) override { accepted.set_value(fd); }
  bool Rest() override {
    asked_while_open = asked_while_open || open;
    if (++asked < 3) return false;
    rested.set_value();  // a second time would throw
    return true;
  }
  std::promise<int> accepted;
  std::atomic<int> asked{0};
  std::atomic<bool> open{true};
  std::atomic<bool> asked_while_open{false};
  std::promise<void> rested;
};

// The server may rest without connections, and is asked again where it may not yet.
TEST(AcceptorQuietTest, ReportsWhenNoDaemonIsThere) {
  TempDir tmp;
  AcceptorOptions options;
  options.socket_path = tmp / "s";
  options.rest_after_ns = kNsPerMs;
  std::string warning;
  TiredHandler server;
  auto acceptor = Acceptor::Listen(options, server, &warning).value();
  acceptor->Start();
  UniqueFd client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, options.socket_path.c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(::connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  UniqueFd accepted(server.accepted.get_future().get());
  EXPECT_EQ(acceptor->connections(), 1U);
  server.open = false;
  accepted.Reset();
  server.rested.get_future().get();
  acceptor->Stop();
  EXPECT_EQ(server.asked, 3);
  EXPECT_FALSE(server.asked_while_open);
}

TEST(UnknownAccountsTest, EachIsNamedByItsKey) {
  DaemonConfig config;
  config.socket_group = "no-such-group-1";
  config.admin_group = "no-such-group-2";
  config.archive_user = "no-such-user";
  const std::vector<std::string> unknown = UnknownAccounts(config);
  ASSERT_EQ(unknown.size(), 2U) << "nothing is archived";
  EXPECT_EQ(unknown[0], "daemon.socket_group: no group no-such-group-1: only root and profd's own user can connect");
  EXPECT_EQ(unknown[1], "daemon.admin_group: no group no-such-group-2: only root and profd's own user are administrators");
  config.archive_to = "clickhouse://db/profiles";
  ASSERT_EQ(UnknownAccounts(config).size(), 3U);
  EXPECT_EQ(UnknownAccounts(config)[2], "archive.user: no user no-such-user: profd-archive.service cannot fetch dumps");
}

TEST(UnknownAccountsTest, WhatTheMachineHasAndWhatIsNotSetIsNotReported) {
  DaemonConfig config;
  config.socket_group = "root";
  config.admin_group = "";
  config.archive_to = "clickhouse://db/profiles";
  config.archive_user = "0";
  EXPECT_EQ(UnknownAccounts(config), std::vector<std::string>());
}

TEST_F(AcceptorTest, ASocketThatAnswersIsNotTakenOver) {
  std::string warning;
  auto second = Acceptor::Listen(options_, server_, &warning);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), StatusCode::kAlreadyExists);
}

}  // namespace
}  // namespace profd
