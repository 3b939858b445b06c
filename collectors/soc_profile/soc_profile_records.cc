#include "collectors/soc_profile/soc_profile_records.h"

#include <array>
#include <string>
#include <utility>

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

// One die, link or accelerator of one record type.
struct Source {
  IntervalTimer timer;  // also refuses repeated timestamps
  std::array<SeriesId, kLowPowerWords + 1> ids;
};

class SocProfileDecoder final : public BinaryDecoder<SocProfileDecoder, SocRecord> {
 public:
  SocProfileDecoder(const DeviceInfo& device, SeriesRegistry& registry)
      : device_(device.id),
        is_v6_(abi::Is950Class(static_cast<uint32_t>(device.chip_id))),
        series_(registry) {}

  bool DecodeRecord(const SocRecord& record, const TimeBase& time, SampleBatch& out) {
    if (record.IsUnused()) return true;
    if (!record.IsPlausible()) return false;
    std::optional<Timestamp> timestamp = TimestampFromDeviceCount(record.timestamp(), time);
    if (!timestamp) return false;
    const auto type = static_cast<abi::SocProfileType>(record.type());
    const uint32_t id = record.Source(is_v6_);
    Source* source = sources_[record.type() - SocRecord::kFirstType].FindOrAdd(
        id, [&] { return MakeSource(type, id); });
    if (source == nullptr) return false;
    double seconds = 0;
    IntervalTimer::Step step = source->timer.Next(*timestamp, &seconds);
    if (step == IntervalTimer::Step::kNotLater) return false;
    switch (type) {
      case abi::SocProfileType::kQos:
        EmitQos(*source, id, record.As<records::SocQos>(), timestamp->host_ns, out);
        break;
      case abi::SocProfileType::kSio:
        if (step == IntervalTimer::Step::kFirst) break;
        EmitSio(*source, SioOf(record), seconds, timestamp->host_ns, out);
        break;
      case abi::SocProfileType::kAccPmu:
        EmitAccPmu(*source, record.As<records::SocAccPmu>(), timestamp->host_ns, out);
        break;
      case abi::SocProfileType::kChipTrans:
        EmitTransfer(*source, TransferOf(record), timestamp->host_ns, out);
        break;
      case abi::SocProfileType::kSocLevels:
        EmitLevels(*source, record.As<records::SocLevels>(), timestamp->host_ns, out);
        break;
      case abi::SocProfileType::kLowPower:
        EmitLowPower(*source, record.As<records::SocLowPower>(), timestamp->host_ns, out);
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
    const std::string label = std::to_string(type == abi::SocProfileType::kAccPmu ? records::NumberOf(id) : id);
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
          add(MetricByName("atlas_npu_low_power_value"),
              {label, word < 10 ? "hard" : "soft", std::to_string((word % 10) ^ 1u)});
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
    const std::string label = std::to_string(is_v6_ ? subtype : records::NumberOf(id));
    // An unknown kind is shown with its own number rather than as one of the two.
    std::string kind = is_pa                                      ? "pa"
                       : is_v6_ || subtype == abi::kChipTransPcie ? "pcie"
                                                                  : std::to_string(subtype);
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
        source.ids[i] = series_.Add(MetricByName("atlas_npu_qos_bandwidth_bytes_per_second"), device_,
                                    {std::to_string(die), std::to_string(i)});
      }
      out.Emit(source.ids[i], host_ns, value * kMebi);
    }
  }

  // What is emitted is gathered first: with a call of Emit() for each value the compiler no longer
  // puts it in line, and a record takes 17 ns instead of 11.
  using SioBytes = std::array<uint32_t, 2 * kSioKinds.size()>;
  template <class Sio>
  static SioBytes BothWays(const Sio& sio) {
    SioBytes bytes;
    for (size_t i = 0; i < kSioKinds.size(); ++i) {
      bytes[i] = sio.rx[i];
      bytes[kSioKinds.size() + i] = sio.tx[i];
    }
    return bytes;
  }
  SioBytes SioOf(const SocRecord& record) const {
    return is_v6_ ? BothWays(record.As<records::SocSioV6>())
                  : BothWays(record.As<records::SocSio>());
  }
  std::array<uint64_t, 2> TransferOf(const SocRecord& record) const {
    auto both = [](const auto& t) { return std::array<uint64_t, 2>{t.first, t.second}; };
    return is_v6_ ? both(record.As<records::SocTransferV6>())
                  : both(record.As<records::SocTransfer>());
  }
  static void EmitSio(const Source& source, const SioBytes& bytes, double seconds, int64_t host_ns,
                      SampleBatch& out) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      out.Emit(source.ids[i], host_ns, bytes[i] / seconds);
    }
  }

  static void EmitAccPmu(const Source& source, const records::SocAccPmu& pmu, int64_t host_ns,
                         SampleBatch& out) {
    const std::array<std::pair<size_t, uint64_t>, 4> values = {{{0, pmu.write_bandwidth},
                                                                {2, pmu.write_outstanding},
                                                                {1, pmu.read_bandwidth},
                                                                {3, pmu.read_outstanding}}};
    for (const auto& [which, value] : values) {
      out.Emit(source.ids[which], host_ns, static_cast<double>(value));
    }
  }

  static void EmitTransfer(const Source& source, std::array<uint64_t, 2> bytes, int64_t host_ns,
                           SampleBatch& out) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i] == records::kNoTransfer) continue;
      out.Emit(source.ids[i], host_ns, static_cast<double>(bytes[i]));
    }
  }

  static void EmitLevels(const Source& source, const records::SocLevels& levels, int64_t host_ns,
                         SampleBatch& out) {
    size_t i = 0;
    for (int level : {levels.mata(), levels.l2_buffer()}) out.Emit(source.ids[i++], host_ns, level);
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

std::unique_ptr<ChannelDecoder> MakeSocProfileDecoder(const DeviceInfo& device, uint32_t, SeriesRegistry& registry) {
  return std::make_unique<SocProfileDecoder>(device, registry);
}

}  // namespace profd
