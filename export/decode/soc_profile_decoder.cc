#include "driver/records/qos.h"
#include "driver/records/soc_profile.h"
#include "export/decode/decoder_groups.h"
#include "export/decode/qos_streams.h"
#include "export/decode/record_decoder.h"

namespace profd::exporting {
namespace {

using records::QosRecord;
using records::SocRecord;

constexpr int kNoDie = -1;

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
      return !HasFile(place, "lpmFreqConv.data");
    default:
      return false;
  }
}

class SocProfileDecoder final : public RecordDecoder<SocProfileDecoder, SocRecord> {
 public:
  explicit SocProfileDecoder(const DecodeContext& context)
      : v6_(IsV6(context.place->chip)),
        tells_frequency_(TellsFrequency(*context.place)),
        clock_(context.clock),
        streams_(context, v6_ ? records::SocQos::kStreamsV6 : QosStreams::kMaxSlots),
        sio_(Rows(context, TableId::kSio)),
        acc_(Rows(context, TableId::kAccPmu)),
        trans_(Rows(context, TableId::kChipTrans)),
        levels_(Rows(context, TableId::kSocLevel)),
        low_power_(Rows(context, TableId::kLowPower)),
        frequency_(Rows(context, TableId::kAicoreFreq)),
        qos_(Rows(context, TableId::kQos)) {}

  bool DecodeRecord(const SocRecord& record) {
    if (record.IsUnused()) return Skip();
    if (!record.IsPlausible()) return false;
    double ns = 0;
    if (!clock_.Get(record.timestamp(), &ns)) return false;
    const uint8_t subtype = record.subtype();
    switch (static_cast<abi::SocProfileType>(record.type())) {
      case abi::SocProfileType::kQos:
        return Qos(record.As<records::SocQos>(), ns, subtype);
      case abi::SocProfileType::kSio:
        if (v6_) return Sio(record.As<records::SocSioV6>(), ns, subtype);
        return Sio(record.As<records::SocSio>(), ns, record.As<records::SocSio>().die);
      case abi::SocProfileType::kAccPmu:
        return AccPmu(record.As<records::SocAccPmu>(), ns);
      case abi::SocProfileType::kChipTrans:
        if (v6_) return Transfer(record.As<records::SocTransferV6>(), ns, kPcie, subtype);
        return ChipTransfer(record.As<records::SocTransfer>(), ns, subtype);
      case abi::SocProfileType::kSocLevels:
        return Levels(record.As<records::SocLevels>(), ns);
      case abi::SocProfileType::kLowPower:
        return LowPower(record.As<records::SocLowPower>(), ns, subtype);
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
  template <class SioBody>
  bool Sio(const SioBody& sio, double ns, uint16_t die) {
    using Step = IntervalClock<double>::Step;
    if (die >= kMaxSeries) return false;
    double elapsed = 0;
    Step step = dies_[die].Next(ns, &elapsed);
    if (step == Step::kFirst) return true;
    if (step != Step::kForward) return false;
    std::array<uint64_t, 1 + 2 * std::tuple_size_v<decltype(SioBody::rx)>> cells;
    size_t next = 0;
    cells[next++] = die;
    auto rate = [elapsed](uint32_t bytes) {
      return BatchBuilder::ToCell(bytes * (1e9 / kMega) / elapsed);
    };
    for (uint32_t bytes : sio.rx) cells[next++] = rate(bytes);
    for (uint32_t bytes : sio.tx) cells[next++] = rate(bytes);
    sio_.AddCells(clock_.Wall(ns), cells);
    return true;
  }

  bool AccPmu(const records::SocAccPmu& pmu, double ns) {
    if (!FitsInt64(pmu.read_bandwidth | pmu.write_bandwidth | pmu.read_outstanding |
                   pmu.write_outstanding)) {
      return false;
    }
    acc_.Add(clock_.Wall(ns), pmu.id, static_cast<int64_t>(pmu.read_bandwidth),
             static_cast<int64_t>(pmu.write_bandwidth), static_cast<int64_t>(pmu.read_outstanding),
             static_cast<int64_t>(pmu.write_outstanding));
    return true;
  }

  bool ChipTransfer(const records::SocTransfer& transfer, double ns, uint8_t subtype) {
    if (subtype != abi::kChipTransPaLink && subtype != abi::kChipTransPcie) return Skip();
    int kind = subtype == abi::kChipTransPaLink ? kPaLink : kPcie;
    return Transfer(transfer, ns, kind, records::SocTransfer::Link(transfer.id));
  }
  template <class Body>
  bool Transfer(const Body& transfer, double ns, int kind, int link) {
    // Seen from real devices.
    if (transfer.first == records::kNoTransfer || transfer.second == records::kNoTransfer) {
      return Skip();
    }
    if (!FitsInt64(transfer.first | transfer.second)) return false;
    trans_.Add(clock_.Wall(ns), kind, link, static_cast<int64_t>(transfer.first),
               static_cast<int64_t>(transfer.second));
    return true;
  }

  bool Levels(const records::SocLevels& levels, double ns) {
    levels_.Add(clock_.Wall(ns), levels.l2_buffer(), levels.mata());
    return true;
  }

  bool LowPower(const records::SocLowPower& power, double ns, uint8_t die) {
    std::array<uint64_t, 1 + std::tuple_size_v<decltype(power.words)>> cells;
    cells[0] = die;
    for (size_t i = 0; i < power.words.size(); ++i) cells[1 + i] = power.words[i ^ 1];
    int64_t t_ns = clock_.Wall(ns);
    low_power_.AddCells(t_ns, cells);
    if (tells_frequency_) {
      frequency_.Add(t_ns, die, static_cast<double>(power.words[records::SocLowPower::kAicoreMhz]));
    }
    return true;
  }

  bool Qos(const records::SocQos& qos, double ns, uint8_t die) {
    size_t first = v6_ ? records::SocQos::kFirstV6 : 0;
    auto slot = [&](size_t i) { return qos.words[first + i]; };
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
class QosDecoder final : public RecordDecoder<QosDecoder, QosRecord, TableDecoder> {
 public:
  explicit QosDecoder(const DecodeContext& context)
      : RecordDecoder(context, TableId::kQos), counter_clock_(context.clock), streams_(context, kSlots) {}

  bool DecodeRecord(const QosRecord& record) {
    double ns = 0;
    if (!counter_clock_.Get(record.timestamp, &ns)) return false;
    auto slot = [&](size_t i) { return record.streams[i]; };
    streams_.Emit(counter_clock_.Wall(ns), kNoDie, slot, rows_);
    return true;
  }

 private:
  static constexpr size_t kSlots = std::tuple_size_v<decltype(QosRecord::streams)>;
  static_assert(kSlots <= QosStreams::kMaxSlots);

  CounterClock counter_clock_;
  QosStreams streams_;
};

}  // namespace

std::span<const DecoderSpec> SocProfileDecoders() {
  static constexpr auto kSpecs = std::to_array<DecoderSpec>({
      ChannelDecoder(records::kQosFormat, Chips({5}), kTables<TableId::kQos>, MakeDecoder<QosDecoder>),
      ChannelDecoder(records::kSocProfileFormat, Chips({5, 7, 8, 11, 15, 16}),
                     kTables<TableId::kSio, TableId::kAccPmu, TableId::kChipTrans, TableId::kSocLevel,
                             TableId::kLowPower, TableId::kAicoreFreq, TableId::kQos>,
                     MakeDecoder<SocProfileDecoder>),
  });
  return kSpecs;
}

}  // namespace profd::exporting
