#include "driver/abi/channels.h"
#include "driver/abi/records.h"
#include "export/decode/device_families.h"
#include "export/decode/qos_streams.h"
#include "export/decode/record_decoder.h"

namespace profd::exporting {
namespace {

namespace layout = abi::soc_record;

constexpr int kNoDie = -1;

bool LacksFile(const Place& place, std::string_view base) {
  return std::ranges::none_of(place.files, [&](const DataFile& file) { return file.base == base; });
}

// Whose AI Core clock is in the low power records: chips 15 and 16, and those of the older ones
// that have no file of its changes.
bool TellsFrequency(const Place& place) {
  switch (place.chip) {
    case 8:
    case 11:
    case 15:
    case 16:
      return true;
    case 7:
      return LacksFile(place, "lpmFreqConv.data");
    default:
      return false;
  }
}

class SocProfileDecoder final : public RecordDecoder<SocProfileDecoder, layout::kSize> {
 public:
  explicit SocProfileDecoder(const DecodeContext& context)
      : RecordDecoder(layout::kSize),
        v6_(IsV6(context.place->chip)),
        tells_frequency_(TellsFrequency(*context.place)),
        clock_(context.clock),
        streams_(context, v6_ ? layout::kQosStreamsV6 : QosStreams::kMaxSlots),
        sio_(Rows(context, TableId::kSio)),
        acc_(Rows(context, TableId::kAccPmu)),
        trans_(Rows(context, TableId::kChipTrans)),
        levels_(Rows(context, TableId::kSocLevel)),
        low_power_(Rows(context, TableId::kLowPower)),
        frequency_(Rows(context, TableId::kAicoreFreq)),
        qos_(Rows(context, TableId::kQos)) {}

  bool DecodeRecord(Record record) {
    auto head = LoadUnchecked<uint16_t>(record, 0);
    if (LoadUnchecked<uint16_t>(record, layout::kMagic) != abi::kSocProfileMagic) return false;
    uint8_t type = abi::SocProfileTypeOf(head);
    if (type < static_cast<uint8_t>(abi::SocProfileType::kQos)) return false;
    if (type > static_cast<uint8_t>(abi::SocProfileType::kLowPower)) {
      return type <= layout::kLastKnownType && Skip();
    }
    double ns = 0;
    if (!clock_.Get(LoadUnchecked<uint64_t>(record, layout::kDeviceCount), &ns)) return false;
    uint8_t subtype = abi::SocProfileSubtypeOf(head);
    switch (static_cast<abi::SocProfileType>(type)) {
      case abi::SocProfileType::kQos:
        return Qos(record, ns, subtype);
      case abi::SocProfileType::kSio:
        return Sio(record, ns, v6_ ? subtype : LoadUnchecked<uint16_t>(record, layout::kId));
      case abi::SocProfileType::kAccPmu:
        return AccPmu(record, ns);
      case abi::SocProfileType::kChipTrans:
        return v6_ ? ChipTransV6(record, ns, subtype) : ChipTrans(record, ns, subtype);
      case abi::SocProfileType::kSocLevels:
        return Levels(record, ns);
      case abi::SocProfileType::kLowPower:
        return LowPower(record, ns, subtype);
    }
    return false;
  }
  void FinishRows() {
    for (BatchBuilder* rows : {&sio_, &acc_, &trans_, &levels_, &low_power_, &frequency_, &qos_}) {
      rows->Flush();
    }
  }

 private:
  static BatchBuilder Rows(const DecodeContext& context, TableId table) {
    return BatchBuilder(TableOf(table), context.place->device, context.window, *context.rows);
  }

  // Bytes since the die's last record; the first one has no time to go by.
  bool Sio(Record record, double ns, uint16_t die) {
    using Step = IntervalClock<double>::Step;
    if (die >= kMaxSeries) return false;
    double elapsed = 0;
    Step step = dies_[die].Next(ns, &elapsed);
    if (step == Step::kFirst) return true;
    if (step != Step::kForward) return false;
    std::array<uint32_t, 2 * layout::kSioKinds> bytes;
    size_t half = sizeof bytes / 2;
    std::memcpy(bytes.data(), record.data() + (v6_ ? layout::kSioRxV6 : layout::kSioRx), half);
    std::memcpy(bytes.data() + layout::kSioKinds,
                record.data() + (v6_ ? layout::kSioTxV6 : layout::kSioTx), half);
    std::array<uint64_t, 1 + bytes.size()> cells;
    cells[0] = die;
    for (size_t i = 0; i < bytes.size(); ++i) {
      cells[1 + i] = BatchBuilder::ToCell(bytes[i] * (1e9 / kMega) / elapsed);
    }
    sio_.AddCells(clock_.Wall(ns), cells);
    return true;
  }

  bool AccPmu(Record record, double ns) {
    auto read = LoadUnchecked<uint64_t>(record, layout::kAccReadBandwidth);
    auto write = LoadUnchecked<uint64_t>(record, layout::kAccWriteBandwidth);
    auto read_open = LoadUnchecked<uint64_t>(record, layout::kAccReadOutstanding);
    auto write_open = LoadUnchecked<uint64_t>(record, layout::kAccWriteOutstanding);
    if (!FitsInt64(read | write | read_open | write_open)) return false;
    acc_.Add(clock_.Wall(ns), LoadUnchecked<uint16_t>(record, layout::kId),
             static_cast<int64_t>(read), static_cast<int64_t>(write),
             static_cast<int64_t>(read_open), static_cast<int64_t>(write_open));
    return true;
  }

  bool ChipTrans(Record record, double ns, uint8_t subtype) {
    if (subtype != abi::kChipTransPaLink && subtype != abi::kChipTransPcie) return Skip();
    int kind = subtype == abi::kChipTransPaLink ? kPaLink : kPcie;
    int link = LoadUnchecked<uint16_t>(record, layout::kId) & layout::kTransIdMask;
    return Transfer(record.subspan(layout::kTrans), ns, kind, link);
  }
  bool ChipTransV6(Record record, double ns, uint8_t die) {
    return Transfer(record.subspan(layout::kTransV6), ns, kPcie, die);
  }
  bool Transfer(Record values, double ns, int kind, int link) {
    auto first = LoadUnchecked<uint64_t>(values, 0);
    auto second = LoadUnchecked<uint64_t>(values, sizeof(uint64_t));
    // Seen from real devices.
    if (first == layout::kNoReading || second == layout::kNoReading) return Skip();
    if (!FitsInt64(first | second)) return false;
    trans_.Add(clock_.Wall(ns), kind, link, static_cast<int64_t>(first),
               static_cast<int64_t>(second));
    return true;
  }

  bool Levels(Record record, double ns) {
    auto levels = LoadUnchecked<uint16_t>(record, layout::kLevels);
    levels_.Add(clock_.Wall(ns), (levels & 0x7F8) >> 3, levels & 0x7);
    return true;
  }

  bool LowPower(Record record, double ns, uint8_t die) {
    std::array<uint64_t, 1 + layout::kLowPowerWords> cells;
    cells[0] = die;
    for (size_t i = 0; i < layout::kLowPowerWords; ++i) {
      cells[1 + i] =
          LoadUnchecked<uint16_t>(record, layout::kLowPower + (i ^ 1) * sizeof(uint16_t));
    }
    int64_t t_ns = clock_.Wall(ns);
    low_power_.AddCells(t_ns, cells);
    if (tells_frequency_) {
      frequency_.Add(t_ns, die, static_cast<double>(cells[1 + (layout::kLowPowerAicoreMhz ^ 1)]));
    }
    return true;
  }

  bool Qos(Record record, double ns, uint8_t die) {
    size_t words = layout::kQos + (v6_ ? layout::kQosFirstV6 * sizeof(uint32_t) : 0);
    auto slot = [&](size_t i) {
      return LoadUnchecked<uint32_t>(record, words + i * sizeof(uint32_t));
    };
    streams_.Emit(clock_.Wall(ns), v6_ ? die : kNoDie, slot, qos_);
    return true;
  }

  static constexpr int kPaLink = 0;
  static constexpr int kPcie = 1;

  bool v6_;
  bool tells_frequency_;
  CounterClock clock_;
  QosStreams streams_;
  BatchBuilder sio_;
  BatchBuilder acc_;
  BatchBuilder trans_;
  BatchBuilder levels_;
  BatchBuilder low_power_;
  BatchBuilder frequency_;
  BatchBuilder qos_;
  std::array<IntervalClock<double>, kMaxSeries> dies_;
};

// qos.data: the same slots in a file of their own.
class QosDecoder final : public RecordDecoder<QosDecoder, abi::qos_record::kSize> {
 public:
  explicit QosDecoder(const DecodeContext& context)
      : RecordDecoder(abi::qos_record::kSize),
        clock_(context.clock),
        streams_(context, abi::qos_record::kSlotCount),
        rows_(TableOf(TableId::kQos), context.place->device, context.window, *context.rows) {}

  bool DecodeRecord(Record record) {
    double ns = 0;
    if (!clock_.Get(LoadUnchecked<uint64_t>(record, abi::qos_record::kDeviceCount), &ns)) {
      return false;
    }
    auto slot = [&](size_t i) {
      return LoadUnchecked<uint32_t>(record, abi::qos_record::kSlots + i * sizeof(uint32_t));
    };
    streams_.Emit(clock_.Wall(ns), kNoDie, slot, rows_);
    return true;
  }
  void FinishRows() { rows_.Flush(); }

 private:
  CounterClock clock_;
  QosStreams streams_;
  BatchBuilder rows_;
};
static_assert(abi::qos_record::kSlotCount <= QosStreams::kMaxSlots);

}  // namespace

std::unique_ptr<Decoder> MakeSocProfileDecoder(const DecodeContext& context) {
  return std::make_unique<SocProfileDecoder>(context);
}

std::unique_ptr<Decoder> MakeQosDecoder(const DecodeContext& context) {
  return std::make_unique<QosDecoder>(context);
}

}  // namespace profd::exporting
