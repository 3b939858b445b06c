// The calls of profctl to a daemon, without the transport: commands are written and tested against
// this.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "base/status.h"
#include "profd/v1/profd.pb.h"

namespace profd::client {

// Not thread-safe: one command, one thread, one call at a time.
class ProfdApi {
 public:
  // Called about ten times a second while a call waits for the daemon, and after every message of a
  // stream; false cancels the call, which then answers kCancelled.
  using WaitHook = std::function<bool()>;
  // Takes the next message of a stream; false ends the stream, which then answers ok.
  template <class Message>
  using Receive = std::function<bool(const Message&)>;

  virtual ~ProfdApi() = default;

  virtual Result<v1::Node> GetNode() = 0;
  virtual Result<v1::Session> StartSession(const v1::SessionSpec& request) = 0;
  virtual Result<v1::Session> StopSession(const std::string& session_id) = 0;
  virtual Result<v1::Session> GetSession(const std::string& session_id) = 0;
  virtual Result<v1::ListSessionsResponse> ListSessions(const v1::ListSessionsRequest& request) = 0;
  virtual Result<v1::DeleteDumpResponse> DeleteDump(const v1::DeleteDumpRequest& request) = 0;

  virtual Result<v1::ListOptionsResponse> ListOptions() = 0;
  virtual Result<v1::CheckOptionsResponse> CheckOptions(const v1::CheckOptionsRequest& request) = 0;
  virtual Result<v1::ListJobsResponse> ListJobs(const v1::ListJobsRequest& request) = 0;
  virtual Result<v1::GetActivityResponse> GetActivity(const v1::GetActivityRequest& request) = 0;
  virtual Result<v1::GetAdviceResponse> GetAdvice(const v1::GetAdviceRequest& request) = 0;
  virtual Result<v1::Session> DumpRecorder(const v1::DumpRecorderRequest& request) = 0;
  virtual Result<v1::GetTimeResponse> GetTime() = 0;
  virtual Result<v1::Topology> GetTopology() = 0;
  virtual Result<v1::ChannelReleases> ReleaseChannels(const v1::ReleaseChannelsRequest& request) = 0;
  virtual Result<v1::ChannelReleases> AcquireChannels(const v1::AcquireChannelsRequest& request) = 0;
  virtual Result<v1::ListDumpsResponse> ListDumps() = 0;
  virtual Result<v1::PinDumpResponse> PinDump(const v1::PinDumpRequest& request) = 0;
  virtual Result<v1::UnpinDumpResponse> UnpinDump(const v1::UnpinDumpRequest& request) = 0;
  virtual Result<v1::GetStacksResponse> GetStacks(const v1::GetStacksRequest& request) = 0;
  virtual Result<v1::ArchiveDumpsResponse> ArchiveDumps(const v1::ArchiveDumpsRequest& request) = 0;
  virtual Result<v1::ClaimArchiveUploadResponse> ClaimArchiveUpload() = 0;
  virtual Result<v1::ReportArchiveResponse> ReportArchive(const v1::ReportArchiveRequest& request) = 0;

  virtual Result<v1::TuningLease> AcquireTuningLease(const v1::AcquireTuningLeaseRequest& request) = 0;
  virtual Result<v1::ReleaseTuningLeaseResponse> ReleaseTuningLease(const std::string& lease_id) = 0;
  virtual Result<v1::ListTuningLeasesResponse> ListTuningLeases() = 0;

  virtual Status WatchSession(const v1::WatchSessionRequest& request,
                              const Receive<v1::Session>& receive) = 0;
  virtual Status StreamSamples(const v1::StreamSamplesRequest& request,
                               const Receive<v1::SampleChunk>& receive) = 0;
  virtual Status WatchAdvice(const v1::WatchAdviceRequest& request,
                             const Receive<v1::GetAdviceResponse>& receive) = 0;
  virtual Status FetchDump(const v1::FetchDumpRequest& request,
                           const Receive<v1::DumpChunk>& receive) = 0;

  // Returns the one there was.
  WaitHook SetWaitHook(WaitHook hook) { return std::exchange(wait_hook_, std::move(hook)); }

 protected:
  // True when the call shall go on.
  bool GoOn() const { return !wait_hook_ || wait_hook_(); }

 private:
  WaitHook wait_hook_;
};

}  // namespace profd::client
