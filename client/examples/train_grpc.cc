// A training loop that profiles some of its own steps over gRPC. Needs a compiler, gRPC and protobuf at build time
// (CMakeLists.txt beside this file); train.cc does the same with libprofd, which needs neither and has marks too.
#include <grpcpp/grpcpp.h>
#include <profd/v1/profd.grpc.pb.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>

namespace {

using profd::v1::SessionService;
using profd::v1::Session;

std::unique_ptr<SessionService::Stub> Connect() {
  const char* socket = std::getenv("PROFD_SOCKET");
  const std::string path = socket != nullptr ? socket : "/run/profd/profd.sock";
  return SessionService::NewStub(grpc::CreateChannel("unix:" + path, grpc::InsecureChannelCredentials()));
}

void SetTimeout(grpc::ClientContext* call, std::chrono::seconds timeout) {
  call->set_deadline(std::chrono::system_clock::now() + timeout);
}

// The NPU of this process.
uint32_t Device() {
  const char* rank = std::getenv("LOCAL_RANK");
  return rank != nullptr ? static_cast<uint32_t>(std::strtoul(rank, nullptr, 10)) : 0;
}

// Training must not fail because it cannot be profiled.
std::optional<Session> StartProfile(SessionService::Stub* daemon) {
  profd::v1::StartSessionRequest request;
  profd::v1::SessionSpec& spec = *request.mutable_spec();
  spec.set_label("train_grpc.cc");
  spec.mutable_target()->add_devices(Device());
  spec.set_options_json(R"({"sys_interconnection_freq": 50})");
  spec.mutable_lease()->set_lease_ms(10'000);  // it ends without StopSession, too: this long after this process
  grpc::ClientContext call;
  SetTimeout(&call, std::chrono::seconds(60));
  Session session;
  const grpc::Status status = daemon->StartSession(&call, request, &session);
  if (status.ok()) return session;
  std::fprintf(stderr, "not profiled: %s\n", status.error_message().c_str());
  return std::nullopt;
}

// Answers when the dump is complete.
void StopProfile(SessionService::Stub* daemon, const std::string& session_id) {
  profd::v1::StopSessionRequest request;
  request.set_session_id(session_id);
  grpc::ClientContext call;
  SetTimeout(&call, std::chrono::seconds(120));
  Session session;
  const grpc::Status status = daemon->StopSession(&call, request, &session);
  if (!status.ok()) {
    std::fprintf(stderr, "profile not stopped: %s\n", status.error_message().c_str());
    return;
  }
  std::printf("session %s: %s, %llu records in %s\n", session_id.c_str(),
              Session::State_Name(session.status().state()).c_str(), static_cast<unsigned long long>(session.status().records()),
              session.status().dump_path().c_str());
}

void TrainStep() { std::this_thread::sleep_for(std::chrono::milliseconds(50)); }

}  // namespace

int main() {
  const std::unique_ptr<SessionService::Stub> daemon = Connect();
  std::optional<Session> session;
  for (int step = 0; step < 20; ++step) {
    if (step == 5) session = StartProfile(daemon.get());
    TrainStep();
    if (step == 15 && session) StopProfile(daemon.get(), session->session_id());
  }
  std::printf("20 steps\n");
  return 0;
}
