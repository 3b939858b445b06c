#include "driver/records/micros_widener.h"
#include "driver/records/module_mem.h"
#include "driver/records/npu_mem.h"
#include "export/decode/decoder_groups.h"
#include "export/decode/record_decoder.h"

namespace profd::exporting {
namespace {

using records::ModuleMemRecord;
using records::NpuMemRecord;

// One row per record.
class NpuMemDecoder final : public RecordDecoder<NpuMemDecoder, NpuMemRecord, TableDecoder> {
 public:
  explicit NpuMemDecoder(const DecodeContext& context)
      : RecordDecoder(context, TableId::kNpuMem), v2_(context.place->record_version == "2.0") {}

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

 private:
  bool v2_;
  records::MicrosWidener micros_;
};

class ModuleMemDecoder final : public RecordDecoder<ModuleMemDecoder, ModuleMemRecord, TableDecoder> {
 public:
  using RecordDecoder::RecordDecoder;

  bool DecodeRecord(const ModuleMemRecord& record) {
    rows_.Add(clock_.HostCounter(record.timestamp), record.module,
              record.IsKnown() ? static_cast<int64_t>(record.bytes) : int64_t{-1});
    return true;
  }
};

}  // namespace

std::span<const DecoderSpec> NpuMemDecoders() {
  static constexpr uint32_t kChips = Chips({0, 1, 3, 4, 5, 7, 8, 11, 15, 16});
  static constexpr auto kSpecs = std::to_array<DecoderSpec>({
      ChannelDecoder(records::kNpuMemFormat, kChips, kTables<TableId::kNpuMem>, MakeDecoder<NpuMemDecoder>),
      ChannelDecoder(records::kNpuAppMemFormat, kChips, kTables<TableId::kNpuMem>, MakeDecoder<NpuMemDecoder>),
      ChannelDecoder(records::kModuleMemFormat, Chips({1, 2, 3, 4, 5, 7, 8, 11, 15, 16}),
                     kTables<TableId::kModuleMem>, MakeDecoder<ModuleMemDecoder, TableId::kModuleMem>),
  });
  return kSpecs;
}

}  // namespace profd::exporting
