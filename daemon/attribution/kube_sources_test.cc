#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>

#include "daemon/attribution/kube_names.h"
#include "daemon/attribution/kube_pods.h"
#include "daemon/attribution/kube_socket.h"
#include "daemon/attribution/kube_test_support.h"
#include "dump/test_support.h"

namespace profd {
namespace {

constexpr uid_t kOtherUser = 61001;

// A service on a socket, as kubelet and runtime have theirs.
class KubeSources : public testing::Test {
 protected:
  std::string Path() const { return folder_.path() + "/kube.sock"; }
  // Ends before the service: calls still look at it.
  [[nodiscard]] std::unique_ptr<grpc::Server> Serve(grpc::Service& service) {
    auto server = ServeOn(Path(), service);
    EXPECT_NE(server, nullptr);
    return server;
  }
  // A listening socket that is never answered.
  UniqueFd ListenOnly(int backlog = 8) {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, Path().c_str(), sizeof(address.sun_path) - 1);
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    if (backlog >= 0) {
      EXPECT_EQ(::listen(fd.get(), backlog), 0);
    }
    return fd;
  }
  TempDir folder_;
};

TEST_F(KubeSources, KubeletReportsAscendDevices) {
  FakeKubelet kubelet;
  kubelet.Give("train-0", "huawei.com/Ascend910", "Ascend910-3");
  kubelet.Give("gpu", "nvidia.com/gpu", "Ascend910-4");
  kubelet.Give("ev\nil", "huawei.com/Ascend310P", std::string(1000, 'x'));
  const auto server = Serve(kubelet);
  auto pods = AskKubelet(Path(), ::geteuid());
  ASSERT_TRUE(pods.ok()) << pods.status().ToString();
  ASSERT_EQ(pods->size(), 2u);
  EXPECT_EQ((*pods)[0].name_space, "ml");
  EXPECT_EQ((*pods)[0].pod, "train-0");
  EXPECT_EQ((*pods)[0].container, "main");
  EXPECT_EQ((*pods)[0].device_id, "Ascend910-3");
  EXPECT_EQ((*pods)[1].pod, "ev?il");
  EXPECT_EQ((*pods)[1].device_id.size(), 128u);
}

TEST_F(KubeSources, KubeletsAnswerIsBounded) {
  FakeKubelet kubelet;
  for (size_t i = 0; i < kMaxPodDevices + 10; ++i) {
    kubelet.Give("p", "huawei.com/npu", "npu-1");
  }
  const auto server = Serve(kubelet);
  auto pods = AskKubelet(Path(), ::geteuid());
  ASSERT_TRUE(pods.ok()) << pods.status().ToString();
  EXPECT_EQ(pods->size(), kMaxPodDevices);
  kubelet.Give(std::string(static_cast<size_t>(kMaxKubeAnswer), 'x'), "huawei.com/npu", "npu-1");
  EXPECT_EQ(AskKubelet(Path(), ::geteuid()).status().code(), StatusCode::kUnavailable);
}

TEST_F(KubeSources, KubeletThatRefusesIsAnError) {
  FakeKubelet kubelet;
  kubelet.status = grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "rejected by rate limit\n");
  const auto server = Serve(kubelet);
  Status status = AskKubelet(Path(), ::geteuid()).status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("rejected by rate limit?"), std::string::npos) << status.message();
}

TEST_F(KubeSources, ServerThatHangsIsGivenUp) {
  UniqueFd listener = ListenOnly();
  EXPECT_EQ(AskKubelet(Path(), ::geteuid()).status().code(), StatusCode::kUnavailable);
}

TEST_F(KubeSources, ServerThatTakesNoConnections) {
  UniqueFd listener = ListenOnly(0);
  // The first fills the backlog.
  auto first = ConnectTrusted(Path(), ::geteuid());
  ASSERT_TRUE(first.ok()) << first.status().ToString();
  auto second = ConnectTrusted(Path(), ::geteuid());
  EXPECT_EQ(second.status().code(), StatusCode::kUnavailable);
}

TEST_F(KubeSources, NoServerAndNoSocket) {
  EXPECT_EQ(AskKubelet(Path(), ::geteuid()).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(AskKubelet(folder_.path(), ::geteuid()).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(AskKubelet("/" + std::string(200, 'x'), ::geteuid()).status().code(),
            StatusCode::kInvalidArgument);
  UniqueFd bound = ListenOnly(-1);
  EXPECT_EQ(AskKubelet(Path(), ::geteuid()).status().code(), StatusCode::kUnavailable);
}

TEST_F(KubeSources, SocketOfAnotherUserIsNotTrusted) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  UniqueFd listener = ListenOnly();
  ASSERT_EQ(::lchown(Path().c_str(), kOtherUser, kOtherUser), 0);
  EXPECT_EQ(ConnectTrusted(Path(), 0).status().code(), StatusCode::kPermissionDenied);
  EXPECT_TRUE(ConnectTrusted(Path(), kOtherUser).ok());
}

TEST_F(KubeSources, ListenerOfAnotherUserIsNotTrusted) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  UniqueFd bound = ListenOnly(-1);
  // The kernel notes who calls listen().
  pid_t child = ::fork();
  if (child == 0) ::_exit(::setuid(kOtherUser) == 0 && ::listen(bound.get(), 8) == 0 ? 0 : 1);
  int ended = -1;
  ASSERT_EQ(::waitpid(child, &ended, 0), child);
  ASSERT_EQ(ended, 0);
  EXPECT_EQ(ConnectTrusted(Path(), 0).status().code(), StatusCode::kPermissionDenied);
}

TEST_F(KubeSources, RuntimeReportsNames) {
  FakeRuntime runtime;
  runtime.Run("c1", "train-0", "main");
  runtime.Run("c2", "other", "side");
  runtime.containers.add_containers()->set_id("c3");  // without a sandbox
  const auto server = Serve(runtime);
  auto names = AskRuntime(Path(), ::geteuid(), {"c1", "c3", "c9"});
  ASSERT_TRUE(names.ok()) << names.status().ToString();
  EXPECT_TRUE(runtime.running_only);
  ASSERT_EQ(names->size(), 2u);
  EXPECT_EQ((*names)["c1"].name_space, "ml");
  EXPECT_EQ((*names)["c1"].pod, "train-0");
  EXPECT_EQ((*names)["c1"].container, "main");
  EXPECT_EQ((*names)["c3"].pod, "");
  runtime.refuses = true;
  EXPECT_EQ(AskRuntime(Path(), ::geteuid(), {"c1"}).status().code(), StatusCode::kUnavailable);
}

TEST_F(KubeSources, RuntimeWithoutThisApi) {
  FakeKubelet kubelet;
  const auto server = Serve(kubelet);
  EXPECT_EQ(AskRuntime(Path(), ::geteuid(), {"c1"}).status().code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace profd
