// The packet "stacks" of the attach protocol, which attach_protocol.cc reads and writes with the others.
#pragma once

#include <nlohmann/json.hpp>

#include "proto/attach/attach_protocol.h"
#include "proto/attach/packet_json.h"

namespace profd::attach {

nlohmann::json ToJson(const StacksReport& report);
void Read(PacketReader& in, StacksReport* out);

}  // namespace profd::attach
