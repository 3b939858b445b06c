// GetActivity: what the processes that are collected from do now. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/status.h"
#include "daemon/jobs/activity_window.h"
#include "daemon/jobs/job_directory.h"
#include "daemon/session/peer.h"

namespace profd {

namespace v1 {
class GetActivityRequest;
class GetActivityResponse;
}  // namespace v1

inline constexpr uint32_t kMaxHotKernels = 100;
inline constexpr size_t kMaxShownNameBytes = 256;

Status DescribeActivity(const Peer& peer, const v1::GetActivityRequest& request_untrusted,
                        std::span<const TrainingProcess> processes,
                        const std::function<LiveActivity(uint64_t attach_id)>& find,
                        v1::GetActivityResponse* out);

}  // namespace profd
