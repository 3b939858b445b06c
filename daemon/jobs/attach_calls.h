// Requests of attached processes in the words of the session manager, and its answers in theirs. Pure.
#pragma once

#include <map>
#include <string>

#include "base/status.h"
#include "daemon/jobs/job_directory.h"
#include "proto/attach/attach_protocol.h"

namespace profd {

namespace v1 {
class Session;
class SessionSpec;
}  // namespace v1

// A session of this process and the devices it uses, whatever other processes there are.
v1::SessionSpec ToRequest(const attach::StartCall& call_untrusted,
                                  const TrainingProcess& process,
                                  const std::map<std::string, std::string>& metadata);

attach::Reply ToReply(uint64_t seq, const Result<v1::Session>& session);

}  // namespace profd
