// What libprofd_mspti.so exports.
#include "client/libprofd/mspti/collector.h"

extern "C" __attribute__((visibility("default"))) const profd_collect_calls* profd_collect_plugin() {
  return &profd::lib::PluginCalls<profd::lib::mspti::Collector>::kTable;
}
