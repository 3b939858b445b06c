// For tests only: a cluster in memory, with good, refusing, dead and slow nodes.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "client/fleet/fleet.h"
#include "client/test_support.h"

namespace profd::client {

// One node of the test, used by one worker at a time but by several in turn.
struct FakeNode {
  enum class Kind { kGood, kRefuses, kDead, kSlow, kSlowToStart, kReachedLate };
  Kind kind = Kind::kGood;
  // Its wall clock shows this much more than ours.
  int64_t offset_ns = 0;
  std::vector<v1::SessionSpec> starts;
  std::vector<v1::Session> sessions;
  std::vector<std::string> stopped;
  std::deque<v1::DumpChunk> dump;
  v1::ListDumpsResponse kept;
  std::vector<v1::FetchDumpRequest> fetches;
  // How FetchDump ends, and what happens before.
  Status dump_end;
  std::function<void()> on_dump_sent;
  // What ArchiveDumps answers, one after the other; the last one again and again. Empty: as a node that archives nothing.
  std::deque<Result<v1::ArchiveDumpsResponse>> archive_answers;
  std::vector<v1::ArchiveDumpsRequest> archive_requests;
};

// All of them, and how many calls there are at the same time.
struct FakeCluster {
  std::map<std::string, FakeNode> nodes;
  std::mutex mutex;
  std::atomic<int> under_way{0};
  std::atomic<int> most_at_once{0};
  std::atomic<int> listed{0};
  SystemClock clock;
};

class Counted {
 public:
  explicit Counted(FakeCluster* cluster) : cluster_(cluster) {
    int now = ++cluster_->under_way;
    int most = cluster_->most_at_once;
    while (now > most && !cluster_->most_at_once.compare_exchange_weak(most, now)) {
    }
  }
  ~Counted() { --cluster_->under_way; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  FakeCluster* cluster_;
};

// Answers only what a test overrides.
class DeafApi : public FakeApi {
 public:
  DeafApi() : FakeApi(nowhere_) { nowhere_.error = Unimplemented("not in this test"); }

 private:
  FakeDaemon nowhere_;
};

class NodeApi final : public DeafApi {
 public:
  NodeApi(FakeCluster* cluster, FakeNode* node) : cluster_(*cluster), node_(*node) {}

  Result<v1::Node> GetNode() override {
    RETURN_IF_ERROR(Reach());
    v1::Node node;
    node.set_version("1.2.3");
    node.add_devices()->set_chip("Ascend910B");
    node.mutable_caller()->set_uid(7);
    return node;
  }
  Result<v1::Session> StartSession(const v1::SessionSpec& request) override {
    RETURN_IF_ERROR(Reach());
    std::unique_lock lock(cluster_.mutex);
    node_.starts.push_back(request);
    if (node_.kind == FakeNode::Kind::kRefuses) return ResourceExhausted("busy.\nby uid 3");
    if (node_.kind == FakeNode::Kind::kReachedLate && request.schedule().has_start_at_ns()) {
      while (cluster_.clock.WallNs() <= request.schedule().start_at_ns()) std::this_thread::yield();
      return InvalidArgument("start_at_ns: long ago");
    }
    v1::Session session;
    session.set_session_id(fmt::format("s{}", node_.sessions.size()));
    session.mutable_status()->set_state(v1::Session::STATE_SCHEDULED);
    session.mutable_owner()->set_uid(7);
    session.mutable_spec()->mutable_target()->set_job_id(request.target().job_id());
    *session.mutable_spec()->mutable_metadata() = request.metadata();
    node_.sessions.push_back(session);
    lock.unlock();
    // It has begun, without an answer.
    if (node_.kind == FakeNode::Kind::kSlowToStart) return Hang();
    return session;
  }
  Result<v1::Session> StopSession(const std::string& session_id) override {
    RETURN_IF_ERROR(Reach());
    std::lock_guard lock(cluster_.mutex);
    for (v1::Session& session : node_.sessions) {
      if (session.session_id() != session_id) continue;
      if (session.status().state() != v1::Session::STATE_DONE) node_.stopped.push_back(session_id);
      session.mutable_status()->set_state(v1::Session::STATE_DONE);
      return session;
    }
    return NotFound("no session " + session_id);
  }
  Result<v1::ListSessionsResponse> ListSessions(const v1::ListSessionsRequest& request) override {
    RETURN_IF_ERROR(Reach());
    std::lock_guard lock(cluster_.mutex);
    v1::ListSessionsResponse response;
    for (const v1::Session& session : node_.sessions) {
      if (!request.job_id().empty() && session.spec().target().job_id() != request.job_id()) continue;
      if (request.active_only() && session.status().state() == v1::Session::STATE_DONE) continue;
      *response.add_sessions() = session;
    }
    ++cluster_.listed;
    return response;
  }
  Result<v1::GetTimeResponse> GetTime() override {
    RETURN_IF_ERROR(Reach());
    v1::GetTimeResponse time;
    time.set_wall_ns(cluster_.clock.WallNs() + node_.offset_ns);
    return time;
  }
  Result<v1::ArchiveDumpsResponse> ArchiveDumps(const v1::ArchiveDumpsRequest& request) override {
    RETURN_IF_ERROR(Reach());
    std::lock_guard lock(cluster_.mutex);
    node_.archive_requests.push_back(request);
    if (node_.archive_answers.empty()) return FailedPrecondition("nothing is archived on this node");
    Result<v1::ArchiveDumpsResponse> answer = node_.archive_answers.front();
    if (node_.archive_answers.size() > 1) node_.archive_answers.pop_front();
    return answer;
  }
  Result<v1::ListDumpsResponse> ListDumps() override {
    RETURN_IF_ERROR(Reach());
    return node_.kept;
  }
  Status FetchDump(const v1::FetchDumpRequest& request, const Receive<v1::DumpChunk>& receive) override {
    RETURN_IF_ERROR(Reach());
    node_.fetches.push_back(request);
    for (const v1::DumpChunk& chunk : node_.dump) {
      if (!receive(chunk)) return Status::Ok();
    }
    if (node_.on_dump_sent) node_.on_dump_sent();
    return node_.dump_end;
  }

 private:
  // As the transport does: until its hook has enough of it.
  Status Hang() {
    while (GoOn()) std::this_thread::yield();
    return {StatusCode::kCancelled, "cancelled"};
  }
  Status Reach() {
    Counted counted(&cluster_);
    if (node_.kind == FakeNode::Kind::kDead) return Unavailable("no daemon");
    if (node_.kind == FakeNode::Kind::kSlow) return Hang();
    // Answers at once: a deadline short enough for a test to wait for must not touch the others.
    return Status::Ok();
  }

  FakeCluster& cluster_;
  FakeNode& node_;
};

class FleetTest : public ::testing::Test {
 protected:
  // `kinds` in the nodes' order, the rest is good.
  void Make(size_t count, const std::map<size_t, FakeNode::Kind>& kinds = {}) {
    for (size_t i = 0; i < count; ++i) {
      NodeName name;
      name.text = fmt::format("n{:02}", i);
      name.endpoint = Endpoint::OnSocket("/" + name.text);
      names_.push_back(name);
      FakeNode& node = cluster_.nodes["/" + name.text];
      if (auto kind = kinds.find(i); kind != kinds.end()) node.kind = kind->second;
    }
  }
  FakeNode& Node(size_t i) { return cluster_.nodes[names_[i].endpoint.socket]; }
  Fleet MakeFleet(SignalWatch* signals = nullptr) {
    return Fleet({io_, cluster_.clock,
                  [this](const Endpoint& endpoint) {
                    return std::make_unique<NodeApi>(&cluster_,
                                                     &cluster_.nodes.at(endpoint.socket));
                  },
                  names_, node_timeout_ns_, signals});
  }
  int Print(const FleetReport& report, bool json = false) {
    out_.str("");
    err_.str("");
    return PrintReport(io_, cluster_.clock, json, report);
  }
  static FleetStart Wanted(const std::string& job = "j") {
    FleetStart wanted;
    wanted.request.mutable_target()->set_job_id(job);
    return wanted;
  }
  FleetReport Start(const FleetStart& wanted = Wanted(), SignalWatch* signals = nullptr) {
    Fleet fleet = MakeFleet(signals);
    return StartOnAll(&fleet, wanted);
  }
  FleetReport Stop(const FleetStop& wanted) {
    Fleet fleet = MakeFleet();
    return StopOnAll(&fleet, wanted);
  }
  // A session with a dump of one small file.
  void AddDump(size_t node, const std::string& name, const std::vector<int>& ranks = {}) {
    v1::Session session;
    session.set_session_id("id-" + name);
    session.mutable_spec()->mutable_target()->set_job_id("j");
    session.mutable_owner()->set_uid(7);
    session.mutable_status()->set_state(v1::Session::STATE_DONE);
    session.mutable_status()->set_dump_path("/var/lib/profd/" + name);
    for (int rank : ranks) session.mutable_status()->add_processes()->set_rank(rank);
    (*session.mutable_spec()->mutable_metadata())["clock_offset_ns"] = "-12";
    Node(node).sessions.push_back(session);
    v1::DumpChunk chunk;
    chunk.set_dump_name(name);
    chunk.set_total_bytes(4);
    chunk.set_path("host/sample.json");
    chunk.set_data("data");
    chunk.set_last(true);
    Node(node).dump = {chunk};
  }
  // What is on the node's disk.
  void Keep(size_t node, const std::string& name, const std::string& job, v1::Session::State state) {
    v1::Dump& dump = *Node(node).kept.add_dumps();
    dump.set_name(name);
    dump.set_session_id("id-" + name);
    dump.set_job_id(job);
    dump.set_state(state);
    dump.set_started_ns(1000);
    dump.set_ended_ns(2000);
  }

  FakeCluster cluster_;
  std::vector<NodeName> names_;
  int64_t node_timeout_ns_ = 3600 * kNsPerSecond;
  std::ostringstream out_;
  std::ostringstream err_;
  Io io_{out_, err_};
};

}  // namespace profd::client
