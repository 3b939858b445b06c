#include "proto/options/presets.h"

#include <algorithm>
#include <array>

namespace profd::options {
namespace {

using Pair = std::pair<std::string_view, std::string_view>;

constexpr std::array<Pair, 3> kCommunication = {{{"sys_interconnection_freq", "50"},
                                                 {"sys_io_sampling_freq", "100"},
                                                 {"msproftx", "on"}}};
constexpr std::array<Pair, 3> kMemory = {
    {{"sys_hardware_mem_freq", "100"}, {"host_sys_usage", "mem"}, {"msproftx", "on"}}};
constexpr std::array<Pair, 6> kAll = {{{"sys_hardware_mem_freq", "50"},
                                       {"sys_interconnection_freq", "50"},
                                       {"sys_io_sampling_freq", "50"},
                                       {"dvpp_freq", "50"},
                                       {"host_sys_usage", "cpu,mem"},
                                       {"msproftx", "on"}}};

constexpr std::array<Preset, 3> kPresets = {
    {{"comm", "traffic between NPUs and nodes: HCCS, PCIe, NIC, RoCE", kCommunication},
     {"mem", "memory of NPUs and host: HBM, DDR, LLC, what processes hold", kMemory},
     {"all", "everything the NPUs and the host measure, at 50 Hz", kAll}}};

}  // namespace

std::span<const Preset> Presets() { return kPresets; }

const Preset* FindPreset(std::string_view name) {
  auto found = std::ranges::find(kPresets, name, &Preset::name);
  return found == kPresets.end() ? nullptr : &*found;
}

std::string PresetNames() {
  std::string names;
  for (const Preset& preset : kPresets) {
    names += names.empty() ? "" : ", ";
    names += preset.name;
  }
  return names;
}

}  // namespace profd::options
