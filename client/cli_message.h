// What a daemon says of an order's fields, in the words the order was written in.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "client/commands/start.h"

namespace profd::client {

// "start_at_ns = 1577836800000000000: 217477148.620 s ago by this node's clock" becomes
// "--at 2020-01-01T00:00:00Z: 2517d 03h ago by this node's clock". Problems that begin with no field
// that profctl has a flag for stay as they are.
Status ToCliMessage(const Status& status, const StartOptions& options);

// The same of one field, for what is no order.
Status InWordsOfFlag(const Status& status, std::string_view field, std::string_view flag,
                     const std::optional<std::string>& typed);

}  // namespace profd::client
