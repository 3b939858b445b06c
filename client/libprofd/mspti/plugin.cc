// What libprofd_mspti.so exports. Exceptions end here.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "client/libprofd/collect_plugin.h"
#include "client/libprofd/mspti/collector.h"

namespace profd::lib::mspti {
namespace {

// Never destroyed: callbacks may come at any time, also while the process ends.
Collector& TheCollector() {
  static auto* const collector = new Collector(Collector::Pauses{});
  return *collector;
}

int Start(const profd_collect_config* config) {
  if (config == nullptr || config->size < sizeof(size_t)) return EINVAL;
  profd_collect_config known = {};
  std::memcpy(&known, config, std::min(config->size, sizeof known));
  try {
    return TheCollector().Start(known);
  } catch (...) {
    return ENOMEM;
  }
}

int Ring() { return TheCollector().ring(); }

void Report(profd_collect_report* report) { TheCollector().Report(report); }

int Stop(uint32_t deadline_ms) {
  return TheCollector().Stop(std::chrono::milliseconds(deadline_ms)) ? 1 : 0;
}

int Files() { return -1; }

void FilesTaken() {}

constexpr profd_collect_calls kPlugin = {
    PROFD_COLLECT_PLUGIN_VERSION, Start, Ring, Report, Stop, Files, FilesTaken};

}  // namespace
}  // namespace profd::lib::mspti

extern "C" __attribute__((visibility("default"))) const profd_collect_calls* profd_collect_plugin() {
  return &profd::lib::mspti::kPlugin;
}
