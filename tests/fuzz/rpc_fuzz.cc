// Input: calls of profd.v1, one after the other or beside each other, by an administrator and two
// users (rpc_calls.h). Each is answered, with a code and a text that are documented; what comes
// back can be read; nothing grows beyond its limits; and when all have been answered, every session
// can be stopped and every dump removed.
#include <grpcpp/grpcpp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "profd/v1/profd.pb.h"
#include "proto/attach/attach_protocol.h"
#include "tests/fuzz/rpc_calls.h"
#include "tests/fuzz/rpc_daemon.h"

namespace profd::fuzz {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Beyond it a call counts as not answered.
constexpr auto kPatience = std::chrono::seconds(45);
// Streams may go on for ever.
constexpr auto kStreamTime = std::chrono::milliseconds(20);
constexpr size_t kMaxErrorText = 6000;

std::string Bytes(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  FUZZ_EXPECT(buffer.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

struct CallPlan {
  std::string path;
  std::string request;
  bool twice = false;
  bool cancel = false;
  size_t most_answers = 1;
  std::chrono::milliseconds deadline = kPatience;
};

// One call under way, of whatever kind: to gRPC's client all look like a stream both ways.
class OpenCall final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  OpenCall(grpc::GenericStub& stub, CallPlan plan) : plan_(std::move(plan)) {
    context_.set_deadline(std::chrono::system_clock::now() + plan_.deadline);
    const grpc::Slice slice(plan_.request);
    request_ = grpc::ByteBuffer(&slice, 1);
    ended_ = done_->get_future();
    stub.PrepareBidiStreamingCall(&context_, plan_.path, {}, this);
    if (plan_.twice) {
      StartWrite(&request_);
    } else {
      StartWriteLast(&request_, {});
    }
    StartRead(&answer_);
    StartCall();
    if (plan_.cancel) context_.TryCancel();
  }

  grpc::Status Await() {
    FUZZ_EXPECT(ended_.wait_for(2 * kPatience) == std::future_status::ready);
    return ended_.get();
  }
  const CallPlan& plan() const { return plan_; }
  const std::vector<std::string>& answers() const { return answers_; }

 private:
  void OnWriteDone(bool ok) override {
    if (!ok || !std::exchange(plan_.twice, false)) return;
    StartWriteLast(&request_, {});
  }
  void OnReadDone(bool ok) override {
    if (!ok) return;
    answers_.push_back(Bytes(answer_));
    if (answers_.size() > plan_.most_answers) context_.TryCancel();
    StartRead(&answer_);
  }
  void OnDone(const grpc::Status& status) override {
    // This may be gone as soon as the value is there.
    auto done = done_;
    done->set_value(status);
  }

  CallPlan plan_;
  grpc::ClientContext context_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer answer_;
  std::vector<std::string> answers_;
  std::shared_ptr<std::promise<grpc::Status>> done_ =
      std::make_shared<std::promise<grpc::Status>>();
  std::future<grpc::Status> ended_;
};

struct KnownMethod {
  std::vector<std::string> sessions;
  std::vector<std::string> dumps;
};

std::optional<std::string> Referred(const std::string& text, const KnownMethod& known) {
  if (text.size() != 2 || text[1] < '0' || text[1] > '9') return std::nullopt;
  const std::vector<std::string>& names = text[0] == '@' ? known.sessions : known.dumps;
  if ((text[0] != '@' && text[0] != '#') || names.empty()) return std::nullopt;
  return names[static_cast<size_t>(text[1] - '0') % names.size()];
}

// Puts what references stand for into a request.
void Resolve(const KnownMethod& known, Message* message) {
  const google::protobuf::Reflection& reflection = *message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    const int count = field->is_repeated() ? reflection.FieldSize(*message, field) : 0;
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      for (int i = 0; i < count; ++i) {
        Resolve(known, reflection.MutableRepeatedMessage(message, field, i));
      }
      if (!field->is_repeated()) Resolve(known, reflection.MutableMessage(message, field));
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING && !field->is_repeated()) {
      auto text = Referred(reflection.GetString(*message, field), known);
      if (text) reflection.SetString(message, field, *text);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT32) {
      for (int i = 0; i < count; ++i) {
        if (reflection.GetRepeatedInt32(*message, field, i) != kOwnPid) continue;
        reflection.SetRepeatedInt32(message, field, i, ::getpid());
      }
      if (!field->is_repeated() && reflection.GetInt32(*message, field) == kOwnPid) {
        reflection.SetInt32(message, field, ::getpid());
      }
    }
  }
}

bool IsDocumented(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::OK:
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::UNIMPLEMENTED:
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::NOT_FOUND:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
    case grpc::StatusCode::FAILED_PRECONDITION:
    case grpc::StatusCode::UNAVAILABLE:
      return true;
    default:
      return false;
  }
}

[[noreturn]] void NotSo(const CallPlan& plan, const grpc::Status& status, const char* what) {
  std::fprintf(stderr, "%s: %s: code %d, \"%s\"\n", plan.path.c_str(), what,
               static_cast<int>(status.error_code()), status.error_message().c_str());
  std::abort();
}

// The calls of one input.
class Conversation {
 public:
  explicit Conversation(RpcDaemon& daemon) : daemon_(daemon) {}

  void Run(const std::vector<CallRecord>& calls) {
    for (const CallRecord& call : calls) {
      if (call.what >= kOther && static_cast<Other>(call.what % kOthers) == Other::kAttach) {
        SendPacket(call);
        continue;
      }
      Open(call);
      if ((call.flags & kBeside) == 0) EndAll();
    }
    EndAll();
    for (UniqueFd& link : links_) link.Reset();
    if (ordered_) Settle();
  }

 private:
  struct Pending {
    std::unique_ptr<OpenCall> call;
    const google::protobuf::MethodDescriptor* method_or_null;
    bool readable;  // the daemon can parse it
  };

  static std::string OtherPath(const CallRecord& call) {
    switch (static_cast<Other>(call.what % kOthers)) {
      case Other::kHealth:
        return "/grpc.health.v1.Health/Check";
      case Other::kReflection:
        return "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
      default:
        return "/profd.v1.NodeService/" + call.bytes.substr(0, 8);
    }
  }

  void Open(const CallRecord& record) {
    Pending pending{nullptr, MethodOf(record.what), true};
    CallPlan plan;
    plan.request = record.bytes;
    plan.cancel = (record.flags & kCancel) != 0;
    plan.twice = (record.flags & kTwice) != 0;
    plan.most_answers = (record.flags & kMore) != 0 ? 4 : 1;
    if (pending.method_or_null == nullptr) {
      plan.path = OtherPath(record);
      plan.deadline = kStreamTime;
    } else {
      const auto& method = *pending.method_or_null;
      plan.path = PathOf(method);
      if (method.server_streaming()) plan.deadline = kStreamTime;
      auto request = NewMessage(*method.input_type());
      pending.readable = request->ParseFromString(record.bytes);
      if (pending.readable && (record.flags & kVerbatim) == 0) {
        Resolve(known_, request.get());
        plan.request = request->SerializeAsString();
      }
      ordered_ = ordered_ || method.name() == "StartSession" || method.name() == "DumpRecorder";
    }
    pending.call =
        std::make_unique<OpenCall>(daemon_.As(record.flags & kCallerBits), std::move(plan));
    pending_.push_back(std::move(pending));
  }

  void EndAll() {
    for (Pending& pending : std::exchange(pending_, {})) {
      grpc::Status status = pending.call->Await();
      Tell(*pending.call, status);
      if (pending.method_or_null != nullptr) Check(pending, status);
    }
  }

  // With PROFD_FUZZ_TALK in the environment, for looking at what was found.
  static void Tell(const OpenCall& call, const grpc::Status& status) {
    static const bool talk = std::getenv("PROFD_FUZZ_TALK") != nullptr;
    static const auto begin = std::chrono::steady_clock::now();
    if (!talk) return;
    const auto now = std::chrono::steady_clock::now() - begin;
    std::fprintf(stderr, "%.3f s %s: code %d, %zu answers, \"%s\"\n",
                 std::chrono::duration<double>(now).count(), call.plan().path.c_str(),
                 static_cast<int>(status.error_code()), call.answers().size(),
                 status.error_message().c_str());
  }

  void Check(const Pending& pending, const grpc::Status& status) {
    const CallPlan& plan = pending.call->plan();
    const bool ends_early = plan.cancel || pending.method_or_null->server_streaming();
    if (status.error_message().size() > kMaxErrorText) NotSo(plan, status, "too long a text");
    if (!status.ok() && status.error_message().empty() && pending.readable) {
      NotSo(plan, status, "no text");
    }
    if (ends_early && (status.error_code() == grpc::StatusCode::CANCELLED ||
                       status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED)) {
      // Ours.
    } else if (!pending.readable || plan.twice) {
      if (status.ok()) NotSo(plan, status, "what cannot be read was answered");
    } else if (!IsDocumented(status.error_code())) {
      NotSo(plan, status, "no code of the contract");
    }
    for (const std::string& answer : pending.call->answers()) Learn(pending, answer);
  }

  void Learn(const Pending& pending, const std::string& bytes) {
    auto answer = NewMessage(*pending.method_or_null->output_type());
    FUZZ_EXPECT(answer->ParseFromString(bytes));
    const auto* session = dynamic_cast<const v1::Session*>(answer.get());
    if (session == nullptr || session->session_id().empty()) return;
    known_.sessions.push_back(session->session_id());
    if (session->status().dump_path().empty()) return;
    known_.dumps.push_back(std::filesystem::path(session->status().dump_path()).filename());
  }

  // What an attached process may send; what comes back must be of the protocol.
  void SendPacket(const CallRecord& record) {
    UniqueFd& link = links_[(record.flags & kCallerBits) % links_.size()];
    ordered_ = true;
    if (!link.valid()) link = daemon_.Attach(record.flags & kCallerBits);
    if (!link.valid()) return;
    if (::send(link.get(), record.bytes.data(), record.bytes.size(), MSG_NOSIGNAL) < 0) {
      link.Reset();
      return;
    }
    std::string packet(attach::kMaxPacket + 1, '\0');
    pollfd ready{link.get(), POLLIN, 0};
    while (::poll(&ready, 1, 5) == 1) {
      ssize_t got = ::recv(link.get(), packet.data(), packet.size(), MSG_DONTWAIT);
      if (got <= 0) {
        link.Reset();
        return;
      }
      FUZZ_EXPECT(static_cast<size_t>(got) <= attach::kMaxPacket);
      auto message = attach::ParseToProcess({packet.data(), static_cast<size_t>(got)});
      FUZZ_EXPECT(message.ok());
      const auto* reply = std::get_if<attach::Reply>(&*message);
      if (reply != nullptr && reply->session) known_.sessions.push_back(reply->session->session_id);
    }
  }

  // A call of the administrator's that must be answered.
  template <class Reply>
  Reply Ask(const std::string& method, const Message& request, bool may_fail = false) {
    CallPlan plan;
    plan.path = method;
    plan.request = request.SerializeAsString();
    OpenCall call(daemon_.As(0), plan);
    grpc::Status status = call.Await();
    Tell(call, status);
    if (!may_fail && !status.ok()) NotSo(plan, status, "not answered");
    Reply reply;
    if (status.ok())
      FUZZ_EXPECT(call.answers().size() == 1 && reply.ParseFromString(call.answers()[0]));
    return reply;
  }

  // How many sessions there were to be stopped.
  int StopAll() {
    v1::ListSessionsRequest alive;
    alive.set_active_only(true);
    const auto left = Ask<v1::ListSessionsResponse>("/profd.v1.SessionService/ListSessions", alive);
    FUZZ_EXPECT(left.sessions_size() <= daemon_.config().max_sessions);
    for (const v1::Session& session : left.sessions()) {
      v1::StopSessionRequest stop;
      stop.set_session_id(session.session_id());
      // One that never began is gone when it is stopped.
      Ask<v1::Session>("/profd.v1.SessionService/StopSession", stop, true);
    }
    return left.sessions_size();
  }

  // Ends and removes whatever the input left. What was taken back, or requested over a connection
  // that has ended, may begin later.
  void Settle() {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (StopAll() != 0) FUZZ_EXPECT(std::chrono::steady_clock::now() < end);
    const auto kept = Ask<v1::ListTuningLeasesResponse>("/profd.v1.SessionService/ListTuningLeases", v1::ListTuningLeasesRequest());
    for (const v1::TuningLease& lease : kept.leases()) {
      v1::ReleaseTuningLeaseRequest release;
      release.set_lease_id(lease.lease_id());
      Ask<v1::ReleaseTuningLeaseResponse>("/profd.v1.SessionService/ReleaseTuningLease", release, true);
    }
    const auto all = Ask<v1::ListSessionsResponse>("/profd.v1.SessionService/ListSessions", v1::ListSessionsRequest());
    FUZZ_EXPECT(all.sessions_size() <=
                daemon_.config().max_sessions + daemon_.config().keep_finished);
    const auto dumps = Ask<v1::ListDumpsResponse>("/profd.v1.DumpService/ListDumps", v1::ListDumpsRequest());
    for (const v1::Dump& dump : dumps.dumps()) {
      v1::DeleteDumpRequest remove;
      remove.set_dump(dump.name());
      Ask<v1::DeleteDumpResponse>("/profd.v1.DumpService/DeleteDump", remove, true);
    }
  }

  RpcDaemon& daemon_;
  KnownMethod known_;
  std::vector<Pending> pending_;
  std::array<UniqueFd, RpcDaemon::kCallers> links_;
  bool ordered_ = false;
};

}  // namespace

void Run(Input input) { Conversation(RpcDaemon::Get()).Run(TakeCalls(input)); }

}  // namespace profd::fuzz
