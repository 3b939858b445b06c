#include "client/commands/node.h"

#include <fmt/format.h>

#include <string>

#include "client/health_view.h"
#include "client/render.h"
#include "proto/enum_word/enum_word.h"

namespace profd::client {
namespace {

Cell ChannelState(v1::Channel::State state) {
  std::string word = EnumWord(state);
  if (word.empty()) return fmt::format("unknown {}", static_cast<int>(state));
  if (state == v1::Channel::STATE_RUNNING) return {word, Tone::kGood};
  if (state == v1::Channel::STATE_BUSY) return {word, Tone::kWarning};
  if (state == v1::Channel::STATE_FAILED) return {word, Tone::kBad};
  return word;
}

void PrintDevices(const Context& context, const v1::Node& node) {
  Table table({">ID", ">NPU", "CHIP", "UUID", ">COUNTER", ">CHANNELS", ">RUNNING", "HEALTH",
               "FLAGS"});
  for (const v1::Device& device : node.devices()) {
    int running = 0;
    for (const v1::Channel& channel : device.channels()) {
      if (channel.state() == v1::Channel::STATE_RUNNING) ++running;
    }
    table.AddRow(
        {std::to_string(device.id()), std::to_string(device.physical_id()), device.chip(),
         OrDash(device.uuid()),
         device.counter_hz() == 0 ? "-" : fmt::format("{:.6g} MHz", device.counter_hz() / 1e6),
         std::to_string(device.channels_size()), std::to_string(running),
         VerdictCell(device.health().verdict()), FlagsText(device.health())});
  }
  table.Print(context.io.out, context.io.out_color());
  for (const v1::Device& device : node.devices()) {
    for (const std::string& reason : device.health().reasons()) {
      context.io.out << "NPU " << device.physical_id() << ": " << Printable(reason) << '\n';
    }
  }
}

void PrintChannels(const Context& context, const v1::Node& node) {
  Table table({">ID", ">CHANNEL", "NAME", "STATE", ">RATE", ">USERS", ">RECORDS", ">BYTES",
               ">GARBAGE", "DETAIL"});
  for (const v1::Device& device : node.devices()) {
    for (const v1::Channel& channel : device.channels()) {
      bool running = channel.state() == v1::Channel::STATE_RUNNING;
      table.AddRow({std::to_string(device.id()), std::to_string(channel.id()),
                    OrDash(channel.name()), ChannelState(channel.state()),
                    running ? FormatHz(channel.hz()) : "", std::to_string(channel.users()),
                    std::to_string(channel.records()), FormatBytes(channel.bytes()),
                    FormatBytes(channel.garbage_bytes()), channel.detail()});
    }
  }
  table.Print(context.io.out, context.io.out_color());
}

}  // namespace

int RunDevices(const Context& context, const DevicesOptions& options) {
  auto node = WithProgress(context, "asking profd", [&] { return context.api.GetNode(); });
  if (!node.ok()) return Fail(context, node.status());
  if (context.json) {
    PrintJson(context, Json{{"devices", ToJson(*node)["devices"]}});
  } else if (node->devices().empty()) {
    context.io.out << "no devices\n";
    if (!node->driver().hal_error().empty()) Warn(context, "HAL: " + node->driver().hal_error());
  } else if (options.channels) {
    PrintChannels(context, *node);
  } else {
    PrintDevices(context, *node);
  }
  return kExitOk;
}

}  // namespace profd::client
