#include "collectors/soc_profile/soc_profile_records.h"

#include <fmt/format.h>

#include <array>
#include <string>

#include "collectors/channel_decoder.h"
#include "collectors/metric_table.h"
#include "driver/abi/channels.h"
#include "driver/abi/hal_abi.h"
#include "driver/abi/records.h"

namespace profd {
namespace {

// Common head: u16 {type:6, count:4, subtype:6}, u16 magic, u32, u64 device counter.
namespace layout = abi::soc_record;
constexpr size_t kRecordSize = layout::kSize;
constexpr size_t kMagicOffset = layout::kMagic;
constexpr size_t kStampOffset = layout::kDeviceCount;
// u16, of SIO, acc PMU and chip transfer; not on chips 15, 16.
constexpr size_t kIdOffset = layout::kId;

constexpr uint8_t kFirstType = static_cast<uint8_t>(abi::SocProfileType::kQos);
constexpr uint8_t kLastDecodedType = static_cast<uint8_t>(abi::SocProfileType::kLowPower);
constexpr uint8_t kLastKnownType = layout::kLastKnownType;
constexpr size_t kTypes = kLastDecodedType - kFirstType + 1;

// SIO: bytes since the previous record of the die.
constexpr std::array<std::string_view, 4> kSioKinds = {"req", "rsp", "snp", "dat"};
constexpr size_t kSioRxOffset = layout::kSioRx;
constexpr size_t kSioTxOffset = layout::kSioTx;
constexpr size_t kSioV6RxOffset = layout::kSioRxV6;
constexpr size_t kSioV6TxOffset = layout::kSioTxV6;

// Each: u64 write, u64 read.
constexpr size_t kAccBandwidthOffset = layout::kAccWriteBandwidth;
constexpr size_t kAccOutstandingOffset = layout::kAccWriteOutstanding;

constexpr size_t kTransOffset = layout::kTrans;
constexpr size_t kTransV6Offset = layout::kTransV6;
constexpr uint16_t kTransIdMask = layout::kTransIdMask;
constexpr uint64_t kNoReading = layout::kNoReading;

constexpr size_t kLevelsOffset = layout::kLevels;

// Low power: 20 u16, neighbours swapped: words 0..9 are hard readings 1,0,3,2..., 10..19 soft ones.
constexpr size_t kLowPowerOffset = layout::kLowPower;
constexpr size_t kLowPowerWords = layout::kLowPowerWords;
constexpr size_t kAicoreMhzWord = layout::kLowPowerAicoreMhz;

// QoS: u64 reserved, ten u32; words 2..9 are streams 1..8.
constexpr size_t kQosOffset = layout::kQos;
constexpr size_t kQosFirstWord = layout::kQosFirstV6;
constexpr size_t kQosStreams = layout::kQosStreamsV6;
constexpr double kMegabyte = 1048576;

// One die, link or accelerator of one record type.
struct Source {
  IntervalTimer timer;  // also refuses repeated stamps
  std::array<SeriesId, kLowPowerWords + 1> ids;
};

class SocProfileDecoder final : public BinaryDecoder<SocProfileDecoder, kRecordSize> {
 public:
  SocProfileDecoder(const DeviceInfo& device, SeriesRegistry& registry)
      : device_(device.id),
        is_v6_(device.chip_id == abi::kChip950 || device.chip_id == abi::kChip950V121),
        series_(registry) {}

  bool DecodeRecord(std::span<const std::byte> record, const TimeBase& time, SampleBatch& out) {
    uint16_t head = LoadUnchecked<uint16_t>(record, 0);
    if (LoadUnchecked<uint16_t>(record, kMagicOffset) != abi::kSocProfileMagic) return false;
    uint8_t type = abi::SocProfileTypeOf(head);
    if (type < kFirstType || type > kLastKnownType) return false;
    if (type > kLastDecodedType) return true;
    std::optional<Stamp> stamp =
        StampFromDeviceCount(LoadUnchecked<uint64_t>(record, kStampOffset), time);
    if (!stamp) return false;
    uint32_t id = IdOf(static_cast<abi::SocProfileType>(type), head, record);
    Source* source = sources_[type - kFirstType].FindOrAdd(
        id, [&] { return MakeSource(static_cast<abi::SocProfileType>(type), id); });
    if (source == nullptr) return false;
    double seconds = 0;
    IntervalTimer::Step step = source->timer.Next(*stamp, &seconds);
    if (step == IntervalTimer::Step::kNotLater) return false;
    switch (static_cast<abi::SocProfileType>(type)) {
      case abi::SocProfileType::kQos:
        EmitQos(*source, id, record, stamp->host_ns, out);
        break;
      case abi::SocProfileType::kSio:
        if (step == IntervalTimer::Step::kForward) {
          EmitSio(*source, record, seconds, stamp->host_ns, out);
        }
        break;
      case abi::SocProfileType::kAccPmu:
        EmitAccPmu(*source, record, stamp->host_ns, out);
        break;
      case abi::SocProfileType::kChipTrans:
        EmitChipTrans(*source, record, stamp->host_ns, out);
        break;
      case abi::SocProfileType::kSocLevels:
        EmitLevels(*source, record, stamp->host_ns, out);
        break;
      case abi::SocProfileType::kLowPower:
        EmitLowPower(*source, record, stamp->host_ns, out);
        break;
    }
    return true;
  }

  void Reset() override {
    for (IdTable<Source>& table : sources_) {
      for (Source& source : table.states()) source.timer.Reset();
    }
  }

 private:
  // What tells the sources of one type apart; for chip transfer the link kind is in it.
  uint32_t IdOf(abi::SocProfileType type, uint16_t head, std::span<const std::byte> record) const {
    uint32_t subtype = abi::SocProfileSubtypeOf(head);
    uint32_t id = LoadUnchecked<uint16_t>(record, kIdOffset);
    switch (type) {
      case abi::SocProfileType::kSio:
        // On chips 15, 16 the die is in bits 2-7 of byte 1, which is the subtype.
        return is_v6_ ? subtype : id;
      case abi::SocProfileType::kAccPmu:
        return id;
      case abi::SocProfileType::kChipTrans:
        return is_v6_ ? subtype : subtype << 16 | (id & kTransIdMask);
      case abi::SocProfileType::kSocLevels:
        return 0;
      case abi::SocProfileType::kQos:
      case abi::SocProfileType::kLowPower:
        return subtype;  // die
    }
    return 0;
  }

  Source MakeSource(abi::SocProfileType type, uint32_t id) {
    Source source{.timer = {}, .ids = {}};
    source.ids.fill(kNoSeries);
    fmt::format_int text(id);
    std::string_view label(text.data(), text.size());
    size_t n = 0;
    auto add = [&](MetricId metric, std::initializer_list<std::string_view> labels) {
      source.ids[n++] = series_.Add(metric, device_, labels);
    };
    switch (type) {
      case abi::SocProfileType::kSio:
        for (std::string_view direction : {"rx", "tx"}) {
          for (std::string_view kind : kSioKinds) {
            add(MetricByName("atlas_npu_sio_bandwidth_bytes_per_second"), {label, kind, direction});
          }
        }
        break;
      case abi::SocProfileType::kAccPmu:
        for (std::string_view direction : {"write", "read"}) {
          add(MetricByName("atlas_npu_acc_pmu_bandwidth"), {label, direction});
        }
        for (std::string_view direction : {"write", "read"}) {
          add(MetricByName("atlas_npu_acc_pmu_outstanding"), {label, direction});
        }
        break;
      case abi::SocProfileType::kChipTrans:
        AddChipLink(source, id);
        break;
      case abi::SocProfileType::kSocLevels:
        for (std::string_view unit : {"mata", "l2_buffer"}) {
          add(MetricByName("atlas_npu_soc_bandwidth_level"), {unit});
        }
        break;
      case abi::SocProfileType::kLowPower:
        add(MetricByName("atlas_npu_die_frequency_hertz"), {label, "aicore"});
        for (size_t word = 0; word < kLowPowerWords; ++word) {
          fmt::format_int index((word % 10) ^ 1u);
          add(MetricByName("atlas_npu_low_power_value"),
              {label, word < 10 ? "hard" : "soft", std::string_view(index.data(), index.size())});
        }
        break;
      case abi::SocProfileType::kQos:
        break;  // streams are known when they first move something
    }
    return source;
  }

  void AddChipLink(Source& source, uint32_t id) {
    constexpr MetricId kLink = MetricByName("atlas_npu_chip_link_bandwidth");
    uint32_t link = id & kTransIdMask;
    bool is_pa = !is_v6_ && id >> 16 == abi::kChipTransPaLink;
    fmt::format_int text(link);
    std::string_view label(text.data(), text.size());
    // An unknown kind is shown as what it says it is rather than as one of the two.
    std::string kind = is_pa                                       ? "pa"
                       : is_v6_ || id >> 16 == abi::kChipTransPcie ? "pcie"
                                                                   : fmt::to_string(id >> 16);
    source.ids[0] = series_.Add(kLink, device_, {kind, label, is_pa ? "rx" : "write"});
    source.ids[1] = series_.Add(kLink, device_, {kind, label, is_pa ? "tx" : "read"});
  }

  void EmitQos(Source& source, uint32_t die, std::span<const std::byte> record, int64_t host_ns,
               SampleBatch& out) {
    for (size_t i = 0; i < kQosStreams; ++i) {
      uint32_t value =
          LoadUnchecked<uint32_t>(record, kQosOffset + (kQosFirstWord + i) * sizeof(uint32_t));
      // As in channel 133: a stream is shown from the first traffic on.
      if (source.ids[i] == kNoSeries) {
        if (value == 0) continue;
        fmt::format_int die_text(die);
        fmt::format_int stream(i);
        source.ids[i] =
            series_.Add(MetricByName("atlas_npu_qos_bandwidth_bytes_per_second"), device_,
                        {std::string_view(die_text.data(), die_text.size()),
                         std::string_view(stream.data(), stream.size())});
      }
      out.Emit(source.ids[i], host_ns, value * kMegabyte);
    }
  }

  void EmitSio(const Source& source, std::span<const std::byte> record, double seconds,
               int64_t host_ns, SampleBatch& out) const {
    std::array<size_t, 2> offsets = {is_v6_ ? kSioV6RxOffset : kSioRxOffset,
                                     is_v6_ ? kSioV6TxOffset : kSioTxOffset};
    for (size_t direction = 0; direction < offsets.size(); ++direction) {
      for (size_t kind = 0; kind < kSioKinds.size(); ++kind) {
        uint32_t bytes =
            LoadUnchecked<uint32_t>(record, offsets[direction] + kind * sizeof(uint32_t));
        out.Emit(source.ids[direction * kSioKinds.size() + kind], host_ns, bytes / seconds);
      }
    }
  }

  static void EmitAccPmu(const Source& source, std::span<const std::byte> record, int64_t host_ns,
                         SampleBatch& out) {
    for (size_t i = 0; i < 2; ++i) {
      size_t at = i * sizeof(uint64_t);
      out.Emit(source.ids[i], host_ns,
               static_cast<double>(LoadUnchecked<uint64_t>(record, kAccBandwidthOffset + at)));
      out.Emit(source.ids[2 + i], host_ns,
               static_cast<double>(LoadUnchecked<uint64_t>(record, kAccOutstandingOffset + at)));
    }
  }

  void EmitChipTrans(const Source& source, std::span<const std::byte> record, int64_t host_ns,
                     SampleBatch& out) const {
    size_t offset = is_v6_ ? kTransV6Offset : kTransOffset;
    for (size_t i = 0; i < 2; ++i) {
      uint64_t value = LoadUnchecked<uint64_t>(record, offset + i * sizeof(uint64_t));
      if (value != kNoReading) out.Emit(source.ids[i], host_ns, static_cast<double>(value));
    }
  }

  static void EmitLevels(const Source& source, std::span<const std::byte> record, int64_t host_ns,
                         SampleBatch& out) {
    uint16_t levels = LoadUnchecked<uint16_t>(record, kLevelsOffset);
    out.Emit(source.ids[0], host_ns, levels & 0x7);
    out.Emit(source.ids[1], host_ns, (levels & 0x7F8) >> 3);
  }

  static void EmitLowPower(const Source& source, std::span<const std::byte> record, int64_t host_ns,
                           SampleBatch& out) {
    for (size_t word = 0; word < kLowPowerWords; ++word) {
      uint16_t value = LoadUnchecked<uint16_t>(record, kLowPowerOffset + word * sizeof(uint16_t));
      if (word == kAicoreMhzWord) out.Emit(source.ids[0], host_ns, value * 1e6);
      out.Emit(source.ids[1 + word], host_ns, value);
    }
  }

  int device_;
  bool is_v6_;
  SeriesSet series_;
  std::array<IdTable<Source>, kTypes> sources_;
};

}  // namespace

std::unique_ptr<ChannelDecoder> MakeSocProfileDecoder(const DeviceInfo& device,
                                                      SeriesRegistry& registry) {
  return std::make_unique<SocProfileDecoder>(device, registry);
}

}  // namespace profd
