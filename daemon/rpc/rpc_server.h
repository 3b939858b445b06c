// The gRPC edge: identifies the caller, posts to the control strand, translates the answer. No
// decision is taken here and nothing here waits. The only daemon code that sees
// gRPC is in this folder.
#pragma once

#include <bitset>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/strand.h"
#include "daemon/data/stream_hub.h"
#include "daemon/metrics/metric_store.h"
#include "daemon/session/session_manager.h"

namespace profd {

class Acceptor;
class TlsServer;
struct TlsOptions;

struct RpcDeps {
  Strand& control;
  SessionManager& sessions;
  MetricStore& store;
  StreamHub& hub;
  std::string dump_root;  // where FetchDump reads
  // Fills in the node's description; on the control strand.
  std::function<void(const Peer&, v1::Node*)> describe_node;
  // Calls answered elsewhere than by the session manager; on the control strand, each finishes exactly
  // once. Null = UNIMPLEMENTED.
  template <class Request, class Reply>
  using Handler = std::function<void(const Peer&, const Request& request_untrusted, Reply*,
                                     std::function<void(const Status&)> finish)>;
  Handler<v1::ListOptionsRequest, v1::ListOptionsResponse> list_options = nullptr;
  Handler<v1::CheckOptionsRequest, v1::CheckOptionsResponse> check_options = nullptr;
  Handler<v1::ListJobsRequest, v1::ListJobsResponse> list_jobs = nullptr;
  Handler<v1::GetActivityRequest, v1::GetActivityResponse> get_activity = nullptr;
  Handler<v1::GetStacksRequest, v1::GetStacksResponse> get_stacks = nullptr;
  Handler<v1::GetAdviceRequest, v1::GetAdviceResponse> get_advice = nullptr;
  // Of WatchAdvice: `changed` is called after each change; gives what ends it. On the control strand.
  std::function<std::shared_ptr<void>(std::function<void()> changed)> watch_advice = nullptr;
  Handler<v1::RenewLeaseRequest, v1::RenewLeaseResponse> renew_lease = nullptr;
  Handler<v1::DumpRecorderRequest, v1::Session> dump_recorder = nullptr;
  Handler<v1::GetTimeRequest, v1::GetTimeResponse> get_time = nullptr;
  Handler<v1::GetTopologyRequest, v1::Topology> get_topology = nullptr;
  Handler<v1::ReleaseChannelsRequest, v1::ChannelReleases> release_channels = nullptr;
  Handler<v1::AcquireChannelsRequest, v1::ChannelReleases> acquire_channels = nullptr;
  Handler<v1::DeleteDumpRequest, v1::DeleteDumpResponse> delete_dump = nullptr;
  Handler<v1::ListDumpsRequest, v1::ListDumpsResponse> list_dumps = nullptr;
  Handler<v1::PinDumpRequest, v1::PinDumpResponse> pin_dump = nullptr;
  Handler<v1::UnpinDumpRequest, v1::UnpinDumpResponse> unpin_dump = nullptr;
  Handler<v1::ArchiveDumpsRequest, v1::ArchiveDumpsResponse> archive_dumps = nullptr;
  Handler<v1::ClaimArchiveUploadRequest, v1::ClaimArchiveUploadResponse> take_archive = nullptr;
  Handler<v1::ReportArchiveRequest, v1::ReportArchiveResponse> report_archive = nullptr;
  Handler<v1::AcquireTuningLeaseRequest, v1::TuningLease> acquire_tuning = nullptr;
  Handler<v1::ReleaseTuningLeaseRequest, v1::ReleaseTuningLeaseResponse> release_tuning = nullptr;
  Handler<v1::ListTuningLeasesRequest, v1::ListTuningLeasesResponse> list_tuning = nullptr;
  // Directory names of what the peer may fetch, oldest first; on the control strand.
  std::function<Result<std::vector<std::string>>(const Peer&, const v1::FetchDumpRequest&)>
      dumps_to_fetch = nullptr;
  // Whether live streams may show the peer what is measured of one process; on the control strand.
  // Null = all callers may.
  std::function<bool(const Peer&, pid_t)> may_see_process = nullptr;
};

class RpcServer {
 public:
  explicit RpcServer(const RpcDeps& deps);
  ~RpcServer();

  // For the acceptor's handover, on its thread: takes the descriptor. gRPC runs from then on.
  void Adopt(int fd);
  // The last connection has ended (the acceptor's thread): gRPC's threads end until the next one. False
  // when a call is still being answered; to be tried again.
  bool Rest();
  // Who calls are from; before the first Adopt.
  void SetAcceptor(const Acceptor* acceptor);
  // Serves other machines too, from now on; before the first signal to stop. Every problem is a line.
  Status ListenTls(const TlsOptions& options);
  // Null when it is off; lives as long as this.
  TlsServer* tls() const;
  // No new calls, and those that run get until the deadline.
  void Shutdown(int64_t patience_ns);
  uint64_t unidentified() const;
  // Calls that the caller's role does not allow.
  uint64_t role_denied() const;
  // What calls hold and how many were refused for it: one line a kind of calls.
  struct CallUsage {
    std::string_view label;
    uint64_t calls = 0;
    uint64_t bytes = 0;
    uint64_t refused_user = 0;
    uint64_t refused_node = 0;
  };
  std::vector<CallUsage> usage() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace profd
