// What the packets "collector" and "session" of the attach protocol have of collecting, which attach_protocol.cc reads and
// writes with the others.
#pragma once

#include <nlohmann/json.hpp>

#include "proto/attach/attach_protocol.h"
#include "proto/attach/packet_json.h"

namespace profd::attach {

nlohmann::json ToJson(const CollectorReport& m);
void Read(PacketReader& in, CollectorReport* m);
nlohmann::json ToJson(const CollectRequest& m);
Status ReadCollect(const nlohmann::json& object, CollectRequest* m);

}  // namespace profd::attach
