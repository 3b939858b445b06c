// What the node looks like now and looked like lately, made of live samples and slow polls. Pure:
// no clock, no terminal, no transport. Bounded: devices, series, processes and history each have a
// limit.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "client/top/measure.h"
#include "profd/v1/profd.pb.h"

namespace profd::client::top {

inline constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

// The last values of one measure, one per refresh; NaN where there was none.
class History {
 public:
  static constexpr size_t kSize = 512;
  void Push(double value) {
    values_[next_] = static_cast<float>(value);
    next_ = (next_ + 1) % kSize;
    if (size_ < kSize) ++size_;
  }
  size_t size() const { return size_; }
  // 0 = the newest.
  double Back(size_t age) const {
    return age < size_ ? values_[(next_ + kSize - 1 - age) % kSize] : kNothing;
  }

 private:
  std::array<float, kSize> values_{};
  size_t next_ = 0;
  size_t size_ = 0;
};

struct Device {
  uint32_t id = 0;
  uint32_t physical_id = 0;
  std::string chip;
  // Why it cannot be used, as the daemon reports it.
  std::string problem;
  // The management library reaches it no more.
  bool down = false;
  std::vector<std::string> jobs;
  std::array<double, kMeasures> now;
  std::array<History, kMeasures> history;
  // Bytes of the device's memory by process.
  std::map<int32_t, double> process_memory;

  // As the daemon judged it last.
  v1::Health health;

  // Why it cannot be used; empty = it can.
  std::string Problem() const { return problem.empty() && down ? "does not answer" : problem; }
  v1::Health::Verdict Verdict() const {
    return Problem().empty() ? health.verdict() : v1::Health::VERDICT_DOWN;
  }
  double Now(Measure measure) const { return now[static_cast<size_t>(measure)]; }
  const History& Of(Measure measure) const { return history[static_cast<size_t>(measure)]; }
};

// How the daemon is reached.
struct Connection {
  bool up = false;
  // Why not.
  std::string problem;
  // CLOCK_MONOTONIC: when the last message arrived, and when it is tried again.
  int64_t heard_ns = 0;
  int64_t retry_ns = 0;
  // Times it was lost so far.
  uint64_t losses = 0;
};

class Model {
 public:
  static constexpr size_t kMaxDevices = 256;
  static constexpr size_t kMaxSeries = 65536;
  static constexpr size_t kMaxProcesses = 128;

  void SetNode(const v1::Node& node);
  void SetJobs(v1::ListJobsResponse jobs);
  void SetSessions(v1::ListSessionsResponse sessions);
  void SetActivity(v1::GetActivityResponse activity);
  void SetAdvice(v1::GetAdviceResponse advice);
  // A new stream: series are described anew; values and histories stay.
  void BeginStream(int64_t steady_ns);
  void Take(const v1::SampleChunk& chunk, int64_t steady_ns);
  void Lose(std::string problem, int64_t retry_ns);
  // A model that stands still shows how the daemon is reached now.
  void SetConnection(const Connection& connection) { connection_ = connection; }
  // Ends a refresh interval: what a row shows is the mean of the interval's samples, or what was
  // last read, unless that is too old.
  void Roll(int64_t steady_ns);

  const v1::Node& node() const { return node_; }
  const v1::ListJobsResponse& jobs() const { return jobs_; }
  const v1::ListSessionsResponse& sessions() const { return sessions_; }
  // What is wrong with jobs now.
  const v1::GetAdviceResponse& advice() const { return advice_; }
  // What the process does; null when it is not collected from, or nothing is known yet.
  const v1::ProcessActivity* ActivityOf(int32_t pid) const;
  const std::map<uint32_t, Device>& devices() const { return devices_; }
  const Connection& connection() const { return connection_; }
  // Samples this view lost because it was not read fast enough, over all streams.
  uint64_t dropped_samples() const { return dropped_before_ + dropped_; }
  // Records and marks the sessions that are shown have lost.
  uint64_t dropped_records() const;
  // True when every healthy device of these (empty = of all) has been heard of since the last
  // Roll().
  bool Complete(const std::set<uint32_t>& only = {}) const;

 private:
  // One series that counts.
  struct Part {
    enum class Kind : uint8_t { kMeasure, kUp, kProcessMemory };
    Kind kind = Kind::kMeasure;
    Source source;
    uint32_t device = 0;
    int32_t pid = 0;
    double value = kNothing;
    // Of the interval that is not over.
    double sum = 0;
    uint32_t count = 0;
    double last_count = kNothing;
    int64_t time_ns = 0;
    int64_t period_ns = 0;
  };

  Device* DeviceOf(uint32_t id);
  void Describe(const v1::SeriesInfo& series);
  static void Add(double value, int64_t time_ns, Part* part);
  static bool IsFresh(const Part& part, int64_t node_ns);
  void Prune(int64_t node_ns);

  v1::Node node_;
  v1::ListJobsResponse jobs_;
  v1::ListSessionsResponse sessions_;
  v1::GetActivityResponse activity_;
  v1::GetAdviceResponse advice_;
  std::map<uint32_t, Device> devices_;
  std::unordered_map<uint32_t, Part> parts_;
  Connection connection_;
  uint64_t dropped_ = 0;
  uint64_t dropped_before_ = 0;
  // The node's clock at the newest sample, and ours when it arrived.
  int64_t newest_ns_ = 0;
  int64_t newest_steady_ns_ = 0;
};

}  // namespace profd::client::top
