// The dumps of a session that a daemon did not live to end, as clients see them.
#pragma once

#include "profd/v1/profd.pb.h"

namespace profd {

// Of one whose only dump it is.
v1::Segment SegmentOf(const v1::SessionStatus& status);

}  // namespace profd
