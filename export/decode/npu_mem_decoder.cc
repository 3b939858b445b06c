#include "driver/records/module_mem.h"
#include "driver/records/npu_mem.h"
#include "export/decode/decoder_groups.h"
#include "export/decode/record_decoder.h"

namespace profd::exporting {
namespace {

using records::ModuleMemRecord;
using records::NpuMemRecord;

// One row per record.
class NpuMemDecoder final : public RecordDecoder<NpuMemDecoder, NpuMemRecord> {
 public:
  explicit NpuMemDecoder(const DecodeContext& context)
      : v2_(context.place->record_version == "2.0"),
        clock_(context.clock),
        rows_(TableOf(TableId::kNpuMem), context.place->device, context.window, *context.rows) {}

  bool DecodeRecord(const NpuMemRecord& record) {
    if (record.kind >= NpuMemRecord::kKinds || !FitsInt64(record.ddr_bytes | record.hbm_bytes)) {
      return false;
    }
    int64_t t_ns = 0;
    if (v2_) {
      if (record.epoch_ns > kMaxEpochNs) return false;
      // Kept as a double by the vendor.
      t_ns = static_cast<int64_t>(static_cast<double>(record.epoch_ns));
    } else {
      uint64_t us = micros_.Widen(record.timestamp);
      t_ns = clock_.DeviceMicros(static_cast<int64_t>(us));
    }
    rows_.Add(t_ns, record.kind, static_cast<int64_t>(record.ddr_bytes),
              static_cast<int64_t>(record.hbm_bytes));
    return true;
  }
  void FinishRows() { rows_.Flush(); }

 private:
  bool v2_;
  ClockMap clock_;
  BatchBuilder rows_;
  MicrosWidener micros_;
};

class ModuleMemDecoder final : public RecordDecoder<ModuleMemDecoder, ModuleMemRecord> {
 public:
  explicit ModuleMemDecoder(const DecodeContext& context)
      : clock_(context.clock),
        rows_(TableOf(TableId::kModuleMem), context.place->device, context.window, *context.rows) {}

  bool DecodeRecord(const ModuleMemRecord& record) {
    rows_.Add(clock_.HostCounter(record.timestamp), record.module,
              record.IsKnown() ? static_cast<int64_t>(record.bytes) : int64_t{-1});
    return true;
  }
  void FinishRows() { rows_.Flush(); }

 private:
  ClockMap clock_;
  BatchBuilder rows_;
};

std::unique_ptr<Decoder> MakeNpuMemDecoder(const DecodeContext& context) {
  return std::make_unique<NpuMemDecoder>(context);
}

std::unique_ptr<Decoder> MakeModuleMemDecoder(const DecodeContext& context) {
  return std::make_unique<ModuleMemDecoder>(context);
}

}  // namespace

std::span<const DecoderSpec> NpuMemDecoders() {
  static constexpr uint32_t kChips = Chips({0, 1, 3, 4, 5, 7, 8, 11, 15, 16});
  static constexpr std::array kTables = {TableId::kNpuMem};
  static constexpr std::array kModuleTables = {TableId::kModuleMem};
  static constexpr auto kSpecs = std::to_array<DecoderSpec>({
      ChannelDecoder(records::kNpuMemFormat, kChips, kTables, MakeNpuMemDecoder),
      ChannelDecoder(records::kNpuAppMemFormat, kChips, kTables, MakeNpuMemDecoder),
      ChannelDecoder(records::kModuleMemFormat, Chips({1, 2, 3, 4, 5, 7, 8, 11, 15, 16}),
                     kModuleTables, MakeModuleMemDecoder),
  });
  return kSpecs;
}

}  // namespace profd::exporting
