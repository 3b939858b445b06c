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

using Report = int (*)(const Context&, const HealthOptions&, const v1::Node&, const Devices&);

// The report on the devices that were asked for, or all.
int Run(const Context& context, const char* command, const HealthOptions& options, Report report) {
  std::vector<std::string> problems;
  const auto asked = ReadFlag("--devices", options.devices, ParseDevices, &problems);
  if (!problems.empty()) return UsageError(context.io, command, problems);
  const auto node = WithProgress(context, "asking profd", [&] { return context.api.GetNode(); });
  if (!node.ok()) return Fail(context, node.status());
  Devices selected;
  for (const v1::Device& device : node->devices()) {
    if (!asked || std::ranges::find(*asked, device.id()) != asked->end()) selected.push_back(&device);
  }
  for (uint32_t id : asked.value_or(std::vector<uint32_t>())) {
    if (std::ranges::find(selected, id, &v1::Device::id) != selected.end()) continue;
    return Fail(context, NotFound(fmt::format("this node has no device {}", id)));
  }
  return report(context, options, *node, selected);
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

int ReportHealth(const Context& context, const HealthOptions& options, const v1::Node& node, const Devices& devices) {
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

int ReportFaults(const Context& context, const HealthOptions&, const v1::Node& node, const Devices& devices) {
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

}  // namespace

int RunHealth(const Context& context, const HealthOptions& options) {
  return Run(context, "health", options, ReportHealth);
}

int RunFaults(const Context& context, const HealthOptions& options) {
  return Run(context, "faults", options, ReportFaults);
}

}  // namespace profd::client
