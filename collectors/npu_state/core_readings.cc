#include "collectors/npu_state/core_readings.h"

#include <fmt/format.h>

namespace profd {
namespace {

constexpr double kMega = 1e6;             // MHz
constexpr double kMib = 1024.0 * 1024.0;  // what the driver calls MB
constexpr double kDeciwatt = 0.1;
constexpr double kCentivolt = 0.01;

using enum DcmiCall;

}  // namespace

CoreReadings::Ecc::Ecc(std::string_view memory) {
  constexpr MetricId kTotal = MetricByName("atlas_npu_ecc_errors_total");
  constexpr MetricId kCurrent = MetricByName("atlas_npu_ecc_errors_current");
  constexpr MetricId kPages = MetricByName("atlas_npu_ecc_isolated_pages");
  constexpr std::array<std::string_view, 2> kTypes = {"single", "double"};
  enabled = SeriesSlot(MetricByName("atlas_npu_ecc_enabled"), memory);
  for (size_t i = 0; i < kTypes.size(); ++i) {
    total[i] = SeriesSlot(kTotal, memory, kTypes[i]);
    current[i] = SeriesSlot(kCurrent, memory, kTypes[i]);
    isolated[i] = SeriesSlot(kPages, memory, kTypes[i], "active");
    next[i] = SeriesSlot(kPages, memory, kTypes[i], "next");
  }
}

void CoreReadings::Fast(DevicePass& pass) {
  ReadUtilization(pass);
  auto power = pass.Ask(&DcmiService::Power);
  const bool has_power = power.ok() && power.value >= 0;
  pass.Put(power_, has_power, power.value * kDeciwatt);
  if (ClassifyDcmi(power.code) == DcmiErrorClass::kUnsupported) {
    auto board = pass.Ask(&DcmiService::BoardPower);
    pass.Put(board_power_, board.ok() && board.value >= 0, board.value * kDeciwatt);
  }
  pass.Put(energy_, has_power, has_power ? pass.dcmi().EnergyJoules(pass.device()) : 0);
  ReadHbm(pass);

  auto aicore = pass.Ask(&DcmiService::AicoreInfo);
  if (aicore.ok()) {
    pass.Put(hz_aicore_, true, aicore.value.cur_freq * kMega);
  } else {
    pass.Put(hz_aicore_, pass.Ask(&DcmiService::Frequency, kFrequencyAicore), kMega);
  }
  pass.Put(hz_vector_, pass.Ask(&DcmiService::Frequency, kFrequencyVector), kMega);
}

void CoreReadings::ReadUtilization(DevicePass& pass) {
  // One call for four units where the driver is new enough.
  auto multi = pass.Ask(&DcmiService::MultiUtilization);
  if (multi.ok()) {
    pass.PutPercent(util_cube_, true, multi.value.aic_util);
    pass.PutPercent(util_vector_, true, multi.value.aiv_util);
    pass.PutPercent(util_aicore_, true, multi.value.aicore_util);
    pass.PutPercent(util_npu_, true, multi.value.npu_util);
  } else {
    pass.PutPercent(util_aicore_, pass.Ask(&DcmiService::Utilization, kUtilAicore));
    pass.PutPercent(util_vector_, pass.Ask(&DcmiService::Utilization, kUtilVector));
    pass.PutPercent(util_cube_, pass.Ask(&DcmiService::Utilization, kUtilCube));
    pass.PutPercent(util_npu_, pass.Ask(&DcmiService::Utilization, kUtilNpu));
  }
  pass.PutPercent(util_aicpu_, pass.Ask(&DcmiService::Utilization, kUtilAicpu));
  pass.PutPercent(util_ctrlcpu_, pass.Ask(&DcmiService::Utilization, kUtilCtrlCpu));
}

void CoreReadings::ReadHbm(DevicePass& pass) {
  auto hbm = pass.Ask(&DcmiService::HbmInfo);
  const bool known = hbm.ok() && hbm.value.memory_size > 0;
  pass.Put(hbm_size_, known, static_cast<double>(hbm.value.memory_size) * kMib);
  pass.Put(hbm_used_, known, static_cast<double>(hbm.value.memory_usage) * kMib);
  pass.PutCelsius(temp_hbm_, known, hbm.value.temp);
  pass.Put(hz_hbm_, known && hbm.value.freq > 0, hbm.value.freq * kMega);
  pass.PutPercent(hbm_util_, pass.Ask(&DcmiService::Utilization, kUtilHbm));
  auto bandwidth = pass.Ask(&DcmiService::Utilization, kUtilHbmBandwidth);
  if (bandwidth.ok()) {
    pass.PutPercent(hbm_bandwidth_, bandwidth);
  } else {
    // The newest chips fill this field with the capacity's share instead.
    const bool meant = known && pass.dcmi().api() == DcmiApi::kV1;
    pass.PutPercent(hbm_bandwidth_, meant, hbm.value.bandwith_util_rate);
  }
}

void CoreReadings::Medium(DevicePass& pass, const NpuStateOptions& options) {
  ReadTemperatures(pass);
  pass.Put(voltage_, pass.Ask(&DcmiService::Voltage), kCentivolt);
  ReadClocks(pass);
  ReadEcc(pass, kEccHbm, ecc_hbm_);
  ReadEcc(pass, kEccDdr, ecc_ddr_);
  ReadDdr(pass);
  ReadCaches(pass);
  ReadEngines(pass);
  ReadCores(pass, options);
  ReadThrottle(pass);
  ReadVirtualNpus(pass);
}

void CoreReadings::ReadTemperatures(DevicePass& pass) {
  auto chip = pass.Ask(&DcmiService::Temperature);
  pass.PutCelsius(temp_chip_, chip.ok(), chip.value);
  for (auto [call, slot] :
       {std::pair{kSensorCluster, &temp_cluster_}, std::pair{kSensorSoc, &temp_soc_},
        std::pair{kSensorNdie, &temp_ndie_}, std::pair{kSensorOpticalCage, &temp_cage_}}) {
    auto sensor = pass.Ask(&DcmiService::Sensor, call);
    pass.PutCelsius(*slot, sensor.ok(), sensor.value.int_value);
  }
  auto ntc = pass.Ask(&DcmiService::Sensor, kSensorNtc);
  for (size_t i = 0; i < temp_ntc_.size(); ++i) {
    pass.PutCelsius(temp_ntc_[i], ntc.ok(), ntc.value.ntc_temp[i]);
  }
  auto threshold = pass.Ask(&DcmiService::Sensor, kSensorThreshold);
  for (size_t i = 0; i < threshold_.size(); ++i) {
    pass.Put(threshold_[i], threshold.ok(), threshold.value.temp[i]);
  }
}

void CoreReadings::ReadClocks(DevicePass& pass) {
  pass.Put(hz_ddr_, pass.Ask(&DcmiService::Frequency, kFrequencyDdr), kMega);
  pass.Put(hz_ctrlcpu_, pass.Ask(&DcmiService::Frequency, kFrequencyCtrlCpu), kMega);
  auto aicpu = pass.Ask(&DcmiService::AicpuInfo);
  pass.Put(hz_aicpu_, aicpu.ok(), aicpu.value.cur_freq * kMega);
  pass.Put(rated_aicpu_, aicpu.ok(), aicpu.value.max_freq * kMega);
}

void CoreReadings::ReadEcc(DevicePass& pass, DcmiCall call, Ecc& ecc) {
  auto answer = pass.Ask(&DcmiService::Ecc, call);
  const bool ok = answer.ok();
  const abi::DcmiEccInfo& info = answer.value.info;
  const bool has_next = ok && answer.value.has_next_isolated;
  pass.Put(ecc.enabled, ok, info.enable_flag != 0 ? 1 : 0);
  pass.Put(ecc.total[0], ok, info.total_single_bit_error_cnt);
  pass.Put(ecc.total[1], ok, info.total_double_bit_error_cnt);
  pass.Put(ecc.current[0], ok, info.single_bit_error_cnt);
  pass.Put(ecc.current[1], ok, info.double_bit_error_cnt);
  pass.Put(ecc.isolated[0], ok, info.single_bit_isolated_pages_cnt);
  pass.Put(ecc.isolated[1], ok, info.double_bit_isolated_pages_cnt);
  pass.Put(ecc.next[0], has_next, info.single_bit_next_isolated_pages_cnt);
  pass.Put(ecc.next[1], has_next, info.double_bit_next_isolated_pages_cnt);
}

void CoreReadings::ReadDdr(DevicePass& pass) {
  auto v3 = pass.Ask(&DcmiService::MemoryInfoV3);
  if (v3.ok()) {
    const abi::DcmiMemoryInfoV3& ddr = v3.value;
    const bool known = ddr.memory_size > 0 && ddr.memory_available <= ddr.memory_size;
    pass.Put(ddr_size_, known, static_cast<double>(ddr.memory_size) * kMib);
    pass.Put(ddr_used_, known, static_cast<double>(ddr.memory_size - ddr.memory_available) * kMib);
    pass.PutPercent(ddr_util_, known, ddr.utiliza);
  } else {
    auto old = pass.Ask(&DcmiService::MemoryInfo);
    const bool known = old.ok() && old.value.memory_size > 0;
    pass.Put(ddr_size_, known, static_cast<double>(old.value.memory_size) * kMib);
    pass.Put(ddr_used_, false, 0);
    pass.PutPercent(ddr_util_, known, old.value.utiliza);
  }
  auto os = pass.Ask(&DcmiService::CgroupInfo);
  pass.Put(os_limit_, os.ok(), static_cast<double>(os.value.limit_in_bytes));
  pass.Put(os_usage_, os.ok(), static_cast<double>(os.value.usage_in_bytes));
  pass.Put(os_max_usage_, os.ok(), static_cast<double>(os.value.max_usage_in_bytes));
}

void CoreReadings::ReadCaches(DevicePass& pass) {
  auto llc = pass.Ask(&DcmiService::LlcPerf);
  pass.PutPercent(llc_read_, llc.ok(), llc.value.rd_hit_rate);
  pass.PutPercent(llc_write_, llc.ok(), llc.value.wr_hit_rate);
  pass.Put(llc_throughput_, llc.ok(), llc.value.throughput * 1024.0);
}

void CoreReadings::ReadEngines(DevicePass& pass) {
  auto all = pass.Ask(&DcmiService::DvppRatio);  // 310P
  if (all.ok()) {
    pass.PutPercent(dvpp_vdec_, true, all.value.vdec_ratio);
    pass.PutPercent(dvpp_vpc_, true, all.value.vpc_ratio);
    pass.PutPercent(dvpp_venc_, true, all.value.venc_ratio);
    pass.PutPercent(dvpp_jpege_, true, all.value.jpege_ratio);
    pass.PutPercent(dvpp_jpegd_, true, all.value.jpegd_ratio);
    return;
  }
  pass.PutPercent(dvpp_vdec_, pass.Ask(&DcmiService::DvppEngine, kDvppVdec));
  pass.PutPercent(dvpp_vpc_, pass.Ask(&DcmiService::DvppEngine, kDvppVpc));
  pass.PutPercent(dvpp_venc_, false, 0);
  pass.PutPercent(dvpp_jpege_, pass.Ask(&DcmiService::DvppEngine, kDvppJpege));
  pass.PutPercent(dvpp_jpegd_, pass.Ask(&DcmiService::DvppEngine, kDvppJpegd));
}

void CoreReadings::ReadCores(DevicePass& pass, const NpuStateOptions& options) {
  constexpr MetricId kCore = MetricByName("atlas_npu_core_utilization_ratio");
  auto aicores = pass.Ask(&DcmiService::CoreUtilization, kCoreUtilAicore);
  const auto& cores = aicores.value.percent;
  const bool profiling =
      std::find(cores.begin(), cores.begin() + aicores.value.bytes, abi::kCoreUtilProfilingOn) !=
      cores.begin() + aicores.value.bytes;
  pass.Put(profiling_, aicores.ok(), profiling ? 1 : 0);
  if (!options.core_utilization) return;
  cores_.BeginRound();
  auto put = [&](const DcmiAnswer<DcmiCoreUtilization>& answer, std::string_view kind, int base,
                 uint32_t limit) {
    for (uint32_t i = 0; answer.ok() && i < std::min(answer.value.bytes, limit); ++i) {
      if (answer.value.percent[i] > 100) continue;
      const SeriesId series = cores_.Use(base + static_cast<int>(i), kCore, [&] {
        return std::array<std::string, 2>{std::to_string(i), std::string(kind)};
      });
      pass.Emit(series, answer.value.percent[i] / 100.0);
    }
  };
  // The buffers are longer than chips have cores; two vector cores to each AI Core.
  const uint32_t count = pass.device().aicore_count;
  put(aicores, "aicore", 0, count);
  put(pass.Ask(&DcmiService::CoreUtilization, kCoreUtilVector), "vector", 1000, 2 * count);
  cores_.EndRound();
}

void CoreReadings::ReadThrottle(DevicePass& pass) {
  constexpr MetricId kReason = MetricByName("atlas_npu_throttle_reason");
  auto reasons = pass.Ask(&DcmiService::ThrottleReason);
  throttle_.BeginRound();
  // A bit that was seen once stays, at 0 when it is clear, so that its history is a line.
  for (int bit = 0; reasons.ok() && bit < 32; ++bit) {
    const bool set = (reasons.value >> bit & 1u) != 0;
    if (!set && !throttle_.Knows(bit)) continue;
    const SeriesId series = throttle_.Use(
        bit, kReason, [&] { return std::array<std::string, 1>{fmt::format("bit{}", bit)}; });
    pass.Emit(series, set ? 1 : 0);
  }
  throttle_.EndRound();
}

void CoreReadings::ReadVirtualNpus(DevicePass& pass) {
  constexpr double kKib = 1024;
  constexpr MetricId kUtilization = MetricByName("atlas_npu_vnpu_utilization_ratio");
  constexpr MetricId kMemory = MetricByName("atlas_npu_vnpu_memory_bytes");
  auto vnpus = pass.Ask(&DcmiService::Vdevs);
  vnpus_.BeginRound();
  for (uint32_t i = 0; vnpus.ok() && i < vnpus.value.count; ++i) {
    const uint32_t id = vnpus.value.ids[i];
    auto activity = pass.Ask(&DcmiService::VdevActivity, id);
    if (!activity.ok() || vnpus_.Seen({id, 0}) || vnpus_.Seen({id, 1})) continue;
    const DcmiVdevActivity& now = activity.value;
    auto put_memory = [&](size_t which, const char* kind, uint64_t kb) {
      const SeriesId series = vnpus_.Use({id, which}, kMemory, [&] {
        return std::array<std::string, 2>{std::to_string(id), kind};
      });
      pass.Emit(series, static_cast<double>(kb) * kKib);
    };
    if (now.aicore_percent <= 100) {
      pass.Emit(vnpus_.Use({id, 0}, kUtilization,
                           [&] { return std::array<std::string, 1>{std::to_string(id)}; }),
                now.aicore_percent / 100.0);
    }
    if (now.memory_total_kb == 0 || now.memory_free_kb > now.memory_total_kb) continue;
    put_memory(1, "total", now.memory_total_kb);
    put_memory(2, "used", now.memory_total_kb - now.memory_free_kb);
  }
  vnpus_.EndRound();
}

void CoreReadings::Slow(DevicePass& pass) {
  auto aicore = pass.Ask(&DcmiService::AicoreInfo);
  if (aicore.ok()) {
    pass.Put(rated_aicore_, true, aicore.value.freq * kMega);
  } else {
    pass.Put(rated_aicore_, pass.Ask(&DcmiService::Frequency, kFrequencyAicoreRated), kMega);
  }
  pass.Put(rated_power_, pass.Ask(&DcmiService::RatedPower));
}

}  // namespace profd
