// The real transport against a small server in this process, on a socket of its own.
#include "client/grpc_api.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "client/test_support.h"
#include "profd/v1/profd.grpc.pb.h"

namespace profd::client {
namespace {

class Nodes final : public v1::NodeService::Service {
 public:
  grpc::Status GetNode(grpc::ServerContext*, const v1::GetNodeRequest*, v1::Node* node) override {
    node->set_hostname("here");
    node->set_version("0.1.0");
    return grpc::Status::OK;
  }
  grpc::Status StreamSamples(grpc::ServerContext*, const v1::StreamSamplesRequest*,
                             grpc::ServerWriter<v1::SampleChunk>* writer) override {
    v1::SampleChunk chunk;
    while (writer->Write(chunk)) {
    }
    return grpc::Status::OK;
  }
};

class Dumps final : public v1::DumpService::Service {
 public:
  grpc::Status FetchDump(grpc::ServerContext*, const v1::FetchDumpRequest*,
                         grpc::ServerWriter<v1::DumpChunk>* writer) override {
    v1::DumpChunk chunk;
    chunk.set_dump_name("PROF_x");
    chunk.set_total_bytes(200 * 65536);
    for (int i = 0; i < 200; ++i) {
      chunk.set_path(i == 0 ? "data" : "");
      chunk.set_data(std::string(65536, static_cast<char>('a' + i % 26)));
      chunk.set_last(i == 199);
      writer->Write(chunk);
      chunk.clear_dump_name();
    }
    return grpc::Status::OK;
  }
};

class Sessions final : public v1::SessionService::Service {
 public:
  grpc::Status StartSession(grpc::ServerContext*, const v1::StartSessionRequest* request,
                            v1::Session* session) override {
    if (request->spec().target().job_id() == "good") {
      session->set_session_id("s1");
      session->mutable_status()->set_state(v1::Session::STATE_RUNNING);
      return grpc::Status::OK;
    }
    return {grpc::StatusCode::INVALID_ARGUMENT, "dvpp_freq 101: 1..100\nrank -2: at least 0"};
  }
  grpc::Status StopSession(grpc::ServerContext*, const v1::StopSessionRequest* request,
                           v1::Session* session) override {
    session->set_session_id(request->session_id());
    session->mutable_status()->set_state(v1::Session::STATE_DONE);
    return grpc::Status::OK;
  }
  grpc::Status GetSession(grpc::ServerContext* context, const v1::GetSessionRequest*,
                          v1::Session*) override {
    WaitForCancel(context);
    return grpc::Status::CANCELLED;
  }
  grpc::Status WatchSession(grpc::ServerContext* context, const v1::WatchSessionRequest* request,
                            grpc::ServerWriter<v1::Session>* writer) override {
    if (request->session_id() == "broken") return {grpc::StatusCode::UNAVAILABLE, "Socket closed"};
    v1::Session session;
    session.set_session_id(request->session_id());
    session.mutable_status()->set_state(v1::Session::STATE_RUNNING);
    writer->Write(session);
    if (request->session_id() == "endless") {
      WaitForCancel(context);
      return grpc::Status::CANCELLED;
    }
    session.mutable_status()->set_state(v1::Session::STATE_DONE);
    writer->Write(session);
    return grpc::Status::OK;
  }
  // Lets every waiting handler go, for a client that never cancels.
  void Release() {
    std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }

 private:
  // The synchronous server reports a cancel only when asked.
  void WaitForCancel(grpc::ServerContext* context) {
    std::unique_lock lock(mutex_);
    while (!released_ && !context->IsCancelled()) {
      changed_.wait_for(lock, std::chrono::milliseconds(5));
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool released_ = false;
};

class GrpcApiTest : public ProfctlTest {
 protected:
  GrpcApiTest() : socket_(dir_ / "s.sock") {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket_, grpc::InsecureServerCredentials());
    builder.RegisterService(&nodes_);
    builder.RegisterService(&sessions_);
    builder.RegisterService(&dumps_);
    server_ = builder.BuildAndStart();
    default_socket_ = socket_;
    make_api_ = MakeGrpcApi;
  }
  ~GrpcApiTest() override {
    sessions_.Release();
    if (server_) server_->Shutdown();
  }

  TempDir dir_;
  std::string socket_;
  Nodes nodes_;
  Sessions sessions_;
  Dumps dumps_;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(GrpcApiTest, AnswersArrive) {
  EXPECT_EQ(Run({"status"}), 0) << err();
  EXPECT_EQ(out().rfind("profd 0.1.0 on here", 0), 0u) << out();
}

TEST_F(GrpcApiTest, ErrorsKeepCodeAndText) {
  EXPECT_EQ(Run({"start"}), 3);
  EXPECT_EQ(err(),
            "profctl: invalid argument: dvpp_freq 101: 1..100\n"
            "         rank -2: at least 0\n");
  EXPECT_EQ(Run({"list"}), 3) << "this server does not know ListSessions";
  EXPECT_NE(err().find("this profd does not know the call"), std::string::npos) << err();
}

// gRPC would log it, send it all the same, and the daemon could not read it.
TEST_F(GrpcApiTest, TextsThatAreNotUtf8AreRefusedByName) {
  const std::string cut = "a\xc3";
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"start", "--job", cut}, "job_id"},
      {{"start", "--job", "good", "--label", cut}, "label"},
      {{"start", "--job", "good", "--metadata", "team=" + cut}, "metadata"},
      {{"start", "--job", "good", "--collector", cut}, "name"},
      {{"start", "--job", "good", "--options-json", "{\"fp_point\":\"" + cut + "\"}"}, "options_json"},
      {{"start", "--job", "good", "--acl", "ACL_PROF_AICPU=" + cut}, "acl_switches"},
      {{"watch", cut}, "session_id"},
  };
  for (const auto& [arguments, field] : cases) {
    EXPECT_EQ(Run(arguments), 3) << field;
    EXPECT_NE(err().find("invalid argument: " + field + " has bytes that are not UTF-8"), std::string::npos) << err();
  }
  (void)Run({"start", "--job", "good", "--label", "caf\xc3\xa9"});
  EXPECT_EQ(err().find("UTF-8"), std::string::npos) << err();
}

TEST_F(GrpcApiTest, ACommandRunsWithinASession) {
  ExpectMessage({"run", "--job", "good", "--", "sh", "-c", "exit 6"}, 6, "session s1 done");
}

TEST_F(GrpcApiTest, StreamsArriveAndEnd) {
  EXPECT_EQ(Run({"watch", "s1", "--json"}), 0);
  EXPECT_EQ(OutLines(), 2);
  EXPECT_EQ(Run({"fetch", "x", "--out", dir_.path()}), 0) << err();
  EXPECT_EQ(std::filesystem::file_size(dir_ / "PROF_x/data"), 200u * 65536);
}

TEST_F(GrpcApiTest, TheReceiverMayEndAStream) {
  auto api = MakeGrpcApi(Endpoint::OnSocket(socket_), std::nullopt);
  int chunks = 0;
  Status status = api->StreamSamples({}, [&](const v1::SampleChunk&) { return ++chunks < 5; });
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(chunks, 5);
}

TEST_F(GrpcApiTest, TheWaitHookCancels) {
  auto api = MakeGrpcApi(Endpoint::OnSocket(socket_), std::nullopt);
  api->SetWaitHook([] { return false; });
  const Status query = api->GetSession({}).status();
  EXPECT_EQ(query.code(), StatusCode::kCancelled);
  EXPECT_EQ(query.message(), "interrupted") << "not gRPC's word";
  v1::WatchSessionRequest request;
  request.set_session_id("endless");
  Status status = api->WatchSession(request, [](const v1::Session&) { return true; });
  EXPECT_EQ(status.code(), StatusCode::kCancelled);
  EXPECT_EQ(status.message(), "interrupted");
}

TEST_F(GrpcApiTest, ADaemonThatDoesNotAnswerIsUnreachable) {
  ExpectMessage({"--timeout", "200ms", "show", "s1"}, 6, "did not answer in time (no answer within 0.2 s)");
  ExpectMessage({"--timeout", "200ms", "watch", "endless"}, 6, "went silent");
}

// A new daemon, or the socket of systemd, answers at the place of the one that was killed.
TEST_F(GrpcApiTest, ACallThatBreaksNamesTheSocketAndWhatToDo) {
  ExpectMessage({"watch", "broken"}, 6, "the call to profd at " + socket_ + " ended: Socket closed");
  EXPECT_NE(err().find("beyond daemon.max_connections"), std::string::npos) << "a full daemon ends calls in the same way: " << err();
  EXPECT_NE(err().find("systemctl status profd"), std::string::npos) << err();
}

// As calls that a daemon has not answered when it ends.
TEST_F(GrpcApiTest, ACallThatTheDaemonCancelsMayBeTriedAgain) {
  sessions_.Release();
  ExpectMessage({"show", "s1"}, 6, "the call to profd at " + socket_ + " ended: cancelled by profd\n");
  EXPECT_NE(err().find("try again"), std::string::npos) << err();
}

TEST_F(GrpcApiTest, NoServerIsUnreachable) {
  server_->Shutdown();
  server_.reset();
  ExpectMessage({"status"}, 6, "profd cannot be reached");
  EXPECT_EQ(Run({"watch", "x"}), 6);
  EXPECT_EQ(Run({"fetch", "x", "--out", dir_.path()}), 6);
}

}  // namespace
}  // namespace profd::client
