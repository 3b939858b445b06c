#include "sim/dcmi_state.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "sim/noise.h"

namespace profd::sim {
namespace {

// Fault codes the simulated device raises. Only the meaning "something is wrong" is promised.
constexpr unsigned kCodeHbmMultiBit = 0x80E01801;
constexpr unsigned kCodeOverTemperature = 0x80E18000;

constexpr unsigned kHealthMinor = 1;
constexpr unsigned kHealthMajor = 2;

unsigned Percent(double ratio) {
  return static_cast<unsigned>(std::clamp(ratio * 100 + 0.5, 0.0, 100.0));
}

}  // namespace

int DcmiView::Health(unsigned* out) const {
  *out = 0;
  if (model().ThrottleCause(t_ns) != 0) *out = kHealthMinor;
  if (model().EccDouble(t_ns) > 0) *out = kHealthMajor;
  return abi::kDcmiOk;
}

namespace {

struct ActiveFault {
  unsigned code;
  uint8_t severity;
  const char* name;
};

std::vector<ActiveFault> ActiveFaults(const DcmiView& view) {
  constexpr uint8_t kMinor = 1, kMajor = 2;
  std::vector<ActiveFault> faults;
  if (view.model().EccDouble(view.t_ns) > 0) {
    faults.push_back({kCodeHbmMultiBit, kMajor, "HBM multi-bit ECC error (simulated)"});
  }
  if (view.model().ThrottleCause(view.t_ns) != 0) {
    faults.push_back({kCodeOverTemperature, kMinor, "AI Core frequency reduced (simulated)"});
  }
  return faults;
}

}  // namespace

int DcmiView::ErrorCodes(int* count, unsigned* list, unsigned length) const {
  unsigned found = 0;
  for (const ActiveFault& fault : ActiveFaults(*this)) {
    if (found < length) list[found++] = fault.code;
  }
  *count = static_cast<int>(found);
  return abi::kDcmiOk;
}

int DcmiView::CurrentFaults(abi::DcmiEvent* list, int length, int* count) const {
  *count = 0;
  for (const ActiveFault& fault : ActiveFaults(*this)) {
    if (*count == length) break;
    abi::DcmiEvent& entry = list[(*count)++];
    entry = {};
    entry.event.event_id = fault.code;
    entry.event.deviceid = static_cast<uint16_t>(device);
    entry.event.severity = fault.severity;
    entry.event.assertion = 1;
    entry.event.alarm_raised_time = static_cast<uint64_t>(node.clock().WallNs() / kNsPerMs);
    std::strncpy(entry.event.event_name, fault.name, sizeof entry.event.event_name - 1);
  }
  return abi::kDcmiOk;
}

int DcmiView::Temperature(int* out) const {
  *out = static_cast<int>(std::lround(model().ChipCelsius(t_ns)));
  return abi::kDcmiOk;
}

int DcmiView::Power(int* out) const {
  *out = static_cast<int>(std::lround(model().PowerWatts(t_ns) * 10));
  return abi::kDcmiOk;
}

int DcmiView::Voltage(unsigned* out) const {
  *out = DeviceModel::AicoreMillivolts(model().AicoreMhz(t_ns)) / 10;
  return abi::kDcmiOk;
}

int DcmiView::Frequency(int type, unsigned* out) const {
  constexpr unsigned kCtrlCpuMhz = 1900;
  const auto answer = [out](unsigned mhz) {
    *out = mhz;
    return abi::kDcmiOk;
  };
  switch (type) {
    case abi::kFreqCtrlCpu:
      return answer(kCtrlCpuMhz);
    case abi::kFreqHbm:
      return answer(chip().hbm_mhz);
    case abi::kFreqAicoreCurrent:
      return answer(model().AicoreMhz(t_ns));
    case abi::kFreqAicoreRated:
      return answer(chip().aic_mhz);
    case abi::kFreqDdr:
    case abi::kFreqVectorCurrent:
      return abi::kDcmiNotSupported;
    default:
      return abi::kDcmiInvalidParameter;
  }
}

int DcmiView::Aicore(abi::DcmiAicoreInfo* out) const {
  out->freq = chip().aic_mhz;
  out->cur_freq = model().AicoreMhz(t_ns);
  return abi::kDcmiOk;
}

int DcmiView::Aicpu(abi::DcmiAicpuInfo* out) const {
  *out = {};
  out->max_freq = 1900;
  out->cur_freq = 1900;
  out->aicpu_num = chip().aicpu_cores;
  for (unsigned i = 0; i < chip().aicpu_cores && i < std::size(out->util_rate); ++i) {
    out->util_rate[i] = Percent(model().BusyRatio(kAicpuBusy, t_ns));
  }
  return abi::kDcmiOk;
}

int DcmiView::Utilization(int type, unsigned* out) const {
  const DeviceModel& m = model();
  const auto used = [](uint64_t bytes, uint64_t mb) {
    return static_cast<double>(bytes) / (static_cast<double>(mb) * 1048576.0);
  };
  const auto answer = [out](double ratio) {
    *out = Percent(ratio);
    return abi::kDcmiOk;
  };
  switch (type) {
    case abi::kUtilAicore:
      return answer(m.BusyRatio(kCubeBusy, t_ns));
    case abi::kUtilAicpu:
      return answer(m.BusyRatio(kAicpuBusy, t_ns));
    case abi::kUtilCtrlCpu:
      return answer(m.BusyRatio(kCtrlCpuBusy, t_ns));
    case abi::kUtilHbm:
      return answer(used(m.HbmUsedBytes(t_ns), chip().hbm_mb));
    case abi::kUtilHbmBandwidth:
      return answer(m.HbmBandwidthRatio(t_ns));
    case abi::kUtilMemory:
      if (chip().ddr_mb == 0) return abi::kDcmiNotSupported;
      return answer(used(m.DdrUsedBytes(t_ns), chip().ddr_mb));
    case abi::kUtilVector:
      if (Is910()) return abi::kDcmiNotSupported;
      return answer(m.BusyRatio(kVectorBusy, t_ns));
    case abi::kUtilNpu:
      if (Is910()) return abi::kDcmiNotSupported;
      return answer(std::max(m.BusyRatio(kCubeBusy, t_ns), m.BusyRatio(kVectorBusy, t_ns)));
    case abi::kUtilMemoryBandwidth:
    case abi::kUtilDdr:
    case abi::kUtilCube:
      return abi::kDcmiNotSupported;
    default:
      return abi::kDcmiInvalidParameter;
  }
}

int DcmiView::MultiUtilization(abi::DcmiMultiUtilizationInfo* out) const {
  if (Is910()) return abi::kDcmiNotSupported;
  *out = {};
  out->aic_util = Percent(model().BusyRatio(kCubeBusy, t_ns));
  out->aiv_util = Percent(model().BusyRatio(kVectorBusy, t_ns));
  out->aicore_util = out->aic_util;
  out->npu_util = std::max(out->aic_util, out->aiv_util);
  return abi::kDcmiOk;
}

int DcmiView::Hbm(abi::DcmiHbmInfo* out) const {
  *out = {};
  out->memory_size = chip().hbm_mb;
  out->freq = chip().hbm_mhz;
  out->memory_usage = model().HbmUsedBytes(t_ns) >> 20;
  out->temp = static_cast<int32_t>(std::lround(model().HbmCelsius(t_ns)));
  out->bandwith_util_rate = Percent(model().HbmBandwidthRatio(t_ns));
  return abi::kDcmiOk;
}

int DcmiView::Memory(abi::DcmiMemoryInfoV3* out) const {
  if (chip().ddr_mb == 0) return abi::kDcmiNotSupported;
  *out = {};
  const uint64_t used_mb = model().DdrUsedBytes(t_ns) >> 20;
  out->memory_size = chip().ddr_mb;
  out->memory_available = chip().ddr_mb - used_mb;
  out->freq = 1333;
  out->hugepagesize = 2048;
  out->hugepages_total = 512;
  out->hugepages_free = 384;
  out->utiliza = static_cast<uint32_t>(used_mb * 100 / chip().ddr_mb);
  return abi::kDcmiOk;
}

int DcmiView::MemoryOld(abi::DcmiMemoryInfo* out) const {
  abi::DcmiMemoryInfoV3 v3;
  if (const int code = Memory(&v3); code != abi::kDcmiOk) return code;
  *out = {v3.memory_size, v3.freq, v3.utiliza};
  return abi::kDcmiOk;
}

int DcmiView::Cgroup(abi::DcmiCgroupInfo* out) const {
  if (!IsA2()) return abi::kDcmiNotSupported;
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  out->limit_in_bytes = 4 * kGiB;
  out->max_usage_in_bytes = kGiB;
  out->usage_in_bytes =
      kGiB / 2 + (static_cast<uint64_t>(model().ActivationRatio(t_ns) * 64) << 20);
  return abi::kDcmiOk;
}

int DcmiView::Ecc(int memory, abi::DcmiEccInfo* out) const {
  if (memory < 0 || (memory > abi::kEccHbmRecordedMulti && memory != abi::kEccNone)) {
    return abi::kDcmiInvalidParameter;
  }
  if (memory != abi::kEccHbm) return abi::kDcmiNotSupported;
  *out = {};
  out->enable_flag = 1;
  out->single_bit_error_cnt = model().EccSingle(t_ns);
  out->double_bit_error_cnt = model().EccDouble(t_ns);
  out->total_single_bit_error_cnt = out->single_bit_error_cnt;
  out->total_double_bit_error_cnt = out->double_bit_error_cnt;
  out->double_bit_isolated_pages_cnt = out->double_bit_error_cnt;
  return abi::kDcmiOk;
}

int DcmiView::Sensor(int id, abi::DcmiSensorInfo* out) const {
  if (id < abi::kSensorClusterTemp || id > abi::kSensorHbmTemp) return abi::kDcmiInvalidParameter;
  *out = {};
  const auto celsius = static_cast<int32_t>(std::lround(model().ChipCelsius(t_ns)));
  switch (id) {
    case abi::kSensorThermalThreshold:
      out->temp[0] = 95;
      out->temp[1] = 105;
      break;
    case abi::kSensorNtc:
      for (int32_t& ntc : out->ntc_temp) ntc = celsius - 9;
      break;
    case abi::kSensorFpTemp:
      out->int_value = celsius - 12;
      break;
    case abi::kSensorHbmTemp:
      out->int_value = static_cast<int32_t>(std::lround(model().HbmCelsius(t_ns)));
      break;
    case abi::kSensorClusterTemp:
    case abi::kSensorPeriTemp:
    case abi::kSensorSocTemp:
    case abi::kSensorNDieTemp:
      out->int_value = celsius;
      break;
    default:
      return abi::kDcmiNotSupported;
  }
  return abi::kDcmiOk;
}

int DcmiView::Llc(abi::DcmiLlcPerf* out) const {
  constexpr int64_t kWindowNs = 200'000'000;
  const int64_t before = t_ns - kWindowNs;
  const auto lines =
      static_cast<double>(model().Total(kLlcLines, t_ns) - model().Total(kLlcLines, before));
  const auto hits =
      static_cast<double>(model().Total(kLlcHits, t_ns) - model().Total(kLlcHits, before));
  out->rd_hit_rate = Percent(lines > 0 ? hits / lines : 0);
  out->wr_hit_rate = out->rd_hit_rate * 9 / 10;
  constexpr double kLineKb = 64.0 / 1024;
  out->throughput = static_cast<uint32_t>(
      std::min(lines * kLineKb / (static_cast<double>(kWindowNs) / 1e9), 4294967295.0));
  return abi::kDcmiOk;
}

namespace {

// Lines "pid [device [memory_mb]]"; without a device, line i runs on device i modulo the count.
// Lines that make no sense are skipped. Read at every query, because the processes come and go.
void AppendFromFile(const Node& node, std::vector<SimProcess>& processes) {
  if (node.scenario().processes_file.empty()) return;
  std::ifstream file(node.scenario().processes_file);
  std::string line;
  constexpr int kMaxLines = 1024;
  for (int i = 0; i < kMaxLines && std::getline(file, line); ++i) {
    std::istringstream words(line);
    SimProcess process{0, i % node.devices(), uint64_t{20480} << 20};
    if (!(words >> process.pid) || process.pid <= 0) continue;
    if (int device = 0; words >> device) {
      process.device = device;
      if (uint64_t mb = 0; words >> mb) process.memory_bytes = mb << 20;
    }
    processes.push_back(process);
  }
}

}  // namespace

int DcmiView::Processes(abi::DcmiProcMemInfo* out, int* count) const {
  std::vector<SimProcess> processes = node.scenario().processes;
  AppendFromFile(node, processes);
  int found = 0;
  for (const SimProcess& process : processes) {
    const bool here = process.device == kAllDevices || process.device == static_cast<int>(device);
    if (!here || found == abi::kDcmiMaxProcesses) continue;
    out[found++] = {process.pid, process.memory_bytes};
  }
  *count = found;
  return abi::kDcmiOk;
}

}  // namespace profd::sim
