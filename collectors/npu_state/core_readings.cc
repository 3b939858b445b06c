#include "collectors/npu_state/core_readings.h"

#include <fmt/format.h>

namespace profd {

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

void CoreReadings::Fast(DevicePass& pass, const RowReadings& rows) {
  const int* power = rows.AnswerTo(dcmi::kPower);
  const bool has_power = power != nullptr && abi::IsDcmiPower(*power);
  pass.Put(energy_, has_power, has_power ? pass.dcmi().EnergyJoules(pass.device()) : 0);
}

void CoreReadings::Medium(DevicePass& pass, const NpuStateOptions& options) {
  ReadEcc(pass, DcmiCall::kEccHbm, ecc_hbm_);
  ReadEcc(pass, DcmiCall::kEccDdr, ecc_ddr_);
  ReadCores(pass, options);
  ReadThrottle(pass);
  ReadVirtualNpus(pass);
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

void CoreReadings::ReadCores(DevicePass& pass, const NpuStateOptions& options) {
  constexpr MetricId kCore = MetricByName("atlas_npu_core_utilization_ratio");
  auto aicores = pass.Ask(&DcmiService::CoreUtilization, DcmiCall::kCoreUtilAicore);
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
  put(pass.Ask(&DcmiService::CoreUtilization, DcmiCall::kCoreUtilVector), "vector", 1000, 2 * count);
  cores_.EndRound();
}

void CoreReadings::ReadThrottle(DevicePass& pass) {
  constexpr MetricId kReason = MetricByName("atlas_npu_throttle_reason");
  auto reasons = pass.Ask(dcmi::kThrottleReason);
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

}  // namespace profd
