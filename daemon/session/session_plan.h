// From a request to a plan: a pure function that touches nothing, so that a bad request starts nothing
// and every problem is named at once. Facts about options: proto/options.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "collectors/collector.h"
#include "daemon/config/daemon_config.h"
#include "daemon/data/stream_hub.h"
#include "daemon/node/node_access.h"
#include "daemon/session/option_plan.h"
#include "daemon/session/peer.h"
#include "proto/attach/attach_protocol.h"

namespace profd {

namespace v1 {
class SessionSpec;
}

struct PlannedCollector {
  CollectorIndex index = 0;
  double hz = 0;
  bool named = false;      // the caller asked for it; otherwise a default that may be absent
  bool by_option = false;  // by an option that turns on several, not by its own name
  std::set<std::string> option_keys;  // which options
  ChannelOptions channel;  // channel collectors
  PollOptions poll;        // polled collectors
};

// What follows from a spec on this node; what the spec contains itself is not repeated.
struct SessionPlan {
  std::vector<int> devices;  // logical ids, ascending
  std::vector<PlannedCollector> collectors;
  uint64_t max_bytes = 0;
  bool storage_limited = false;  // max_bytes is the caller's own limit, lowered to dump.max_session_mb where that is less
  // At max_bytes the oldest data go, as storage_limit has it, also where it was lowered to dump.max_session_mb; that
  // alone ends the session.
  bool limit_ages = false;
  std::vector<pid_t> pids;  // of host_sys: those of the spec and the known processes of the job
  // Every option in force, in the table's order, as carried out.
  std::vector<options::Effective> options;
  // Those whose data come from inside the application and that are on: for the attached processes.
  std::map<std::string, std::string> application_options;
  // By option, what MSPTI is to collect inside the attached processes (attach::CollectRequest); with aclprof, the
  // options that it serves, without kinds.
  std::map<std::string, attach::CollectKinds> collect;
  std::optional<attach::AclprofRequest> aclprof;
  bool takes_marks = false;  // marks and ranges of attached processes; steps are always taken
  // Those that were requested, or are defaults of the switches: each gets an outcome of its own.
  std::vector<std::string> awaited_options;
  // Nothing is collected in the node: marks and steps of attached processes are all there is.
  bool application_only = false;
  std::vector<std::string> warnings;
};

// The text for a process whose owner is not known.
inline std::string WhyNoOwner(const Status& status) {
  return status.code() == StatusCode::kPermissionDenied ? status.message() : "no such process";
}

struct PlanContext {
  const DaemonConfig& config;
  std::span<const DeviceInfo> devices;
  std::span<const CollectorEntry> collectors;
  const Peer& peer;
  const NodeProcesses& processes;
  const NodeDevices& node_devices;
  // What runs on the node.
  ProbeCollector probe;
  // Bytes free on the dump volume; 0 = unknown.
  uint64_t free_bytes = 0;
  // Why `devices` is empty, if it is.
  std::string_view no_devices = kNoDevices;
  bool awaits_processes = false;  // the job is yet to come
  bool attached = false;          // an attached process takes part
  // What processes may use whose devices are not known.
  std::span<const DeviceInfo> maybe_devices = {};
};

// A request names a device that the node does not have; `devices`: those it has.
Problem NoSuchDevice(uint32_t id, std::span<const DeviceInfo> devices);

// The plan; or one problem per line: PERMISSION_DENIED if one is about rights, else INVALID_ARGUMENT,
// else UNIMPLEMENTED when all are about what this node cannot do, FAILED_PRECONDITION when all that
// is missing is a process.
Result<SessionPlan> PlanSession(const v1::SessionSpec& spec_untrusted,
                                const PlanContext& context);

// The command of `profctl run`: it is held until its session has been answered, and attaches then.
bool StartsWithCommand(const v1::SessionSpec& spec);

// Shared by everything that takes a text for lists and manifests: without control characters, 0..128 bytes.
Status CheckLabel(std::string_view text);

}  // namespace profd
