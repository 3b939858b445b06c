// For client tests only: a daemon that answers from memory, and profctl run against it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "client/cli.h"
#include "client/user_names.h"
#include "dump/test_support.h"

namespace profd::client {

// Golden files do not depend on the machine's users.
inline const bool kUsersAreMade = [] {
  SetUserLookup([](uint32_t uid) { return std::string(uid == 1000 ? "alice" : ""); });
  return true;
}();

// What the fake daemon answers and what it was asked.
struct FakeDaemon {
  // Several nodes of a list are this one.
  std::mutex mutex;
  // Fails every call when not ok.
  Status error;
  v1::Node node;
  std::function<Result<v1::Session>(const v1::SessionSpec&)> on_start;
  std::function<Result<v1::Session>(const std::string& id)> on_stop;
  std::map<std::string, v1::Session> sessions;
  std::deque<v1::Session> watch;
  std::deque<v1::SampleChunk> samples;
  std::deque<v1::DumpChunk> dump;
  // How a stream ends after its messages.
  Status stream_end;
  // Called before a stream's first message.
  std::function<void()> before_stream;
  uint64_t freed_bytes = 0;
  v1::ListOptionsResponse options;
  v1::CheckOptionsResponse checked;
  v1::ListJobsResponse jobs;
  // Called before each answer.
  std::function<void()> on_jobs;
  // One for each call, the last one again and again; none: nothing is collected.
  std::vector<v1::GetActivityResponse> activity;
  std::vector<v1::GetActivityRequest> activity_requests;
  std::function<void()> on_activity;
  v1::GetAdviceResponse advice;
  v1::GetAdviceRequest advice_request;
  std::deque<v1::GetAdviceResponse> advice_watch;
  v1::Session recorded;
  v1::GetTimeResponse time;
  v1::Topology topology;
  v1::ChannelReleases releases;
  v1::ReleaseChannelsRequest release_request;
  v1::AcquireChannelsRequest acquire_request;
  v1::ListDumpsResponse dumps;
  v1::ClaimArchiveUploadResponse archive;
  // Called before each answer.
  std::function<void()> on_claim;
  v1::PinDumpResponse pinned;
  std::vector<v1::PinDumpRequest> pins;
  v1::UnpinDumpResponse unpinned;
  v1::GetStacksResponse stacks;
  v1::GetStacksRequest stacks_request;
  std::vector<v1::AcquireTuningLeaseRequest> tuning_requests;
  Status tuning_error;
  v1::TuningLease tuning_lease;
  v1::ListTuningLeasesResponse tuning_leases;
  std::vector<std::string> released;
  std::vector<v1::UnpinDumpRequest> unpins;

  std::vector<v1::SessionSpec> starts;
  std::vector<std::string> stopped;
  std::vector<std::string> deleted;
  v1::ListSessionsRequest list_request;
  v1::CheckOptionsRequest check_request;
  v1::ListJobsRequest jobs_request;
  v1::DumpRecorderRequest recorder_request;
  v1::StreamSamplesRequest stream_request;
  v1::WatchSessionRequest watch_request;
  std::string socket;
  Endpoint endpoint;
  std::optional<int64_t> timeout_ms;
};

class FakeApi : public ProfdApi {
 public:
  explicit FakeApi(FakeDaemon& daemon) : daemon_(daemon) {}

  Result<v1::Node> GetNode() override { return Answer(daemon_.node); }
  Result<v1::Session> StartSession(const v1::SessionSpec& request) override {
    daemon_.starts.push_back(request);
    if (!GoOn()) return Status(StatusCode::kCancelled, "cancelled");
    if (!daemon_.error.ok()) return daemon_.error;
    return daemon_.on_start(request);
  }
  Result<v1::Session> StopSession(const std::string& session_id) override {
    if (!daemon_.error.ok()) return daemon_.error;
    daemon_.stopped.push_back(session_id);
    if (daemon_.on_stop) return daemon_.on_stop(session_id);
    return Find(session_id);
  }
  Result<v1::Session> GetSession(const std::string& session_id) override { return Find(session_id); }
  Result<v1::ListSessionsResponse> ListSessions(const v1::ListSessionsRequest& request) override {
    if (!daemon_.error.ok()) return daemon_.error;
    daemon_.list_request = request;
    v1::ListSessionsResponse response;
    for (const auto& [id, session] : daemon_.sessions) {
      if (request.job_id().empty() || session.spec().target().job_id() == request.job_id()) *response.add_sessions() = session;
    }
    return response;
  }
  Result<v1::DeleteDumpResponse> DeleteDump(const v1::DeleteDumpRequest& request) override {
    RETURN_IF_ERROR(daemon_.error);
    daemon_.deleted.push_back(request.session_id());
    RETURN_IF_ERROR(Find(request.session_id()).status());
    v1::DeleteDumpResponse response;
    response.set_freed_bytes(daemon_.freed_bytes);
    return response;
  }
  Result<v1::ListOptionsResponse> ListOptions() override { return Answer(daemon_.options); }
  Result<v1::CheckOptionsResponse> CheckOptions(const v1::CheckOptionsRequest& request) override {
    std::lock_guard lock(daemon_.mutex);
    daemon_.check_request = request;
    return Answer(daemon_.checked);
  }
  Result<v1::ListJobsResponse> ListJobs(const v1::ListJobsRequest& request) override {
    std::lock_guard lock(daemon_.mutex);
    daemon_.jobs_request = request;
    if (daemon_.on_jobs) daemon_.on_jobs();
    return Answer(daemon_.jobs);
  }
  Result<v1::GetActivityResponse> GetActivity(const v1::GetActivityRequest& request) override {
    std::lock_guard lock(daemon_.mutex);
    daemon_.activity_requests.push_back(request);
    if (daemon_.on_activity) daemon_.on_activity();
    if (daemon_.activity.empty()) return Answer(v1::GetActivityResponse());
    const size_t call = std::min(daemon_.activity_requests.size(), daemon_.activity.size());
    return Answer(daemon_.activity[call - 1]);
  }
  Result<v1::GetAdviceResponse> GetAdvice(const v1::GetAdviceRequest& request) override {
    std::lock_guard lock(daemon_.mutex);
    daemon_.advice_request = request;
    return Answer(daemon_.advice);
  }
  Result<v1::Session> DumpRecorder(const v1::DumpRecorderRequest& request) override {
    daemon_.recorder_request = request;
    return Answer(daemon_.recorded);
  }
  Result<v1::GetTimeResponse> GetTime() override { return Answer(daemon_.time); }
  Result<v1::Topology> GetTopology() override { return Answer(daemon_.topology); }
  Result<v1::ListDumpsResponse> ListDumps() override { return Answer(daemon_.dumps); }
  Result<v1::ChannelReleases> ReleaseChannels(const v1::ReleaseChannelsRequest& request) override {
    daemon_.release_request = request;
    return Answer(daemon_.releases);
  }
  Result<v1::ChannelReleases> AcquireChannels(const v1::AcquireChannelsRequest& request) override {
    daemon_.acquire_request = request;
    return Answer(daemon_.releases);
  }
  Result<v1::PinDumpResponse> PinDump(const v1::PinDumpRequest& request) override {
    daemon_.pins.push_back(request);
    return Answer(daemon_.pinned);
  }
  Result<v1::UnpinDumpResponse> UnpinDump(const v1::UnpinDumpRequest& request) override {
    daemon_.unpins.push_back(request);
    return Answer(daemon_.unpinned);
  }
  Result<v1::GetStacksResponse> GetStacks(const v1::GetStacksRequest& request) override {
    daemon_.stacks_request = request;
    return Answer(daemon_.stacks);
  }
  Result<v1::ArchiveDumpsResponse> ArchiveDumps(const v1::ArchiveDumpsRequest&) override { return Answer(v1::ArchiveDumpsResponse()); }
  Result<v1::ClaimArchiveUploadResponse> ClaimArchiveUpload() override {
    if (daemon_.on_claim) daemon_.on_claim();
    return Answer(daemon_.archive);
  }
  Result<v1::ReportArchiveResponse> ReportArchive(const v1::ReportArchiveRequest&) override { return Answer(v1::ReportArchiveResponse()); }
  Result<v1::TuningLease> AcquireTuningLease(const v1::AcquireTuningLeaseRequest& request) override {
    daemon_.tuning_requests.push_back(request);
    if (!daemon_.tuning_error.ok()) return daemon_.tuning_error;
    return Answer(daemon_.tuning_lease);
  }
  Result<v1::ReleaseTuningLeaseResponse> ReleaseTuningLease(const std::string& lease_id) override {
    daemon_.released.push_back(lease_id);
    return Answer(v1::ReleaseTuningLeaseResponse());
  }
  Result<v1::ListTuningLeasesResponse> ListTuningLeases() override { return Answer(daemon_.tuning_leases); }
  Status WatchSession(const v1::WatchSessionRequest& request,
                      const Receive<v1::Session>& receive) override {
    daemon_.watch_request = request;
    return Play(daemon_.watch, receive);
  }
  Status StreamSamples(const v1::StreamSamplesRequest& request,
                       const Receive<v1::SampleChunk>& receive) override {
    daemon_.stream_request = request;
    return Play(daemon_.samples, receive);
  }
  Status WatchAdvice(const v1::WatchAdviceRequest& request,
                     const Receive<v1::GetAdviceResponse>& receive) override {
    daemon_.advice_request = request.what();
    return Play(daemon_.advice_watch, receive);
  }
  Status FetchDump(const v1::FetchDumpRequest&, const Receive<v1::DumpChunk>& receive) override {
    return Play(daemon_.dump, receive);
  }

 private:
  template <class Message>
  Result<Message> Answer(const Message& message) const {
    if (!daemon_.error.ok()) return daemon_.error;
    return message;
  }
  Result<v1::Session> Find(const std::string& id) const {
    if (!daemon_.error.ok()) return daemon_.error;
    auto found = daemon_.sessions.find(id);
    if (found == daemon_.sessions.end()) return NotFound("no session " + id);
    return found->second;
  }
  template <class Message>
  Status Play(const std::deque<Message>& messages, const Receive<Message>& receive) {
    if (!daemon_.error.ok()) return daemon_.error;
    if (daemon_.before_stream) daemon_.before_stream();
    for (const Message& message : messages) {
      if (!receive(message)) return Status::Ok();
      if (!GoOn()) return {StatusCode::kCancelled, "cancelled"};
    }
    return daemon_.stream_end;
  }

  FakeDaemon& daemon_;
};

// Compares with client/testdata/<name>; PROFD_UPDATE_GOLDEN=1 writes it instead.
inline void ExpectGolden(const std::string& text, const std::string& name) {
  std::string path = "client/testdata/" + name;
  if (const char* update = std::getenv("PROFD_UPDATE_GOLDEN"); update != nullptr) {
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  ASSERT_TRUE(std::filesystem::exists(path)) << path;
  EXPECT_EQ(text, ReadText(path)) << path;
}

class ProfctlTest : public ::testing::Test {
 protected:
  ProfctlTest() {
    setenv("TZ", "UTC", 1);
    tzset();
  }

  int Run(const std::vector<std::string>& arguments) {
    out_.str("");
    err_.str("");
    out_.clear();
    err_.clear();
    Environment environment{io_, clock_, make_api_,
                            default_socket_, search_path_, default_address_,
                            default_tls_dir_, home_, profiling_options_, ascend_work_path_,
                            working_directory_,
                            [this](const char* name) {
                              const auto found = variables_.find(name);
                              return found == variables_.end() ? std::string() : found->second;
                            }};
    return RunProfctl(arguments, environment);
  }
  // With what it writes to stderr, among other things.
  void ExpectMessage(const std::vector<std::string>& arguments, int exit_code, const std::string& message) {
    EXPECT_EQ(Run(arguments), exit_code) << testing::PrintToString(arguments) << err();
    EXPECT_NE(err().find(message), std::string::npos) << testing::PrintToString(arguments) << err();
  }
  std::string out() const { return out_.str(); }
  std::string err() const { return err_.str(); }
  int64_t OutLines() const {
    std::string text = out_.str();
    return std::count(text.begin(), text.end(), '\n');
  }

  FakeDaemon daemon_;
  Environment::ApiFactory make_api_ = [this](const Endpoint& endpoint, std::optional<int64_t> timeout_ms) {
    std::lock_guard lock(daemon_.mutex);
    daemon_.socket = endpoint.socket;
    daemon_.endpoint = endpoint;
    daemon_.timeout_ms = timeout_ms;
    return std::make_unique<FakeApi>(daemon_);
  };
  ManualClock clock_;
  std::ostringstream out_;
  std::ostringstream err_;
  Io io_{out_, err_};
  std::string default_socket_;
  std::string search_path_ = "/usr/bin:/bin";
  std::string default_address_;
  std::string default_tls_dir_;
  std::string home_;
  std::string profiling_options_;
  std::string ascend_work_path_;
  std::string working_directory_;
  std::map<std::string, std::string> variables_;
};

}  // namespace profd::client
