#include "daemon/session/session_statistics.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "collectors/metric_table.h"
#include "daemon/metrics/metric_store.h"
#include "daemon/session/stored_session.pb.h"
#include "dump/manifest.h"
#include "profd/v1/profd.pb.h"

namespace profd {
namespace {

constexpr MetricId kEnergy = MetricByName("atlas_npu_energy_joules_total");
constexpr MetricId kMemory = MetricByName("atlas_npu_hbm_used_bytes");
constexpr MetricId kUtilization = MetricByName("atlas_npu_utilization_ratio");
constexpr MetricId kEcc = MetricByName("atlas_npu_ecc_errors_total");

void Add(std::optional<double>* sum, double value) { *sum = sum->value_or(0) + value; }

void Note(const SeriesValue& value, DeviceValues* values) {
  switch (value.metric) {
    case kEnergy:
      values->energy_joules = value.value;
      return;
    case kMemory:
      values->memory_bytes = value.value;
      return;
    case kUtilization:
      if (LabelOf(value, "unit") == "aicore") values->utilization = value.value;
      return;
    case kEcc:
      Add(LabelOf(value, "type") == "single" ? &values->ecc_corrected : &values->ecc_uncorrected, value.value);
      return;
    default:
      return;
  }
}

}  // namespace

std::map<int, DeviceValues> ReadDevices(const MetricStore& store,
                                        std::span<const DeviceInfo> devices, int64_t now_ns) {
  std::map<std::string, int, std::less<>> by_label;
  for (const DeviceInfo& device : devices) {
    by_label[std::to_string(device.physical_id)] = device.id;
  }
  std::map<int, DeviceValues> latest;
  store.VisitFresh(now_ns, [&](const SeriesValue& value) {
    const bool wanted = value.metric == kEnergy || value.metric == kMemory ||
                        value.metric == kUtilization || value.metric == kEcc;
    if (!wanted || !std::isfinite(value.value)) return;
    auto device = by_label.find(LabelOf(value, "npu"));
    if (device != by_label.end()) Note(value, &latest[device->second]);
  });
  return latest;
}

void SessionStatistics::Growth::Take(const std::optional<double>& value) {
  if (!value) return;
  Add(&sum, !last ? 0 : *value >= *last ? *value - *last : *value);
  last = value;
}

void SessionStatistics::Take(const std::map<int, DeviceValues>& latest,
                             std::span<const int> devices) {
  for (int id : devices) {
    auto found = latest.find(id);
    if (found == latest.end()) continue;
    const DeviceValues& values = found->second;
    Device& device = devices_[id];
    device.energy.Take(values.energy_joules);
    device.ecc_corrected.Take(values.ecc_corrected);
    device.ecc_uncorrected.Take(values.ecc_uncorrected);
    if (values.memory_bytes) {
      device.peak_memory = std::max(device.peak_memory.value_or(0), *values.memory_bytes);
    }
    if (!values.utilization) continue;
    device.utilization += *values.utilization;
    ++device.utilizations;
  }
}

void SessionStatistics::Fill(v1::SessionStatus* out) const {
  out->clear_statistics();
  for (const auto& [id, device] : devices_) {
    v1::DeviceStatistics& wire = *out->add_statistics();
    wire.set_device(static_cast<uint32_t>(id));
    if (device.energy.sum) wire.set_energy_joules(*device.energy.sum);
    if (device.peak_memory) {
      wire.set_peak_memory_bytes(static_cast<uint64_t>(std::max(0.0, *device.peak_memory)));
    }
    if (device.utilizations > 0) {
      wire.set_mean_utilization_ratio(device.utilization /
                                      static_cast<double>(device.utilizations));
    }
    if (device.ecc_corrected.sum) {
      wire.set_ecc_corrected(static_cast<uint64_t>(*device.ecc_corrected.sum));
    }
    if (device.ecc_uncorrected.sum) {
      wire.set_ecc_uncorrected(static_cast<uint64_t>(*device.ecc_uncorrected.sum));
    }
  }
}

void SessionStatistics::Describe(Manifest* out) const {
  v1::SessionStatus status;
  Fill(&status);
  for (const v1::DeviceStatistics& one : status.statistics()) {
    const auto device = std::ranges::find(out->devices, static_cast<int>(one.device()), &ManifestDevice::id);
    if (device == out->devices.end()) continue;
    ManifestUse& use = device->use.emplace();
    if (one.has_energy_joules()) use.energy_joules = one.energy_joules();
    if (one.has_peak_memory_bytes()) use.peak_memory_bytes = one.peak_memory_bytes();
    if (one.has_mean_utilization_ratio()) use.mean_utilization_ratio = one.mean_utilization_ratio();
    if (one.has_ecc_corrected()) use.ecc_corrected = one.ecc_corrected();
    if (one.has_ecc_uncorrected()) use.ecc_uncorrected = one.ecc_uncorrected();
  }
}

void SessionStatistics::Save(state::StoredSession* out) const {
  out->clear_statistics();
  for (const auto& [id, device] : devices_) {
    state::StoredStatistics& stored = *out->add_statistics();
    stored.set_device(id);
    if (device.energy.sum) stored.set_energy_joules(*device.energy.sum);
    if (device.peak_memory) stored.set_peak_memory_bytes(*device.peak_memory);
    stored.set_utilization_sum(device.utilization);
    stored.set_utilizations(device.utilizations);
    if (device.ecc_corrected.sum) stored.set_ecc_corrected(*device.ecc_corrected.sum);
    if (device.ecc_uncorrected.sum) stored.set_ecc_uncorrected(*device.ecc_uncorrected.sum);
  }
}

SessionStatistics SessionStatistics::Of(const state::StoredSession& stored) {
  SessionStatistics statistics;
  for (const state::StoredStatistics& one : stored.statistics()) {
    Device& device = statistics.devices_[one.device()];
    if (one.has_energy_joules()) device.energy.sum = one.energy_joules();
    if (one.has_peak_memory_bytes()) device.peak_memory = one.peak_memory_bytes();
    device.utilization = one.utilization_sum();
    device.utilizations = one.utilizations();
    if (one.has_ecc_corrected()) device.ecc_corrected.sum = one.ecc_corrected();
    if (one.has_ecc_uncorrected()) device.ecc_uncorrected.sum = one.ecc_uncorrected();
  }
  return statistics;
}

}  // namespace profd
