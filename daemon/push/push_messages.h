// Metrics as messages for receivers of pushes, made of the families that a scrape would have shown.
#pragma once

#include <prometheus/metric_family.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace profd {

using PushLabels = std::vector<std::pair<std::string, std::string>>;

struct PushFacts {
  int64_t wall_ns = 0;        // of every sample
  int64_t start_wall_ns = 0;  // counters have counted since
  std::string version = {};
  // Sent once for everything: service.name and the like in OTLP, labels of every series in remote write,
  // where a series' own label of the same name wins.
  PushLabels about = {};
};

// A message that is ready to be sent.
struct PushMessage {
  std::string body;  // empty: it could not be compressed (no memory), and counts as dropped
  size_t samples = 0;
};

// At most so many in a message.
inline constexpr size_t kPushSamples = 2000;

// OTLP 1.x ExportMetricsServiceRequest, not compressed.
std::vector<PushMessage> OtlpMessages(std::span<const prometheus::MetricFamily> families, const PushFacts& facts);
// What the answer to such a request (ExportMetricsServiceResponse) reports; nothing of bytes that are none.
struct OtlpPartialSuccess {
  uint64_t rejected = 0;  // data points that were not taken; they must not be sent again
  std::string message = {};  // why; without rejected points a warning
};
OtlpPartialSuccess ReadOtlpPartialSuccess(const std::string& body);
// The message of a refusal (google.rpc.Status), as ": message"; empty without one.
std::string ReadOtlpError(const std::string& body);
// Remote write 1.0 WriteRequest in snappy's block format.
std::vector<PushMessage> RemoteWriteMessages(std::span<const prometheus::MetricFamily> families,
                                             const PushFacts& facts);

}  // namespace profd
