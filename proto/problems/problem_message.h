// Problems as they travel: in answers, and in the status details of a refused call (the trailer
// grpc-status-details-bin, a google.rpc.Status).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace profd {

namespace v1 {
class Problem;
}

void ToWire(const Problem& problem, v1::Problem* out);
Problem FromWire(const v1::Problem& message_untrusted);

// Empty when the status has no problems, or more than fit into a trailer (the message lists them).
std::string PackDetails(const Status& status);
// Nothing when there are none, or not of ours.
std::vector<Problem> UnpackDetails(std::string_view bytes_untrusted);

}  // namespace profd
