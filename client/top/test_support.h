// For tests of the live view only: a node in the model, without a daemon.
#pragma once

#include <initializer_list>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "client/test_support.h"
#include "client/top/model.h"

namespace profd::client::top {

using Labels = std::initializer_list<std::pair<const char*, const char*>>;

// Chunks of samples, with series described once.
class ChunkMaker {
 public:
  uint32_t Series(const char* metric, int device, Labels labels = {}) {
    v1::SeriesInfo* series = chunk_.add_series();
    series->set_id(++last_id_);
    series->set_metric(metric);
    series->set_device(device);
    for (const auto& [name, value] : labels) (*series->mutable_labels())[name] = value;
    return last_id_;
  }
  void Sample(uint32_t series, int64_t time_ns, double value) {
    v1::SampleValue* sample = chunk_.add_samples();
    sample->set_series(series);
    sample->set_time_ns(time_ns);
    sample->set_value(value);
  }
  void SetDropped(uint64_t dropped) { chunk_.set_dropped(dropped); }
  v1::SampleChunk Take() { return std::exchange(chunk_, {}); }

 private:
  v1::SampleChunk chunk_;
  uint32_t last_id_ = 0;
};

inline v1::Node MakeNode(uint32_t devices) {
  v1::Node node;
  node.set_hostname("node17");
  for (uint32_t i = 0; i < devices; ++i) {
    v1::Device* device = node.add_devices();
    device->set_id(i);
    device->set_physical_id(i);
    device->set_chip("Ascend910B");
    device->mutable_health()->set_verdict(v1::Health::VERDICT_OK);
  }
  return node;
}

inline v1::ListJobsResponse MakeJobs(uint32_t devices) {
  v1::ListJobsResponse jobs;
  v1::Job* job = jobs.add_jobs();
  job->set_job_id("j42");
  for (uint32_t i = 0; i < devices; ++i) {
    v1::JobProcess* process = job->add_processes();
    process->set_pid(static_cast<int32_t>(4700 + i));
    process->set_uid(1000);
    process->set_rank(static_cast<int32_t>(i));
    process->add_devices(i);
    process->set_framework("pytorch");
    process->set_command("python3");
    process->set_attached(i != 1);
    if (i == 1) process->set_silent_ns(12'000'000'000);
    process->set_step(1200 + i);
    process->set_step_ns(600'000'000);
  }
  return jobs;
}

// For every process but the second.
inline v1::GetActivityResponse MakeActivity(uint32_t devices) {
  v1::GetActivityResponse activity;
  for (uint32_t i = 0; i < devices; ++i) {
    if (i == 1) continue;
    v1::ProcessActivity* process = activity.add_processes();
    process->set_pid(static_cast<int32_t>(4700 + i));
    v1::ActivitySpan* span = process->add_spans();
    span->set_begin_ns(1000 * kNsPerSecond);
    span->set_end_ns(1010 * kNsPerSecond);
    span->set_computation_ratio(0.5 + 0.05 * i);
    span->set_communication_ratio(0.25);
    span->set_not_overlapped_ratio(0.125);
    span->set_free_ratio(0.375 - 0.05 * i);
    span->set_kernels(95'000 + 10'000 * i);
    process->set_kernels_span_ns(7'000'000'000);
    process->set_kernels_total_ns(4'000'000'000);
    const std::pair<const char*, uint64_t> kernels[] = {
        {"aclnnMatmul_MatMulV3Common_MatMulV3", 2'000'000'000}, {"FlashAttentionScore", 900'000'000},
        {"", 100'000'000}};
    for (const auto& [name, ns] : kernels) {
      v1::HotKernel* kernel = process->add_kernels();
      kernel->set_name(name);
      kernel->set_total_ns(ns);
      kernel->set_count(2000);
    }
  }
  return activity;
}

inline v1::ListSessionsResponse MakeSessions() {
  v1::ListSessionsResponse sessions;
  v1::Session* session = sessions.add_sessions();
  session->set_session_id("71bd0e29b475");
  session->mutable_status()->set_state(v1::Session::STATE_RUNNING);
  session->mutable_spec()->mutable_target()->set_job_id("j42");
  session->mutable_owner()->set_uid(1000);
  for (uint32_t i = 0; i < 8; ++i) session->mutable_status()->add_devices(i);
  session->mutable_status()->set_records(120'000);
  session->mutable_status()->set_dropped_records(3);
  session->mutable_spec()->set_label("first try");
  return sessions;
}

// One sample of everything for each device, `second` seconds after the beginning.
class NodeSamples {
 public:
  explicit NodeSamples(int devices) : devices_(devices) {}

  v1::SampleChunk Second(int second) {
    for (int i = 0; i < devices_; ++i) {
      Sample(i, second, "atlas_npu_utilization_ratio", {{"unit", "aicore"}},
             0.1 * ((i * 3 + second) % 10));
      Sample(i, second, "atlas_npu_hbm_used_bytes", {}, (10.0 + 5 * i) * (1 << 30));
      Sample(i, second, "atlas_npu_hbm_size_bytes", {}, 64.0 * (1 << 30));
      Sample(i, second, "atlas_npu_hbm_bandwidth_utilization_ratio", {}, 0.05 * i);
      Sample(i, second, "atlas_npu_power_watts", {{"scope", "chip"}},
             200 + 10 * ((second + i) % 8));
      Sample(i, second, "atlas_npu_temperature_celsius", {{"sensor", "hbm"}}, 50 + i);
      Sample(i, second, "atlas_npu_frequency_hertz", {{"domain", "aicore"}}, 1.8e9);
      Sample(i, second, "atlas_npu_hccs_bandwidth_bytes_per_second",
             {{"link", "all"}, {"direction", "tx"}}, 4e9 + 1e8 * i);
      Sample(i, second, "atlas_npu_hccs_bandwidth_bytes_per_second",
             {{"link", "all"}, {"direction", "rx"}}, 4e9);
    }
    first_ = false;
    next_ = 0;
    return chunk_.Take();
  }

 private:
  void Sample(int device, int second, const char* metric, Labels labels, double value) {
    if (first_) ids_.push_back(chunk_.Series(metric, device, labels));
    chunk_.Sample(ids_[next_++], (1000 + second) * kNsPerSecond, value);
  }

  int devices_;
  bool first_ = true;
  size_t next_ = 0;
  std::vector<uint32_t> ids_;
  ChunkMaker chunk_;
};

// A node of `devices` after `seconds` refreshes.
inline Model MakeModel(uint32_t devices, int seconds) {
  Model model;
  model.SetNode(MakeNode(devices));
  model.SetJobs(MakeJobs(devices));
  model.SetSessions(MakeSessions());
  model.BeginStream(0);
  NodeSamples samples(static_cast<int>(devices));
  for (int i = 0; i < seconds; ++i) {
    model.Take(samples.Second(i), i * kNsPerSecond);
    model.Roll(i * kNsPerSecond);
  }
  return model;
}

}  // namespace profd::client::top
