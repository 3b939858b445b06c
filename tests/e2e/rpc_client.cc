// A client that knows nothing of profctl's manners: it talks to a running daemon's socket
// ($PROFD_SOCKET) directly, with whole messages, broken ones, too large ones and calls that are given
// up. Started by test_rpc.py, which owns the daemon.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "profd/v1/profd.grpc.pb.h"

namespace profd {
namespace {

using std::chrono::milliseconds;

// Nothing here may take longer, on whatever machine; no test waits for it.
constexpr auto kPatience = std::chrono::seconds(120);

std::string Target() {
  const char* socket = std::getenv("PROFD_SOCKET");
  return std::string("unix:") + (socket == nullptr ? "/run/profd/profd.sock" : socket);
}

std::shared_ptr<grpc::Channel> NewChannel() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(64 << 20);
  return grpc::CreateCustomChannel(Target(), grpc::InsecureChannelCredentials(), arguments);
}

std::unique_ptr<grpc::ClientContext> Context(std::chrono::nanoseconds patience = kPatience) {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(std::chrono::system_clock::now() +
                        std::chrono::duration_cast<std::chrono::microseconds>(patience));
  return context;
}

struct Answer {
  grpc::Status status;
  std::string bytes;
};

// One message there, one back (or the first of a stream), as bytes.
Answer CallRaw(const std::string& method, const std::string& request) {
  auto channel = NewChannel();
  grpc::GenericStub stub(channel);
  auto context = Context();
  grpc::CompletionQueue queue;
  grpc::Slice slice(request);
  grpc::ByteBuffer out(&slice, 1);
  auto call = stub.PrepareCall(context.get(), method, &queue);
  void* tag = nullptr;
  bool ok = false;
  auto next = [&] { return queue.Next(&tag, &ok) && ok; };
  Answer answer;
  grpc::ByteBuffer in;
  call->StartCall(nullptr);
  next();
  call->WriteLast(out, grpc::WriteOptions(), nullptr);
  if (next()) {
    call->Read(&in, nullptr);
    std::vector<grpc::Slice> slices;
    if (next() && in.Dump(&slices).ok()) {
      for (const grpc::Slice& part : slices) {
        answer.bytes.append(reinterpret_cast<const char*>(part.begin()), part.size());
      }
      if (method.find("Reflection") != std::string::npos) context->TryCancel();
    }
  }
  call->Finish(&answer.status, nullptr);
  next();
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  return answer;
}

class RpcTest : public ::testing::Test {
 protected:
  RpcTest()
      : channel_(NewChannel()),
        nodes_(v1::NodeService::NewStub(channel_)),
        sessions_(v1::SessionService::NewStub(channel_)),
        dumps_(v1::DumpService::NewStub(channel_)) {}

  grpc::Status Start(const v1::SessionSpec& spec, v1::Session* session) {
    v1::StartSessionRequest request;
    *request.mutable_spec() = spec;
    return sessions_->StartSession(Context().get(), request, session);
  }
  grpc::Status Stop(const std::string& id, v1::Session* session) {
    v1::StopSessionRequest request;
    request.set_session_id(id);
    return sessions_->StopSession(Context().get(), request, session);
  }
  void ExpectAlive() {
    v1::Node node;
    grpc::Status status = nodes_->GetNode(Context().get(), {}, &node);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_GT(node.devices_size(), 0);
  }
  v1::Session StartHccs() {
    v1::SessionSpec request;
    request.mutable_target()->add_devices(0);
    request.mutable_options()->set_sys_interconnection_freq(50);
    v1::Session session;
    grpc::Status status = Start(request, &session);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return session;
  }

  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::NodeService::Stub> nodes_;
  std::unique_ptr<v1::SessionService::Stub> sessions_;
  std::unique_ptr<v1::DumpService::Stub> dumps_;
};

const std::vector<std::string> kMethods = {
    "/profd.v1.NodeService/GetNode",         "/profd.v1.NodeService/StreamSamples",
    "/profd.v1.SessionService/StartSession", "/profd.v1.SessionService/StopSession",
    "/profd.v1.SessionService/GetSession",   "/profd.v1.SessionService/ListSessions",
    "/profd.v1.SessionService/WatchSession", "/profd.v1.DumpService/FetchDump",
    "/profd.v1.DumpService/DeleteDump"};

TEST_F(RpcTest, HealthCheck) {
  Answer all = CallRaw("/grpc.health.v1.Health/Check", "");
  EXPECT_TRUE(all.status.ok()) << all.status.error_message();
  EXPECT_EQ(all.bytes, "\x08\x01");  // status: SERVING
  Answer unknown = CallRaw("/grpc.health.v1.Health/Check", "\x0a\x04nope");
  EXPECT_EQ(unknown.status.error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(RpcTest, ReflectionListsTheService) {
  Answer answer = CallRaw("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                          std::string("\x3a\x00", 2));  // list_services: ""
  for (const char* service : {"profd.v1.NodeService", "profd.v1.SessionService", "profd.v1.DumpService"}) {
    EXPECT_NE(answer.bytes.find(service), std::string::npos) << service;
  }
  EXPECT_NE(answer.bytes.find("grpc.health.v1.Health"), std::string::npos);
}

TEST_F(RpcTest, UnknownMethodsAreSaidToBe) {
  EXPECT_EQ(CallRaw("/profd.v1.NodeService/Nope", "").status.error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(CallRaw("/nope.Nope/Nope", "").status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(CallRaw("/", "").status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(RpcTest, BrokenMessagesAreRefusedEverywhere) {
  const std::vector<std::string> broken = {
      "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", std::string("\x0a\xff\xff\xff\x7f", 5),
      std::string("\x0b", 1), std::string(1000, '\x0c')};
  for (const std::string& method : kMethods) {
    for (const std::string& bytes : broken) {
      Answer answer = CallRaw(method, bytes);
      EXPECT_FALSE(answer.status.ok()) << method;
    }
  }
  ExpectAlive();
}

TEST_F(RpcTest, FieldsOfTomorrowAreIgnored) {
  // Field 1000, a varint: a newer client's.
  Answer answer = CallRaw("/profd.v1.NodeService/GetNode", "\xc0\x3e\x01");
  EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
}

TEST_F(RpcTest, OversizedMessagesAreRefused) {
  v1::SessionSpec request;
  request.set_label(std::string(1 << 20, 'x'));
  v1::Session session;
  EXPECT_EQ(Start(request, &session).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  ExpectAlive();
}

TEST_F(RpcTest, RequestsBeyondReason) {
  std::map<std::string, v1::SessionSpec> requests;
  requests["label"].set_label(std::string(200, 'x'));
  requests["control characters"].set_label("a\nb\x1b[2J");
  requests["job"].mutable_target()->set_job_id("$(reboot)");
  requests["empty bytes"].mutable_target()->set_job_id(std::string("a\0b", 3));
  requests["rank"].mutable_target()->set_rank(-1);
  requests["duration"].mutable_schedule()->set_duration_ms(std::numeric_limits<uint64_t>::max());
  requests["frequency"].mutable_options()->set_dvpp_freq(std::numeric_limits<uint32_t>::max());
  requests["pid"].mutable_target()->add_pids(-5);
  requests["pid 0"].mutable_target()->add_pids(0);
  requests["end"].mutable_schedule()->set_end_with_pid(-1);
  requests["storage"].mutable_options()->set_storage_limit("99999999999999999999MB");
  requests["storage sign"].mutable_options()->set_storage_limit("-200MB");
  requests["host_sys"].mutable_options()->set_host_sys(std::string(10000, ','));
  for (int i = 0; i < 20000; ++i) requests["devices"].mutable_target()->add_devices(1000 + static_cast<uint32_t>(i));
  for (int i = 0; i < 20000; ++i) requests["pids"].mutable_target()->add_pids(1);
  for (int i = 0; i < 5000; ++i) requests["collectors"].add_collectors()->set_name("hbm");
  for (double hz : {std::nan(""), -1.0, std::numeric_limits<double>::infinity(), 1e300}) {
    v1::CollectorRequest& order = *requests["hz " + std::to_string(hz)].add_collectors();
    order.set_name("hccs");
    order.set_hz(hz);
  }
  for (auto& [name, order] : requests) {
    v1::Session session;
    grpc::Status status = Start(order, &session);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << name;
    EXPECT_FALSE(status.error_message().empty()) << name;
    EXPECT_LT(status.error_message().size(), 64u << 10) << name;
    if (status.ok()) Stop(session.session_id(), &session);
  }
  ExpectAlive();
}

TEST_F(RpcTest, RatesTooSlowForTheDriverAreSaid) {
  v1::SessionSpec request;
  request.mutable_target()->add_devices(0);
  v1::CollectorRequest& order = *request.add_collectors();
  order.set_name("hccs");
  order.set_hz(1e-300);
  v1::Session session;
  grpc::Status status = Start(request, &session);
  if (!status.ok()) return;
  // Taken, then with a rate the driver has.
  ASSERT_EQ(session.status().outcomes_size(), 1);
  EXPECT_GT(session.status().outcomes(0).hz(), 0.1);
  Stop(session.session_id(), &session);
}

TEST_F(RpcTest, IdsThatAreNone) {
  for (const std::string& id : {std::string("../.."), std::string("PROF_1"), std::string(60000, 'a'),
                                std::string("\0", 1), std::string("%s%n")}) {
    v1::Session session;
    EXPECT_EQ(Stop(id, &session).error_code(), grpc::StatusCode::NOT_FOUND);
    v1::GetSessionRequest get;
    get.set_session_id(id);
    EXPECT_EQ(sessions_->GetSession(Context().get(), get, &session).error_code(),
              grpc::StatusCode::NOT_FOUND);
    v1::DeleteDumpRequest remove;
    remove.set_session_id(id);
    v1::DeleteDumpResponse removed;
    EXPECT_EQ(dumps_->DeleteDump(Context().get(), remove, &removed).error_code(),
              grpc::StatusCode::NOT_FOUND);
  }
  v1::Session session;
  EXPECT_EQ(Stop("", &session).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(RpcTest, WatchEndsWithItsDeadlineAndTheSessionGoesOn) {
  v1::Session session = StartHccs();
  v1::WatchSessionRequest request;
  request.set_session_id(session.session_id());
  request.set_interval_ms(100);
  auto context = Context(milliseconds(500));
  auto reader = sessions_->WatchSession(context.get(), request);
  v1::Session seen;
  while (reader->Read(&seen)) EXPECT_EQ(seen.session_id(), session.session_id());
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  ASSERT_TRUE(Stop(session.session_id(), &session).ok());
  EXPECT_EQ(session.status().state(), v1::Session::STATE_DONE);
}

TEST_F(RpcTest, CallsThatAreGivenUp) {
  v1::StartSessionRequest request;
  request.mutable_spec()->mutable_target()->set_job_id("given-up");
  request.mutable_spec()->mutable_options()->set_sys_interconnection_freq(50);
  for (int64_t us : {1, 100, 500, 1000, 2000, 5000, 10000, 20000}) {
    v1::Session session;
    auto context = Context(std::chrono::microseconds(us));
    sessions_->StartSession(context.get(), request, &session);
  }
  // What started all the same is there to be seen, and ends like any other.
  v1::StopSessionRequest stop;
  stop.set_job_id("given-up");
  v1::Session session;
  grpc::Status status = sessions_->StopSession(Context().get(), stop, &session);
  EXPECT_TRUE(status.ok() || status.error_code() == grpc::StatusCode::NOT_FOUND)
      << status.error_message();
  ExpectAlive();
}

TEST_F(RpcTest, LimitsOfStreams) {
  v1::StreamSamplesRequest request;
  for (uint32_t interval : {1u, 9u, 10001u, 4000000000u}) {
    request.set_interval_ms(interval);
    auto context = Context();
    auto reader = nodes_->StreamSamples(context.get(), request);
    v1::SampleChunk chunk;
    while (reader->Read(&chunk)) {
    }
    EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT) << interval;
  }
  v1::StreamSamplesRequest nothing;
  nothing.set_max_samples(0);
  v1::StreamSamplesRequest nowhere;
  nowhere.add_devices(77);
  for (const v1::StreamSamplesRequest& wrong : {nothing, nowhere}) {
    auto context = Context();
    auto reader = nodes_->StreamSamples(context.get(), wrong);
    v1::SampleChunk chunk;
    EXPECT_FALSE(reader->Read(&chunk)) << wrong.ShortDebugString();
    EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT) << wrong.ShortDebugString();
  }
  v1::Session session = StartHccs();
  v1::StreamSamplesRequest some;
  some.add_collectors("hccs");
  some.set_interval_ms(10);
  some.set_max_samples(25);
  auto context = Context();
  auto reader = nodes_->StreamSamples(context.get(), some);
  v1::SampleChunk chunk;
  std::map<uint32_t, v1::SeriesInfo> series;
  int samples = 0;
  while (reader->Read(&chunk)) {
    for (const v1::SeriesInfo& info : chunk.series()) series[info.id()] = info;
    for (const v1::SampleValue& sample : chunk.samples()) {
      ASSERT_TRUE(series.contains(sample.series())) << "a sample of a series not described";
      EXPECT_EQ(series[sample.series()].collector(), "hccs");
      ++samples;
    }
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(samples, 25);
  Stop(session.session_id(), &session);
}

TEST_F(RpcTest, ManyStreamsOnOneConnectionLeaveTheOthersAlone) {
  v1::Session session = StartHccs();
  v1::WatchSessionRequest request;
  request.set_session_id(session.session_id());
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  auto crowded = NewChannel();
  auto stub = v1::SessionService::NewStub(crowded);
  grpc::CompletionQueue queue;
  std::vector<std::unique_ptr<grpc::ClientAsyncReader<v1::Session>>> watches;
  for (int i = 0; i < 200; ++i) {
    contexts.push_back(Context());
    watches.push_back(stub->AsyncWatchSession(contexts.back().get(), request, &queue, nullptr));
  }
  for (int i = 0; i < 5; ++i) ExpectAlive();
  for (auto& context : contexts) context->TryCancel();
  std::vector<grpc::Status> statuses(watches.size());
  for (size_t i = 0; i < watches.size(); ++i) watches[i]->Finish(&statuses[i], nullptr);
  void* tag = nullptr;
  bool ok = false;
  for (size_t i = 0; i < 2 * watches.size(); ++i) queue.Next(&tag, &ok);
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  Stop(session.session_id(), &session);
}

TEST_F(RpcTest, FetchedChunksKeepTheirPromises) {
  v1::Session session = StartHccs();
  v1::FetchDumpRequest request;
  request.set_session_id(session.session_id());
  {
    auto context = Context();
    auto reader = dumps_->FetchDump(context.get(), request);
    v1::DumpChunk chunk;
    while (reader->Read(&chunk)) {
    }
    EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  }
  ASSERT_TRUE(Stop(session.session_id(), &session).ok());
  auto context = Context();
  auto reader = dumps_->FetchDump(context.get(), request);
  v1::DumpChunk chunk;
  uint64_t total = 0, announced = 0;
  bool first = true, inside = false;
  while (reader->Read(&chunk)) {
    EXPECT_LE(chunk.data().size(), 64u << 10);
    if (first) {
      EXPECT_TRUE(chunk.dump_name().starts_with("PROF_")) << chunk.dump_name();
      announced = chunk.total_bytes();
      first = false;
    } else {
      EXPECT_TRUE(chunk.dump_name().empty());
    }
    if (!chunk.path().empty()) {
      EXPECT_FALSE(inside) << "a file begins before the last one ended";
      EXPECT_NE(chunk.path().front(), '/');
      EXPECT_EQ(chunk.path().find(".."), std::string::npos);
      inside = true;
    }
    if (chunk.last()) inside = false;
    total += chunk.data().size();
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_FALSE(inside);
  EXPECT_EQ(total, announced);
}

TEST_F(RpcTest, StoppingBySeveralAtOnce) {
  v1::Session session = StartHccs();
  std::vector<std::thread> threads;
  std::vector<grpc::Status> statuses(8);
  std::vector<v1::Session> answers(8);
  for (size_t i = 0; i < statuses.size(); ++i) {
    threads.emplace_back(
        [&, i] { statuses[i] = Stop(session.session_id(), &answers[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < statuses.size(); ++i) {
    EXPECT_TRUE(statuses[i].ok()) << statuses[i].error_message();
    EXPECT_EQ(answers[i].status().state(), v1::Session::STATE_DONE);
    EXPECT_EQ(answers[i].status().ended_ns(), answers[0].status().ended_ns());
  }
}

}  // namespace
}  // namespace profd
