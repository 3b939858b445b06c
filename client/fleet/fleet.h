// profctl on many nodes: what its commands do there and what they report.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "client/api.h"
#include "client/context.h"
#include "client/fleet/clock_offset.h"
#include "client/fleet/fan_out.h"
#include "client/fleet/hostlist.h"
#include "client/signals.h"

namespace profd::client {

struct ExportCommand;

struct FetchedDump {
  v1::Session session;
  // One of several of its session, named by the user, or of a session the node's list has forgotten.
  bool by_name = false;
  // "3", "0-7"; empty when no process of the session has a known rank.
  std::string ranks;
  // Folder below --out, then the dump's own: "rank_3/PROF_000001_...".
  std::string path;
  uint64_t bytes = 0;
  uint64_t files = 0;
  // It was there before; nothing was written.
  bool was_there = false;
  Status status;
};

// The result of one node. One element belongs to one worker at a time.
struct NodeResult {
  std::string node;
  // Why it failed; ok otherwise.
  Status status;
  // Has nothing of what was requested: an error only when this holds for all nodes.
  bool none = false;
  // Answered, but not everything that was requested works.
  bool partial = false;
  // Was started and is stopped again.
  bool undone = false;
  // Its answer arrived after the common start instant.
  bool late = false;
  std::vector<v1::Session> sessions;
  std::optional<v1::Node> description;
  std::optional<ClockOffset> offset;
  std::vector<FetchedDump> dumps;
  // Of an export: dumps and what became of them.
  std::vector<v1::Dump> archived;
  // One line for people beside the error.
  std::string note;

  bool ok() const { return status.ok() && !partial && !undone; }
};

struct FleetReport {
  std::string command;
  std::string job_id;
  std::vector<NodeResult> nodes;
  // Of the common start, on our clock; 0 = none.
  int64_t common_start_ns = 0;
  bool interrupted = false;
  // The command's own part failed, whatever the nodes did (the index of a fetch): kExitPartial.
  bool incomplete = false;
  std::vector<std::string> warnings;
  // Of a start: what the sessions of all nodes have in common. Empty where no node can have one.
  std::string fleet_id;
};

// kExitOk, kExitPartial, or the one reason why no node did it (kExitRefused before the others).
int ExitCodeOf(const FleetReport& report);
// The table (or JSON) on stdout, and on stderr who failed.
int PrintReport(Io& io, const Clock& clock, bool json, const FleetReport& report);

// The nodes and how to reach them.
class Fleet {
 public:
  using MakeApi = std::function<std::unique_ptr<ProfdApi>(const Endpoint& endpoint)>;
  struct Setup {
    Io& io;
    const Clock& clock;
    MakeApi make_api;
    std::vector<NodeName> nodes;
    int64_t node_timeout_ns = 30 * kNsPerSecond;
    // Null: cannot be interrupted.
    SignalWatch* signals = nullptr;
    // As Environment has it; null = failures are shown as they were received.
    std::function<std::string(const Endpoint&)> diagnose = nullptr;
  };
  explicit Fleet(Setup setup);

  const Clock& clock() const { return setup_.clock; }
  Io& io() { return setup_.io; }
  // Another connection to the node.
  std::unique_ptr<ProfdApi> NewApi(size_t node) const {
    return setup_.make_api(setup_.nodes[node].endpoint);
  }
  const std::vector<NodeName>& nodes() const { return setup_.nodes; }
  int64_t node_timeout_ns() const { return setup_.node_timeout_ns; }
  // One result for each node, in their order: none has been called.
  FleetReport NewReport(std::string command, std::string job_id) const;

  enum class Deadline { kNodeTimeout, kNone };
  using Work = std::function<void(size_t node, NodeCall* call)>;
  // `work` for those of `which` (indices of nodes()), concurrently. False when a signal ended it; the
  // signal is consumed, so that the next ForEach can be ended by the next one.
  bool ForEach(const std::string& what, const std::vector<size_t>& which, const Work& work,
               Deadline deadline = Deadline::kNodeTimeout);
  bool ForAll(const std::string& what, const Work& work);
  // Waits, with a line on a terminal. False when a signal ended it; it is consumed.
  bool Pause(const std::string& what, int64_t ms);

 private:
  bool GoOn(const std::string& what, size_t done, size_t all, int64_t began_ns);

  Setup setup_;
  bool shown_ = false;
};

struct FleetStart {
  v1::SessionSpec request;
  // One node that does not start stops the others.
  bool all_or_nothing = false;
  // An interrupt leaves what was started.
  bool keep = false;
};
FleetReport StartOnAll(Fleet* fleet, const FleetStart& wanted);

// Exactly one of the three, as in `profctl stop`.
struct FleetStop {
  std::vector<std::string> ids;
  std::string job_id;
  bool all_mine = false;
};
FleetReport StopOnAll(Fleet* fleet, const FleetStop& wanted);

FleetReport StatusOfAll(Fleet* fleet);
FleetReport DumpOnAll(Fleet* fleet, const v1::DumpRecorderRequest& request);
FleetReport ListOnAll(Fleet* fleet, const v1::ListSessionsRequest& request);

// The metadata of this name is the same for all sessions of one start.
inline constexpr const char* kFleetId = "fleet_id";
bool IsFleetId(const std::string& id);

// What the nodes are asked to load into their database.
struct FleetExport {
  // Sessions, starts by their fleet id, or dumps; empty = all of the job.
  std::vector<std::string> ids;
  std::string job_id;
  // "clickhouse://db.example.com:8123/profiles", without user and password.
  std::string to;
  // Empty: as the nodes' archive.run has it.
  std::string run;
  // Until the database has confirmed them, so long; false: until they are queued.
  bool wait = true;
  int64_t timeout_ns = 600 * kNsPerSecond;
  int64_t first_pause_ms = 500;
};
// Beside the command's own arguments.
struct FleetExportArgs {
  std::optional<std::string> job = {};
  std::optional<std::string> timeout = {};
  bool no_wait = false;
  // The job whose nodes these are; it may be known only when they have been listed.
  bool has_source_job = false;
  std::string source_job = {};
};
// Adds what is wrong with the arguments.
FleetExport BuildFleetExport(const ExportCommand& command, const FleetExportArgs& args, std::vector<std::string>* problems);
// Each node queues its dumps (or refuses), and its own profctl archive loads them.
FleetReport ExportOnAll(Fleet* fleet, const FleetExport& wanted);

struct FleetQuestion {
  // "jobs"
  std::string command;
  bool json = false;
  // The command on one node; on several threads.
  std::function<int(const Context& context)> run;
};
// Prints what the nodes answered, equal texts once, and returns the exit code.
int AskAll(Fleet* fleet, const FleetQuestion& question);

struct FleetFetch {
  std::string job_id;
  // Created if missing, with its parents.
  std::string out;
  // Sessions, starts by their fleet id, or dumps; empty = all of the job.
  std::set<std::string> ids = {};
};
// Every finished dump of what was requested into out/rank_<r>/ (the node's name where no rank is known,
// both where several nodes claim one), and an index of them, out/fleet.json. A dump that is there is not
// fetched again; one that arrived incomplete is removed. The error is that of `out` itself.
Result<FleetReport> FetchFromAll(Fleet* fleet, const FleetFetch& wanted);

}  // namespace profd::client
