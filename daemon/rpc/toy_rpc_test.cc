// A toy RPC, of what CONTRIBUTING.md lists on the daemon's side: a method with a role
// (proto/toy/toy.proto) and a handler that runs on the control strand. It is called over a unix
// socket, as profd's are.
#include <gmock/gmock.h>
#include <grpcpp/server_posix.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <utility>

#include "daemon/rpc/service_calls.h"
#include "dump/test_support.h"
#include "toy/toy.grpc.pb.h"

namespace profd {
namespace {

using ::testing::HasSubstr;

using Handler = std::function<void(const Peer&, const toy::DoubleRequest&, toy::DoubleResponse*,
                                   const std::function<bool(const Status&)>& finish)>;

class ToyService final : public toy::Toy::CallbackService, private rpc::ServiceCalls {
 public:
  ToyService(rpc::CallEntry& entry, const Handler& handler)
      : ServiceCalls(entry, *toy::DoubleRequest::descriptor()->file()->FindServiceByName("Toy")),
        handler_(handler) {}

  grpc::ServerUnaryReactor* Double(grpc::CallbackServerContext* call,
                                   const toy::DoubleRequest* request,
                                   toy::DoubleResponse* reply) override {
    return Answer(__func__, call, *request, reply, [this, reply](const Peer& peer, const auto& order, auto finish) {
      handler_(peer, order, reply, finish);
    });
  }

  grpc::ServerUnaryReactor* Forgotten(grpc::CallbackServerContext* call,
                                      const toy::DoubleRequest* request,
                                      toy::DoubleResponse* reply) override {
    return Answer(__func__, call, *request, reply, [this, reply](const Peer& peer, const auto& order, auto finish) {
      handler_(peer, order, reply, finish);
    });
  }

 private:
  const Handler& handler_;
};

struct Adopter final : Acceptor::Handler {
  void Adopt(int fd) override { grpc::AddInsecureChannelFromFd(server.get(), fd); }
  bool Rest() override { return true; }
  std::unique_ptr<grpc::Server> server;
};

class ToyRpcTest : public ::testing::Test {
 protected:
  ToyRpcTest() {
    grpc::ServerBuilder builder;
    builder.RegisterService(&service_);
    adopter_.server = builder.BuildAndStart();
    AcceptorOptions options;
    options.socket_path = tmp_ / "s";
    std::string warning;
    acceptor_ = Acceptor::Listen(options, adopter_, &warning).value();
    entry_.acceptor = acceptor_.get();
    acceptor_->Start();
    stub_ = toy::Toy::NewStub(
        grpc::CreateChannel("unix:" + options.socket_path, grpc::InsecureChannelCredentials()));
  }
  ~ToyRpcTest() override {
    stub_.reset();
    adopter_.server->Shutdown();
    acceptor_->Stop();
    executor_.Stop();
  }

  // The handler belongs to the control strand.
  void Handle(Handler handler) {
    control_.RunAndWait([&] { handler_ = std::move(handler); });
  }

  using Method = grpc::Status (toy::Toy::Stub::*)(grpc::ClientContext*, const toy::DoubleRequest&,
                                                  toy::DoubleResponse*);
  grpc::Status Call(Method method) {
    toy::DoubleRequest request;
    request.set_value(21);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    return (stub_.get()->*method)(&context, request, &reply_);
  }

  TempDir tmp_;
  Executor executor_{"toy", 1};
  Strand control_{executor_};
  rpc::CallEntry entry_{control_};
  Handler handler_;
  ToyService service_{entry_, handler_};
  Adopter adopter_;
  std::unique_ptr<Acceptor> acceptor_;
  std::unique_ptr<toy::Toy::Stub> stub_;
  toy::DoubleResponse reply_;
};

TEST_F(ToyRpcTest, IsAnsweredOnTheControlStrandForTheCallerTheKernelNames) {
  Handle([this](const Peer& peer, const toy::DoubleRequest& request, toy::DoubleResponse* reply,
                const auto& finish) {
    EXPECT_TRUE(control_.RunsHere());
    EXPECT_EQ(peer.uid, ::getuid());
    EXPECT_EQ(peer.pid, ::getpid());
    reply->set_value(2 * request.value());
    finish(Status::Ok());
  });
  const grpc::Status status = Call(&toy::Toy::Stub::Double);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(reply_.value(), 42);
  EXPECT_EQ(entry_.calls.load(), 0);
}

TEST_F(ToyRpcTest, ErrorsKeepTheirCodeAndText) {
  Handle([](const Peer&, const toy::DoubleRequest&, toy::DoubleResponse*, const auto& finish) {
    finish(NotFound("nothing to double"));
  });
  const grpc::Status status = Call(&toy::Toy::Stub::Double);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(status.error_message(), "nothing to double");
}

// What was done for it has to be undone where the caller cannot know of it.
TEST_F(ToyRpcTest, AnAnswerWithoutMemoryIsAnErrorOfWhichTheHandlerLearns) {
  const rpc::CallLimit& limit = rpc::CallLimits()[static_cast<size_t>(rpc::CallKind::kUnary)];
  bool answered = true;
  Handle([&](const Peer& peer, const toy::DoubleRequest& request, toy::DoubleResponse* reply, const auto& finish) {
    const uint64_t held = entry_.ledger.usage(rpc::CallKind::kUnary).bytes;
    const auto rest = entry_.ledger.Take(rpc::CallKind::kUnary, peer, limit.bytes_per_user - held - limit.base_bytes);
    ASSERT_TRUE(rest.ok()) << rest.status().ToString();
    reply->set_value(2 * request.value());
    answered = finish(Status::Ok());
  });
  const grpc::Status status = Call(&toy::Toy::Stub::Double);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  control_.RunAndWait([&] { EXPECT_FALSE(answered); });
  Handle([&answered](const Peer&, const toy::DoubleRequest&, toy::DoubleResponse*, const auto& finish) {
    answered = finish(Status::Ok());
  });
  EXPECT_TRUE(Call(&toy::Toy::Stub::Double).ok());
  control_.RunAndWait([&] { EXPECT_TRUE(answered); });
}

TEST_F(ToyRpcTest, WithoutARoleNoHandlerIsReached) {
  bool reached = false;
  Handle([&reached](const Peer&, const toy::DoubleRequest&, toy::DoubleResponse*, const auto& finish) {
    reached = true;
    finish(Status::Ok());
  });
  const grpc::Status status = Call(&toy::Toy::Stub::Forgotten);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(status.error_message(), HasSubstr("Forgotten has no role"));
  EXPECT_FALSE(reached);
  EXPECT_EQ(entry_.role_denied.load(), 1u);
}

TEST_F(ToyRpcTest, TheRoleIsTheOneAtTheMethod) {
  const rpc::MethodRoles roles(*toy::DoubleRequest::descriptor()->file()->FindServiceByName("Toy"));
  const Peer viewer{.viewer = true, .remote = true};
  EXPECT_EQ(roles.MayCall(viewer, "Double").code(), StatusCode::kPermissionDenied);
  EXPECT_TRUE(roles.MayCall(Peer(), "Double").ok());
}

}  // namespace
}  // namespace profd
