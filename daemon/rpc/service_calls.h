// What the methods of a gRPC service have in common: the caller is identified and admitted by the
// role that stands at the method, what a call holds is counted against its caller, and the answer
// is made on the control strand.
#pragma once

#include <google/protobuf/descriptor.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "base/strand.h"
#include "daemon/rpc/acceptor.h"
#include "daemon/rpc/call_limits.h"
#include "daemon/rpc/roles.h"
#include "daemon/rpc/tls_server.h"
#include "proto/problems/problem_message.h"

namespace profd::rpc {

// Messages may quote what a client sent; a trailer that is longer than the client takes (8 KiB,
// escaped) would hide the error behind another one.
inline constexpr size_t kMaxErrorText = 6000;

// profd's codes are gRPC's.
inline grpc::Status ToGrpc(const Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return {static_cast<grpc::StatusCode>(status.code()), status.message().substr(0, kMaxErrorText),
          PackDetails(status)};
}

// Where calls come in; several services may share one.
struct CallEntry {
  explicit CallEntry(Strand& strand) : control(strand) {}
  Strand& control;
  std::atomic<const Acceptor*> acceptor{nullptr};
  std::atomic<const TlsServer*> tls{nullptr};
  std::atomic<uint64_t> unidentified{0};
  std::atomic<uint64_t> role_denied{0};
  std::atomic<int> calls{0};  // that are being answered, streams apart
  CallLedger ledger;

  // Decided once, at the first line of every handler: who calls, by the kernel's word or by
  // certificate, and whether that role may call `method` at all.
  Result<Peer> Admit(const grpc::CallbackServerContext& call, const MethodRoles& roles,
                     std::string_view method) {
    Result<Peer> peer = Identify(call);
    if (!peer.ok()) {
      unidentified.fetch_add(1, std::memory_order_relaxed);
      return peer;
    }
    if (Status may = roles.MayCall(*peer, method); !may.ok()) {
      role_denied.fetch_add(1, std::memory_order_relaxed);
      return may;
    }
    return peer;
  }

 private:
  Result<Peer> Identify(const grpc::CallbackServerContext& call) const {
    const std::string from = call.peer();
    if (from.starts_with("fd:")) {
      const Acceptor* source = acceptor.load();
      std::optional<Peer> peer = source == nullptr ? std::nullopt : source->Identify(from);
      if (peer) return std::move(*peer);
    } else if (const TlsServer* source = tls.load(); source != nullptr) {
      return source->Identify(*call.auth_context());
    }
    return Status(StatusCode::kUnauthenticated,
                  "no peer credentials: this connection has ended, or profd is stopping; connect again");
  }
};

// The answer of one call, which lives until gRPC is done with it: until the client has taken it.
class Reply final : public grpc::ServerUnaryReactor {
 public:
  void OnDone() override { delete this; }
  std::shared_ptr<CallHold> memory;
};

// Base of a service. `method` is __func__ of the handler: its role is looked up by it (roles.h).
class ServiceCalls {
 protected:
  ServiceCalls(CallEntry& entry, const google::protobuf::ServiceDescriptor& service)
      : entry_(entry), roles_(service) {}

  // Runs `handle(peer, request, finish)` on the control strand. The reply's memory is gRPC's and
  // lives until finish is called, which every handler does exactly once. `finish` returns whether the caller gets
  // this status: an answer for which there is no memory becomes an error.
  template <class Request, class Message, class Handler>
  grpc::ServerUnaryReactor* Answer(std::string_view method, grpc::CallbackServerContext* call,
                                   const Request& request, Message* message, Handler handle) {
    auto* reactor = new Reply;
    Result<Peer> peer = entry_.Admit(*call, roles_, method);
    if (!peer.ok()) {
      reactor->Finish(ToGrpc(peer.status()));
      return reactor;
    }
    Result<std::shared_ptr<CallHold>> memory =
        entry_.ledger.Take(CallKind::kUnary, *peer, 2 * request.SpaceUsedLong());
    if (!memory.ok()) {
      reactor->Finish(ToGrpc(memory.status()));
      return reactor;
    }
    reactor->memory = std::move(memory).value();
    entry_.calls.fetch_add(1);
    entry_.control.Post([&calls = entry_.calls, peer = std::move(peer).value(), request, message,
                         handle = std::move(handle), reactor]() mutable {
      handle(peer, request, [&calls, reactor, message](Status status) {
        Status answered = status;
        // As an object and in its serialised form.
        if (status.ok()) answered = reactor->memory->Grow(message->SpaceUsedLong() + message->ByteSizeLong());
        calls.fetch_sub(1);  // first: this service may go with its last call
        reactor->Finish(ToGrpc(answered));
        return answered.ok() == status.ok();
      });
    });
    return reactor;
  }

  // The same where `answer(peer, request, reply)` gives its status at once.
  template <class Request, class Message, class Handler>
  grpc::ServerUnaryReactor* AnswerAtOnce(std::string_view method, grpc::CallbackServerContext* call,
                                         const Request& request, Message* reply, Handler answer) {
    return Answer(method, call, request, reply,
                  [reply, answer = std::move(answer)](const Peer& peer, const Request& asked, auto finish) {
                    finish(answer(peer, asked, reply));
                  });
  }

  // A stream by `make(peer, request, memory)`.
  template <class Message, class Request, class Make>
  grpc::ServerWriteReactor<Message>* Stream(std::string_view method,
                                            grpc::CallbackServerContext* call, CallKind kind,
                                            const Request& request, Make make) {
    class Refusal final : public grpc::ServerWriteReactor<Message> {
     public:
      explicit Refusal(const Status& why) { this->Finish(ToGrpc(why)); }
      void OnDone() override { delete this; }
    };
    Result<Peer> peer = entry_.Admit(*call, roles_, method);
    if (!peer.ok()) return new Refusal(peer.status());
    Result<std::shared_ptr<CallHold>> memory =
        entry_.ledger.Take(kind, *peer, request.SpaceUsedLong());
    if (!memory.ok()) return new Refusal(memory.status());
    return make(*peer, request, std::move(memory).value());
  }

 private:
  CallEntry& entry_;
  MethodRoles roles_;
};

}  // namespace profd::rpc
