// GetAdvice: what the live checks have found, and what each rank's step is made of. Pure.
#pragma once

#include <vector>

#include "daemon/advice/board.h"
#include "daemon/session/peer.h"

namespace profd {

namespace v1 {
class GetAdviceRequest;
class GetAdviceResponse;
}  // namespace v1

void DescribeAdvice(const Peer& peer, const v1::GetAdviceRequest& request_untrusted, const AdviceBoard& board,
                    const std::vector<JobFacts>& jobs, v1::GetAdviceResponse* out);

}  // namespace profd
