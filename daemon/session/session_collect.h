// What a session requests from inside its processes, and how each of them is getting on with it: from their
// reports to what became of an option. Control strand.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/jobs/job_directory.h"
#include "dump/manifest.h"
#include "profd/v1/profd.pb.h"
#include "proto/attach/attach_protocol.h"

namespace profd {

// The vendor's profiler failed when it was to write its files, or has not recorded all of the time.
bool LeftIncompleteFiles(const attach::CollectorReport& report);

class SessionCollect {
 public:
  // `kinds`: by option, what the plan requests; with `aclprof` that serves all of them.
  SessionCollect(std::map<std::string, attach::CollectKinds> kinds,
                 std::optional<attach::AclprofRequest> aclprof = std::nullopt);

  // Nothing is to be collected: no order goes out.
  bool empty() const { return kinds_.empty(); }
  attach::CollectRequest Request() const;
  bool Has(std::string_view option) const { return kinds_.contains(option); }
  // What is collected is received as files, when it has ended.
  bool leaves_files() const { return aclprof_.has_value(); }

  void OnReport(const TrainingProcess& process, const attach::CollectorReport& report);
  // True: it was collecting, and has not handed over its last records.
  bool OnGone(pid_t pid);
  // The processes are notified of the end: from now on "off" means that all is handed over.
  void End() { ending_ = true; }
  bool AllEnded() const;
  // Has any process answered?
  bool heard() const { return !processes_.empty(); }
  std::vector<pid_t> Unended() const;

  // What became of an option with the attached of `processes`. `over`: the session is.
  void Fill(std::string_view option, std::span<const TrainingProcess> processes, bool over,
            v1::Outcome* out) const;
  // Of one process; nothing if it has not reported.
  void Fill(pid_t pid, v1::SessionProcess* out) const;
  void Describe(ManifestProcess* process) const;

 private:
  struct Process {
    attach::CollectorReport report;
    bool ended = false;
    bool collects() const;
    v1::ProcessCollector::State state() const;
  };
  struct Served;
  Served CountServed(attach::CollectKinds kinds, std::span<const TrainingProcess> processes, bool over) const;

  const std::map<std::string, attach::CollectKinds, std::less<>> kinds_;
  const std::optional<attach::AclprofRequest> aclprof_;
  std::map<pid_t, Process> processes_;
  bool ending_ = false;
};

}  // namespace profd
