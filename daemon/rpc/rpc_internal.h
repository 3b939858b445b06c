// Shared by the files of this folder: the calling context.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/service_type.h>

#include <atomic>
#include <memory>
#include <vector>

#include "daemon/rpc/read_queue.h"
#include "daemon/rpc/rpc_server.h"
#include "daemon/rpc/service_calls.h"

namespace profd::rpc {

// What a message may cost before a handler sees it. A compressed one is refused, not unpacked: gRPC
// looks at the size of what it unpacked only afterwards, and 256 KiB can become 256 MiB.
void LimitMessages(grpc::ServerBuilder& builder);

struct Context : CallEntry {
  explicit Context(const RpcDeps& d) : CallEntry(d.control), deps(d) {}
  RpcDeps deps;
  std::atomic<bool> stopping{false};
  ReadQueue readers;
};

// After it was built: gRPC's health service answers for ours by its name too.
void SetHealthy(grpc::Server& server);

// The contract's services for one gRPC server, which goes before them; several may share a context.
using Services = std::vector<std::unique_ptr<grpc::Service>>;
Services AddServices(Context& context, grpc::ServerBuilder& builder);

// In watch_calls.cc, whose stream has the same messages.
Status GetAdvice(const RpcDeps& deps, const Peer& peer, const v1::GetAdviceRequest& request, v1::GetAdviceResponse* out);

// Streaming calls; each object lives until gRPC is done with it.
template <class Message, class Request>
using NewStream = grpc::ServerWriteReactor<Message>*(Context& context, const Peer& peer, const Request& request,
                                                     std::shared_ptr<CallHold> memory);
NewStream<v1::Session, v1::WatchSessionRequest> NewWatch;
NewStream<v1::SampleChunk, v1::StreamSamplesRequest> NewSampleStream;
NewStream<v1::GetAdviceResponse, v1::WatchAdviceRequest> NewAdviceWatch;
NewStream<v1::DumpChunk, v1::FetchDumpRequest> NewFetch;

}  // namespace profd::rpc
