// Options and what else a session was requested with, for people.
#pragma once

#include <sys/types.h>

#include <ostream>

#include "profd/v1/profd.pb.h"

namespace profd::client {

using EffectiveOptions = google::protobuf::RepeatedPtrField<v1::EffectiveOption>;

// A table of the options that were requested or are not at their default; `all`: of all. Nothing where
// there are none.
void PrintEffective(std::ostream& out, const EffectiveOptions& options, bool all, bool color);

// When it starts and ends, as far as that is more than now and by hand. `starter`: who keeps the
// lease; 0 = unknown.
void PrintTerms(std::ostream& out, const v1::Session& session, pid_t starter);

}  // namespace profd::client
