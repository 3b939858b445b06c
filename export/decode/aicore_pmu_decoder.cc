#include "driver/records/aicore_pmu.h"
#include "export/decode/decoder_groups.h"
#include "export/decode/record_decoder.h"

namespace profd::exporting {
namespace {

using records::AicoreSample;
using records::AicoreSampleV6;

enum class CoreType : uint8_t { kAicore, kVector, kById };

// Sample-based counters: one row per record and core.
template <class Record>
class AicoreSampleDecoder final : public RecordDecoder<AicoreSampleDecoder<Record>, Record, TableDecoder> {
 public:
  AicoreSampleDecoder(const DecodeContext& context, CoreType type)
      : AicoreSampleDecoder::RecordDecoder(context, TableId::kAicorePmu),
        type_(type),
        counter_clock_(context.clock) {}

  bool DecodeRecord(const Record& record) {
    const size_t used = record.event_count;
    int64_t t_ns = 0;
    if (record.mode == 0 || used > record.events.size() || !FitsInt64(record.cycles) ||
        !GetTime(record.timestamp, &t_ns)) {
      return false;
    }
    std::array<uint64_t, 2 + kColumns + 2> cells{};
    cells[0] = record.core;
    cells[1] = TypeOf(record.core) == CoreType::kVector ? 1 : 0;
    for (size_t i = 0; i < used; ++i) {
      if (!FitsInt64(record.events[i])) return false;
      cells[2 + i] = record.events[i];
    }
    cells[2 + kColumns] = record.cycles;
    cells[3 + kColumns] = used;
    this->rows_.AddCells(t_ns, cells);
    return true;
  }

 private:
  // Of events in the table; there are more than some records have.
  static constexpr size_t kColumns = std::tuple_size_v<decltype(AicoreSampleV6::events)>;

  bool GetTime(uint64_t timestamp, int64_t* t_ns) const {
    if constexpr (std::is_same_v<Record, AicoreSampleV6>) {
      double ns = 0;
      if (!counter_clock_.Get(timestamp, &ns)) return false;
      *t_ns = counter_clock_.Wall(ns);
      return true;
    }
    if (timestamp > kMaxPlausibleNs) return false;
    *t_ns = this->clock_.DeviceNs(static_cast<int64_t>(timestamp));
    return true;
  }
  CoreType TypeOf(uint8_t core) const {
    if (type_ != CoreType::kById) return type_;
    return core > Record::kLastAicoreId ? CoreType::kVector : CoreType::kAicore;
  }

  CoreType type_;
  CounterClock counter_clock_;
};

template <CoreType type>
std::unique_ptr<Decoder> MakeAicorePmuDecoder(const DecodeContext& context) {
  if (IsV6(context.place->chip)) {
    return std::make_unique<AicoreSampleDecoder<AicoreSampleV6>>(context, type);
  }
  return std::make_unique<AicoreSampleDecoder<AicoreSample>>(context, type);
}

}  // namespace

std::span<const DecoderSpec> AicorePmuDecoders() {
  constexpr auto spec = [](std::string_view file, uint32_t chips, auto make) -> DecoderSpec {
    return {file,
            Place::Kind::kDevice,
            chips,
            sizeof(records::AicoreSample),
            sizeof(records::AicoreSampleV6),
            kTables<TableId::kAicorePmu>,
            make,
            0,
            records::kTaskPmuRecordBytes};
  };
  static constexpr auto kSpecs = std::to_array<DecoderSpec>({
      spec("aicore.data", Chips({0, 1, 2, 3, 4}), MakeAicorePmuDecoder<CoreType::kAicore>),
      spec("aiVectorCore.data", Chips({2, 3, 4}), MakeAicorePmuDecoder<CoreType::kVector>),
      spec("ffts_profile.data", Chips({5, 7, 8, 11, 15, 16}), MakeAicorePmuDecoder<CoreType::kById>),
  });
  return kSpecs;
}

}  // namespace profd::exporting
