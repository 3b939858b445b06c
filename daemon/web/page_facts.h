// What the page shows beside the picture of the node: figures and jobs as the metrics have them now.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace profd {

class MetricStore;

struct PageFacts {
  static constexpr std::array<std::string_view, 5> kFigures = {"AI Core", "HBM", "Power",
                                                               "Temperature", "Clock"};
  using Figures = std::array<std::string, kFigures.size()>;  // "63 %"; empty: unknown
  struct Job {
    std::string name;
    std::string user;
    std::vector<std::string> npus;
    std::optional<double> step;  // of the process that is ahead
  };
  std::map<std::string, Figures> figures;  // by label npu
  // Jobs that use an NPU, of all users, exactly as /metrics has them (attribution.enabled).
  std::vector<Job> jobs;
};

// Any thread.
PageFacts ReadPageFacts(const MetricStore& store, int64_t now_ns);

}  // namespace profd
