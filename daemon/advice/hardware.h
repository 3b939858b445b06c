// What the hardware and the host say, from the daemon's metric store: the latest values, and rates of counters.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "daemon/advice/facts.h"
#include "daemon/metrics/metric_store.h"

namespace profd {

// Of a counter, over about the last half minute. Counters that are read every 10 s have a rate too.
class CounterRate {
 public:
  // A later value; one of the same time is none. A counter that began again has no past.
  void Add(int64_t time_ns, double total);
  // Per second; null: there are no two values.
  std::optional<double> PerSecond() const;

 private:
  static constexpr size_t kKept = 32;
  static constexpr int64_t kWindowNs = 30 * kNsPerSecond;
  struct Value {
    int64_t time_ns = 0;
    double total = 0;
  };
  std::array<Value, kKept> values_{};  // a ring
  size_t count_ = 0;
};

class HardwareWatch {
 public:
  // About once a second while there is a job.
  void Update(const MetricStore& store, int64_t now_ns);

  const std::map<int, NpuFacts>& devices() const { return devices_; }
  const HostFacts& host() const { return host_; }

 private:
  std::map<int, NpuFacts> devices_;
  HostFacts host_;
  // By device, row of the table of counters, and what of the device counts for itself.
  using CounterKey = std::tuple<int, size_t, std::string>;
  std::map<CounterKey, CounterRate> rates_;
};

}  // namespace profd
