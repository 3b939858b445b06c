#include "client/commands/node.h"

#include <fmt/format.h>

#include <algorithm>

#include <string>

#include "client/render.h"
#include "proto/enum_word/enum_word.h"

namespace profd::client {
namespace {

// "0-7", or "host" for collectors that need no device.
std::string Devices(const v1::CollectorInfo& collector) {
  if (collector.devices().empty()) return collector.available() ? "host" : "-";
  return FormatDevices({collector.devices().begin(), collector.devices().end()});
}

std::string Rates(const v1::CollectorInfo& collector) {
  if (collector.default_hz() == 0 && collector.max_hz() == 0) return "event";
  return fmt::format("{:.6g}, at most {:.6g} Hz", collector.default_hz(), collector.max_hz());
}

std::string Always(const v1::CollectorInfo& collector) {
  return collector.always_on_hz() == 0 ? "-" : FormatHz(collector.always_on_hz());
}

// "driver channel", "DCMI", "host"
std::string SourceText(v1::CollectorInfo::Source source) {
  if (source == v1::CollectorInfo::SOURCE_DCMI) return "DCMI";
  std::string word = EnumWord(source);
  std::ranges::replace(word, '_', ' ');
  return word;
}

}  // namespace

int RunCollectors(const Context& context) {
  auto node = WithProgress(context, "asking profd", [&] { return context.api.GetNode(); });
  if (!node.ok()) return Fail(context, node.status());
  if (context.json) {
    PrintJson(context, Json{{"collectors", ToJson(*node)["collectors"]}});
    return kExitOk;
  }
  Table table({"NAME", "SOURCE", "RATE", ">ALWAYS ON", "DEVICES", "AVAILABLE", "OPTION",
               "WHAT IT GIVES, OR WHY NOT"});
  for (const v1::CollectorInfo& c : node->collectors()) {
    std::string last = c.available() ? c.summary() : c.reason();
    if (c.available() && !c.last_error().empty()) last += "; last error: " + c.last_error();
    table.AddRow({c.name(), SourceText(c.source()), Rates(c), Always(c), Devices(c),
                  c.available() ? Cell("yes", Tone::kGood) : Cell("no", Tone::kWarning),
                  OrDash(c.option()), last});
  }
  table.Print(context.io.out, context.io.out_color());
  return kExitOk;
}

}  // namespace profd::client
