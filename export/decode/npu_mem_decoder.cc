#include "driver/abi/records.h"
#include "export/decode/device_families.h"
#include "export/decode/record_decoder.h"

namespace profd::exporting {
namespace {

namespace layout = abi::npu_mem_record;
namespace module_layout = abi::module_mem_record;

// One row per record.
class NpuMemDecoder final : public RecordDecoder<NpuMemDecoder, layout::kSize> {
 public:
  explicit NpuMemDecoder(const DecodeContext& context)
      : RecordDecoder(layout::kSize),
        v2_(context.place->record_version == "2.0"),
        clock_(context.clock),
        rows_(TableOf(TableId::kNpuMem), context.place->device, context.window, *context.rows) {}

  bool DecodeRecord(Record record) {
    auto kind = LoadUnchecked<uint32_t>(record, layout::kKind);
    auto ddr = LoadUnchecked<uint64_t>(record, layout::kDdr);
    auto hbm = LoadUnchecked<uint64_t>(record, layout::kHbm);
    if (kind > 1 || !FitsInt64(ddr) || !FitsInt64(hbm)) return false;
    int64_t t_ns = 0;
    if (v2_) {
      auto stamp = LoadUnchecked<uint64_t>(record, layout::kEpochNsV2);
      if (stamp > kMaxEpochNs) return false;
      t_ns = static_cast<int64_t>(static_cast<double>(stamp));  // kept as a double by the vendor
    } else {
      uint64_t us = micros_.Widen(LoadUnchecked<uint32_t>(record, layout::kMicros));
      t_ns = clock_.DeviceMicros(static_cast<int64_t>(us));
    }
    rows_.Add(t_ns, kind, static_cast<int64_t>(ddr), static_cast<int64_t>(hbm));
    return true;
  }
  void FinishRows() { rows_.Flush(); }

 private:
  bool v2_;
  ClockMap clock_;
  BatchBuilder rows_;
  MicrosWidener micros_;
};

class ModuleMemDecoder final : public RecordDecoder<ModuleMemDecoder, module_layout::kSize> {
 public:
  explicit ModuleMemDecoder(const DecodeContext& context)
      : RecordDecoder(module_layout::kSize),
        clock_(context.clock),
        rows_(TableOf(TableId::kModuleMem), context.place->device, context.window, *context.rows) {}

  bool DecodeRecord(Record record) {
    auto reserved = LoadUnchecked<uint64_t>(record, module_layout::kReserved);
    rows_.Add(clock_.HostCounter(LoadUnchecked<uint64_t>(record, module_layout::kHostCount)),
              LoadUnchecked<uint32_t>(record, module_layout::kModule),
              FitsInt64(reserved) ? static_cast<int64_t>(reserved) : int64_t{-1});
    return true;
  }
  void FinishRows() { rows_.Flush(); }

 private:
  ClockMap clock_;
  BatchBuilder rows_;
};

}  // namespace

std::unique_ptr<Decoder> MakeNpuMemDecoder(const DecodeContext& context) {
  return std::make_unique<NpuMemDecoder>(context);
}

std::unique_ptr<Decoder> MakeModuleMemDecoder(const DecodeContext& context) {
  return std::make_unique<ModuleMemDecoder>(context);
}

}  // namespace profd::exporting
