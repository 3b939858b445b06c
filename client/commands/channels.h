#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/context.h"

namespace profd::client {

struct ChannelsOptions {
  std::string action;  // "release", "acquire"; empty: the table of all channels
  std::optional<std::string> devices;
  std::optional<std::string> length;  // of a release
  std::vector<std::string> channels;  // numbers or names; empty = all
};

// `profctl channels [release|acquire]`: driver channels for other tools, the vendor's profiler above all.
int RunChannels(const Context& context, const ChannelsOptions& options);

}  // namespace profd::client
