// What libprofd_aclprof.so exports.
#include "client/libprofd/aclprof/collector.h"

extern "C" __attribute__((visibility("default"))) const profd_collect_calls* profd_collect_plugin() {
  return &profd::lib::PluginCalls<profd::lib::aclprof::Collector>::kTable;
}
