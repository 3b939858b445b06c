// ListJobs: processes as jobs. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "daemon/jobs/job_directory.h"
#include "daemon/session/peer.h"

namespace profd {

namespace v1 {
class ListJobsRequest;
class ListJobsResponse;
}  // namespace v1

struct ActiveSession {
  std::string session_id;
  std::string job_id;
  uint32_t uid = 0;
};

// A job is what processes of one user say it is: the same id under another uid is another job.
void DescribeJobs(const Peer& peer, const v1::ListJobsRequest& request_untrusted,
                  std::span<const TrainingProcess> processes,
                  std::span<const ActiveSession> sessions, int64_t now_raw_ns,
                  v1::ListJobsResponse* out);

}  // namespace profd
