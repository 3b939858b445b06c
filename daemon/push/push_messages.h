// What is on /metrics as messages for receivers of pushes. The text is the one source: a pushed series
// has the name, labels and value that a scrape would have shown.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace profd {

using PushLabels = std::vector<std::pair<std::string, std::string>>;

struct PushFacts {
  int64_t wall_ns = 0;        // of every sample
  int64_t start_wall_ns = 0;  // counters have counted since
  std::string version;
  // Said once of everything: service.name and the like in OTLP, labels of every series in remote write,
  // where a series' own label of the same name wins.
  PushLabels about;
};

// A message that is ready to be sent.
struct PushMessage {
  std::string body;
  size_t samples = 0;
};

// `text` in Prometheus's text format, as AtlasWriter and AppendNpuExporterText write it, in messages of at
// most so many samples.
inline constexpr size_t kPushSamples = 2000;

// OTLP 1.x ExportMetricsServiceRequest, not compressed.
std::vector<PushMessage> OtlpMessages(std::string_view text, const PushFacts& facts);
// Remote write 1.0 WriteRequest in snappy's block format.
std::vector<PushMessage> RemoteWriteMessages(std::string_view text, const PushFacts& facts);

}  // namespace profd
