#include "client/commands/node.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "client/cli_message.h"
#include "client/parse.h"
#include "client/render.h"

namespace profd::client {
namespace {

// The numbers of a channel that is given by number or name; several: `instr_profiling` has one for each core. Empty: no
// device has such a channel.
std::vector<uint32_t> NumbersOf(const v1::Node& node, const std::string& given) {
  uint32_t number = 0;
  auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), number);
  if (error == std::errc() && end == given.data() + given.size()) return {number};
  std::vector<uint32_t> numbers;
  for (const v1::Device& device : node.devices()) {
    for (const v1::Channel& channel : device.channels()) {
      const bool known = std::ranges::find(numbers, channel.id()) != numbers.end();
      if (channel.name() == given && !known) numbers.push_back(channel.id());
    }
  }
  return numbers;
}

template <class Request>
Status Fill(const Context& context, const ChannelsOptions& options, Request* request) {
  if (!options.devices) return InvalidArgument("--devices LIST is needed, for example 0,1,4-7");
  Result<std::vector<uint32_t>> devices = ParseDevices(*options.devices);
  if (!devices.ok()) return devices.status().Annotate("--devices");
  request->mutable_devices()->Add(devices->begin(), devices->end());
  if (options.channels.empty()) return Status::Ok();
  Result<v1::Node> node = WithProgress(context, "asking profd", [&] { return context.api.GetNode(); });
  if (!node.ok()) return node.status();
  for (const std::string& given : options.channels) {
    const std::vector<uint32_t> numbers = NumbersOf(*node, given);
    if (numbers.empty()) {
      return InvalidArgument(fmt::format("unknown channel \"{}\"; `profctl channels` lists them", given));
    }
    request->mutable_channels()->Add(numbers.begin(), numbers.end());
  }
  return Status::Ok();
}

Json ReleaseJson(const v1::ChannelRelease& one) {
  Json sessions = Json::array();
  for (const std::string& session : one.sessions()) sessions.push_back(session);
  return {{"device", one.device()}, {"channel", one.channel()},   {"name", one.name()},      {"uid", one.uid()},
          {"until_ns", one.until_ns()}, {"sessions", std::move(sessions)}, {"problem", one.problem()}};
}

int Print(const Context& context, const v1::ChannelReleases& answer, bool released) {
  const bool failed = std::ranges::any_of(answer.releases(), [](const v1::ChannelRelease& one) { return !one.problem().empty(); });
  if (context.json) {
    Json list = Json::array();
    for (const v1::ChannelRelease& one : answer.releases()) list.push_back(ReleaseJson(one));
    PrintJson(context, Json{{released ? "released" : "acquired", std::move(list)}});
    return failed ? kExitPartial : kExitOk;
  }
  if (answer.releases().empty()) {
    context.io.out << (released ? "these devices have no channels\n" : "none of these channels was released\n");
    return kExitOk;
  }
  Table table({">DEVICE", ">CHANNEL", "NAME", released ? "RELEASED UNTIL" : "WAS RELEASED UNTIL", "GAP IN SESSIONS",
               "PROBLEM"});
  for (const v1::ChannelRelease& one : answer.releases()) {
    table.AddRow({std::to_string(one.device()), std::to_string(one.channel()), one.name(), FormatTime(one.until_ns()),
                  fmt::format("{}", fmt::join(one.sessions(), ", ")), one.problem()});
  }
  table.Print(context.io.out, context.io.out_color());
  return failed ? kExitPartial : kExitOk;
}

}  // namespace

int RunChannels(const Context& context, const ChannelsOptions& options) {
  if (options.action.empty()) return RunDevices(context, {.channels = true});
  const bool release = options.action == "release";
  v1::ReleaseChannelsRequest to_release;
  v1::AcquireChannelsRequest to_acquire;
  Status valid = release ? Fill(context, options, &to_release) : Fill(context, options, &to_acquire);
  if (valid.ok() && options.length) {
    Result<uint64_t> length = ParseDurationMs(*options.length);
    if (length.ok()) to_release.set_duration_ms(*length);
    valid = length.status().Annotate("--for");
  }
  if (valid.code() == StatusCode::kInvalidArgument) {
    return UsageError(context.io, "channels " + options.action, {valid.message()});
  }
  if (!valid.ok()) return Fail(context, valid);
  auto answer = WithProgress(context, release ? "stopping channels" : "asking profd", [&] {
    return release ? context.api.ReleaseChannels(to_release) : context.api.AcquireChannels(to_acquire);
  });
  if (!answer.ok()) return Fail(context, answer.status(), NameOf("duration_ms", "--for", options.length));
  return Print(context, *answer, release);
}

}  // namespace profd::client
