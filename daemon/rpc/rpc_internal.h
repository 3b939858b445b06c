// Shared by the files of this folder: the calling context and status translation.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <optional>

#include "daemon/rpc/acceptor.h"
#include "daemon/rpc/rpc_server.h"

namespace profd::rpc {

// Texts may quote what a client sent; a trailer that is longer than the client takes (8 KiB, escaped)
// would hide the error behind another one.
inline constexpr size_t kMaxErrorText = 6000;

// profd's codes are gRPC's.
inline grpc::Status ToGrpc(const Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return {static_cast<grpc::StatusCode>(status.code()),
          status.message().substr(0, kMaxErrorText)};
}

struct Context {
  explicit Context(const RpcDeps& d) : deps(d) {}
  RpcDeps deps;
  std::atomic<const Acceptor*> acceptor{nullptr};
  std::atomic<uint64_t> unidentified{0};
  std::atomic<bool> stopping{false};

  // Decided once, at the first line of every handler: the kernel's word on who calls.
  std::optional<Peer> Identify(const grpc::CallbackServerContext& call) {
    const Acceptor* source = acceptor.load();
    std::optional<Peer> peer = source == nullptr ? std::nullopt : source->Identify(call.peer());
    if (!peer) unidentified.fetch_add(1, std::memory_order_relaxed);
    return peer;
  }
};

inline grpc::Status Unidentified() {
  return {grpc::StatusCode::UNAUTHENTICATED, "the kernel does not say who is calling"};
}

// Streaming calls; each object lives until gRPC is done with it.
grpc::ServerWriteReactor<v1::Session>* NewWatch(Context& context, const Peer& peer,
                                                const v1::WatchSessionRequest& request);
grpc::ServerWriteReactor<v1::SampleChunk>* NewSampleStream(
    Context& context, const v1::StreamSamplesRequest& request);
grpc::ServerWriteReactor<v1::DumpChunk>* NewFetch(Context& context, const Peer& peer,
                                                  const v1::FetchDumpRequest& request);

}  // namespace profd::rpc
