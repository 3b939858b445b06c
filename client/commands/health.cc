#include "client/commands/node.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "client/health_view.h"
#include "client/parse.h"
#include "client/render.h"
#include "proto/enum_word/enum_word.h"

namespace profd::client {
namespace {

using Devices = std::vector<const v1::Device*>;

// Of the node, the requested ones; empty `asked` = all. False: reported, `*code` is the answer.
bool Select(const Context& context, const v1::Node& node, const std::vector<uint32_t>& asked,
            Devices* selected, int* code) {
  for (const v1::Device& device : node.devices()) {
    if (asked.empty() || std::ranges::find(asked, device.id()) != asked.end()) {
      selected->push_back(&device);
    }
  }
  for (uint32_t id : asked) {
    const bool known = std::ranges::any_of(node.devices(), [id](const v1::Device& device) { return device.id() == id; });
    if (known) continue;
    *code = Fail(context, NotFound(fmt::format("this node has no device {}", id)));
    return false;
  }
  return true;
}

// What both commands begin with. False: `*code` is the answer.
bool Ask(const Context& context, const char* command, const HealthOptions& options, v1::Node* node,
         Devices* selected, int* code) {
  std::vector<uint32_t> asked;
  if (options.devices) {
    auto devices = ParseDevices(*options.devices);
    if (!devices.ok()) {
      *code = UsageError(context.io, command, {"--devices " + devices.status().message()});
      return false;
    }
    asked = std::move(devices).value();
  }
  auto answer = WithProgress(context, "asking profd", [&] { return context.api.GetNode(); });
  if (!answer.ok()) {
    *code = Fail(context, answer.status());
    return false;
  }
  *node = std::move(answer).value();
  return Select(context, *node, asked, selected, code);
}

std::string SinceText(int64_t since_ns) {
  return since_ns == 0 ? "before profd" : FormatTime(since_ns);
}

Tone ToneOf(v1::Fault::Severity severity) {
  if (severity == v1::Fault::SEVERITY_MAJOR || severity == v1::Fault::SEVERITY_CRITICAL) return Tone::kBad;
  return severity == v1::Fault::SEVERITY_WARNING ? Tone::kPlain : Tone::kWarning;
}

Json HealthJson(const v1::Device& device) {
  Json json = {{"id", device.id()}, {"physical_id", device.physical_id()}, {"chip", device.chip()}};
  json.update(ToJson(device.health()));
  return json;
}

// Without devices there is no list of faults, and that is not the same as none.
int FaultsUnknown(const Context& context, const v1::Node& node) {
  std::string text = "the faults of this node's NPUs are not known";
  for (const std::string& reason : node.health().reasons()) text += ": " + reason;
  if (!node.driver().dcmi_path().empty() && node.driver().dcmi_error().empty()) {
    text += "; what libdcmi reports is in /metrics (atlas_npu_fault_active)";
  }
  if (context.json) PrintJson(context, Json{{"faults", Json::array()}});
  Warn(context, text);
  return kExitUnknown;
}

}  // namespace

int RunHealth(const Context& context, const HealthOptions& options) {
  v1::Node node;
  Devices devices;
  int code = kExitOk;
  if (!Ask(context, "health", options, &node, &devices, &code)) return code;
  v1::Health::Verdict verdict =
      options.devices ? v1::Health::VERDICT_OK : node.health().verdict();
  for (const v1::Device* device : devices) {
    verdict = WorseVerdict(verdict, device->health().verdict());
  }
  if (context.json) {
    Json list = Json::array();
    for (const v1::Device* device : devices) list.push_back(HealthJson(*device));
    PrintJson(context, Json{{"hostname", node.hostname()},
                            {"verdict", VerdictWord(verdict)},
                            {"reasons", ToJson(node.health())["reasons"]},
                            {"devices", std::move(list)}});
    return ExitCodeOf(verdict);
  }
  const Cell word = VerdictCell(verdict);
  context.io.out << Printable(node.hostname()) << ": "
                 << Paint(word.text, word.tone, context.io.out_color()) << '\n';
  if (devices.empty()) {
    for (const std::string& reason : node.health().reasons()) {
      context.io.out << "  " << Printable(reason) << '\n';
    }
    return ExitCodeOf(verdict);
  }
  Table table({">ID", ">NPU", "CHIP", "HEALTH", "SINCE", "FLAGS"});
  for (const v1::Device* device : devices) {
    const v1::Health& health = device->health();
    table.AddRow({std::to_string(device->id()), std::to_string(device->physical_id()),
                  device->chip(), VerdictCell(health.verdict()),
                  health.since_ns() == 0 ? "-" : FormatTime(health.since_ns()), FlagsText(health)});
  }
  table.Print(context.io.out, context.io.out_color());
  for (const v1::Device* device : devices) {
    for (const std::string& reason : device->health().reasons()) {
      context.io.out << "NPU " << device->physical_id() << ": " << Printable(reason) << '\n';
    }
  }
  return ExitCodeOf(verdict);
}

int RunFaults(const Context& context, const HealthOptions& options) {
  v1::Node node;
  Devices devices;
  int code = kExitOk;
  if (!Ask(context, "faults", options, &node, &devices, &code)) return code;
  if (devices.empty()) return FaultsUnknown(context, node);
  Json list = Json::array();
  Table table({">ID", ">NPU", "CODE", "SEVERITY", "SINCE", "NAME"});
  for (const v1::Device* device : devices) {
    for (const v1::Fault& fault : device->health().faults()) {
      Json json = {{"device", device->id()}, {"physical_id", device->physical_id()}};
      json.update(ToJson(fault));
      list.push_back(std::move(json));
      table.AddRow({std::to_string(device->id()), std::to_string(device->physical_id()),
                    fault.code(), Cell(EnumWord(fault.severity()), ToneOf(fault.severity())),
                    SinceText(fault.since_ns()), OrDash(fault.name())});
    }
  }
  if (context.json) {
    PrintJson(context, Json{{"faults", std::move(list)}});
    return kExitOk;
  }
  if (table.empty()) {
    context.io.out << "no active faults\n";
  } else {
    table.Print(context.io.out, context.io.out_color());
  }
  for (const v1::Device* device : devices) {
    const auto verdict = device->health().verdict();
    if (verdict != v1::Health::VERDICT_DOWN && verdict != v1::Health::VERDICT_UNKNOWN) continue;
    Warn(context, fmt::format("NPU {} is {}: its faults are not known", device->physical_id(),
                              VerdictWord(verdict)));
  }
  return kExitOk;
}

}  // namespace profd::client
