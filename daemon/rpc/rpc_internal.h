// Shared by the files of this folder: the calling context and status translation.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/service_type.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string_view>

#include "daemon/rpc/acceptor.h"
#include "daemon/rpc/call_limits.h"
#include "daemon/rpc/read_queue.h"
#include "daemon/rpc/roles.h"
#include "daemon/rpc/rpc_server.h"
#include "daemon/rpc/tls_server.h"
#include "proto/problems/problem_message.h"

namespace profd::rpc {

// Texts may quote what a client sent; a trailer that is longer than the client takes (8 KiB,
// escaped) would hide the error behind another one.
inline constexpr size_t kMaxErrorText = 6000;

// profd's codes are gRPC's.
inline grpc::Status ToGrpc(const Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return {static_cast<grpc::StatusCode>(status.code()), status.message().substr(0, kMaxErrorText),
          PackDetails(status)};
}

// What a message may cost before a handler sees it. A compressed one is refused, not unpacked: gRPC
// looks at the size of what it unpacked only afterwards, and 256 KiB can become 256 MiB.
void LimitMessages(grpc::ServerBuilder& builder);

struct Context {
  explicit Context(const RpcDeps& d) : deps(d) {}
  RpcDeps deps;
  std::atomic<const Acceptor*> acceptor{nullptr};
  std::atomic<const TlsServer*> tls{nullptr};
  std::atomic<uint64_t> unidentified{0};
  std::atomic<uint64_t> role_denied{0};
  std::atomic<bool> stopping{false};
  std::atomic<int> calls{0};  // that are being answered, streams apart
  CallLedger ledger;
  ReadQueue readers;

  // Decided once, at the first line of every handler: who calls, by the kernel's word or by
  // certificate, and whether that role may call `method` at all.
  Result<Peer> Admit(const grpc::CallbackServerContext& call, std::string_view method) {
    Result<Peer> peer = Identify(call);
    if (!peer.ok()) {
      unidentified.fetch_add(1, std::memory_order_relaxed);
      return peer;
    }
    if (Status may = MayCall(*peer, method); !may.ok()) {
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
    return Status(StatusCode::kUnauthenticated, "the kernel does not say who is calling");
  }
};

// After it was built: gRPC's health service answers for ours by its name too.
void SetHealthy(grpc::Server& server);

// The service for one gRPC server; several may share a context.
std::unique_ptr<grpc::Service> NewService(Context& context);

// Streaming calls; each object lives until gRPC is done with it.
grpc::ServerWriteReactor<v1::Session>* NewWatch(Context& context, const Peer& peer,
                                                const v1::WatchSessionRequest& request,
                                                std::shared_ptr<CallHold> memory);
grpc::ServerWriteReactor<v1::SampleChunk>* NewSampleStream(Context& context, const Peer& peer,
                                                           const v1::StreamSamplesRequest& request,
                                                           std::shared_ptr<CallHold> memory);
grpc::ServerWriteReactor<v1::DumpChunk>* NewFetch(Context& context, const Peer& peer,
                                                  const v1::FetchDumpRequest& request,
                                                  std::shared_ptr<CallHold> memory);

}  // namespace profd::rpc
