// How devices and nodes are, as the daemon judges them (daemon/health): words, colours, exit codes.
#pragma once

#include <string>

#include "client/connection.h"
#include "client/render.h"
#include "profd/v1/profd.pb.h"

namespace profd::client {

// "ok", "degraded", "faulty", "down", "unknown"; "-" for a daemon that does not judge.
std::string VerdictWord(v1::Health::Verdict verdict);
Cell VerdictCell(v1::Health::Verdict verdict);
// Short form for a narrow column: "throttled 0x80C98009"; "-" for nothing.
std::string FlagsText(const v1::Health& health);
// The worse of two: ok, unknown, degraded, faulty, down.
v1::Health::Verdict WorseVerdict(v1::Health::Verdict a, v1::Health::Verdict b);
// "2 x 310P, 8 x 910B"; empty without devices.
std::string ChipsText(const v1::Node& node);
// Of `profctl health`: 0 ok, 7 degraded, 8 faulty or down, 9 unknown (docs/profctl.md).
int ExitCodeOf(v1::Health::Verdict verdict);

}  // namespace profd::client
