// The protocol between a training process and the daemon on the attach socket
// (/run/profd/attach.sock): a unix SOCK_SEQPACKET, one JSON object per packet, at most kMaxPacket
// bytes, both ways at any time. The process's Hello is first and may carry the descriptor of its
// mark ring (SCM_RIGHTS), a collector packet that of its activity ring or of a directory of files. Who the
// process is, the kernel reports (SO_PEERCRED), not the Hello.
//
// No gRPC here: the library lives inside other people's training processes, which bring their own
// gRPC, protobuf and fork() with them, and a descriptor has to be passed. docs/internals.md
// is the reference.
//
// Everything parsed is untrusted on both sides: unknown members are ignored, wrong types and sizes
// refuse the packet with a reason.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "proto/attach/collecting.h"

namespace profd::attach {

inline constexpr int kProtocolVersion = 1;
inline constexpr size_t kMaxPacket = 128 * 1024;
inline constexpr size_t kMaxOptionsBytes = 64 * 1024;
inline constexpr size_t kMaxAttachDevices = 64;
inline constexpr size_t kMaxMetadataKeys = 64;
inline constexpr size_t kMaxMetadataKeyBytes = 64;
inline constexpr size_t kMaxMetadataValueBytes = 1024;
inline constexpr size_t kMaxAttachCollectors = 128;
// Words of a list of kinds, those that are not known included.
inline constexpr size_t kMaxCollectKinds = 32;
inline constexpr size_t kMaxCollectorDetailBytes = 1024;
inline constexpr size_t kMaxAclprofItems = 16;
// What the vendor's aclprofSetConfig takes.
inline constexpr size_t kMaxAclprofValueBytes = 256;
// Of a StacksReport.
inline constexpr size_t kMaxStackThreads = 128;
inline constexpr size_t kMaxStackFrames = 100;
inline constexpr size_t kMaxStackNameBytes = 512;
// Job ids, labels, session ids, framework and library names.
inline constexpr size_t kMaxAttachNameBytes = 256;
inline constexpr const char* kDefaultAttachSocket = "/run/profd/attach.sock";

// ---- process to daemon

// First packet. Everything may be left out: the daemon fills gaps from the process's environment
// and cgroup.
struct Hello {  // "hello"
  int version = kProtocolVersion;
  std::string made_by;  // "library" on the wire: "libprofd 0.1.0"
  std::string job_id;
  std::optional<int> rank, local_rank, world_size;
  std::vector<int> devices;  // as the process numbers them: physical ids of /dev/davinciN
  std::string framework;
  std::string options_json;  // PROFILING_OPTIONS: starts a session at once; its reply has seq 0
  std::map<std::string, std::string> metadata;
  bool has_ring = false;  // a descriptor is attached
  bool answers_stacks = false;  // it may be sent a StacksCall
};
struct StartCall {   // "start": a session of this process's job devices and itself
  uint64_t seq = 0;  // > 0
  std::string options_json = {};
  std::map<std::string, std::string> acl_switches = {};
  std::string label = {};
  uint64_t duration_ms = 0;
  std::optional<int64_t> start_step = {};
  uint32_t steps = 0;
  bool no_dump = false;
  bool best_effort = false;
  std::vector<std::string> collectors = {};  // "hccs" or "hccs=50"
};
struct StopCall {  // "stop"; answered when the dump is complete
  uint64_t seq = 0;
  std::string session_id;  // empty = the last one this process started
};
struct StatusCall {  // "status"
  uint64_t seq = 0;
  std::string session_id;
};
struct MetadataCall {  // "metadata"
  std::string key, value;
};
// Answer to a SessionNotice with steps: the process has begun or ended that step.
struct StepReport {  // "step"
  std::string session_id;
  int64_t step = 0;
  bool begin = true;
};
// Answer to a SessionNotice with a request to collect, and again whenever something of it changes. Only to
// a daemon whose welcome takes it.
struct CollectorReport {  // "collector"
  std::string session_id = {};
  CollectProvider provider = CollectProvider::kUnknown;
  CollectState state = CollectState::kOff;
  int code = 0;  // the vendor's; 0 = none
  std::string detail = {};
  CollectKinds kinds = {};  // that are collected
  CollectKinds left_out = {};  // that are not, to stay within CollectRequest::max_permille; `detail` says it
  std::string version = {};             // of the vendor's library
  bool has_ring = false;  // the descriptor of the activity ring is attached: once in a connection
  bool has_files = false;  // with kFiles: that of the directory does (O_RDONLY)
};
// Answer to a StacksCall: where the interpreter's threads stand.
struct StacksReport {  // "stacks"
  struct Frame {
    std::string file, function;
    int line = 0;
  };
  struct Thread {
    int thread = 0;  // the kernel's id, as the process's own namespace numbers it; 0 = not known
    std::string name = {};  // the interpreter's; empty = as the kernel has it
    bool trains = false;
    std::vector<Frame> frames;  // innermost first
  };
  uint64_t seq = 0;
  bool has_python = false;
  bool left_out = false;  // threads or frames beyond the limits
  std::vector<Thread> threads;
};
struct Bye {};  // "bye": detaches in good order

using ToDaemon = std::variant<Hello, StartCall, StopCall, StatusCall, MetadataCall, StepReport,
                              CollectorReport, StacksReport, Bye>;

// ---- daemon to process

struct Welcome {  // "welcome"
  int version = kProtocolVersion;
  std::string daemon = {};  // "profd 0.1.0"
  uint64_t attach_id = 0;
  std::string job_id = {};  // as the daemon made it out
  std::optional<int> rank = {};
  std::vector<int> devices = {};  // logical ids
  bool takes_collector = false;  // the process may send "collector", and with it an activity ring
};
struct Refused {  // "refused": instead of a welcome; the connection ends
  int code = 0;   // StatusCode
  std::string message;
};
struct SessionSummary {
  std::string session_id, state, reason, dump_path;
  uint64_t records = 0, dropped_records = 0, dump_bytes = 0, marks = 0, dropped_marks = 0;
  std::vector<std::string> warnings;
  std::map<std::string, std::string> effective_options;
  struct Outcome {
    std::string collector, result, detail;
    int device = -1;
    double hz = 0;
    uint64_t records = 0;
  };
  std::vector<Outcome> outcomes;
};
struct Reply {  // "reply" to the call of that seq
  uint64_t seq = 0;
  int code = 0;  // StatusCode; 0 = ok
  std::string message;
  std::optional<SessionSummary> session;
};
// For the vendor's profiler that writes files; only it has AI Core metrics, AI CPU, L2, iterations, shapes.
struct AclprofRequest {
  uint64_t bits = 0;  // dataTypeConfig
  uint32_t metrics = 0xFF;  // aclprofAicoreMetrics; 0xFF = none
  // By the vendor's names in lower case ("storage_limit": "500MB").
  std::map<std::string, std::string> config;
};
// What a session wants from inside the process.
struct CollectRequest {
  CollectKinds kinds;  // those that the process does not know are left out
  uint32_t flush_ms = 0;         // how long a record may stay in the process; 0 = its default
  uint64_t ring_bytes = 0;       // of the first order; 0 = its default
  uint32_t max_permille = 0;     // of a core that collecting may take in the process; 0 = no limit
  CollectProvider provider = CollectProvider::kAuto;  // unknown: one that the process does not know
  std::optional<AclprofRequest> aclprof = std::nullopt;  // with kAclprof
};
// A session that concerns this process.
inline constexpr std::string_view kRecording = "recording";
struct SessionNotice {  // "session"
  std::string session_id = {};
  // "armed": the process reports the begin of start_step, and the end of the last of `steps` steps.
  // "running": it records what `options`, `collect` and `marks` request.
  // "recording": the same for the flight recorder, which takes no marks.
  // "ended": it stops all of that for this session.
  std::string state = {};
  std::optional<int64_t> start_step = {};
  uint32_t steps = 0;
  std::map<std::string, std::string> options = {};  // effective ones that the application serves
  // While "running" or "recording". With "armed" and start_step: from shortly before that step, so that it is
  // recorded from its begin.
  std::optional<CollectRequest> collect = std::nullopt;
  bool marks = true;  // false: the session takes steps only
};

// Answer to "files": they were copied, or will not be; the process may remove its directory.
struct FilesTaken {  // "files_taken"
  std::string session_id;
  int code = 0;  // StatusCode; 0 = all of it
  std::string message;
};

struct StacksCall {  // "stacks"; one at a time, to be answered with a StacksReport of the same seq
  uint64_t seq = 0;  // > 0
};

using ToProcess = std::variant<Welcome, Refused, Reply, SessionNotice, FilesTaken, StacksCall>;

// What goes to the daemon may come out larger than kMaxPacket (the sender refuses it then); what
// goes to the process never does: a reply's lists and strings are cut to fit, with a warning in it
// about it.
std::string Encode(const ToDaemon& message);
std::string Encode(const ToProcess& message);
// The summary of a reply by itself.
std::string EncodeSummary(const SessionSummary& session);
// The `threads` of a "stacks" packet by themselves: [{"thread": 7, "name": "loader", "trains": true, "frames": [["f.py", "main", 12]]}].
Result<std::vector<StacksReport::Thread>> ParseStackThreads(std::string_view json_untrusted);
// kInvalidArgument with a reason.
Result<ToDaemon> ParseToDaemon(std::string_view packet_untrusted);
Result<ToProcess> ParseToProcess(std::string_view packet_untrusted);

}  // namespace profd::attach
