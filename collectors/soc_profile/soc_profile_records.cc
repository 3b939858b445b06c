#include "collectors/soc_profile/soc_profile_records.h"

#include <fmt/format.h>

#include <array>
#include <string>

#include "collectors/channel_decoder.h"
#include "collectors/metric_table.h"
#include "driver/abi/channels.h"
#include "driver/abi/hal_abi.h"
#include "driver/records/soc_profile.h"

namespace profd {
namespace {

using records::SocRecord;

constexpr size_t kTypes = SocRecord::kLastType - SocRecord::kFirstType + 1;
constexpr std::array<std::string_view, 4> kSioKinds = {"req", "rsp", "snp", "dat"};
constexpr size_t kLowPowerWords = std::tuple_size_v<decltype(records::SocLowPower::words)>;
constexpr double kMegabyte = 1048576;

// One die, link or accelerator of one record type.
struct Source {
  IntervalTimer timer;  // also refuses repeated stamps
  std::array<SeriesId, kLowPowerWords + 1> ids;
};

class SocProfileDecoder final : public BinaryDecoder<SocProfileDecoder, SocRecord> {
 public:
  SocProfileDecoder(const DeviceInfo& device, SeriesRegistry& registry)
      : device_(device.id),
        is_v6_(device.chip_id == abi::kChip950 || device.chip_id == abi::kChip950V121),
        series_(registry) {}

  bool DecodeRecord(const SocRecord& record, const TimeBase& time, SampleBatch& out) {
    if (!record.IsPlausible()) return record.IsUnused();
    std::optional<Stamp> stamp = StampFromDeviceCount(record.stamp(), time);
    if (!stamp) return false;
    const auto type = static_cast<abi::SocProfileType>(record.type());
    const uint32_t id = record.Source(is_v6_);
    Source* source = sources_[record.type() - SocRecord::kFirstType].FindOrAdd(
        id, [&] { return MakeSource(type, id); });
    if (source == nullptr) return false;
    double seconds = 0;
    IntervalTimer::Step step = source->timer.Next(*stamp, &seconds);
    if (step == IntervalTimer::Step::kNotLater) return false;
    switch (type) {
      case abi::SocProfileType::kQos:
        EmitQos(*source, id, record.As<records::SocQos>(), stamp->host_ns, out);
        break;
      case abi::SocProfileType::kSio:
        if (step == IntervalTimer::Step::kFirst) break;
        if (is_v6_) {
          EmitSio(*source, record.As<records::SocSioV6>(), seconds, stamp->host_ns, out);
        } else {
          EmitSio(*source, record.As<records::SocSio>(), seconds, stamp->host_ns, out);
        }
        break;
      case abi::SocProfileType::kAccPmu:
        EmitAccPmu(*source, record.As<records::SocAccPmu>(), stamp->host_ns, out);
        break;
      case abi::SocProfileType::kChipTrans:
        if (is_v6_) {
          EmitTransfer(*source, record.As<records::SocTransferV6>(), stamp->host_ns, out);
        } else {
          EmitTransfer(*source, record.As<records::SocTransfer>(), stamp->host_ns, out);
        }
        break;
      case abi::SocProfileType::kSocLevels:
        EmitLevels(*source, record.As<records::SocLevels>(), stamp->host_ns, out);
        break;
      case abi::SocProfileType::kLowPower:
        EmitLowPower(*source, record.As<records::SocLowPower>(), stamp->host_ns, out);
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
  Source MakeSource(abi::SocProfileType type, uint32_t id) {
    Source source{.timer = {}, .ids = {}};
    source.ids.fill(kNoSeries);
    fmt::format_int text(type == abi::SocProfileType::kAccPmu ? records::NumberOf(id) : id);
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
    const uint8_t subtype = records::SubtypeOf(id);
    const bool is_pa = !is_v6_ && subtype == abi::kChipTransPaLink;
    fmt::format_int text(is_v6_ ? subtype : records::NumberOf(id));
    std::string_view label(text.data(), text.size());
    // An unknown kind is shown as what it says it is rather than as one of the two.
    std::string kind = is_pa                                      ? "pa"
                       : is_v6_ || subtype == abi::kChipTransPcie ? "pcie"
                                                                  : fmt::to_string(subtype);
    source.ids[0] = series_.Add(kLink, device_, {kind, label, is_pa ? "rx" : "write"});
    source.ids[1] = series_.Add(kLink, device_, {kind, label, is_pa ? "tx" : "read"});
  }

  void EmitQos(Source& source, uint32_t die, const records::SocQos& qos, int64_t host_ns,
               SampleBatch& out) {
    for (size_t i = 0; i < records::SocQos::kStreamsV6; ++i) {
      const uint32_t value = qos.words[records::SocQos::kFirstV6 + i];
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

  template <class Sio>
  static void EmitSio(const Source& source, const Sio& sio, double seconds, int64_t host_ns,
                      SampleBatch& out) {
    for (size_t kind = 0; kind < kSioKinds.size(); ++kind) {
      out.Emit(source.ids[kind], host_ns, sio.rx[kind] / seconds);
    }
    for (size_t kind = 0; kind < kSioKinds.size(); ++kind) {
      out.Emit(source.ids[kSioKinds.size() + kind], host_ns, sio.tx[kind] / seconds);
    }
  }

  static void EmitAccPmu(const Source& source, const records::SocAccPmu& pmu, int64_t host_ns,
                         SampleBatch& out) {
    out.Emit(source.ids[0], host_ns, static_cast<double>(pmu.write_bandwidth));
    out.Emit(source.ids[2], host_ns, static_cast<double>(pmu.write_outstanding));
    out.Emit(source.ids[1], host_ns, static_cast<double>(pmu.read_bandwidth));
    out.Emit(source.ids[3], host_ns, static_cast<double>(pmu.read_outstanding));
  }

  template <class Transfer>
  static void EmitTransfer(const Source& source, const Transfer& transfer, int64_t host_ns,
                           SampleBatch& out) {
    if (transfer.first != records::kNoTransfer) {
      out.Emit(source.ids[0], host_ns, static_cast<double>(transfer.first));
    }
    if (transfer.second != records::kNoTransfer) {
      out.Emit(source.ids[1], host_ns, static_cast<double>(transfer.second));
    }
  }

  static void EmitLevels(const Source& source, const records::SocLevels& levels, int64_t host_ns,
                         SampleBatch& out) {
    out.Emit(source.ids[0], host_ns, levels.mata());
    out.Emit(source.ids[1], host_ns, levels.l2_buffer());
  }

  static void EmitLowPower(const Source& source, const records::SocLowPower& power, int64_t host_ns,
                           SampleBatch& out) {
    for (size_t word = 0; word < kLowPowerWords; ++word) {
      const uint16_t value = power.words[word];
      if (word == records::SocLowPower::kAicoreMhz) out.Emit(source.ids[0], host_ns, value * 1e6);
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
