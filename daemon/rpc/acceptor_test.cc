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
#include "dump/test_support.h"

namespace profd {
namespace {

class AcceptorTest : public ::testing::Test {
 protected:
  AcceptorTest() {
    options_.socket_path = tmp_ / "s";
    acceptor_ = Acceptor::Listen(options_, [this](int fd) { accepted_.set_value(fd); }, &warning_)
                    .value();
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
  std::promise<int> accepted_;
  std::unique_ptr<Acceptor> acceptor_;
};

TEST_F(AcceptorTest, TheCallerIsTakenFromTheKernel) {
  UniqueFd client = Connect();
  UniqueFd server(accepted_.get_future().get());
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

// While the daemon ends its sessions, calls on open connections go on.
TEST_F(AcceptorTest, AfterStopCallersAreStillKnown) {
  UniqueFd client = Connect();
  UniqueFd server(accepted_.get_future().get());
  acceptor_->Stop();
  EXPECT_NE(::access(options_.socket_path.c_str(), F_OK), 0);
  EXPECT_FALSE(Connect().valid());
  EXPECT_TRUE(acceptor_->Identify(fmt::format("fd:{}", server.get())).has_value());
}

// The server may rest without connections, and is asked again where it may not yet.
TEST(AcceptorQuietTest, ReportsWhenNoDaemonIsThere) {
  TempDir tmp;
  AcceptorOptions options;
  options.socket_path = tmp / "s";
  std::string warning;
  std::promise<int> accepted;
  auto acceptor =
      Acceptor::Listen(options, [&accepted](int fd) { accepted.set_value(fd); }, &warning).value();
  std::atomic<int> asked{0};
  std::atomic<bool> open{true};
  std::atomic<bool> asked_while_open{false};
  std::promise<void> rested;
  acceptor->OnQuiet(
      [&] {
        asked_while_open = asked_while_open || open;
        if (++asked < 3) return false;
        rested.set_value();  // a second time would throw
        return true;
      },
      1);
  acceptor->Start();
  UniqueFd client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, options.socket_path.c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(::connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  UniqueFd server(accepted.get_future().get());
  EXPECT_EQ(acceptor->connections(), 1U);
  open = false;
  server.Reset();
  rested.get_future().get();
  acceptor->Stop();
  EXPECT_EQ(asked, 3);
  EXPECT_FALSE(asked_while_open);
}

TEST_F(AcceptorTest, ASocketThatAnswersIsNotTakenOver) {
  std::string warning;
  auto second = Acceptor::Listen(options_, [](int) {}, &warning);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), StatusCode::kAlreadyExists);
}

}  // namespace
}  // namespace profd
