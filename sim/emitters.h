// The channels that deliver data, by what emits their records; layouts are those of driver-abi 3.6,
// parameters those of 3.2-3.4. `node` outlives the streams.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "driver/abi/hal_abi.h"
#include "sim/record_stream.h"

namespace profd::sim {

struct Target {
  const Node* node;
  unsigned device;

  const DeviceModel& model() const { return node->model(device); }
  const DeviceClock& clock() const { return node->device_clock(device); }
  const ChipSpec& chip() const { return node->chip(); }
};

// "sec:nnnnnnnnn" with the ns part padded to nine digits.
void AppendTextTimestamp(int64_t device_ns, std::string* out);

// The values one behind the other, as wide as their types.
template <class... T>
void AppendLe(std::string* out, T... values) {
  (out->append(reinterpret_cast<const char*>(&values), sizeof values), ...);
}

inline constexpr uint32_t kMaxPeriodMs = 1000;
inline bool ValidPeriod(uint32_t ms) { return ms >= 1 && ms <= kMaxPeriodMs; }
inline int64_t PeriodNs(uint32_t ms) { return int64_t{ms} * kNsPerMs; }

// What prof_drv_start was given.
struct StreamStart {
  const Node& node;
  Target target;
  unsigned channel;
  const abi::ProfStartPara& para;

  // Copies the caller's bytes: they are freed right after the call.
  template <class T>
  std::optional<T> CopyExactly() const {
    if (para.user_data == nullptr || para.user_data_size != sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, para.user_data, sizeof value);
    return value;
  }
  bool TakesNothing() const { return para.user_data_size == 0 && ValidPeriod(para.sample_period); }

  std::unique_ptr<RecordStream> Empty(size_t record_size) const;
  std::unique_ptr<RecordStream> Periodic(size_t record_size, uint32_t period_ms, Emitter emitter) const;
  std::unique_ptr<RecordStream> Text(std::string_view header, Emitter emitter) const;
};

// A channel and what makes its stream; null where the parameters are wrong for it.
struct StreamSource {
  uint32_t channel;
  std::unique_ptr<RecordStream> (*make)(const StreamStart&);
};
// Of emit_dvpp.cc, emit_instr.cc, ...
std::span<const StreamSource> DvppStreams();
std::span<const StreamSource> InstrStreams();
std::span<const StreamSource> LinkStreams();
std::span<const StreamSource> MemoryStreams();
std::span<const StreamSource> SocStreams();

// QoS streams the simulated driver knows; empty where the chip has none.
struct QosStream {
  uint8_t mpam_id;
  std::string_view name;
};
std::span<const QosStream> QosStreams(const ChipSpec& chip);

}  // namespace profd::sim
