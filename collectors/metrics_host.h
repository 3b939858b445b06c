// What the host's own /proc and /sys say; see metric_table.h. Names follow dcmi-and-metrics 7.5.
#pragma once

#include <array>

#include "collectors/metric_spec.h"

namespace profd {

inline constexpr auto kHostMetrics = [] {
  using enum MetricType;
  using enum MetricScope;
  return std::to_array<MetricSpec>({
      // host_cpu
      {"atlas_host_cpu_seconds_total", kCounter, kNode, "mode", "seconds",
       "Time all CPUs of the host together spent in a mode since boot", "/proc/stat"},
      {"atlas_host_cpus", kGauge, kNode, "", "", "CPUs of the host that are online", "/proc/stat"},
      {"atlas_host_cpu_core_busy_seconds_total", kCounter, kNode, "cpu", "seconds",
       "Time one CPU was neither idle nor waiting for I/O since boot", "/proc/stat", MetricVisibility::kStreamOnly},
      {"atlas_host_load1", kGauge, kNode, "", "", "Load average of the host over one minute", "/proc/loadavg"},
      {"atlas_host_process_cpu_seconds_total", kCounter, kNode, "pid,comm", "seconds",
       "User and system CPU time of a watched process", "/proc/[pid]/stat", MetricVisibility::kStreamOnly},

      // host_mem
      {"atlas_host_memory_total_bytes", kGauge, kNode, "", "bytes",
       "Usable memory of the host", "/proc/meminfo MemTotal"},
      {"atlas_host_memory_available_bytes", kGauge, kNode, "", "bytes",
       "Memory that new work could get without swapping", "/proc/meminfo MemAvailable"},
      {"atlas_host_memory_free_bytes", kGauge, kNode, "", "bytes",
       "Memory used for nothing at all", "/proc/meminfo MemFree"},
      {"atlas_host_memory_cached_bytes", kGauge, kNode, "", "bytes",
       "Memory that holds the page cache", "/proc/meminfo Cached"},
      {"atlas_host_numa_memory_free_bytes", kGauge, kNode, "node", "bytes",
       "Free memory of one NUMA node", "/sys/devices/system/node/node*/meminfo MemFree"},
      {"atlas_host_process_resident_bytes", kGauge, kNode, "pid,comm", "bytes",
       "Resident memory of a watched process", "/proc/[pid]/statm", MetricVisibility::kStreamOnly},
      {"atlas_host_process_virtual_bytes", kGauge, kNode, "pid,comm", "bytes",
       "Address space of a watched process", "/proc/[pid]/statm", MetricVisibility::kStreamOnly},

      // host_net
      {"atlas_host_network_bytes_total", kCounter, kNode, "device,direction", "bytes",
       "Bytes through a network device of the host", "/proc/net/dev"},
      {"atlas_host_network_packets_total", kCounter, kNode, "device,direction", "",
       "Packets through a network device of the host", "/proc/net/dev"},
      {"atlas_host_network_errors_total", kCounter, kNode, "device,direction", "",
       "Faulty packets of a network device of the host", "/proc/net/dev"},
      {"atlas_host_network_drops_total", kCounter, kNode, "device,direction", "",
       "Packets a network device of the host dropped", "/proc/net/dev"},
      {"atlas_host_network_speed_bytes_per_second", kGauge, kNode, "device", "bytes per second",
       "Negotiated speed of a network device of the host", "/sys/class/net/*/speed"},
      {"atlas_host_network_link_up", kGauge, kNode, "device", "",
       "1 if a network device of the host has carrier", "/sys/class/net/*/carrier"},

      // host_disk
      {"atlas_host_disk_bytes_total", kCounter, kNode, "device,direction", "bytes",
       "Bytes read from or written to a disk of the host (not partitions)", "/proc/diskstats"},
      {"atlas_host_disk_ios_total", kCounter, kNode, "device,direction", "",
       "Completed reads or writes of a disk of the host", "/proc/diskstats"},
      {"atlas_host_disk_io_time_seconds_total", kCounter, kNode, "device", "seconds",
       "Time a disk of the host had requests in flight", "/proc/diskstats"},

      // host_pressure
      {"atlas_host_pressure_waiting_seconds_total", kCounter, kNode, "resource", "seconds",
       "Time in which at least one task waited for a resource", "/proc/pressure, some"},
      {"atlas_host_pressure_stalled_seconds_total", kCounter, kNode, "resource", "seconds",
       "Time in which all tasks that could run waited for a resource", "/proc/pressure, full"},

      // rdma
      {"atlas_host_rdma_port_data_bytes_total", kCounter, kNode, "device,port,direction", "bytes",
       "Bytes through a port of an RDMA device", "counters/port_*_data, words of four bytes"},
      {"atlas_host_rdma_port_packets_total", kCounter, kNode, "device,port,direction", "",
       "Packets through a port of an RDMA device", "counters/port_*_packets"},
      {"atlas_host_rdma_port_errors_total", kCounter, kNode, "device,port,type", "",
       "Errors a port of an RDMA device counted", "counters/*_error*, *_errors, *_discards"},
      {"atlas_host_rdma_port_transmit_wait_total", kCounter, kNode, "device,port", "",
       "Clock ticks in which a port had data to send and no credit", "counters/port_xmit_wait"},
      {"atlas_host_rdma_link_downed_total", kCounter, kNode, "device,port", "",
       "Times a port of an RDMA device lost its link", "counters/link_downed"},
      {"atlas_host_rdma_hw_events_total", kCounter, kNode, "device,port,counter", "",
       "Vendor counter of an RDMA port, in the driver's own unit", "hw_counters/*"},
      {"atlas_host_rdma_state_id", kGauge, kNode, "device,port", "",
       "Logical state of an RDMA port: 1 down, 2 initialising, 3 armed, 4 active, 5 deferred", "ports/*/state"},
      {"atlas_host_rdma_physical_state_id", kGauge, kNode, "device,port", "",
       "Physical state of an RDMA port: 1 sleep, 2 polling, 3 disabled, 4 training, 5 link up, 6 error recovery, 7 "
       "test", "ports/*/phys_state"},
      {"atlas_host_rdma_rate_bytes_per_second", kGauge, kNode, "device,port", "bytes per second",
       "Negotiated rate of an RDMA port", "ports/*/rate"},
  });
}();

}  // namespace profd
