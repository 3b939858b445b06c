#include "client/grpc_api.h"

#include <grpc/support/log.h>
#include <grpcpp/grpcpp.h>

#include <cstdlib>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/duration_text.h"
#include "base/utf8.h"
#include "client/tls_files.h"
#include "profd/v1/profd.grpc.pb.h"
#include "proto/problems/problem_message.h"

namespace profd::client {
namespace {

constexpr int64_t kTickMs = 100;
// Our patience, not the daemon's limits: a query answers from memory; a start waits for the driver;
// a stop reads what the driver still holds and completes the dump.
constexpr int64_t kQueryMs = 10'000;
constexpr int64_t kStartMs = 60'000;
constexpr int64_t kStopMs = 120'000;
constexpr int64_t kFetchSilenceMs = 60'000;
// WatchSession sends at least every interval; beyond that the daemon is stuck.
constexpr int64_t kWatchSlackMs = 30'000;
constexpr int64_t kForever = 0;

constexpr int kMaxMessageBytes = 64 << 20;
// A daemon that was away is found soon after it is back: gRPC's own limit is two minutes.
constexpr int kMaxReconnectMs = 5'000;
// Not more often than the daemon bears with (daemon/rpc/tls_server.cc).
constexpr int kKeepaliveMs = 30'000;
constexpr int kKeepaliveTimeoutMs = 20'000;

// gRPC's own clock: calls end by it.
gpr_timespec InMs(int64_t ms) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(ms, GPR_TIMESPAN));
}

Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return Status::Ok();
  const auto code = static_cast<StatusCode>(status.error_code());
  std::vector<Problem> problems = UnpackDetails(status.error_details());
  return problems.empty() ? Status(code, status.error_message()) : Status(code, std::move(problems));
}

// A daemon cannot read a request in which a text is not UTF-8, and answers as if it did not know the call.
Status CheckTexts(const google::protobuf::Message& request) {
  using google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& reflection = *request.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(request, &fields);
  for (const FieldDescriptor* field : fields) {
    const int count = field->is_repeated() ? reflection.FieldSize(request, field) : 1;
    for (int i = 0; i < count; ++i) {
      bool good = true;
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        Status inside =
            CheckTexts(field->is_repeated() ? reflection.GetRepeatedMessage(request, field, i) : reflection.GetMessage(request, field));
        if (!inside.ok() && !field->is_map()) return inside;
        good = inside.ok();
      } else if (field->type() == FieldDescriptor::TYPE_STRING) {
        good = IsUtf8(field->is_repeated() ? reflection.GetRepeatedString(request, field, i) : reflection.GetString(request, field));
      }
      if (!good) return InvalidArgument(field->name() + " has bytes that are not UTF-8; write it in UTF-8");
    }
  }
  return Status::Ok();
}

// A call's completion queue; must be drained before it goes.
class Queue {
 public:
  ~Queue() {
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }
  grpc::CompletionQueue* get() { return &queue_; }

 private:
  grpc::CompletionQueue queue_;
};

class GrpcApi final : public ProfdApi {
 public:
  GrpcApi(Endpoint endpoint, std::optional<int64_t> timeout_ms)
      : endpoint_(std::move(endpoint)), timeout_ms_(timeout_ms) {}

  Result<v1::Node> GetNode() override {
    return Unary(&v1::NodeService::Stub::AsyncGetNode, v1::GetNodeRequest(), kQueryMs);
  }
  Result<v1::Session> StartSession(const v1::SessionSpec& spec) override {
    v1::StartSessionRequest request;
    *request.mutable_spec() = spec;
    return Unary(&v1::SessionService::Stub::AsyncStartSession, request, kStartMs);
  }
  Result<v1::Session> StopSession(const std::string& session_id) override {
    v1::StopSessionRequest request;
    request.set_session_id(session_id);
    return Unary(&v1::SessionService::Stub::AsyncStopSession, request, kStopMs);
  }
  Result<v1::Session> GetSession(const std::string& session_id) override {
    v1::GetSessionRequest request;
    request.set_session_id(session_id);
    return Unary(&v1::SessionService::Stub::AsyncGetSession, request, kQueryMs);
  }
  Result<v1::ListSessionsResponse> ListSessions(const v1::ListSessionsRequest& request) override {
    return Unary(&v1::SessionService::Stub::AsyncListSessions, request, kQueryMs);
  }
  Result<v1::DeleteDumpResponse> DeleteDump(const v1::DeleteDumpRequest& request) override {
    return Unary(&v1::DumpService::Stub::AsyncDeleteDump, request, kStopMs);
  }
  Result<v1::ListOptionsResponse> ListOptions() override {
    return Unary(&v1::NodeService::Stub::AsyncListOptions, v1::ListOptionsRequest(), kQueryMs);
  }
  Result<v1::CheckOptionsResponse> CheckOptions(const v1::CheckOptionsRequest& request) override {
    return Unary(&v1::NodeService::Stub::AsyncCheckOptions, request, kQueryMs);
  }
  Result<v1::ListJobsResponse> ListJobs(const v1::ListJobsRequest& request) override {
    return Unary(&v1::NodeService::Stub::AsyncListJobs, request, kQueryMs);
  }
  Result<v1::GetActivityResponse> GetActivity(const v1::GetActivityRequest& request) override {
    return Unary(&v1::NodeService::Stub::AsyncGetActivity, request, kQueryMs);
  }
  Result<v1::GetAdviceResponse> GetAdvice(const v1::GetAdviceRequest& request) override {
    return Unary(&v1::NodeService::Stub::AsyncGetAdvice, request, kQueryMs);
  }
  Result<v1::Session> DumpRecorder(const v1::DumpRecorderRequest& request) override {
    return Unary(&v1::SessionService::Stub::AsyncDumpRecorder, request, kStopMs);
  }
  Result<v1::GetTimeResponse> GetTime() override {
    return Unary(&v1::NodeService::Stub::AsyncGetTime, v1::GetTimeRequest(), kQueryMs);
  }
  Result<v1::Topology> GetTopology() override {
    return Unary(&v1::NodeService::Stub::AsyncGetTopology, v1::GetTopologyRequest(), kQueryMs);
  }
  Result<v1::ChannelReleases> ReleaseChannels(const v1::ReleaseChannelsRequest& request) override {
    return Unary(&v1::NodeService::Stub::AsyncReleaseChannels, request, kStopMs);
  }
  Result<v1::ChannelReleases> AcquireChannels(const v1::AcquireChannelsRequest& request) override {
    return Unary(&v1::NodeService::Stub::AsyncAcquireChannels, request, kQueryMs);
  }
  Result<v1::ListDumpsResponse> ListDumps() override {
    return Unary(&v1::DumpService::Stub::AsyncListDumps, v1::ListDumpsRequest(), kQueryMs);
  }
  Result<v1::PinDumpResponse> PinDump(const v1::PinDumpRequest& request) override {
    return Unary(&v1::DumpService::Stub::AsyncPinDump, request, kQueryMs);
  }
  Result<v1::UnpinDumpResponse> UnpinDump(const v1::UnpinDumpRequest& request) override {
    return Unary(&v1::DumpService::Stub::AsyncUnpinDump, request, kQueryMs);
  }
  Result<v1::GetStacksResponse> GetStacks(const v1::GetStacksRequest& request) override {
    return Unary(&v1::NodeService::Stub::AsyncGetStacks, request, kQueryMs);
  }
  Result<v1::ArchiveDumpsResponse> ArchiveDumps(const v1::ArchiveDumpsRequest& request) override {
    return Unary(&v1::DumpService::Stub::AsyncArchiveDumps, request, kQueryMs);
  }
  Result<v1::ClaimArchiveUploadResponse> ClaimArchiveUpload() override {
    return Unary(&v1::DumpService::Stub::AsyncClaimArchiveUpload, v1::ClaimArchiveUploadRequest(), kQueryMs);
  }
  Result<v1::ReportArchiveResponse> ReportArchive(const v1::ReportArchiveRequest& request) override {
    return Unary(&v1::DumpService::Stub::AsyncReportArchive, request, kQueryMs);
  }
  Result<v1::TuningLease> AcquireTuningLease(const v1::AcquireTuningLeaseRequest& request) override {
    return Unary(&v1::SessionService::Stub::AsyncAcquireTuningLease, request, kQueryMs);
  }
  Result<v1::ReleaseTuningLeaseResponse> ReleaseTuningLease(const std::string& lease_id) override {
    v1::ReleaseTuningLeaseRequest request;
    request.set_lease_id(lease_id);
    return Unary(&v1::SessionService::Stub::AsyncReleaseTuningLease, request, kQueryMs);
  }
  Result<v1::ListTuningLeasesResponse> ListTuningLeases() override {
    return Unary(&v1::SessionService::Stub::AsyncListTuningLeases, v1::ListTuningLeasesRequest(), kQueryMs);
  }
  Status WatchSession(const v1::WatchSessionRequest& request,
                      const Receive<v1::Session>& receive) override {
    return Stream(&v1::SessionService::Stub::AsyncWatchSession, request, receive,
                  static_cast<int64_t>(request.interval_ms()) + kWatchSlackMs);
  }
  Status StreamSamples(const v1::StreamSamplesRequest& request,
                       const Receive<v1::SampleChunk>& receive) override {
    return Stream(&v1::NodeService::Stub::AsyncStreamSamples, request, receive, kForever);
  }
  Status WatchAdvice(const v1::WatchAdviceRequest& request,
                     const Receive<v1::GetAdviceResponse>& receive) override {
    return Stream(&v1::NodeService::Stub::AsyncWatchAdvice, request, receive,
                  static_cast<int64_t>(request.interval_ms()) + kWatchSlackMs);
  }
  Status FetchDump(const v1::FetchDumpRequest& request,
                   const Receive<v1::DumpChunk>& receive) override {
    return Stream(&v1::DumpService::Stub::AsyncFetchDump, request, receive, kFetchSilenceMs);
  }

 private:
  template <class Stub, class Reply, class Request>
  using UnaryMethod = std::unique_ptr<grpc::ClientAsyncResponseReader<Reply>> (Stub::*)(
      grpc::ClientContext*, const Request&, grpc::CompletionQueue*);
  template <class Stub, class Message, class Request>
  using StreamMethod = std::unique_ptr<grpc::ClientAsyncReader<Message>> (Stub::*)(
      grpc::ClientContext*, const Request&, grpc::CompletionQueue*, void*);

  // Why a call was given up by us.
  enum class GivenUp { kNo, kByHook, kSilence };

  // Makes the channel, once; connecting itself is the first call's business.
  Status Prepare() {
    if (channel_) return Status::Ok();
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMaxReconnectMs);
    if (!endpoint_.remote()) {
      channel_ = grpc::CreateCustomChannel("unix:" + endpoint_.socket, grpc::InsecureChannelCredentials(), arguments);
      return Status::Ok();
    }
    Result<ClientTls> tls = LoadClientTls(endpoint_.tls);
    if (!tls.ok()) return tls.status();
    // Each its own connection: several apis may name the same node with other certificates.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
    if (!endpoint_.tls.server_name.empty()) {
      arguments.SetSslTargetNameOverride(endpoint_.tls.server_name);
    }
    grpc::SslCredentialsOptions options{tls->ca_pem, tls->key_pem, tls->certificate_pem};
    channel_ =
        grpc::CreateCustomChannel("dns:///" + endpoint_.address, grpc::SslCredentials(options), arguments);
    return Status::Ok();
  }

  // Waits for the one event under way. After a cancel it is still delivered, with false.
  bool Await(Queue& queue, grpc::ClientContext& context, int64_t silence_ms) {
    int64_t waited_ms = 0;
    for (;;) {
      void* tag = nullptr;
      bool ok = false;
      switch (queue.get()->AsyncNext(&tag, &ok, InMs(kTickMs))) {
        case grpc::CompletionQueue::GOT_EVENT:
          return ok;
        case grpc::CompletionQueue::SHUTDOWN:
          return false;
        case grpc::CompletionQueue::TIMEOUT:
          break;
      }
      if (given_up_ != GivenUp::kNo) continue;
      waited_ms += kTickMs;
      if (!GoOn()) {
        given_up_ = GivenUp::kByHook;
        context.TryCancel();
      } else if (silence_ms != kForever && waited_ms >= silence_ms) {
        given_up_ = GivenUp::kSilence;
        context.TryCancel();
      }
    }
  }

  template <class Stub, class Reply, class Request>
  Result<Reply> Unary(UnaryMethod<Stub, Reply, Request> method, const Request& request,
                      int64_t patience_ms) {
    given_up_ = GivenUp::kNo;
    RETURN_IF_ERROR(CheckTexts(request));
    RETURN_IF_ERROR(Prepare());
    grpc::ClientContext context;
    patience_ms = timeout_ms_.value_or(patience_ms);
    const gpr_timespec deadline = InMs(patience_ms);
    context.set_deadline(deadline);
    Queue queue;
    Stub stub(channel_);
    auto reader = (stub.*method)(&context, request, queue.get());
    Reply reply;
    grpc::Status status;
    reader->Finish(&reply, &status, this);
    (void)Await(queue, context, kForever);
    if (status.ok()) return reply;
    // The daemon has deadlines of its own, with words.
    const bool ours = gpr_time_cmp(gpr_now(GPR_CLOCK_MONOTONIC), deadline) >= 0;
    if (ours && status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
      return DeadlineExceeded("no answer within " + FormatSpan(patience_ms * kNsPerMs));
    }
    return Ended(status);
  }

  template <class Stub, class Message, class Request>
  Status Stream(StreamMethod<Stub, Message, Request> method, const Request& request,
                const Receive<Message>& receive, int64_t silence_ms) {
    given_up_ = GivenUp::kNo;
    silence_ms = timeout_ms_.value_or(silence_ms);
    RETURN_IF_ERROR(CheckTexts(request));
    RETURN_IF_ERROR(Prepare());
    grpc::ClientContext context;
    Queue queue;
    Stub stub(channel_);
    auto reader = (stub.*method)(&context, request, queue.get(), this);
    bool ended_by_receiver = false;
    Message message;
    bool open = Await(queue, context, silence_ms);
    while (open) {
      reader->Read(&message, this);
      open = Await(queue, context, silence_ms);
      if (!open) break;
      if (!receive(message)) {
        ended_by_receiver = true;
        context.TryCancel();
        break;
      }
      if (!GoOn()) {
        given_up_ = GivenUp::kByHook;
        context.TryCancel();
        break;
      }
    }
    grpc::Status status;
    reader->Finish(&status, this);
    (void)Await(queue, context, kForever);
    return ended_by_receiver ? Status::Ok() : Ended(status);
  }

  // Where gRPC has a code and no words.
  Status Ended(const grpc::Status& status) const {
    if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED && status.error_message().empty()) {
      return Unimplemented("this profd does not know the call: it is older than this profctl (profctl status)");
    }
    if (status.error_code() != grpc::StatusCode::CANCELLED) return FromGrpc(status);
    switch (given_up_) {
      case GivenUp::kSilence:
        return DeadlineExceeded("the daemon went silent");
      case GivenUp::kByHook:
        return {StatusCode::kCancelled, "interrupted"};
      case GivenUp::kNo:
        break;
    }
    return Unavailable("cancelled by profd");
  }

  Endpoint endpoint_;
  std::optional<int64_t> timeout_ms_;
  std::shared_ptr<grpc::Channel> channel_;
  GivenUp given_up_ = GivenUp::kNo;
};

}  // namespace

std::unique_ptr<ProfdApi> MakeGrpcApi(Endpoint endpoint, std::optional<int64_t> timeout_ms) {
  // Its log lines would be among ours; gRPC's own variable turns them on.
  if (std::getenv("GRPC_VERBOSITY") == nullptr) gpr_set_log_function([](gpr_log_func_args*) {});
  return std::make_unique<GrpcApi>(std::move(endpoint), timeout_ms);
}

}  // namespace profd::client
