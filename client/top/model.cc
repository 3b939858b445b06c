#include "client/top/model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/clock.h"
#include "base/text.h"

namespace profd::client::top {
namespace {

// A series is old when this many of its periods, and at least this time, went by without a sample.
constexpr int64_t kPeriods = 4;
constexpr int64_t kLeastFreshNs = 5 * kNsPerSecond;
// Of a series seen once only: DCMI's slowest pass is once a minute.
constexpr int64_t kFirstFreshNs = 150 * kNsPerSecond;
constexpr int64_t kForgetNs = 60 * kNsPerSecond;

}  // namespace

Device* Model::DeviceOf(uint32_t id) {
  auto found = devices_.find(id);
  if (found != devices_.end()) return &found->second;
  if (devices_.size() >= kMaxDevices) return nullptr;
  Device& device = devices_[id];
  device.id = id;
  device.physical_id = id;
  device.now.fill(kNothing);
  return &device;
}

void Model::SetNode(const v1::Node& node) {
  node_ = node;
  for (const v1::Device& node_device : node.devices()) {
    Device* device = DeviceOf(node_device.id());
    if (device == nullptr) continue;
    device->physical_id = node_device.physical_id();
    device->chip = node_device.chip();
    device->problem = node_device.problem();
    device->health = node_device.health();
  }
  // Not needed, and the largest part of it.
  node_.clear_collectors();
  node_.clear_recorder();
  for (v1::Device& device : *node_.mutable_devices()) device.clear_channels();
}

void Model::SetJobs(v1::ListJobsResponse jobs) {
  jobs_ = std::move(jobs);
  for (auto& [id, device] : devices_) device.jobs.clear();
  for (const v1::Job& job : jobs_.jobs()) {
    for (const v1::JobProcess& process : job.processes()) {
      for (uint32_t id : process.devices()) {
        auto device = devices_.find(id);
        if (device == devices_.end() || job.job_id().empty()) continue;
        std::vector<std::string>& names = device->second.jobs;
        if (std::ranges::find(names, job.job_id()) == names.end() && names.size() < kMaxProcesses) {
          names.push_back(job.job_id());
        }
      }
    }
  }
}

void Model::SetActivity(v1::GetActivityResponse activity) { activity_ = std::move(activity); }

void Model::SetAdvice(v1::GetAdviceResponse advice) { advice_ = std::move(advice); }

const v1::ProcessActivity* Model::ActivityOf(int32_t pid) const {
  for (const v1::ProcessActivity& process : activity_.processes()) {
    if (process.pid() == pid && !process.spans().empty()) return &process;
  }
  return nullptr;
}

void Model::SetSessions(v1::ListSessionsResponse sessions) { sessions_ = std::move(sessions); }

void Model::BeginStream(int64_t steady_ns) {
  parts_.clear();
  for (auto& [id, device] : devices_) device.process_memory.clear();
  dropped_before_ += std::exchange(dropped_, 0);
  newest_ns_ = 0;
  newest_steady_ns_ = steady_ns;
  connection_.up = true;
  connection_.problem.clear();
  connection_.heard_ns = steady_ns;
}

void Model::Lose(std::string problem, int64_t retry_ns) {
  if (connection_.up) ++connection_.losses;
  connection_.up = false;
  connection_.problem = std::move(problem);
  connection_.retry_ns = retry_ns;
}

void Model::Describe(const v1::SeriesInfo& series) {
  parts_.erase(series.id());
  if (!series.has_device() || parts_.size() >= kMaxSeries) return;
  Part part;
  part.device = series.device();
  if (std::optional<Source> source = SourceOf(series)) {
    part.source = *source;
  } else if (series.metric() == "atlas_npu_up") {
    part.kind = Part::Kind::kUp;
  } else if (series.metric() == "atlas_npu_process_memory_bytes") {
    part.kind = Part::Kind::kProcessMemory;
    auto pid = series.labels().find("pid");
    if (pid == series.labels().end() || !ParseNumber(pid->second, &part.pid)) return;
  } else {
    return;
  }
  if (DeviceOf(part.device) != nullptr) parts_.emplace(series.id(), part);
}

void Model::Add(double value, int64_t time_ns, Part* part) {
  int64_t passed_ns = time_ns - part->time_ns;
  bool again = part->time_ns != 0 && passed_ns > 0;
  if (again) part->period_ns = passed_ns;
  if (part->source.counter) {
    // A counter that went back was cleared.
    if (again && value >= part->last_count) {
      part->sum +=
          (value - part->last_count) / static_cast<double>(passed_ns) * 1e9 * part->source.scale;
      ++part->count;
    }
    part->last_count = value;
  } else if (std::isfinite(value)) {
    part->sum += value;
    ++part->count;
  }
  part->time_ns = time_ns;
}

void Model::Take(const v1::SampleChunk& chunk, int64_t steady_ns) {
  connection_.heard_ns = steady_ns;
  for (const v1::SeriesInfo& series : chunk.series()) Describe(series);
  for (const v1::SampleValue& sample : chunk.samples()) {
    if (sample.time_ns() > newest_ns_) {
      newest_ns_ = sample.time_ns();
      newest_steady_ns_ = steady_ns;
    }
    auto part = parts_.find(sample.series());
    if (part != parts_.end()) Add(sample.value(), sample.time_ns(), &part->second);
  }
  dropped_ = std::max(dropped_, chunk.dropped());
}

bool Model::IsFresh(const Part& part, int64_t node_ns) {
  int64_t limit =
      part.period_ns == 0 ? kFirstFreshNs : std::max(kLeastFreshNs, kPeriods * part.period_ns);
  return node_ns - part.time_ns <= limit;
}

void Model::Prune(int64_t node_ns) {
  std::erase_if(parts_, [node_ns](const auto& entry) {
    return entry.second.kind == Part::Kind::kProcessMemory &&
           node_ns - entry.second.time_ns > 2 * kForgetNs;
  });
}

void Model::Roll(int64_t steady_ns) {
  struct Sum {
    double value = kNothing;
    uint8_t rank = std::numeric_limits<uint8_t>::max();
  };
  std::unordered_map<uint32_t, std::array<Sum, kMeasures>> sums;
  int64_t node_ns = newest_ns_ + (steady_ns - newest_steady_ns_);
  Prune(node_ns);
  for (auto& [id, device] : devices_) device.process_memory.clear();
  for (auto& [id, part] : parts_) {
    if (part.count > 0) part.value = part.sum / part.count;
    part.sum = 0;
    part.count = 0;
    if (!std::isfinite(part.value)) continue;
    Device& device = devices_.at(part.device);
    if (part.kind == Part::Kind::kProcessMemory) {
      if (node_ns - part.time_ns > kForgetNs) continue;
      if (device.process_memory.size() < kMaxProcesses)
        device.process_memory[part.pid] = part.value;
    } else if (part.kind == Part::Kind::kMeasure && IsFresh(part, node_ns)) {
      Sum& sum = sums[part.device][static_cast<size_t>(part.source.measure)];
      if (part.source.rank > sum.rank) continue;
      bool first = part.source.rank < sum.rank;
      sum.value = first ? part.value : sum.value + part.value;
      sum.rank = part.source.rank;
    }
  }
  for (const auto& [id, part] : parts_) {
    if (part.kind != Part::Kind::kUp || !std::isfinite(part.value)) continue;
    // A card that has gone has no values, however fresh the last ones are.
    devices_.at(part.device).down = part.value == 0;
    if (part.value == 0) sums.erase(part.device);
  }
  for (auto& [id, device] : devices_) {
    std::array<Sum, kMeasures>& sum = sums[id];
    // The chip's own sensors are read every ten seconds only, the memory's every second.
    double& hottest = sum[static_cast<size_t>(Measure::kTemperature)].value;
    hottest = std::fmax(hottest, sum[static_cast<size_t>(Measure::kHbmTemperature)].value);
    for (size_t i = 0; i < kMeasures; ++i) {
      device.now[i] = connection_.up ? sum[i].value : device.now[i];
      device.history[i].Push(connection_.up ? sum[i].value : kNothing);
    }
  }
}

uint64_t Model::dropped_records() const {
  uint64_t dropped = 0;
  for (const v1::Session& session : sessions_.sessions()) {
    dropped += session.status().dropped_records() + session.status().dropped_marks();
  }
  return dropped;
}

bool Model::Complete(const std::set<uint32_t>& only) const {
  std::set<uint32_t> heard;
  for (const auto& [series, part] : parts_) {
    bool counts = part.count > 0 && part.kind == Part::Kind::kMeasure;
    if (counts && part.source.measure == Measure::kUtilization) heard.insert(part.device);
  }
  return std::ranges::all_of(devices_, [&](const auto& entry) {
    return !entry.second.Problem().empty() || (!only.empty() && !only.contains(entry.first)) ||
           heard.contains(entry.first);
  });
}

}  // namespace profd::client::top
