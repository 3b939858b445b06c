// Which daemon a command line means; certificates that profctl makes and reads.
#include "client/endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "client/connection.h"
#include "client/test_support.h"
#include "client/tls_files.h"

namespace profd::client {
namespace {

using ::testing::HasSubstr;

TEST(EndpointTest, Addresses) {
  struct Case {
    const char* text;
    const char* address;
    const char* host;
  };
  for (const Case& c :
       {Case{"node7", "node7:9465", "node7"}, Case{"node7:1", "node7:1", "node7"},
        Case{"10.0.0.7:65535", "10.0.0.7:65535", "10.0.0.7"},
        Case{"fd00::7", "[fd00::7]:9465", "fd00::7"},
        Case{"[fd00::7]:99", "[fd00::7]:99", "fd00::7"}, Case{"[::1]", "[::1]:9465", "::1"}}) {
    Result<std::string> address = ParseAddress(c.text);
    ASSERT_TRUE(address.ok()) << c.text;
    EXPECT_EQ(*address, c.address);
    EXPECT_EQ(HostOf(*address), c.host);
  }
  for (const char* text : {"", ":1", "h:", "h:0", "h:65536", "h:-1", "h:1x", "a b", "h/x", "[::1",
                           "[::1]x", "[]:1", "h\n", "dns:///x", "unix:/x"}) {
    EXPECT_EQ(ParseAddress(text).status().code(), StatusCode::kInvalidArgument) << text;
  }
  EXPECT_FALSE(ParseAddress(std::string(300, 'h')).ok());
}

class EndpointOfTest : public ProfctlTest {};

TEST_F(EndpointOfTest, SocketUnlessAnAddressIsNamed) {
  default_socket_ = "/env/s";
  EXPECT_EQ(Run({"status"}), 0);
  EXPECT_FALSE(daemon_.endpoint.remote());
  EXPECT_EQ(Run({"--address", "n1", "status"}), 0);
  EXPECT_EQ(daemon_.endpoint.address, "n1:9465");
  EXPECT_EQ(daemon_.endpoint.tls.ca, "/etc/profd/tls/ca.crt");
  default_address_ = "n2:1";
  EXPECT_EQ(Run({"status"}), 0);
  EXPECT_EQ(daemon_.endpoint.address, "n2:1");
  EXPECT_EQ(Run({"status", "--socket", "/flag/s"}), 0);
  EXPECT_EQ(daemon_.endpoint.address, "");
  EXPECT_EQ(daemon_.endpoint.socket, "/flag/s");
  EXPECT_EQ(Run({"status", "--address", "n1:x"}), 2);
  EXPECT_EQ(Run({"status", "--address", ""}), 2);
  EXPECT_EQ(Run({"status", "--address", "n1", "--socket", "/s"}), 2);
  default_address_ = "n2:x";
  ExpectMessage({"status"}, 2, "PROFD_ADDRESS");
}

// Its clock is an hour ahead of ours: what began 20 s ago there, began 20 s ago.
TEST_F(EndpointOfTest, TimesOfANodeAreComparedWithItsOwnClock) {
  const int64_t now_ns = clock_.WallNs() + 3600 * kNsPerSecond;
  daemon_.time.set_wall_ns(now_ns);
  v1::Session& session = daemon_.sessions["s1"];
  session.set_session_id("s1");
  session.mutable_status()->set_state(v1::Session::STATE_RUNNING);
  session.mutable_status()->set_started_ns(now_ns - 20 * kNsPerSecond);
  daemon_.watch = {session};
  daemon_.node.mutable_archive()->set_waiting(1);
  daemon_.node.mutable_archive()->set_oldest_ns(now_ns - 20 * kNsPerSecond);
  for (const char* command : {"list", "show", "watch", "status", "stop"}) {
    std::vector<std::string> arguments = {"--address", "n1", command};
    if (std::string_view("show watch stop").find(command) != std::string_view::npos) arguments.emplace_back("s1");
    (void)Run(arguments);
    EXPECT_THAT(out(), HasSubstr("20 s")) << command;
  }
  // A socket is of this machine, which has one clock.
  session.mutable_status()->set_started_ns(clock_.WallNs() - 30 * kNsPerSecond);
  EXPECT_EQ(Run({"list"}), 0);
  EXPECT_THAT(out(), HasSubstr("30 s"));
}

// As of a dump that could not be completed after a restart.
TEST_F(EndpointOfTest, ASessionWhoseEndIsNotKnownDidNotRunUntilNow) {
  v1::Session& session = daemon_.sessions["s1"];
  session.mutable_status()->set_state(v1::Session::STATE_INTERRUPTED);
  session.mutable_status()->set_started_ns(clock_.WallNs() - 20 * kNsPerSecond);
  EXPECT_EQ(Run({"show", "s1"}), 0);
  EXPECT_THAT(out(), HasSubstr("ran for  -\n"));
}

TEST_F(EndpointOfTest, FilesOfOnesOwnThenOfTheMachine) {
  TempDir home;
  home_ = home.path();
  EXPECT_EQ(Run({"--address", "n1", "status"}), 0);
  EXPECT_EQ(daemon_.endpoint.tls.key, "/etc/profd/tls/client.key");
  std::filesystem::create_directories(home / ".config/profd/tls");
  EXPECT_EQ(Run({"--address", "n1", "status"}), 0);
  EXPECT_EQ(daemon_.endpoint.tls.key, home / ".config/profd/tls/client.key");
  default_tls_dir_ = "/env";
  EXPECT_EQ(Run({"--address", "n1", "status"}), 0);
  EXPECT_EQ(daemon_.endpoint.tls.certificate, "/env/client.crt");
  EXPECT_EQ(Run({"--tls-dir", "/d", "--tls-ca", "/ca", "--tls-server-name", "x", "--address", "n1",
                 "status"}),
            0);
  EXPECT_EQ(daemon_.endpoint.tls.ca, "/ca");
  EXPECT_EQ(daemon_.endpoint.tls.certificate, "/d/client.crt");
  EXPECT_EQ(daemon_.endpoint.tls.server_name, "x");
}

class ClientTlsTest : public ::testing::Test {
 protected:
  ClientTlsTest() {
    const std::string make = "client/profctl-tls-init " + dir_.path() + " --hosts n1 --users alice,bob >/dev/null";
    EXPECT_EQ(std::system(make.c_str()), 0);
  }
  static void Write(const std::string& path, const std::string& text, mode_t mode) {
    std::ofstream(path, std::ios::binary) << text;
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
  }
  // What LoadClientTls says is wrong.
  std::string Problem() const {
    Result<ClientTls> tls = LoadClientTls(files_);
    EXPECT_TRUE(tls.ok() || ExitCodeFor(tls.status().code()) == kExitRefused);
    return tls.ok() ? "" : tls.status().message();
  }

  TempDir dir_;
  TlsFiles files_ = TlsFilesOf(dir_ / "clients/alice");
};

TEST_F(ClientTlsTest, Good) { EXPECT_EQ(Problem(), ""); }

TEST_F(ClientTlsTest, EveryProblemNamesTheFile) {
  ::chmod(files_.key.c_str(), 0640);
  EXPECT_THAT(Problem(), HasSubstr("chmod 600 " + files_.key));
  ::chmod(files_.key.c_str(), 0600);
  Write(files_.key, ReadText(dir_ / "clients/bob/client.key"), 0600);
  EXPECT_THAT(Problem(), HasSubstr("is not the key of " + files_.certificate));
  Write(files_.key, "x", 0600);
  EXPECT_THAT(Problem(), HasSubstr(files_.key + " holds no private key"));
  Write(files_.certificate, "", 0600);
  EXPECT_THAT(Problem(), HasSubstr(files_.certificate + " holds no certificate"));
  Write(files_.ca, "x", 0600);
  files_.ca = dir_ / "none";
  EXPECT_THAT(Problem(), HasSubstr("--tls-dir"));
}

}  // namespace
}  // namespace profd::client
