#include "daemon/jobs/job_view.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "profd/v1/profd.pb.h"
#include "proto/enum_word/enum_word.h"

namespace profd {
namespace {

void Fill(const TrainingProcess& process, int64_t now_raw_ns, v1::JobProcess* out) {
  out->set_pid(process.pid);
  out->set_uid(process.uid);
  if (process.rank) out->set_rank(*process.rank);
  if (process.local_rank) out->set_local_rank(*process.local_rank);
  for (int device : process.devices) out->add_devices(static_cast<uint32_t>(device));
  out->set_framework(process.framework);
  out->set_command(process.command);
  out->set_attached(process.attached());
  out->set_found_by(EnumOf<v1::JobProcess::FoundBy>(process.found_by));
  if (process.attached()) out->set_attached_ns(process.attached_wall_ns);
  if (process.step) out->set_step(*process.step);
  if (process.step_s > 0) out->set_step_ns(static_cast<uint64_t>(std::llround(process.step_s * 1e9)));
  out->set_marks(process.marks);
  out->set_dropped_marks(process.dropped_marks);
  out->set_pod_uid(process.pod_uid);
  out->set_slurm_job(process.slurm_job);
  if (process.silent_since_ns != 0) {
    out->set_silent_ns(static_cast<uint64_t>(std::max<int64_t>(now_raw_ns - process.silent_since_ns, 1)));
  }
}

bool InOrder(const TrainingProcess* a, const TrainingProcess* b) {
  // Those without a rank come last.
  auto key = [](const TrainingProcess* p) {
    return std::make_tuple(!p->rank.has_value(), p->rank.value_or(0), p->pid);
  };
  return key(a) < key(b);
}

}  // namespace

void DescribeJobs(const Peer& peer, const v1::ListJobsRequest& request_untrusted,
                  std::span<const TrainingProcess> processes,
                  std::span<const ActiveSession> sessions, int64_t now_raw_ns,
                  v1::ListJobsResponse* out) {
  std::map<std::pair<std::string, uint32_t>, std::vector<const TrainingProcess*>> jobs;
  for (const TrainingProcess& process : processes) {
    if (!peer.Sees(process.uid)) continue;
    if (request_untrusted.attached_only() && !process.attached()) continue;
    if (!request_untrusted.job_id().empty() && process.job_id != request_untrusted.job_id()) {
      continue;
    }
    jobs[{process.job_id, process.uid}].push_back(&process);
  }
  for (auto& [key, members] : jobs) {
    std::ranges::sort(members, InOrder);
    v1::Job& job = *out->add_jobs();
    job.set_job_id(key.first);
    job.set_uid(key.second);
    int world = 0;
    for (const TrainingProcess* member : members) {
      world = std::max(world, member->world_size);
      Fill(*member, now_raw_ns, job.add_processes());
    }
    if (world > 0) job.set_world_size(static_cast<uint32_t>(world));
    for (const ActiveSession& session : sessions) {
      if (session.uid == key.second && session.job_id == key.first) {
        job.add_sessions(session.session_id);
      }
    }
  }
}

}  // namespace profd
