#include "client/commands/node.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>

#include "base/text.h"
#include "client/render.h"
#include "proto/enum_word/enum_word.h"

namespace profd::client {
namespace {

std::string SaidBy(const v1::DeviceTopology& from, const v1::DeviceTopology& to) {
  for (const v1::Neighbour& neighbour : from.neighbours()) {
    if (neighbour.physical_id() == to.physical_id()) return UpperCase(EnumWord(neighbour.type()));
  }
  return {};
}

// A device that is down reports nothing; the other one does.
std::string Path(const v1::DeviceTopology& from, const v1::DeviceTopology& to) {
  if (from.physical_id() == to.physical_id()) return "self";
  std::string path = SaidBy(from, to);
  if (path.empty()) path = SaidBy(to, from);
  return OrDash(path);
}

void PrintMatrix(const Context& context, const v1::Topology& topology) {
  std::vector<std::string> headers = {">NPU"};
  for (const v1::DeviceTopology& device : topology.devices()) {
    headers.push_back(fmt::format("NPU{}", device.physical_id()));
  }
  headers.insert(headers.end(), {">NUMA", "CPUS", "PCI"});
  Table table(std::move(headers));
  for (const v1::DeviceTopology& device : topology.devices()) {
    std::vector<Cell> row = {std::to_string(device.physical_id())};
    for (const v1::DeviceTopology& other : topology.devices()) {
      row.emplace_back(Path(device, other));
    }
    row.emplace_back(device.has_numa_node() ? std::to_string(device.numa_node()) : "-");
    row.emplace_back(OrDash(device.cpus()));
    row.emplace_back(OrDash(device.pci_bus_id()));
    table.AddRow(std::move(row));
  }
  table.Print(context.io.out, context.io.out_color());
}

// What the words of the matrix that are in use mean.
void PrintLegend(const Context& context, const v1::Topology& topology) {
  static const std::map<std::string, std::string_view> kMeanings = {
      {"hccs", "HCCS links"},
      {"hccs_sw", "HCCS through a switch"},
      {"sio", "the other die of the same package"},
      {"ub", "Unified Bus"},
      {"pix", "one PCIe switch"},
      {"pxb", "several PCIe switches"},
      {"phb", "a PCIe host bridge"},
      {"sys", "PCIe and the link between NUMA nodes"},
      {"unknown", "the driver does not say"}};
  std::map<std::string, std::string_view> used;
  for (const v1::DeviceTopology& device : topology.devices()) {
    for (const v1::Neighbour& neighbour : device.neighbours()) {
      auto meaning = kMeanings.find(EnumWord(neighbour.type()));
      if (meaning != kMeanings.end()) used.insert(*meaning);
    }
  }
  for (const auto& [word, meaning] : used) {
    context.io.out << fmt::format("{}: {}\n", UpperCase(word), meaning);
  }
}

uint64_t ErrorsOf(const v1::Link& link) {
  uint64_t errors = 0;
  for (const auto& [name, count] : link.errors()) {
    if (name != "link_ups") errors += count;
  }
  return errors;
}

Cell StateOf(const v1::Link& link) {
  if (!link.has_up()) return "-";
  return link.up() ? Cell("up", Tone::kGood) : Cell("down", Tone::kBad);
}

std::string ErrorText(const v1::Link& link) {
  std::map<std::string, uint64_t> sorted(link.errors().begin(), link.errors().end());
  std::vector<std::string> parts;
  for (const auto& [name, count] : sorted) {
    if (count > 0) parts.push_back(fmt::format("{} {}", name, count));
  }
  return parts.empty() ? "-" : fmt::format("{}", fmt::join(parts, ", "));
}

void PrintLinks(const Context& context, const v1::Topology& topology) {
  Table table({">NPU", "LINK", "STATE", ">SPEED", ">LANES", "COUNTERS"});
  for (const v1::DeviceTopology& device : topology.devices()) {
    for (const v1::Link& link : device.links()) {
      table.AddRow({std::to_string(device.physical_id()),
                    link.name().empty() ? EnumWord(link.kind()) : EnumWord(link.kind()) + " " + link.name(),
                    StateOf(link),
                    link.bytes_per_second() > 0
                        ? fmt::format("{:.4g} Gb/s", link.bytes_per_second() * 8 / 1e9)
                        : "-",
                    link.lanes() > 0 ? std::to_string(link.lanes()) : "-",
                    Cell(ErrorText(link), ErrorsOf(link) > 0 ? Tone::kWarning : Tone::kPlain)});
    }
  }
  context.io.out << '\n';
  table.Print(context.io.out, context.io.out_color());
}

// The row of all links of a kind together, beside those of each.
bool IsSumOfOthers(const v1::DeviceTopology& device, const v1::Link& link) {
  return link.name() == "all" && std::ranges::any_of(device.links(), [&](const v1::Link& other) {
           return other.kind() == link.kind() && other.name() != link.name();
         });
}

void PrintSummary(const Context& context, const v1::Topology& topology) {
  int up = 0;
  int down = 0;
  int failing = 0;
  for (const v1::DeviceTopology& device : topology.devices()) {
    for (const v1::Link& link : device.links()) {
      if (IsSumOfOthers(device, link)) continue;
      if (link.has_up()) ++(link.up() ? up : down);
      if (ErrorsOf(link) > 0) ++failing;
    }
  }
  context.io.out << fmt::format("links: {} up, {} down, {} with errors (--links lists them)\n", up,
                                down, failing);
}

}  // namespace

int RunTopology(const Context& context, const TopologyOptions& options) {
  auto topology = WithProgress(context, "asking profd", [&] { return context.api.GetTopology(); });
  if (!topology.ok()) return Fail(context, topology.status());
  if (context.json) {
    PrintJson(context, ToJson(*topology));
    return kExitOk;
  }
  if (topology->devices().empty()) {
    context.io.out << "no devices\n";
    return kExitOk;
  }
  PrintMatrix(context, *topology);
  PrintLegend(context, *topology);
  if (options.links) {
    PrintLinks(context, *topology);
  } else {
    PrintSummary(context, *topology);
  }
  return kExitOk;
}

}  // namespace profd::client
