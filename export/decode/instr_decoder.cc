#include "driver/records/instr.h"
#include "export/decode/decoder_groups.h"
#include "export/decode/record_decoder.h"
#include "export/text_scan.h"

namespace profd::exporting {
namespace {

constexpr std::string_view kInstrPrefix = "instr.group_";

int64_t GroupOf(std::string_view base) {
  uint64_t group = 0;
  TextScan(base.substr(kInstrPrefix.size())).Digits(&group);
  return static_cast<int64_t>(group);
}

// A file is one core's: cycles since the record before, and what an AI Core moved.
template <class Record>
class InstrDecoder final : public RecordDecoder<InstrDecoder<Record>, Record, TableDecoder> {
 public:
  InstrDecoder(const DecodeContext& context, int core)
      : InstrDecoder::RecordDecoder(context, TableId::kInstrCycles),
        group_(GroupOf(context.file->base)),
        core_(core),
        counter_clock_(context.clock),
        flows_(TableOf(TableId::kInstrFlow), context.place->device, context.window, *context.rows) {}

  bool DecodeRecord(const Record& record) {
    double ns = 0;
    if (!counter_clock_.Get(record.timestamp(), &ns)) return false;
    const int64_t t_ns = counter_clock_.Wall(ns);
    Cycles(t_ns, record.cycles());
    if constexpr (std::is_same_v<Record, records::InstrCubeRecord>) Flow(t_ns, record.flow());
    return true;
  }
  void FinishRows() {
    this->rows_.Flush();
    flows_.Flush();
  }

 private:
  using Cells = decltype(records::InstrCycles::units);

  // Of the first one it is not known since when they are counted.
  void Cycles(int64_t t_ns, const records::InstrCycles& now) {
    if (seen_) {
      std::array<uint64_t, 2 + std::tuple_size_v<Cells>> cells{static_cast<uint64_t>(group_),
                                                              static_cast<uint64_t>(core_)};
      for (size_t i = 0; i < last_.size(); ++i) {
        cells[2 + i] = (now.units[i] - last_[i]) & (records::InstrCycles::kModulo - 1);
      }
      this->rows_.AddCells(t_ns, cells);
    }
    seen_ = true;
    last_ = now.units;
  }

  void Flow(int64_t t_ns, const records::InstrFlow& flow) {
    flows_.Add(t_ns, group_, flow.read_flow, flow.write_flow, flow.read_latency, flow.write_latency,
               flow.read_commands, flow.write_commands, flow.l2_read_flow, flow.l2_write_flow, flow.l2_hits);
  }

  int64_t group_;
  int core_;
  CounterClock counter_clock_;
  BatchBuilder flows_;
  bool seen_ = false;
  Cells last_{};
};

}  // namespace

std::span<const DecoderSpec> InstrDecoders() {
  static constexpr uint32_t kChips = Chips({5, 7, 8, 11});
  static constexpr auto kSpecs = std::to_array<DecoderSpec>({
      {"instr.group_*_aic", Place::Kind::kDevice, kChips, records::InstrCubeRecord::kSize, 0,
       kTables<TableId::kInstrCycles, TableId::kInstrFlow>, MakeDecoder<InstrDecoder<records::InstrCubeRecord>, 0>},
      {"instr.group_*_aiv0", Place::Kind::kDevice, kChips, records::InstrVectorRecord::kSize, 0,
       kTables<TableId::kInstrCycles>, MakeDecoder<InstrDecoder<records::InstrVectorRecord>, 1>},
      {"instr.group_*_aiv1", Place::Kind::kDevice, kChips, records::InstrVectorRecord::kSize, 0,
       kTables<TableId::kInstrCycles>, MakeDecoder<InstrDecoder<records::InstrVectorRecord>, 2>},
  });
  return kSpecs;
}

}  // namespace profd::exporting
