// The emitters of every channel that delivers data; record layouts are those of driver-abi 3.6.
// `node` outlives them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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
void AppendTextStamp(int64_t device_ns, std::string* out);

template <class T>
void AppendLe(T value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Memory (emit_memory.cc).
std::unique_ptr<Emitter> MakeHbmEmitter(Target target, std::vector<uint32_t> events);
std::unique_ptr<Emitter> MakeDdrEmitter(Target target, std::vector<uint32_t> events,
                                        uint32_t master);
std::unique_ptr<Emitter> MakeLlcEmitter(Target target, bool write);
std::unique_ptr<Emitter> MakeNpuMemEmitter(Target target, uint32_t event);
std::unique_ptr<Emitter> MakeModuleMemEmitter(Target target, bool host_cycles);

// Links (emit_link.cc).
std::unique_ptr<Emitter> MakePcieEmitter(Target target);
std::unique_ptr<Emitter> MakeHccsEmitter(Target target);
std::unique_ptr<Emitter> MakeNetEmitter(Target target, bool roce);
std::string_view HccsHeader();
std::string_view NetHeader();

// Media engines (emit_dvpp.cc). `engine_type` < 0: all of them.
std::unique_ptr<Emitter> MakeDvppEmitter(Target target, int engine_type);
std::string_view DvppHeader();

// SoC (emit_soc.cc). The running count in the head of channel 52's records is shared by its
// emitters.
std::unique_ptr<Emitter> MakeSioEmitter(Target target, std::shared_ptr<uint8_t> count);
std::unique_ptr<Emitter> MakeAccPmuEmitter(Target target, std::shared_ptr<uint8_t> count);
std::unique_ptr<Emitter> MakeChipTransEmitter(Target target, std::shared_ptr<uint8_t> count);
std::unique_ptr<Emitter> MakeSocLevelEmitter(Target target, std::shared_ptr<uint8_t> count);
std::unique_ptr<Emitter> MakeQosEmitter(Target target, std::vector<uint8_t> mpam_ids);
std::unique_ptr<Emitter> MakeLpEmitter(Target target, int64_t period_ns);

// Instruction profiling: `record_size` bytes, a record every period of the driver.
std::unique_ptr<Emitter> MakeInstrEmitter(Target target, size_t record_size);

// QoS streams the simulated driver knows; empty where the chip has none.
struct QosStream {
  uint8_t mpam_id;
  std::string_view name;
};
std::span<const QosStream> QosStreams(const ChipSpec& chip);

}  // namespace profd::sim
