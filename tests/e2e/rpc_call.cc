// usage: e2e_rpc_call SOCKET METHOD   one call of the daemon: the request as JSON on standard input,
// the answer as JSON on standard output, one line. Of streams every message is a line. Exit code: the
// status code of the call; its text goes to standard error.
#include <google/protobuf/util/json_util.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <string>

#include "profd/v1/profd.grpc.pb.h"

namespace profd {
namespace {

using Sessions = v1::SessionService::Stub;
using Nodes = v1::NodeService::Stub;
using Dumps = v1::DumpService::Stub;
using Call = std::function<int(const std::shared_ptr<grpc::Channel>&, const std::string& json)>;

constexpr auto kPatience = std::chrono::seconds(120);

bool Parse(const std::string& json, google::protobuf::Message* message) {
  auto status = google::protobuf::util::JsonStringToMessage(json, message);
  if (!status.ok()) std::cerr << status.ToString() << '\n';
  return status.ok();
}

void Print(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string text;
  if (google::protobuf::util::MessageToJsonString(message, &text, options).ok()) {
    std::cout << text << std::endl;
  }
}

int Ended(const grpc::Status& status) {
  if (!status.ok()) std::cerr << status.error_message() << '\n';
  return static_cast<int>(status.error_code());
}

template <class Stub, class Request, class Reply>
Call Unary(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*)) {
  return [method](const std::shared_ptr<grpc::Channel>& channel, const std::string& json) {
    Stub stub(channel);
    Request request;
    if (!Parse(json, &request)) return 100;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    Reply reply;
    grpc::Status status = (stub.*method)(&context, request, &reply);
    if (status.ok()) Print(reply);
    return Ended(status);
  };
}

int Watch(const std::shared_ptr<grpc::Channel>& channel, const std::string& json) {
  Sessions stub(channel);
  v1::WatchSessionRequest request;
  if (!Parse(json, &request)) return 100;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  auto reader = stub.WatchSession(&context, request);
  v1::Session session;
  while (reader->Read(&session)) Print(session);
  return Ended(reader->Finish());
}

int Run(const std::string& socket, const std::string& method) {
  const std::map<std::string, Call> methods = {
      {"StartSession", Unary(&Sessions::StartSession)}, {"StopSession", Unary(&Sessions::StopSession)},
      {"GetSession", Unary(&Sessions::GetSession)},     {"ListSessions", Unary(&Sessions::ListSessions)},
      {"RenewLease", Unary(&Sessions::RenewLease)},     {"ListJobs", Unary(&Nodes::ListJobs)},
      {"GetStacks", Unary(&Nodes::GetStacks)},
      {"GetActivity", Unary(&Nodes::GetActivity)},  {"GetAdvice", Unary(&Nodes::GetAdvice)},
      {"GetTime", Unary(&Nodes::GetTime)},           {"GetTopology", Unary(&Nodes::GetTopology)},
      {"ReleaseChannels", Unary(&Nodes::ReleaseChannels)}, {"AcquireChannels", Unary(&Nodes::AcquireChannels)},
      {"ListDumps", Unary(&Dumps::ListDumps)},
      {"PinDump", Unary(&Dumps::PinDump)},           {"UnpinDump", Unary(&Dumps::UnpinDump)},
      {"DeleteDump", Unary(&Dumps::DeleteDump)},
      {"ArchiveDumps", Unary(&Dumps::ArchiveDumps)},
      {"ClaimArchiveUpload", Unary(&Dumps::ClaimArchiveUpload)}, {"ReportArchive", Unary(&Dumps::ReportArchive)},
      {"AcquireTuningLease", Unary(&Sessions::AcquireTuningLease)},
      {"ReleaseTuningLease", Unary(&Sessions::ReleaseTuningLease)},
      {"ListTuningLeases", Unary(&Sessions::ListTuningLeases)},
      {"WatchSession", Watch}};
  auto found = methods.find(method);
  if (found == methods.end()) {
    std::cerr << "no method " << method << '\n';
    return 100;
  }
  auto channel = grpc::CreateChannel("unix:" + socket, grpc::InsecureChannelCredentials());
  std::string json{std::istreambuf_iterator<char>(std::cin), {}};
  return found->second(channel, json.empty() ? "{}" : json);
}

}  // namespace
}  // namespace profd

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: e2e_rpc_call SOCKET METHOD\n";
    return 100;
  }
  return profd::Run(argv[1], argv[2]);
}
